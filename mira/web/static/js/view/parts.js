// The pieces of a reply: words, reasoning (folded), tools at work. Each is an object with an
// element and update(part, {running, last}).

import { h, icon, toolName } from "../dom.js";
import { Prose } from "./prose.js";

class TextPart {
  #prose = new Prose();
  element = this.#prose.element;

  update(part) {
    this.#prose.update(part.text);
  }

  takeFinished(ended) {
    return this.#prose.takeFinished(ended);
  }
}

class ThinkingPart {
  #label = h("span.thinking-label");
  #body = h("div.thinking-body", { dir: "auto" });
  element = h(
    "details.thinking",
    {},
    h("summary", {}, icon("chevron"), this.#label),
    this.#body,
  );

  update(part, { running, last }) {
    const busy = running && last;
    this.#label.textContent = busy ? "Thinking" : "Thought";
    this.element.classList.toggle("busy", busy);
    if (this.#body.textContent !== part.text) this.#body.textContent = part.text;
  }
}

const PHASES = {
  called: "preparing",
  running: "at work",
  done: "done",
  failed: "failed",
  waiting: "waits for your word",
};

class ToolPart {
  #mark = icon("tool");
  #name = h("span.tool-name");
  #phase = h("span.tool-phase");
  #detail = h("span.tool-detail", { dir: "auto" });
  element = h("div.tool", {}, this.#mark, this.#name, this.#phase, this.#detail);

  update(part, { running }) {
    const unfinished = part.phase === "called" || part.phase === "running";
    const phase = unfinished && !running ? "stopped" : part.phase;
    this.element.dataset.phase = phase;
    this.#mark.className = `icon ${{ done: "check", failed: "alert", waiting: "clock" }[phase] ?? "tool"}`;
    this.#name.textContent = toolName(part.name);
    this.#phase.textContent = PHASES[phase] ?? phase;
    this.#detail.textContent = part.detail;
  }
}

const KINDS = { text: TextPart, thinking: ThinkingPart, tool: ToolPart };

/** The parts of one reply in a box, kept in step with the turn's list. */
export class Parts {
  element = h("div.parts");
  #views = []; // {kind, view}
  #attempt = 0;

  update(turn, running) {
    if (turn.attempt !== this.#attempt) this.#cut(0);
    this.#attempt = turn.attempt;
    turn.parts.forEach((part, index) => {
      if (this.#views[index] && this.#views[index].kind !== part.kind) this.#cut(index);
      if (!this.#views[index]) {
        const view = new KINDS[part.kind]();
        this.#views.push({ kind: part.kind, view });
        this.element.append(view.element);
      }
      this.#views[index].view.update(part, { running, last: index === turn.parts.length - 1 });
    });
    this.#cut(turn.parts.length);
  }

  /** The words finished since the last call, for the screen reader. */
  takeFinished(ended) {
    const last = this.#views.length - 1;
    return this.#views
      .map(({ view }, index) => view.takeFinished?.(ended || index < last) ?? "")
      .filter(Boolean)
      .join("\n");
  }

  #cut(from) {
    for (const { view } of this.#views.splice(from)) view.element.remove();
  }
}
