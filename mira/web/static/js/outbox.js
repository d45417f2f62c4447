// Messages that the server has not accepted yet, and the draft. They live in the tab's own
// storage: a reload or a lost connection loses nothing, closing the tab forgets it.

const OUTBOX = "mira.outbox";
const DRAFT = "mira.draft";
const FILES = "mira.draft.files";

function read(key, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function write(key, value) {
  try {
    if (value.length === 0) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // Full or forbidden: it is still in memory, only a reload would lose it.
  }
}

/** A random id. Not crypto.randomUUID: that needs https as soon as the page is not on localhost. */
export function newRequestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  #entries = read(OUTBOX, []); // {requestId, content, files, at, user}, oldest first

  add(content, files, user) {
    const at = new Date().toISOString();
    const entry = { requestId: newRequestId(), content, files, at, user };
    this.#entries.push(entry);
    this.#save();
    return entry;
  }

  all() {
    return [...this.#entries];
  }

  has(requestId) {
    return this.#entries.some((entry) => entry.requestId === requestId);
  }

  /** Accepted, or given up. */
  settle(requestId) {
    this.#entries = this.#entries.filter((entry) => entry.requestId !== requestId);
    this.#save();
  }

  /** Entries of other users than `user`, who is signed in now. They are removed. */
  takeForeign(user) {
    const foreign = this.#entries.filter((entry) => entry.user && entry.user !== user);
    this.#entries = this.#entries.filter((entry) => !foreign.includes(entry));
    this.#save();
    return foreign;
  }

  #save() {
    write(OUTBOX, this.#entries);
  }
}

export const draft = {
  read: () => read(DRAFT, ""),
  write: (text) => write(DRAFT, text),
};

/** The files of the draft that the server has already. */
export const kept = {
  read: () => read(FILES, []),
  write: (files) => write(FILES, files),
};

/** Signed out on purpose: nothing stays in this tab. */
export function forgetEverything() {
  try {
    sessionStorage.clear();
  } catch {
    // Nothing could be stored then.
  }
}
