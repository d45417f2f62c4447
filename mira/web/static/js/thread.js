// The turns that this page knows, in order: by the server's number where it is known, then what
// was accepted since, then what is still on its way out.

import { createTurn, isOpen, isRunning, mergeStored, settleFromHistory } from "./turn.js";

const ACCEPTED = 1e12;
const LEAVING = 2e12;

export class Thread extends EventTarget {
  turns = [];
  #byId = new Map();
  #byRequest = new Map();
  #next = 0;

  get(id) {
    return this.#byId.get(id);
  }

  getRequest(requestId) {
    return this.#byRequest.get(requestId);
  }

  /** The turn of this id, made if it is not known. */
  ensure(id, fields) {
    return this.#byId.get(id) ?? this.#insert(createTurn({ id, rank: this.#rank(ACCEPTED), ...fields }));
  }

  /** A message that has not been accepted yet. */
  addUnsent(requestId, { content, files = [], at }) {
    const rank = this.#rank(LEAVING);
    return this.#insert(createTurn({ requestId, content, files, at, state: "sending", rank }));
  }

  /** The server has accepted `requestId` as turn `id`. Returns the turn, or undefined if the
   *  request is not from this page. */
  accept(requestId, id) {
    const mine = this.#byRequest.get(requestId);
    const known = this.#byId.get(id);
    if (mine === undefined || mine === known) return known;
    if (known !== undefined) {
      this.remove(mine); // a resent message whose turn had already come back another way
      known.requestId = requestId;
      this.#byRequest.set(requestId, known);
      return known;
    }
    mine.id = id;
    mine.state = "received";
    mine.rank = this.#rank(ACCEPTED);
    this.#byId.set(id, mine);
    this.changed(mine, true);
    return mine;
  }

  remove(turn) {
    this.turns = this.turns.filter((other) => other !== turn);
    if (this.#byId.get(turn.id) === turn) this.#byId.delete(turn.id);
    if (this.#byRequest.get(turn.requestId) === turn) this.#byRequest.delete(turn.requestId);
    this.#emit("order");
  }

  /** Messages of the history, in any order. `settled`: the page has already heard from the
   *  server which turns are under way, so a turn without an answer has none coming. */
  merge(messages, settled) {
    const touched = new Set();
    for (const message of messages) {
      const turn =
        this.#byId.get(message.turn_id) ??
        this.#recognise(message) ??
        this.#register(createTurn({ id: message.turn_id, state: "unknown" }));
      mergeStored(turn, message);
      touched.add(turn);
    }
    for (const turn of touched) settleFromHistory(turn, settled);
    this.#sort();
    this.#emit("order");
    for (const turn of touched) this.#emit("turn", turn);
  }

  /** Forget the turns before number `seq`; without it, all that are not under way. */
  forgetBefore(seq = null) {
    const old = (turn) => (seq === null ? true : turn.seq !== null && turn.seq < seq);
    for (const turn of this.turns) {
      if (turn.id === null || isOpen(turn) || !old(turn)) continue;
      this.#byId.delete(turn.id);
      this.#byRequest.delete(turn.requestId);
    }
    this.turns = this.turns.filter((turn) => turn.id === null || this.#byId.has(turn.id));
    this.#emit("order");
  }

  /** A turn has changed; `order` if its place may have changed too. */
  changed(turn, order = false) {
    if (order) {
      this.#sort();
      this.#emit("order");
    }
    this.#emit("turn", turn);
  }

  running() {
    return this.turns.find(isRunning);
  }

  /** The newest turn that the server knows. */
  newest() {
    return this.turns.findLast((turn) => turn.id !== null);
  }

  newestSeq() {
    return this.turns.findLast((turn) => turn.seq !== null)?.seq ?? null;
  }

  /** The message that is still on its way out from here, and is stored already. */
  #recognise({ turn_id: id, request_id: requestId }) {
    const mine = this.#byRequest.get(requestId);
    if (mine === undefined || mine.id !== null) return undefined;
    mine.id = id;
    mine.state = "unknown";
    mine.problem = undefined;
    this.#byId.set(id, mine);
    return mine;
  }

  #rank(base) {
    this.#next += 1;
    return base + this.#next;
  }

  #register(turn) {
    this.turns.push(turn);
    if (turn.id !== null) this.#byId.set(turn.id, turn);
    if (turn.requestId !== null) this.#byRequest.set(turn.requestId, turn);
    return turn;
  }

  #insert(turn) {
    this.#register(turn);
    this.changed(turn, true);
    return turn;
  }

  #sort() {
    const place = (turn) => turn.seq ?? turn.rank;
    this.turns.sort((a, b) => place(a) - place(b));
  }

  #emit(type, turn) {
    this.dispatchEvent(new CustomEvent(type, { detail: turn }));
  }
}
