// How an answer came about, in plain words. Pure: no page, no network.

/** What became of the reading of the message before the answer, in sentences. */
export function readingOf({ subcortex, speculative, effort }) {
  if (!subcortex) {
    const searched = "The message itself was searched: no Subcortex reads it first with this model.";
    return [speculative ? searched : "Nothing was looked for.", effortOf(effort)];
  }
  const words = [];
  if (subcortex.fallback) words.push(FALLBACKS[subcortex.fallback] ?? FALLBACKS.failed);
  else {
    words.push(
      subcortex.complexity === "straightforward"
        ? "The message was taken for a straightforward one: it can be answered in one step."
        : "The message was taken for a complex one: it asks for more than one step.",
    );
    if (speculative) words.push("Nothing came of the phrases below; the message itself was searched.");
  }
  return [...words, effortOf(effort)];
}

const FALLBACKS = {
  late: "The message itself was searched, since the Subcortex, which reads it first, was late.",
  failed: "The message itself was searched, since the model of the Subcortex failed.",
  unreadable:
    "The message itself was searched, since nothing could be made of what the Subcortex answered.",
};

const effortOf = (effort) => `The answer was given ${effort} effort.`;

export const FOUND_BY = {
  retained: "kept from the answer before",
  search: "found by the search",
  reply: "like what MIRA said last",
};

const DROPPED = {
  "in the prompt already": "stood in the prompt already",
  "enough passages": "were passages beyond those that fit",
  "retained no longer": "were kept from before and gave way",
  "ranked too low": "ranked too low",
};

/** "5 more were found and not shown: 3 ranked too low, 2 stood in the prompt already." */
export function droppedOf(dropped) {
  if (dropped.length === 0) return "";
  const counts = new Map();
  for (const { why } of dropped) counts.set(why, (counts.get(why) ?? 0) + 1);
  const reasons = [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .map(([why, count]) => `${count} ${DROPPED[why] ?? why}`);
  const were = dropped.length === 1 ? "1 more was" : `${dropped.length} more were`;
  return `${were} found and not shown: ${reasons.join(", ")}.`;
}

/** What kept the prompt from being read from the provider's cache. `nameOf` names a section. */
export function missedOf(missed, nameOf) {
  if (missed.length === 0) return "";
  const names = missed.map((name) => CHANGED[name] ?? nameOf(name)).join(", ");
  return `Changed since the answer before, so that what follows could not come from the cache: ${names}.`;
}

const CHANGED = {
  turns: "the turns of this segment",
  continuity: "the last turns of the segment before",
};

const PARTS = {
  subcortex: "the Subcortex",
  retained: "memories of the answer before",
  names: "names in the message",
  replies: "memories like the last replies",
  texts: "the words of passages",
  linked: "what is linked to memories",
  traces: "writing this account",
  all: "all of it",
  "recall:memories": "memories by the phrases",
  "recall:history": "passages by the phrases",
  "speculative:memories": "memories by the message itself",
  "speculative:history": "passages by the message itself",
};

/** A part of recall, as a noun. */
export const partOf = (name) => PARTS[name] ?? name;

const ERRORS = {
  deadline_exceeded: "took too long",
  unavailable: "was not available",
  provider_error: "was failed by its model",
  provider_outage: "was failed by its model",
};

/** What went wrong with a part, as a predicate. */
export const failureOf = (code) => ERRORS[code] ?? `failed (${code})`;

const STAGES = [
  ["started_ms", "Waited for its turn"],
  ["recalled_ms", "Recalled"],
  ["composed_ms", "Composed the prompt"],
  ["first_text_ms", "Waited for the first word"],
  ["streamed_ms", "Wrote the answer"],
  ["committed_ms", "Stored it"],
];

/** `[what, milliseconds it took, milliseconds since the message]` for each stage reached. */
export function stagesOf(timings) {
  let before = 0;
  const found = [];
  for (const [name, words] of STAGES) {
    const at = timings?.[name];
    if (at === null || at === undefined) continue;
    found.push([words, Math.max(0, at - before), at]);
    before = at;
  }
  return found;
}

export function duration(ms) {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const PURPOSES = {
  conversation: "the answer",
  subcortex: "reading the message",
};

export const purposeOf = (purpose) => PURPOSES[purpose] ?? purpose;

/** What became of a call of a tool. */
export const outcomeOf = ({ message_id: made, is_error: failed }) =>
  made === null ? "broken off" : failed ? "failed" : "done";

/** US dollars, as fine as small sums need it; "?" where no price is known. */
export function dollars(sum) {
  if (sum === null) return "?";
  if (sum === 0) return "0";
  return `$${sum < 0.01 ? sum.toPrecision(2) : sum.toFixed(2)}`;
}

/** What an answer cost, in a sentence. */
export const costOf = (sum) =>
  sum === null
    ? "What it cost is not known: no list has the price of a model."
    : sum === 0
      ? "It cost nothing: the model runs on this machine."
      : `Together about ${dollars(sum)} at list prices.`;
