// Pages of the history, newest first. Fills the thread; knows how far back it has read.

import * as api from "./api.js";

const PAGE = 60;
const KEEP_PAGES = 3;
const MANY_PAGES = 12;

export class History {
  #pages = []; // {oldest: turn_seq, next: cursor}, from newest to oldest
  #older = null; // the one fetch of older pages that may be under way

  constructor(thread) {
    this.thread = thread;
    this.loaded = false;
  }

  /** True when the first message ever is in the thread. */
  get atBeginning() {
    return this.loaded && this.#pages.at(-1)?.next == null;
  }

  /** Read the newest page and join it to what is there. If more happened while the page was away
   *  than one page holds, the old turns are forgotten: they can be read again from here. */
  async sync(settled) {
    const page = await api.messages(PAGE);
    const seqs = page.messages.map((message) => message.turn_seq);
    const oldest = Math.min(...seqs);
    const newestKnown = this.thread.newestSeq();
    const first = { oldest, next: page.next_cursor ?? null };
    if (!this.loaded || (newestKnown !== null && oldest > newestKnown + 1)) {
      this.thread.forgetBefore();
      this.#pages = [first];
    }
    this.loaded = true;
    this.thread.merge(page.messages, settled);
  }

  /** Read one more page of the past. Concurrent calls share one request. */
  older(settled) {
    const cursor = this.#pages.at(-1)?.next;
    if (!this.loaded || cursor == null) return Promise.resolve();
    this.#older ??= api
      .messages(PAGE, cursor)
      .then((page) => {
        if (this.#pages.at(-1)?.next !== cursor) return; // forgotten meanwhile
        const oldest = Math.min(...page.messages.map((message) => message.turn_seq));
        this.#pages.push({ oldest, next: page.next_cursor ?? null });
        this.thread.merge(page.messages, settled);
      })
      .finally(() => {
        this.#older = null;
      });
    return this.#older;
  }

  /** Back at the present with a long past in memory: keep the newest pages only. */
  trim() {
    if (this.#pages.length < MANY_PAGES) return;
    this.#pages.length = KEEP_PAGES;
    // A turn that lies across the boundary stays whole: the next page brings it again.
    this.thread.forgetBefore(this.#pages.at(-1).oldest);
  }
}
