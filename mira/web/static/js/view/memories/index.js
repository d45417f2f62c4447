// The view of memories: a list with its search on one side, a memory or a picture of all on the
// other. What is shown is in the address: #memories, #memories/picture, #memories/mem_0123abcd.

import * as api from "../../memory_api.js";
import { h } from "../../dom.js";
import { ask } from "../ask.js";
import { Trying } from "../trying.js";
import { Detail } from "./detail.js";
import { memoryForm } from "./form.js";
import { List } from "./list.js";
import { Picture, pictureInWords } from "./picture.js";

const TYPING = 250; // milliseconds without a key after which a search begins

export class Memories {
  #cursor = null;
  #asked = 0; // the newest question to the list; answers to older ones come too late
  #opened = 0; // the same for the memory beside it
  #shown = null; // the memory beside the list
  #typing = 0;
  #picture = new Picture();
  #listed = false;
  #trying;

  /** `parts` are the elements of the view by name; `announce(text)` is for the screen reader. */
  constructor(parts, { announce, signedOut }) {
    Object.assign(this, parts, { announce });
    this.#trying = new Trying(parts.problem, signedOut);
    this.list = new List({ element: parts.list, more: parts.more, onMore: () => this.#more() });
    this.detail = new Detail(parts.detail, {
      edit: (memory) => this.#edit(memory),
      confirm: (memory) => this.#change(memory, api.confirm, "Counted: it stays longer."),
      archive: (memory) => this.#change(memory, api.archive, "Archived."),
      restore: (memory) => this.#change(memory, api.restore, "Restored."),
      remove: (memory) => this.#remove(memory),
      undo: (memory, event) => this.#undo(memory, event),
      explain: (memory) => api.explain(memory.id),
    });
    parts.search.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.#load(), TYPING);
    });
    parts.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#load();
    });
    parts.order.addEventListener("change", () => this.#load());
    parts.status.addEventListener("change", () => this.#load());
    parts.add.addEventListener("click", () => this.#new());
    parts.fold.before(this.#picture.element);
  }

  /** Show what `hash` names; called whenever the address changes while this view is shown. */
  async open(hash) {
    const [, what = ""] = hash.split("/");
    const one = what !== "" && what !== "picture";
    this.stage.dataset.pane = what === "" ? "list" : "beside";
    this.detail.element.hidden = !one;
    this.overview.hidden = one;
    this.list.mark(one ? what : null);
    this.problem.textContent = "";
    const listing = this.#listed ? Promise.resolve() : this.#load();
    await (one ? this.#show(what) : this.#drawAll());
    await listing;
  }

  /** The view is left: what is shown next time is read anew. */
  close() {
    this.#listed = false;
    this.#shown = null;
  }

  /** Put the cursor into the search field. */
  focus() {
    this.search.focus({ preventScroll: true });
  }

  async #load() {
    clearTimeout(this.#typing);
    const mine = ++this.#asked;
    const words = this.search.value.trim();
    this.order.disabled = words !== "";
    this.status.disabled = words !== "";
    const answer = await this.#trying.run(() =>
      words ? api.search(words) : api.page({ status: this.status.value, order: this.order.value }),
    );
    if (answer === undefined || mine !== this.#asked) return;
    this.#listed = true;
    this.#cursor = words ? null : answer.next_cursor;
    this.list.show(words ? answer.hits : answer.memories.map((memory) => ({ memory })), {
      more: this.#cursor !== null,
    });
    this.#count(words);
  }

  async #more() {
    const mine = this.#asked;
    const asked = { status: this.status.value, order: this.order.value, cursor: this.#cursor };
    const answer = await this.#trying.run(() => api.page(asked));
    if (answer === undefined || mine !== this.#asked) return;
    this.#cursor = answer.next_cursor;
    const items = answer.memories.map((memory) => ({ memory }));
    this.list.show(items, { add: true, more: this.#cursor !== null });
    this.#count("");
  }

  #count(words) {
    const { length } = this.list;
    const things = length === 1 ? "1 memory" : `${length}${this.#cursor ? " or more" : ""} memories`;
    const archived = this.status.value === "archived";
    const none = words
      ? "Nothing is remembered about that."
      : archived
        ? "Nothing is archived."
        : "Nothing is remembered yet. Facts are kept as you talk, or write one yourself.";
    this.count.textContent = length === 0 ? none : words ? `${things} found` : things;
  }

  async #show(shortId) {
    const mine = ++this.#opened;
    const read = await this.#trying.run(() =>
      Promise.all([api.get(shortId), api.links(shortId), api.events(shortId), api.graph(shortId)]),
    );
    if (read === undefined || mine !== this.#opened) return;
    const [memory, { links }, { events }, graph] = read;
    const fresh = this.#shown !== memory.id;
    this.#shown = memory.id;
    this.detail.show(memory, { links, events, graph });
    this.list.mark(memory.short_id);
    document.title = `${memory.text.slice(0, 60)} · MIRA`;
    if (fresh) {
      this.pane.scrollTop = 0;
      this.detail.heading.focus({ preventScroll: true });
    }
  }

  async #drawAll() {
    const mine = ++this.#opened;
    this.#shown = null;
    document.title = "Memories · MIRA";
    const graph = await this.#trying.run(() => api.graph());
    if (graph === undefined || mine !== this.#opened) return;
    this.#picture.show(graph);
    this.inWords.replaceChildren(pictureInWords(graph));
    this.empty.hidden = graph.nodes.length > 0;
    this.fold.hidden = graph.nodes.length === 0;
  }

  #new() {
    this.written?.remove();
    const done = () => {
      this.written?.remove();
      this.written = null;
      this.add.focus();
    };
    this.written = memoryForm(null, {
      cancel: done,
      save: async (fields) => {
        const { memory, outcome } = await api.create(fields);
        done();
        this.announce(OUTCOMES[outcome] ?? "Remembered.");
        await this.#load();
        location.hash = `#memories/${memory.short_id}`;
      },
    });
    this.form.after(this.written);
    this.written.querySelector("textarea").focus();
  }

  #edit(memory) {
    const form = memoryForm(memory, {
      cancel: () => restore(),
      save: async (fields) => {
        await api.edit(memory.id, memory.version, fields);
        restore();
        await this.#again(memory, "Changed.");
      },
    });
    const restore = this.detail.edit(form);
  }

  async #change(memory, act, words) {
    if ((await this.#trying.run(() => act(memory.id).then(() => true))) === undefined) return;
    await this.#again(memory, words);
  }

  async #remove(memory) {
    const words = [`“${memory.text}”`, "Its words are gone for good: this cannot be undone."];
    if (!(await ask("Delete this memory?", words, "Delete", { danger: true }))) return;
    if ((await this.#trying.run(() => api.remove(memory.id).then(() => true))) === undefined) return;
    this.announce("Deleted.");
    await this.#load();
    location.hash = "#memories";
    this.focus();
  }

  async #undo(memory, event) {
    if (!(await ask("Undo this?", [event.summary, event.undo], "Undo"))) return;
    if ((await this.#trying.run(() => api.undo(memory.id, event.id).then(() => true))) === undefined) return;
    await this.#again(memory, "Undone.");
  }

  // Read memory and list again after a change; the memory may be gone by it.
  async #again(memory, words) {
    this.announce(words);
    const there = await api.get(memory.id).then(() => true, (problem) => problem.status !== 404);
    await this.#load();
    if (there) await this.#show(memory.short_id);
    else location.hash = "#memories";
  }
}

const OUTCOMES = {
  created: "Remembered.",
  reinforced: "This was known already, and counts for more now.",
  superseding: "Remembered; it takes the place of an older one.",
};

/** The view over the elements of the page. */
export function memoriesView(actions) {
  const by = (id) => document.getElementById(id);
  const parts = {
    stage: by("memories"),
    form: by("memory-find"),
    search: by("memory-search"),
    order: by("memory-order"),
    status: by("memory-status"),
    add: by("memory-add"),
    count: by("memory-count"),
    list: by("memory-list"),
    more: by("memory-more"),
    problem: by("memory-problem"),
    pane: by("memory-pane"),
    detail: by("memory-detail"),
    overview: by("memory-overview"),
    fold: by("memory-in-words"),
    empty: by("memory-empty"),
  };
  parts.inWords = parts.fold.appendChild(h("div"));
  return new Memories(parts, actions);
}
