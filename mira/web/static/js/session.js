// The conversation of this page: takes frames from the connection, keeps thread, history and
// outbox in step, and carries out what the user wants.

import * as api from "./api.js";
import { Connection } from "./connection.js";
import {
  applyEvent,
  expectRetry,
  filesOf,
  isFinal,
  isOpen,
  loseTrack,
} from "./turn.js";

const SYNC_AGAIN = 3_000;
const MOST_TRIES = 5; // a message that breaks every connection must not do so for ever

export class Session {
  #user = null;
  #heard = false; // the server has said which turns are under way
  #syncing = null;
  #syncTimer = 0;
  #resends = new Map(); // requestId -> timer
  #lastRetry = null;

  /** `view` hears: state(name, at), signedOut(), ask(confirmation), notify(notification),
   *  resetTray(confirmations, notifications). */
  constructor({ thread, history, outbox, view }) {
    Object.assign(this, { thread, history, outbox, view });
    this.connection = new Connection({
      onReady: (frame) => this.#ready(frame),
      onFrame: (frame) => this.#frame(frame),
      onState: (state, at) => view.state(state, at),
      mayConnect: () => this.#mayConnect(),
    });
  }

  /** Read the history, show what was left unsent, connect. Returns false if there is no session. */
  async start() {
    for (const entry of this.outbox.all()) {
      const { requestId } = entry;
      if (!this.thread.getRequest(requestId)) this.thread.addUnsent(requestId, entry);
    }
    if (!(await this.#mayConnect())) return false;
    this.connection.start();
    return true;
  }

  send(content, files) {
    const entry = this.outbox.add(content, files, this.#user);
    this.thread.addUnsent(entry.requestId, entry);
    this.#deliver(entry.requestId);
  }

  resend(turn) {
    turn.state = "sending";
    turn.problem = undefined;
    this.thread.changed(turn);
    this.#deliver(turn.requestId);
  }

  /** Give up a message that was refused; returns it: {content, files}. */
  withdraw(turn) {
    this.outbox.settle(turn.requestId);
    this.thread.remove(turn);
    return turn;
  }

  cancel(turn) {
    if (turn?.id) this.connection.send({ type: "cancel", turn_id: turn.id });
  }

  retry(turn) {
    if (!this.connection.send({ type: "retry", turn_id: turn.id })) return;
    this.#lastRetry = { turn, state: turn.state, error: turn.error };
    expectRetry(turn);
    this.thread.changed(turn);
  }

  decide(actionId, allow) {
    return this.connection.send({ type: "confirm", action_id: actionId, allow });
  }

  acknowledge(id) {
    return this.connection.send({ type: "ack", id });
  }

  stop() {
    this.connection.stop();
    clearTimeout(this.#syncTimer);
    this.#resends.forEach(clearTimeout);
  }

  async #mayConnect() {
    try {
      await this.#sync();
    } catch (problem) {
      if (problem instanceof api.ApiError && problem.status === 401) {
        this.view.signedOut();
        return false;
      }
    }
    return true; // or not reachable: the connection goes on trying
  }

  #deliver(requestId) {
    const turn = this.thread.getRequest(requestId);
    const frame = {
      type: "message",
      request_id: requestId,
      content: turn.content,
      attachments: turn.files.map((file) => file.id),
      include_thinking: true,
    };
    if ((turn.tries ?? 0) >= MOST_TRIES) {
      turn.state = "refused";
      turn.tries = 0;
      turn.problem = "The connection broke each time that this was sent.";
    } else if (this.connection.send(frame)) {
      turn.tries = (turn.tries ?? 0) + 1;
      turn.problem = undefined;
    } else {
      turn.problem = "Will be sent when the connection is back";
    }
    this.thread.changed(turn);
  }

  async #ready(frame) {
    this.#user = frame.user_id;
    const open = [frame.active_turn, ...frame.queued].filter(Boolean);
    const ids = new Set(open.map((turn) => turn.turn_id));
    const lost = this.thread.turns.filter((turn) => turn.id && !isFinal(turn) && !ids.has(turn.id));
    lost.forEach(loseTrack);
    for (const { turn_id: id, request_id: requestId, content, attachments, state } of open) {
      this.outbox.settle(requestId);
      const turn = this.thread.accept(requestId, id) ?? this.thread.ensure(id, {});
      turn.content ||= content;
      if (turn.files.length === 0) turn.files = filesOf(attachments ?? []);
      turn.at ??= new Date().toISOString();
      turn.state = state;
      this.thread.changed(turn, true);
    }
    if (frame.active_turn) this.#resume(this.thread.get(frame.active_turn.turn_id));
    this.#heard = true;
    this.view.resetTray(frame.confirmations, frame.notifications);
    for (const { requestId } of this.outbox.takeForeign(this.#user)) {
      const turn = this.thread.getRequest(requestId);
      if (turn) this.thread.remove(turn);
    }
    for (const { requestId } of this.outbox.all()) {
      if (this.thread.getRequest(requestId)?.state === "sending") this.#deliver(requestId);
    }
    await this.#syncUntilDone();
    // How did those end that have no answer? Their events still know, if the log is there.
    const newest = this.thread.newest();
    const unexplained = new Set([...lost, newest].filter((turn) => turn?.state === "unanswered"));
    unexplained.forEach((turn) => this.#resume(turn));
  }

  #resume(turn) {
    this.connection.send({ type: "resume", turn_id: turn.id, after: turn.last });
  }

  #frame(frame) {
    if (frame.seq !== undefined && frame.attempt !== undefined) return this.#event(frame);
    switch (frame.type) {
      case "accepted":
        return this.#accepted(frame);
      case "turn":
        return this.#begun(frame);
      case "confirm":
        return this.view.ask(frame);
      case "notification":
        return this.view.notify(frame);
      case "error":
        return this.#refused(frame);
      default:
        return undefined; // a newer server may say more than this page knows
    }
  }

  #event(event) {
    const known = this.thread.get(event.turn_id);
    const turn = known ?? this.thread.ensure(event.turn_id, { at: new Date().toISOString() });
    if (applyEvent(turn, event) === "gap") this.#resume(turn);
    this.thread.changed(turn);
    if (!known) this.#syncUntilDone();
  }

  #accepted({ turn_id: id, request_id: requestId, duplicate }) {
    this.outbox.settle(requestId);
    const turn = this.thread.accept(requestId, id);
    if (turn === undefined) return;
    if (duplicate && !isFinal(turn)) {
      // It was accepted before the connection broke, and may be over by now.
      loseTrack(turn);
      this.#resume(turn);
      this.#syncUntilDone();
    }
    this.thread.changed(turn);
  }

  #begun({ turn_id: id, content, attachments, state }) {
    const files = filesOf(attachments ?? []);
    const turn = this.thread.ensure(id, { content, files, at: new Date().toISOString() });
    if (isOpen({ state })) {
      turn.state = state; // for a turn that was at its end: a retry, perhaps from another device
    } else if (!isFinal(turn)) {
      loseTrack(turn); // its closing event or history tells the rest
      this.#syncUntilDone();
    }
    this.thread.changed(turn);
  }

  #refused({ code, detail, request_id: requestId, turn_id: turnId, retry_after: retryAfter }) {
    const turn = this.thread.getRequest(requestId);
    if (turn?.state === "sending") {
      turn.tries = 0;
      if (retryAfter != null) {
        turn.problem = "The server is busy; trying again";
        clearTimeout(this.#resends.get(requestId));
        const again = () => this.#deliver(requestId);
        this.#resends.set(requestId, setTimeout(again, Math.max(0.2, retryAfter) * 1000));
      } else {
        turn.state = "refused";
        turn.problem = detail || code;
      }
      this.thread.changed(turn);
    } else if (turnId && this.#lastRetry?.turn.id === turnId) {
      const { turn: tried, state, error } = this.#lastRetry;
      this.#lastRetry = null;
      if (tried.state !== "received") return;
      tried.state = state;
      tried.error = error;
      tried.notices.push({ kind: "refused", detail: detail || code });
      this.thread.changed(tried);
    }
  }

  #sync() {
    this.#syncing ??= this.#read().finally(() => {
      this.#syncing = null;
    });
    return this.#syncing;
  }

  async #read() {
    await this.history.sync(this.#heard);
    for (const { requestId } of this.outbox.all()) {
      if (this.thread.getRequest(requestId)?.id) this.outbox.settle(requestId); // it is stored
    }
  }

  // History is asked for until it answers: without it the thread could lack what was said.
  async #syncUntilDone() {
    clearTimeout(this.#syncTimer);
    const heard = this.#heard;
    try {
      if (this.#syncing) await this.#syncing.catch(() => undefined);
      await this.#sync();
    } catch {
      if (heard) this.#syncTimer = setTimeout(() => this.#syncUntilDone(), SYNC_AGAIN);
    }
  }
}
