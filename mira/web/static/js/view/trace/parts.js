// The parts of an account: each returns a section, or null when there is nothing to tell.

import { momentOf } from "../../dates.js";
import { h, icon, toolName } from "../../dom.js";
import { addressOf, importance } from "../memories/marks.js";
import { placeOf, sectionName, tokens } from "../segments/words.js";
import {
  FOUND_BY,
  costOf,
  dollars,
  droppedOf,
  duration,
  failureOf,
  missedOf,
  outcomeOf,
  partOf,
  purposeOf,
  readingOf,
  stagesOf,
} from "./words.js";

const QUOTE = 600; // letters of a passage

function section(name, ...content) {
  const there = content.filter(Boolean);
  return there.length ? h("section.part", {}, h("h3", {}, name), ...there) : null;
}

/** What was looked for, and with how much thought the message was answered. */
export function reading(account) {
  const { phrases = [], entities = [], latency_ms: latency } = account.subcortex ?? {};
  return section(
    "What was looked for",
    ...readingOf(account).map((words) => h("p", {}, words)),
    phrases.length
      ? h("ol.phrases", { "aria-label": "Phrases" }, ...phrases.map((one) => h("li", { dir: "auto" }, one)))
      : null,
    entities.length
      ? h("p", {}, "Names: ", h("span", { dir: "auto" }, entities.join(", ")))
      : null,
    latency ? h("p.aside", {}, `The reading took ${duration(latency)}.`) : null,
  );
}

/** The memories that were shown. `found`: id → memory, null for one that is gone; `used`: ids. */
export function memories(account, found, used) {
  const rows = account.memories.map((one) => {
    const memory = found.get(one.id);
    return h(
      "li",
      {},
      memory
        ? h("a", { href: addressOf(one.short_id), dir: "auto" }, memory.text)
        : h("span.nothing", {}, `${one.short_id}, which is not there any more`),
      h(
        "span.memory-row",
        {},
        importance(one.importance),
        h("span", {}, FOUND_BY[one.found_by] ?? one.found_by),
        h("span", {}, `score ${one.score.toFixed(2)}`),
        one.linked.length ? h("span", {}, `with ${one.linked.length} linked`) : null,
        used.has(one.id) ? h("span.badge", { "data-kind": "dated" }, "Used in the answer") : null,
      ),
    );
  });
  return section(
    "Memories shown",
    rows.length ? h("ul.shown", {}, ...rows) : h("p.nothing", {}, "None."),
  );
}

/** Passages of the conversation that were shown. `said`: id → message, null for one that is gone. */
export function passages(account, said) {
  const rows = account.passages.map((one) => {
    const message = said.get(one.message_id);
    if (!message) return h("p.nothing", {}, "A message that is not there any more.");
    const who = message.role === "user" ? "You" : "MIRA";
    return h(
      "blockquote.quote",
      { "data-role": message.role },
      h("p", { dir: "auto" }, cut(message.text)),
      h("footer", {}, `${who}, ${momentOf(message.created_at)}; score ${one.score.toFixed(2)}`),
    );
  });
  return section("Passages of the conversation shown", ...rows);
}

/** What was found and left out, and what failed on the way. */
export function missing(account) {
  const dropped = droppedOf(account.dropped);
  const failures = Object.entries(account.failed);
  return section(
    failures.length ? "What failed, and what was left out" : "What was left out",
    failures.length
      ? h(
          "ul.failures",
          {},
          ...failures.map(([name, code]) => h("li", {}, `The search for ${partOf(name)} ${failureOf(code)}.`)),
        )
      : null,
    dropped ? h("p", {}, dropped) : null,
  );
}

/** What the prompt was made of. */
export function prompt(account) {
  const rows = account.sections.map(({ name, placement, tokens: count, error }) => [
    sectionName(name),
    error ? `left out: ${error}` : placeOf(placement),
    count.toLocaleString(),
  ]);
  const missed = missedOf(account.missed ?? [], sectionName);
  const cuts = ["", "It was made smaller once to fit.", "It was made smaller twice to fit."];
  return section(
    "The prompt",
    h("p", {}, `About ${tokens(account.tokens_estimated)}, the conversation itself included.`),
    account.cuts ? h("p", {}, cuts[account.cuts] ?? cuts[2]) : null,
    missed ? h("p", {}, missed) : null,
    rows.length ? table("Sections of the prompt", ["Section", "Where", "Tokens"], rows) : null,
  );
}

/** How long each stage took, and each part of recall. */
export function timing(timings, account) {
  const stages = stagesOf(timings);
  const parts = Object.entries(account?.recall_ms ?? {})
    .toSorted(([, a], [, b]) => b - a)
    .map(([name, ms]) => [sentence(partOf(name)), duration(ms)]);
  return section(
    "Time",
    stages.length
      ? table(
          "Time by stage",
          ["Stage", "Took", "After"],
          stages.map(([words, took, at]) => [words, duration(took), duration(at)]),
        )
      : null,
    parts.length
      ? h(
          "details.why",
          {},
          h("summary", {}, icon("chevron"), h("span", {}, "What recalling was made of")),
          h("p.aside", {}, "Parts go on at the same time."),
          table("Time by part of recall", ["Part", "Took"], parts),
        )
      : null,
  );
}

/** The calls of tools, each with the way to its whole result. */
export function tools(list) {
  const rows = list.map((call) => [
    h("span", { dir: "auto" }, toolName(call.name)),
    outcomeOf(call),
    call.characters === null ? "" : call.characters.toLocaleString(),
  ]);
  return rows.length
    ? section("Calls of tools", table("Calls of tools", ["Tool", "What came of it", "Letters"], rows))
    : null;
}

/** The calls of models; `cost`: what they come to, null if that is not known. */
export function calls(list, cost) {
  if (list.length === 0) return null;
  const rows = list.map((call) => [
    sentence(purposeOf(call.purpose)),
    h("span", {}, call.model, call.error ? h("span.problem", {}, ` failed: ${call.error}`) : null),
    `${call.reported ? "" : "~"}${(call.input_tokens + call.cache_write_tokens).toLocaleString()}`,
    call.cache_read_tokens.toLocaleString(),
    `${call.reported ? "" : "~"}${call.output_tokens.toLocaleString()}`,
    duration(call.total_ms),
    dollars(call.cost_usd),
  ]);
  const head = ["For", "Model", "New tokens in", "From the cache", "Tokens out", "Took", "Cost"];
  return section(
    "Calls of models",
    table("Calls of models", head, rows),
    h("p.aside", {}, costOf(cost)),
  );
}

// A table; its first column names the row. On a phone it scrolls inside itself.
function table(caption, head, rows) {
  return h(
    "div.figures",
    { tabindex: "0", role: "group", "aria-label": caption },
    h(
      "table",
      {},
      h("caption.sr", {}, caption),
      h("thead", {}, h("tr", {}, ...head.map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        {},
        ...rows.map(([name, ...cells]) =>
          h("tr", {}, h("th", { scope: "row" }, name), ...cells.map((cell) => h("td", {}, cell))),
        ),
      ),
    ),
  );
}

const sentence = (words) => words.charAt(0).toUpperCase() + words.slice(1);

function cut(text) {
  const letters = Array.from(text);
  return letters.length <= QUOTE ? text : `${letters.slice(0, QUOTE).join("").trimEnd()} …`;
}
