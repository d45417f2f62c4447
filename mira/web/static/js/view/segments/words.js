// What the figures and states of a segment mean, in words.

import { momentOf } from "../../dates.js";

export const STATES = {
  active: "Open",
  paused: "Paused",
  collapsing: "Being summed up",
  collapsed: "Ended",
};

const UNTITLED = {
  active: "The open segment",
  paused: "The paused segment",
  collapsing: "A segment that has just ended",
};

export const titleOf = ({ title, state }) => title || UNTITLED[state] || "A segment without a title";

const COMPLEXITY = {
  0.5: "small talk",
  1: "one plain matter",
  2: "several matters",
  3: "long and difficult",
};

export const complexityOf = (value) => COMPLEXITY[value] ?? String(value);

/** How far a summary departs from what was said: a word and the share in percent. */
export function driftOf(value) {
  const percent = Math.round(value * 100);
  if (value === 0) return "No drift";
  const word = value < 0.15 ? "Slight" : value < 0.35 ? "Some" : "Strong";
  return `${word} drift, ${percent} %`;
}

/** Why there is no summary yet, and when it is tried next. */
export function troubleOf({ failures, unreached, next_try_at: next }) {
  const times = failures === 1 ? "once" : `${failures} times`;
  const told = [
    failures ? `A model failed ${times} at the summary.` : null,
    unreached ? "The last time no model could be reached for the summary." : null,
    `It is tried again ${momentOf(next)}. Nothing of the segment is lost meanwhile.`,
  ];
  return told.filter(Boolean).join(" ");
}

const PLACES = {
  system: "instructions",
  documents: "documents",
  earlier: "earlier segments",
  boundary: "since the last segment",
  brief: "brief of this segment",
  hud: "this moment",
};

/** Where a section of the prompt stands. */
export const placeOf = (placement) => PLACES[placement] ?? placement;

/** A section's name as people say it: `proactive_memory` is "Proactive memory". */
export function sectionName(name) {
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/_/g, " ").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export const tokens = (count) => `${count.toLocaleString()} ${count === 1 ? "token" : "tokens"}`;
