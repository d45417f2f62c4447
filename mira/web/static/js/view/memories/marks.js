// What is shown of a memory wherever it stands: how much it matters, and what state it is in.

import { dateOf } from "../../dates.js";
import { h } from "../../dom.js";

/** "#memories/mem_0123abcd": the address of a memory on this page. */
export const addressOf = (shortId) => `#memories/${shortId}`;

/** A small bar with its number. */
export function importance(value) {
  const bar = h("span.weight-fill", { "aria-hidden": "true" });
  bar.style.inlineSize = `${Math.round(Math.min(1, value) * 100)}%`;
  return h(
    "span.weight",
    { title: "Importance, from 0 to 1" },
    h("span.weight-bar", { "aria-hidden": "true" }, bar),
    h("span.sr", {}, "Importance "),
    h("span.weight-number", {}, value.toFixed(2)),
  );
}

/** Words for what is out of the ordinary about a memory. */
export function badges(memory) {
  const found = [];
  const add = (kind, words) => found.push(h("span.badge", { "data-kind": kind }, words));
  if (memory.status === "archived") add("archived", "Archived");
  if (memory.superseded_by) add("superseded", "Superseded");
  else if (memory.valid_to) add("superseded", `True until ${dateOf(memory.valid_to)}`);
  if (memory.happens_at) add("dated", dateOf(memory.happens_at));
  if (memory.shared) add("shared", "Shared by all");
  return found;
}

const SOURCES = {
  extraction: "From the conversation",
  tool: "Written by MIRA",
  user: "Written by you",
  import: "Imported",
  merge: "Merged from others",
};

export const sourceOf = (memory) => SOURCES[memory.source] ?? memory.source;
