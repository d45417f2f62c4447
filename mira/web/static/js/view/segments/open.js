// The segment that is open, and what can be done with it: pause, resume, end.

import { dayKey, momentOf, timeOfDay } from "../../dates.js";
import { h, iconButton } from "../../dom.js";

export class OpenSegment {
  /** `element` is where it stands; `onAct(act)` with pause, resume or collapse. */
  constructor(element, onAct) {
    Object.assign(this, { element, onAct });
  }

  /** Show `segment`, or that none is open (null). A button that had the focus keeps it. */
  show(segment) {
    const focused = this.element.contains(document.activeElement);
    const words = segment ? standing(segment) : "No segment is open: your next message opens one.";
    const buttons = segment
      ? [
          segment.state === "paused"
            ? iconButton("play", "Resume", () => this.onAct("resume"))
            : iconButton("pause", "Pause", () => this.onAct("pause")),
          iconButton("archive", "End now", () => this.onAct("collapse")),
        ]
      : [];
    this.element.replaceChildren(
      h("p.open-words", {}, words),
      h("div.open-buttons", {}, ...buttons),
    );
    if (focused) this.element.querySelector("button")?.focus();
  }

  /** While the server is at it nothing more can be asked. */
  set busy(busy) {
    this.element.setAttribute("aria-busy", String(busy));
    for (const button of this.element.querySelectorAll("button")) button.disabled = busy;
  }
}

function standing({ state, opened_at: opened, last_message_at: last }) {
  if (state === "paused") return `Paused: no silence ends it until you speak. Last word ${momentOf(last)}.`;
  const said = dayKey(opened) === dayKey(last) ? timeOfDay(last) : momentOf(last);
  return `Open since ${momentOf(opened)}. Last word ${said}.`;
}
