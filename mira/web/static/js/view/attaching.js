// The files of the message that is being written: each goes to the server at once, so that sending
// the message waits for nothing.

import { h, icon } from "../dom.js";
import { MOST, refusal, takeBack, upload } from "../file_api.js";
import { kept } from "../outbox.js";
import { fileChip, sizeName } from "./files.js";

export class Attaching {
  #entries = []; // {file, card, abort, done: what the server said, or null, problem}

  /** `onChange()` when what may be sent has changed; `announce(text)`. */
  constructor(element, { onChange, announce }) {
    Object.assign(this, { element, onChange, announce });
    this.restore(kept.read());
  }

  /** Nothing is under way and nothing was refused. */
  get settled() {
    return this.#entries.every((entry) => entry.done !== null);
  }

  /** Something is under way, and nothing was refused. */
  get waiting() {
    return !this.settled && this.#entries.every((entry) => entry.problem === "");
  }

  get empty() {
    return this.#entries.length === 0;
  }

  add(files) {
    for (const file of files) {
      if (this.#entries.length === MOST) {
        this.announce(`A message takes ${MOST} files. ${file.name} was left out.`);
        break;
      }
      this.#send(file);
    }
    this.#changed();
  }

  /** Files that the server has already. */
  restore(files) {
    for (const done of files.slice(0, MOST - this.#entries.length)) {
      this.#show({ abort: null, done, problem: "" });
    }
    this.#changed();
  }

  /** What goes with the message; the row is empty afterwards. */
  take() {
    const files = this.#entries.map((entry) => entry.done);
    this.#entries = [];
    this.element.replaceChildren();
    this.#changed();
    return files;
  }

  async #send(file) {
    const entry = { file, abort: new AbortController(), done: null, problem: refusal(file) };
    this.#show(entry);
    if (entry.problem) return this.#failed(entry);
    const bar = entry.card.querySelector("progress");
    try {
      entry.done = await upload(file, {
        onProgress: (share) => (bar.value = share),
        signal: entry.abort.signal,
      });
      if (!this.#entries.includes(entry)) return undefined; // removed meanwhile
      this.#draw(entry);
      this.announce([`${entry.done.name} is attached.`, ...entry.done.notes].join(" "));
    } catch (problem) {
      entry.problem = problem.message;
      this.#failed(entry);
    }
    return this.#changed();
  }

  #failed(entry) {
    this.#draw(entry);
    this.announce(`${entry.file.name}: ${entry.problem}`);
  }

  #show(entry) {
    entry.card = h("li.attached");
    this.#entries.push(entry);
    this.element.append(entry.card);
    this.#draw(entry);
  }

  #draw(entry) {
    const { file, done, problem } = entry;
    const name = done?.name ?? file.name;
    const remove = h(
      "button.quiet",
      { type: "button", "aria-label": `Remove ${name}`, title: "Remove", onclick: () => this.#remove(entry) },
      icon("close"),
    );
    entry.card.classList.toggle("refused", problem !== "");
    if (done) {
      const notes = done.notes.map((note) => h("span.attached-note", {}, note));
      return entry.card.replaceChildren(fileChip(done), ...notes, remove);
    }
    const words = problem
      ? h("span.problem", { role: "alert" }, problem)
      : h("progress", { max: "1", value: "0", "aria-label": `Sending ${name}` });
    return entry.card.replaceChildren(
      h("span.attached-name", { dir: "auto" }, name),
      h("span.attached-size", {}, sizeName(file.size)),
      words,
      remove,
    );
  }

  #remove(entry) {
    entry.abort?.abort();
    if (entry.done) takeBack(entry.done.id);
    const place = this.#entries.indexOf(entry);
    this.#entries.splice(place, 1);
    entry.card.remove();
    const next = this.element.children[Math.min(place, this.#entries.length - 1)];
    next?.querySelector("button").focus();
    this.#changed();
  }

  #changed() {
    this.element.hidden = this.empty;
    kept.write(this.#entries.map((entry) => entry.done).filter(Boolean));
    this.onChange();
  }
}
