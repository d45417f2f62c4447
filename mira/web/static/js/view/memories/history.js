// What happened to a memory, newest first, with a button to take each step back.

import { dateOf, timeOfDay } from "../../dates.js";
import { h, iconButton } from "../../dom.js";

const ACTORS = {
  user: "you",
  model: "MIRA",
  extraction: "reading the conversation",
  linking: "linking",
  consolidation: "tidying up",
  review: "review",
  entities: "care of names",
  decay: "forgetting",
  import: "import",
};

/** A list of `events` (oldest first, as the server gives them). `onUndo(event)`. */
export function historyList(events, onUndo) {
  return h("ol.events", { reversed: true }, ...events.toReversed().map((event) => row(event, onUndo)));
}

function row(event, onUndo) {
  const gone = event.undone_by !== null;
  return h(
    "li.event",
    { "data-undone": gone, "data-kind": event.kind },
    h("p.event-words", { dir: "auto" }, event.summary),
    h(
      "p.event-row",
      {},
      h("time", { datetime: event.at }, `${dateOf(event.at)}, ${timeOfDay(event.at)}`),
      h("span", {}, `by ${ACTORS[event.actor] ?? event.actor}`),
      gone ? h("span.badge", { "data-kind": "archived" }, "Undone") : null,
      event.undo ? undoButton(event, onUndo) : null,
    ),
  );
}

function undoButton(event, onUndo) {
  const button = iconButton("undo", "Undo", () => onUndo(event));
  button.setAttribute("aria-label", `Undo: ${event.summary}`);
  return button;
}
