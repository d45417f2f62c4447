// One segment in the list: a line that unfolds to its summary.

import { momentOf, spanOf } from "../../dates.js";
import { h, icon, iconButton, toolName } from "../../dom.js";
import { STATES, complexityOf, driftOf, titleOf, troubleOf } from "./words.js";

/** A list item for `segment`; `open`: unfolded. `onToggle(open)`; `onRetry()` its summary. */
export function segmentRow(segment, { open, onToggle, onRetry }) {
  const fold = h(
    "details.segment-fold",
    { open, ontoggle: () => onToggle(fold.open) },
    h(
      "summary.segment-head",
      {},
      icon("chevron"),
      h("span.segment-title", { dir: "auto" }, titleOf(segment)),
      h("span.segment-row", {}, ...marks(segment)),
    ),
    h("div.segment-body", {}, ...body(segment, onRetry)),
  );
  return h("li.segment", { "data-state": segment.state, "data-id": segment.id }, fold);
}

function marks(segment) {
  const { state, summary } = segment;
  const when = h(
    "time.segment-when",
    { datetime: segment.opened_at },
    spanOf(segment.opened_at, segment.last_message_at),
  );
  return [
    when,
    state === "collapsed" ? null : h("span.badge", { "data-state": state }, segment.trouble ? "Summary failed" : STATES[state]),
    summary ? h("span.segment-complexity", {}, `Complexity ${summary.complexity}`) : null,
    summary ? drift(summary.drift) : null,
  ];
}

/** How true a summary is: a bar, and the same in words. */
function drift(value) {
  const fill = h("span.drift-fill");
  fill.style.inlineSize = `${Math.round(value * 100)}%`;
  return h(
    "span.drift",
    { title: "The share of its sentences that the segment itself does not bear out" },
    h("span.drift-bar", { "aria-hidden": "true" }, fill),
    h("span", {}, driftOf(value)),
  );
}

function body(segment, onRetry) {
  const { summary, tools, state, trouble } = segment;
  if (trouble) {
    return [
      h("p.nothing", {}, troubleOf(trouble)),
      h("div.open-buttons", {}, iconButton("retry", "Try again now", onRetry)),
      facts(segment),
    ];
  }
  if (!summary) return [h("p.nothing", {}, WITHOUT[state] ?? WITHOUT.collapsed), facts(segment)];
  return [
    h("p.segment-trace", { dir: "auto" }, summary.trace),
    h("h3.segment-sub", {}, "In short"),
    h("p", { dir: "auto" }, summary.precis),
    facts({ ...segment, tools }),
  ];
}

const WITHOUT = {
  active: "It is summed up when it ends: after some hours of silence, or when you end it.",
  paused: "It is summed up when it ends. While it is paused no silence ends it.",
  collapsing: "Its summary is being written. Nothing of it is lost meanwhile.",
  collapsed: "There is no summary of it.",
};

function facts({ summary, tools, collapsed_at: collapsedAt }) {
  const rows = [
    ["Tools", tools.length ? tools.map(toolName).join(", ") : "none"],
    ...(summary
      ? [
          ["Complexity", `${summary.complexity}, ${complexityOf(summary.complexity)}`],
          ["Written by", summary.model ?? "no model: in the user’s own words"],
          ["Written", momentOf(summary.made_at)],
        ]
      : []),
    summary?.rechecked_at ? ["Checked again", momentOf(summary.rechecked_at)] : null,
    collapsedAt ? ["Closed", momentOf(collapsedAt)] : null,
  ].filter(Boolean);
  return h(
    "dl.facts",
    {},
    ...rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, value))),
  );
}
