// The message field: grows with its text, sends on Enter, keeps the draft.

import { draft } from "../outbox.js";

const LIMIT = 100_000; // code points, as the server counts
const WARN = 90_000;

export class Composer {
  /** `onSend(text)`, `onStop()`. */
  constructor({ form, field, send, stop, count, onSend, onStop }) {
    Object.assign(this, { form, field, send, stop, count, onSend, onStop });
    // On a touch screen there is no Shift+Enter: there Enter breaks the line, the button sends.
    this.enterSends = !matchMedia("(hover: none) and (pointer: coarse)").matches;
    field.enterKeyHint = this.enterSends ? "send" : "enter";
    field.value = draft.read();
    field.addEventListener("input", () => this.#changed());
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

  /** Put `text` in front of what is written, to be changed and sent again. */
  restore(text) {
    this.field.value = this.field.value ? `${text}\n${this.field.value}` : text;
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

  #submit() {
    const text = this.field.value.trim();
    if (this.send.disabled || text === "") return;
    this.field.value = "";
    this.#changed();
    this.onSend(text);
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
    this.send.disabled = field.value.trim() === "" || length > LIMIT;
  }
}
