// The message field: grows with its text, sends on Enter, keeps the draft.

import { ACCEPTED } from "../file_api.js";
import { draft } from "../outbox.js";
import { Attaching } from "./attaching.js";

const LIMIT = 100_000; // code points, as the server counts
const WARN = 90_000;
const NONE = { empty: true, settled: true, waiting: false }; // before there is a row for files

export class Composer {
  #wanted = false; // to be sent as soon as its files have arrived

  /** `onSend(text, files)`, `onStop()`, `announce(text)`. */
  constructor({ form, field, send, stop, count, attach, picker, row, onSend, onStop, announce }) {
    Object.assign(this, { form, field, send, stop, count, onSend, onStop });
    field.value = draft.read();
    this.files = new Attaching(row, { onChange: () => this.#changed(), announce });
    this.#takeFiles(attach, picker);
    // On a touch screen there is no Shift+Enter: there Enter breaks the line, the button sends.
    this.enterSends = !matchMedia("(hover: none) and (pointer: coarse)").matches;
    field.enterKeyHint = this.enterSends ? "send" : "enter";
    field.addEventListener("input", () => {
      this.#wanted = false;
      this.#changed();
    });
    field.addEventListener("keydown", (event) => this.#key(event));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    stop.addEventListener("click", () => this.onStop());
    document.addEventListener("keydown", (event) => {
      const here = !stop.hidden && stop.offsetParent !== null; // and not on another view
      if (event.key === "Escape" && !event.defaultPrevented && here) this.onStop();
    });
    this.#changed();
  }

  setRunning(running) {
    this.stop.hidden = !running;
  }

  /** The page has appeared: be ready to be written in, without bringing up a keyboard of glass. */
  appear() {
    this.#grow(); // what is hidden has no height to measure
    if (this.enterSends) this.field.focus({ preventScroll: true });
  }

  #focus() {
    this.field.focus({ preventScroll: true });
  }

  /** Put a message in front of what is written, to be changed and sent again. */
  restore({ content, files }) {
    const { value } = this.field;
    this.field.value = value && content ? `${content}\n${value}` : content || value;
    this.files.restore(files);
    this.#changed();
    this.#focus();
  }

  #key(event) {
    // While a word is being composed (Japanese, Chinese, …) Enter chooses it.
    const composing = event.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || composing || !this.enterSends) return;
    event.preventDefault();
    this.#submit();
  }

  // Files are chosen with the button, pasted, or dropped on the form.
  #takeFiles(attach, picker) {
    const { form, field } = this;
    picker.accept = ACCEPTED;
    attach.addEventListener("click", () => picker.click());
    picker.addEventListener("change", () => {
      this.files.add([...picker.files]);
      picker.value = ""; // the same file may be chosen again
      this.#focus();
    });
    field.addEventListener("paste", (event) => {
      const files = [...event.clipboardData.files];
      if (files.length === 0 || event.clipboardData.types.includes("text/plain")) return;
      event.preventDefault();
      this.files.add(files);
    });
    const holds = (event) => event.dataTransfer.types.includes("Files");
    form.addEventListener("dragover", (event) => {
      if (!holds(event)) return;
      event.preventDefault();
      form.classList.add("over");
    });
    form.addEventListener("dragleave", (event) => {
      if (!form.contains(event.relatedTarget)) form.classList.remove("over");
    });
    form.addEventListener("drop", (event) => {
      form.classList.remove("over");
      if (!holds(event)) return;
      event.preventDefault();
      this.files.add([...event.dataTransfer.files]);
    });
  }

  #submit() {
    if (this.send.disabled) {
      this.#wanted = this.files.waiting; // it goes when the files have arrived
      return;
    }
    this.#wanted = false;
    const text = this.field.value.trim();
    this.field.value = "";
    this.onSend(text, this.files.take());
  }

  #grow() {
    this.field.style.height = "auto";
    if (this.field.scrollHeight > 0) this.field.style.height = `${this.field.scrollHeight}px`;
  }

  #changed() {
    const { field, count } = this;
    this.#grow();
    draft.write(field.value);
    const length = field.value.length < WARN ? 0 : Array.from(field.value).length;
    count.hidden = length < WARN;
    count.textContent = `${length.toLocaleString()} of ${LIMIT.toLocaleString()} characters`;
    count.classList.toggle("over", length > LIMIT);
    const { empty, settled, waiting } = this.files ?? NONE;
    const nothing = field.value.trim() === "" && empty;
    this.send.disabled = nothing || length > LIMIT || !settled;
    if (!this.send.disabled && this.#wanted) this.#submit();
    else this.#wanted &&= waiting;
  }
}
