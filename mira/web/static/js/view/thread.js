// The thread on the page: a window of turns that moves with the reader. Only what is near is in
// the document, however long the conversation is.

import { dayKey } from "../dates.js";
import { copyFrom, h } from "../dom.js";
import { isFinal, isOpen } from "../turn.js";
import { TurnView } from "./turn.js";

const STEP = 24; // turns added at an edge
const MOST = 96; // turns in the document
const NEAR = 900; // pixels from an edge at which more is brought
const AGAIN = 2_000; // milliseconds after which a page that did not come is asked for again
const AT_END = 80; // pixels from the end that still count as reading the newest

export class ThreadView {
  #views = new Map(); // turn -> TurnView
  #first = null; // the first turn shown
  #last = null; // the last turn shown, null: follow the newest
  #sticky = true; // the reader is at the end: keep them there
  #dirty = new Set();
  #ordered = false;
  #timer = 0;
  #cost = 0;
  #top = h("div.beginning");
  #fetching = false;

  constructor({ scroller, element, latest, thread, history, actions }) {
    Object.assign(this, { scroller, element, latest, thread, history, actions });
    element.append(this.#top);
    thread.addEventListener("order", () => this.#schedule(() => (this.#ordered = true)));
    thread.addEventListener("turn", ({ detail }) => this.#schedule(() => this.#dirty.add(detail)));
    scroller.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    new ResizeObserver(() => this.#sticky && this.#toEnd()).observe(scroller);
    latest.addEventListener("click", () => this.goToEnd());
    element.addEventListener("click", (event) => {
      const copy = event.target.closest(".copy-code");
      if (copy) copyFrom(copy, copy.closest(".code").querySelector("pre").textContent);
    });
  }

  /** Show the newest turns and follow them. */
  goToEnd() {
    this.history.trim();
    this.#sticky = true;
    this.#last = null;
    this.#first = this.thread.turns.at(-STEP) ?? null;
    this.#ordered = true;
    this.#draw();
  }

  // Draw with the next frame; when drawing is dear (a very long reply), rest in between.
  #schedule(note) {
    note();
    if (this.#timer) return;
    const draw = () => {
      this.#timer = 0;
      this.#draw();
    };
    const rest = this.#cost > 12 ? Math.min(400, this.#cost * 3) : 0;
    this.#timer = setTimeout(
      () => (document.hidden ? draw() : requestAnimationFrame(draw)),
      document.hidden ? 250 : rest,
    );
  }

  #draw() {
    const began = performance.now();
    const anchor = this.#sticky ? null : this.#anchor();
    if (this.#ordered) this.#arrange();
    else for (const turn of this.#dirty) this.#views.get(turn)?.update(this.#place(turn));
    if (!this.#ordered && [...this.#dirty].some(isFinal)) this.#refreshOpen();
    this.#ordered = false;
    this.#dirty.clear();
    if (this.#sticky) this.#toEnd();
    else this.#restore(anchor);
    this.#showLatest();
    this.#cost = performance.now() - began;
    // Too little to fill the view: there will be no scrolling to ask for more.
    if (this.scroller.clientHeight > 0 && this.scroller.scrollTop < NEAR) this.#extendUp();
  }

  // A turn that ended frees those behind it: their "waiting" goes.
  #refreshOpen() {
    for (const [turn, view] of this.#views) if (!isFinal(turn)) view.update(this.#place(turn));
  }

  #arrange() {
    const { turns } = this.thread;
    let from = this.#first === null ? -1 : turns.indexOf(this.#first);
    let to = this.#last === null ? turns.length : turns.indexOf(this.#last) + 1;
    if (to === 0) to = turns.length;
    if (from < 0 || from >= to) from = Math.max(0, to - STEP);
    if (this.#sticky && to - from > MOST) from = to - STEP;
    this.#first = turns[from] ?? null;
    if (to === turns.length) this.#last = null;
    const shown = turns.slice(from, to);
    const wanted = new Set(shown);
    for (const [turn, view] of this.#views) {
      if (wanted.has(turn)) continue;
      view.element.remove();
      this.#views.delete(turn);
    }
    let before = this.#top;
    for (const turn of shown) {
      let view = this.#views.get(turn);
      if (!view) this.#views.set(turn, (view = new TurnView(turn, this.actions)));
      if (before.nextSibling !== view.element) before.after(view.element);
      before = view.element;
    }
    const newest = this.thread.newest();
    let open = false;
    shown.forEach((turn, index) => {
      const place = this.#placeAt(turns, from + index, newest, open);
      this.#views.get(turn).update(place);
      open ||= place.open;
    });
    this.#drawTop(from);
  }

  #place(turn) {
    const { turns } = this.thread;
    const index = turns.indexOf(turn);
    const open = turns.slice(Math.max(0, index - 64), index).some(isOpen);
    return this.#placeAt(turns, index, this.thread.newest(), open);
  }

  #placeAt(turns, index, newest, ahead) {
    const turn = turns[index];
    const previous = turns[index - 1];
    const begins = turn.at && (!previous?.at || dayKey(previous.at) !== dayKey(turn.at));
    return { day: begins ? turn.at : null, ahead, newest: turn === newest, open: isOpen(turn) };
  }

  #drawTop(from) {
    const { history } = this;
    let words = "";
    if (this.#fetching) words = "Reading earlier messages";
    else if (from === 0 && history.atBeginning && this.thread.turns.length > 0) {
      words = "Here the conversation began";
    }
    if (this.#top.textContent !== words) this.#top.textContent = words;
    this.element.classList.toggle("empty", history.atBeginning && this.thread.turns.length === 0);
  }

  #scrolled() {
    const { scroller } = this;
    const below = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
    this.#sticky = this.#last === null && below < AT_END;
    if (scroller.scrollTop < NEAR) this.#extendUp();
    else if (below < NEAR && this.#last !== null) this.#extendDown();
    this.#showLatest();
  }

  async #extendUp() {
    const { turns } = this.thread;
    let from = turns.indexOf(this.#first);
    if (from > 0) return this.#move(Math.max(0, from - STEP), null);
    if (this.#fetching || this.history.atBeginning || !this.history.loaded) return undefined;
    this.#fetching = true;
    this.#drawTop(from);
    try {
      await this.history.older(true);
    } catch {
      setTimeout(() => this.#scrolled(), AGAIN); // out of reach for the moment
    }
    this.#fetching = false;
    from = this.thread.turns.indexOf(this.#first);
    if (from > 0) this.#move(Math.max(0, from - STEP), null);
    else this.#drawTop(from);
    return undefined;
  }

  #extendDown() {
    const to = this.thread.turns.indexOf(this.#last) + 1;
    this.#move(null, Math.min(this.thread.turns.length, to + STEP));
  }

  // Move one edge; the other follows when there would be too much in the document.
  #move(from, to) {
    const { turns } = this.thread;
    let first = from ?? turns.indexOf(this.#first);
    let end = to ?? (this.#last === null ? turns.length : turns.indexOf(this.#last) + 1);
    if (end - first > MOST) {
      if (from !== null) end = first + MOST;
      else first = end - MOST;
    }
    this.#first = turns[first];
    this.#last = end >= turns.length ? null : turns[end - 1];
    this.#ordered = true;
    this.#draw();
  }

  // The turn at the top of the view and how far it is from there: it must not move.
  #anchor() {
    const edge = this.scroller.getBoundingClientRect().top;
    for (const view of this.element.querySelectorAll(":scope > .turn")) {
      const box = view.getBoundingClientRect();
      if (box.bottom > edge + 1) return { view, offset: box.top - edge };
    }
    return null;
  }

  #restore(anchor) {
    if (!anchor?.view.isConnected) return;
    const edge = this.scroller.getBoundingClientRect().top;
    const moved = anchor.view.getBoundingClientRect().top - edge - anchor.offset;
    if (moved !== 0) this.scroller.scrollTop += moved;
  }

  #toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  #showLatest() {
    this.latest.hidden = this.#sticky || this.thread.turns.length === 0;
  }
}
