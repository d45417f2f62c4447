// The view of segments: what silence divides the conversation into, with their
// summaries, and beside them the prompt as it stands. Addresses: #segments, #segments/prompt.

import * as api from "../../segment_api.js";
import { ask } from "../ask.js";
import { Trying } from "../trying.js";
import { OpenSegment } from "./open.js";
import { showPrompt } from "./prompt.js";
import { segmentRow } from "./row.js";

const AGAIN = 4_000; // milliseconds after which a summary that is being written is looked for

export class Segments {
  #cursor = null;
  #asked = 0; // the newest question to the list; answers to older ones come too late
  #segments = [];
  #unfolded = new Set();
  #timer = 0;
  #shown = false;
  #trying;

  /** `parts` are the elements of the view by name; `announce(text)` is for the screen reader. */
  constructor(parts, { announce, signedOut }) {
    Object.assign(this, parts, { announce });
    this.#trying = new Trying(parts.problem, signedOut);
    this.current = new OpenSegment(parts.standing, (act) => this.#steer(act));
    parts.more.addEventListener("click", () => this.#more());
    document.addEventListener("visibilitychange", () => this.#watch());
  }

  /** Show what `hash` names; called whenever the address changes while this view is shown. */
  async open(hash) {
    const fresh = !this.#shown;
    this.#shown = true;
    this.stage.dataset.pane = hash.split("/")[1] === "prompt" ? "beside" : "list";
    document.title = "Segments · MIRA";
    if (!fresh) return;
    this.problem.textContent = "";
    await Promise.all([this.#load(), this.#readPrompt()]);
  }

  /** The view is left: what is shown next time is read anew. */
  close() {
    this.#shown = false;
    clearTimeout(this.#timer);
  }

  focus() {
    this.title.focus({ preventScroll: true });
  }

  // The newest page, and of those behind it what is known of them: they change no more.
  async #load() {
    const mine = ++this.#asked;
    const answer = await this.#trying.run(() => api.page());
    if (answer === undefined || mine !== this.#asked) return;
    const fresh = new Set(answer.segments.map(({ id }) => id));
    const first = this.#segments.findIndex(({ id }) => fresh.has(id));
    const behind = first < 0 ? [] : this.#segments.slice(first).filter(({ id }) => !fresh.has(id));
    this.#segments = [...answer.segments, ...behind];
    if (behind.length === 0) this.#cursor = answer.next_cursor;
    this.#draw();
  }

  async #more() {
    const mine = this.#asked;
    const answer = await this.#trying.run(() => api.page({ cursor: this.#cursor }));
    if (answer === undefined || mine !== this.#asked) return;
    const next = this.#segments.length;
    this.#cursor = answer.next_cursor;
    this.#segments = [...this.#segments, ...answer.segments];
    this.#draw();
    this.list.children[next]?.querySelector("summary").focus();
  }

  #draw() {
    const focused = this.list.contains(document.activeElement)
      ? document.activeElement.closest("li").dataset.id
      : null;
    this.list.replaceChildren(
      ...this.#segments.map((segment) =>
        segmentRow(segment, {
          open: this.#unfolded.has(segment.id),
          onToggle: (open) => this.#unfolded[open ? "add" : "delete"](segment.id),
          onRetry: () => this.#retry(segment.id),
        }),
      ),
    );
    this.list.querySelector(`li[data-id="${CSS.escape(focused ?? "")}"] summary`)?.focus();
    this.current.show(this.#segments.find(({ state }) => state === "active" || state === "paused") ?? null);
    this.more.hidden = this.#cursor === null;
    this.#count();
    this.#watch();
  }

  #count() {
    const { length } = this.#segments;
    const things = length === 1 ? "1 segment" : `${length}${this.#cursor ? " or more" : ""} segments`;
    const words = length === 0 ? "Nothing was said yet." : things;
    if (this.count.textContent !== words) this.count.textContent = words;
  }

  // A summary comes by itself: look for it while somebody is looking.
  #watch() {
    clearTimeout(this.#timer);
    const waiting = this.#segments.some(({ state }) => state === "collapsing");
    if (this.#shown && waiting && !document.hidden) {
      this.#timer = setTimeout(() => this.#load(), AGAIN);
    }
  }

  async #steer(act) {
    if (act === "collapse" && !(await ask("End this segment now?", ENDING, "End it"))) return;
    this.current.busy = true;
    const segment = await this.#trying.run(() => api.steer(act));
    this.current.busy = false;
    if (segment) this.announce(DONE[act]);
    const words = this.problem.textContent;
    await this.#load();
    this.problem.textContent ||= words;
  }

  async #retry(id) {
    const segment = await this.#trying.run(() => api.retry(id));
    if (segment) this.announce("The summary is tried again now.");
    const words = this.problem.textContent;
    await this.#load();
    this.problem.textContent ||= words;
  }

  async #readPrompt() {
    const answer = await this.#trying.run(() => api.workingMemory());
    if (answer) showPrompt({ element: this.sections, lead: this.lead }, answer.sections);
  }
}

const ENDING = [
  "It is summed up, and what is worth keeping of it is remembered. This cannot be undone.",
  "Your next message opens another, which knows this one by its summary.",
];

const DONE = {
  pause: "Paused: no silence ends this segment until you speak.",
  resume: "Resumed: silence counts from now.",
  collapse: "Ended. Its summary follows.",
};

/** The view over the elements of the page. */
export function segmentsView(actions) {
  const by = (id) => document.getElementById(id);
  const parts = {
    stage: by("segments"),
    title: by("segments-title"),
    standing: by("segment-open"),
    count: by("segment-count"),
    problem: by("segment-problem"),
    list: by("segment-list"),
    more: by("segment-more"),
    lead: by("prompt-lead"),
    sections: by("prompt-sections"),
  };
  return new Segments(parts, actions);
}
