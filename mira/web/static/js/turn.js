// One turn: what was said, and what has come back so far. Pure: no page, no network, no clock.
//
// The server numbers the events of a turn: `seq` rises over all its attempts, a higher `attempt`
// means "clear and start again", `offset` counts the code points of the same kind that came before
// in this attempt. These three are enough to take a stream that was cut, repeated or overlapped
// and to end with exactly the text that was sent.

const CLOSING = new Set(["error", "interrupted", "cancelled", "complete"]);
const FINAL = new Set(["complete", "cancelled", "interrupted", "failed", "unanswered"]);

/** States beside the server's own: `sending` (not accepted yet), `refused` (will not be accepted),
 *  `unknown` (history has no answer and nobody has said yet whether one is coming) and
 *  `unanswered` (there is none). */
export function createTurn(fields = {}) {
  return {
    id: null,
    requestId: null,
    seq: null, // the server's turn_seq, known from history
    rank: 0, // place in the thread while seq is unknown
    content: "",
    files: [], // {id, name, kind, size} given with what was said
    at: null,
    state: "received",
    attempt: 0,
    last: 0, // the newest event that was taken
    parts: [], // {kind: "text" | "thinking", text} and {kind: "tool", callId, name, phase, detail}
    length: { text: 0, thinking: 0 },
    notices: [],
    error: null, // {code, detail, retry}
    usage: null,
    endedAt: null,
    gapAt: -1,
    stored: new Map(), // messages of the history, by position
    ...fields,
  };
}

export const isFinal = (turn) => FINAL.has(turn.state);
export const isRunning = (turn) => turn.state === "running";
/** Accepted and not at its end: waiting or running. */
export const isOpen = (turn) => turn.state === "received" || turn.state === "running";

/** The whole text of the reply. */
export const replyText = (turn) =>
  turn.parts
    .filter((part) => part.kind === "text")
    .map((part) => part.text)
    .join("");

/** Take one numbered event. Returns "applied", "ignored" (old, repeated or beyond the end), or
 *  "gap": something before it is missing and the caller should ask for what follows `turn.last`. */
export function applyEvent(turn, event) {
  if (event.attempt < turn.attempt) return "ignored";
  if (event.attempt > turn.attempt) clear(turn, event.attempt);
  else if (isFinal(turn)) return "ignored";
  else if (event.seq <= turn.last && event.type !== "snapshot") return "ignored";

  if (event.type === "text" || event.type === "thinking") {
    // Ask once for what is missing; if the server cannot give it, go on with what there is.
    if (event.offset > turn.length[event.type] && turn.gapAt !== turn.last) {
      turn.gapAt = turn.last;
      return "gap";
    }
    append(turn, event.type, event.text, event.offset);
  } else if (event.type === "tool") {
    progress(turn, event);
  } else if (event.type === "notice") {
    turn.notices.push({ kind: event.kind, detail: event.detail });
  } else if (event.type === "snapshot") {
    replaceText(turn, event.text);
  } else if (CLOSING.has(event.type)) {
    close(turn, event);
  }
  turn.last = event.seq;
  if (!CLOSING.has(event.type)) turn.state = "running";
  return "applied";
}

/** The connection was away and the turn is no longer under way: history will tell how it ended. */
export function loseTrack(turn) {
  if (!isFinal(turn) && turn.id !== null) turn.state = "unknown";
}

/** The user wants the same turn again. */
export function expectRetry(turn) {
  turn.error = null;
  turn.state = "received";
}

function clear(turn, attempt) {
  turn.attempt = attempt;
  turn.parts = [];
  turn.length = { text: 0, thinking: 0 };
  turn.error = null;
  turn.usage = null;
  turn.gapAt = -1;
  turn.state = "running";
}

function append(turn, kind, text, offset) {
  const points = Array.from(text);
  const known = Math.max(0, turn.length[kind] - offset); // already here: the frames overlap
  if (known >= points.length) return;
  const fresh = known === 0 ? text : points.slice(known).join("");
  const tail = turn.parts.at(-1);
  if (tail?.kind === kind) tail.text += fresh;
  else turn.parts.push({ kind, text: fresh });
  turn.length[kind] = offset + points.length;
}

function progress(turn, event) {
  let part = turn.parts.find((p) => p.kind === "tool" && p.callId === event.call_id);
  if (part === undefined) {
    part = { kind: "tool", callId: event.call_id, name: event.name, phase: "", detail: "" };
    turn.parts.push(part);
  }
  part.phase = event.phase;
  part.detail = event.detail || part.detail;
}

function replaceText(turn, text) {
  if (replyText(turn) === text) return;
  turn.parts = turn.parts.filter((part) => part.kind !== "text");
  if (text) turn.parts.push({ kind: "text", text });
  turn.length.text = Array.from(text).length;
}

function close(turn, event) {
  if (event.type === "error") {
    turn.state = "failed";
    turn.error = { code: event.code, detail: event.detail, retry: event.retry !== false };
  } else if (event.type === "complete") {
    turn.state = "complete";
    turn.usage = event.usage;
    turn.endedAt = event.at;
    replaceText(turn, event.reply);
  } else {
    turn.state = event.type;
    replaceText(turn, event.text);
  }
}

/** Take a message of the history. */
export function mergeStored(turn, message) {
  turn.seq = message.turn_seq;
  const before = turn.stored.get(message.position);
  if (before !== undefined && before.id !== message.id) {
    // Another attempt has been stored since: nothing of the one before stands any more.
    for (const position of turn.stored.keys()) if (position > 0) turn.stored.delete(position);
  }
  turn.stored.set(message.position, message);
  if (message.role === "user") {
    turn.content = wordsOf(message.blocks);
    turn.files = filesOf(message.blocks);
    turn.at = message.created_at;
  } else {
    turn.at ??= message.created_at; // a turn that no words of the user began
  }
}

/** Read the reply from the stored messages, unless the turn is followed live. `settled`: which
 *  turns are under way is known, so where there is no answer none is coming. */
export function settleFromHistory(turn, settled) {
  if (isOpen(turn)) return;
  const messages = [...turn.stored.values()].sort((a, b) => a.position - b.position);
  const answers = messages.filter((message) => message.role === "assistant");
  if (answers.length === 0) {
    if (turn.state === "unknown" && settled) turn.state = "unanswered";
    return;
  }
  if (isFinal(turn) && turn.state !== "unanswered" && turn.parts.length > 0 && turn.attempt > 0) {
    return; // seen live to its end, with more than history keeps
  }
  turn.parts = partsOf(messages);
  turn.length.text = Array.from(replyText(turn)).length;
  turn.state = answers.at(-1).state;
  turn.endedAt = answers.at(-1).created_at;
  if (!FINAL.has(turn.state)) turn.state = "complete";
}

const wordsOf = (blocks) =>
  blocks
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("");

/** The files among blocks, as a turn holds them. */
export const filesOf = (blocks) =>
  blocks
    .filter((block) => block.type === "file")
    .map(({ file_id: id, name, kind, size }) => ({ id, name, kind, size }));

function partsOf(messages) {
  const parts = [];
  for (const message of messages) {
    if (message.role === "user") continue;
    for (const block of message.blocks) {
      if (block.type === "text" || block.type === "thinking") {
        if (!block.text) continue;
        if (parts.at(-1)?.kind === block.type) parts.at(-1).text += block.text;
        else parts.push({ kind: block.type, text: block.text });
      } else if (block.type === "tool_use") {
        const { call_id: callId, name } = block;
        parts.push({ kind: "tool", callId, name, phase: "done", detail: "" });
      } else if (block.type === "tool_result" && block.is_error) {
        const call = parts.find((part) => part.callId === block.call_id);
        if (call) call.phase = "failed";
      }
    }
  }
  return parts;
}
