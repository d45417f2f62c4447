// One turn on the page: the day it begins, what was said, the reply, how it ended.

import { dayName, timeOfDay } from "../dates.js";
import { h, hidden, icon, iconButton, copyFrom } from "../dom.js";
import { isFinal, isRunning, replyText } from "../turn.js";
import { fileChip } from "./files.js";
import { Parts } from "./parts.js";

const LONG = 1_600;
const MANY_LINES = 18;

const ENDINGS = {
  cancelled: ["stop", "Stopped. What was written is kept."],
  interrupted: ["alert", "Cut off when the server stopped. What was written is kept."],
  unanswered: ["info", "No reply was written."],
};

export class TurnView {
  #day = h("div.day", { role: "separator" });
  #words = h("div.bubble", { dir: "auto" });
  #more = h("button.more", { type: "button", onclick: () => this.#unfold() }, "Show all");
  #files = h("ul.files", { "aria-label": "Files" });
  #state = h("div.said-state");
  #said = h("div.said", {}, hidden("You said: "), this.#words, this.#files, this.#state);
  #notices = h("div.notices");
  #parts = new Parts();
  #outcome = h("div.outcome");
  #copy = copyButton(() => replyText(this.turn));
  #how = howButton(() => this.actions.explain(this.turn));
  #ended = h("time.reply-time", { datetime: "" });
  #deeds = h("div.reply-actions", {}, this.#copy, this.#how, this.#ended);
  #end = h("div.ending", {}, this.#outcome, this.#deeds);
  #reply = h(
    "div.reply",
    {},
    h("span.icon.star.reply-star", { "aria-hidden": "true" }),
    hidden("MIRA: "),
    this.#notices,
    this.#parts.element,
    this.#end,
  );
  element = h("article.turn", {}, this.#said, this.#reply);
  #content = null;
  #drawnFiles = null;
  #drawnEnd = "";
  #drawnState = "";
  #followed = false;

  /** `actions`: cancel, retry, resend, edit, explain, each called with the turn;
   *  `announce(text)`. */
  constructor(turn, actions) {
    this.turn = turn;
    this.actions = actions;
  }

  /** `day`: the date to show above, or null; `ahead`: another turn comes before this one;
   *  `newest`: nothing came after it, so it can be tried again. */
  update({ day, ahead, newest }) {
    const { turn } = this;
    const running = isRunning(turn) || (turn.state === "received" && !ahead);
    this.element.dataset.state = turn.state;
    this.element.dataset.turn = turn.id ?? "";
    this.#drawDay(day);
    this.#drawContent();
    this.#drawState(ahead);
    this.#notices.hidden = turn.notices.length === 0;
    while (this.#notices.childElementCount < turn.notices.length) {
      this.#notices.append(noticeLine(turn.notices[this.#notices.childElementCount]));
    }
    this.#parts.update(turn, isRunning(turn));
    this.#drawEnd(newest);
    this.#drawActions();
    this.#reply.hidden = !(running || isFinal(turn) || turn.parts.length > 0);
    this.#reply.classList.toggle("busy", running);
    this.#reply.setAttribute("aria-busy", String(running));
    this.#announce();
  }

  #drawDay(iso) {
    if (iso === null) {
      this.#day.remove();
      return;
    }
    const name = dayName(iso);
    if (this.#day.textContent !== name) this.#day.replaceChildren(h("time", { datetime: iso }, name));
    if (this.#day.parentNode === null) this.element.prepend(this.#day);
  }

  #drawContent() {
    const { content, files } = this.turn;
    const named = files.map((file) => file.id).join(" ");
    if (named !== this.#drawnFiles) {
      this.#drawnFiles = named;
      this.#files.hidden = files.length === 0;
      this.#files.replaceChildren(...files.map((file) => h("li", {}, fileChip(file))));
    }
    this.#said.hidden = content === "" && files.length === 0;
    if (content === this.#content) return;
    this.#content = content;
    this.#words.hidden = content === "";
    this.#words.textContent = content;
    const long = content.length > LONG || content.split("\n", MANY_LINES + 1).length > MANY_LINES;
    this.#words.classList.toggle("folded", long);
    if (long) this.#words.after(this.#more);
    else this.#more.remove();
  }

  #unfold() {
    this.#words.classList.remove("folded");
    this.#more.remove();
  }

  #drawState(ahead) {
    const { turn } = this;
    const key = `${turn.state} ${ahead} ${turn.problem ?? ""} ${turn.at}`;
    if (key === this.#drawnState) return;
    this.#drawnState = key;
    const children = [];
    if (turn.state === "sending") {
      children.push(icon("clock"), h("span", {}, turn.problem ?? "Sending"));
    } else if (turn.state === "refused") {
      children.push(
        icon("alert"),
        h("span.problem", {}, turn.problem),
        iconButton("retry", "Send again", () => this.actions.resend(turn)),
        iconButton("edit", "Edit", () => this.actions.edit(turn)),
      );
    } else if (turn.state === "received" && ahead) {
      children.push(
        icon("clock"),
        h("span", {}, "Waiting"),
        iconButton("close", "Withdraw", () => this.actions.cancel(turn)),
      );
    } else if (turn.at) {
      children.push(h("time.said-time", { datetime: turn.at }, timeOfDay(turn.at)));
    }
    this.#state.replaceChildren(...children);
  }

  #drawEnd(newest) {
    const { turn } = this;
    const key = `${turn.state} ${newest} ${turn.error?.detail ?? ""} ${turn.attempt}`;
    if (key === this.#drawnEnd) return;
    this.#drawnEnd = key;
    const retry = iconButton("retry", "Try again", () => this.actions.retry(turn));
    const children = [];
    if (turn.state === "failed") {
      children.push(
        h(
          "div.failure",
          { role: "alert" },
          icon("alert"),
          h("div.failure-words", {}, h("strong", {}, "No reply came. "), turn.error?.detail ?? ""),
          newest && turn.error?.retry !== false ? retry : null,
        ),
      );
    } else if (ENDINGS[turn.state]) {
      const [mark, words] = ENDINGS[turn.state];
      const line = h("div.ended", {}, icon(mark), h("span", {}, words));
      if (newest) line.append(retry);
      children.push(line);
    }
    this.#outcome.replaceChildren(...children);
  }

  // The buttons are made once and stay: whoever has the focus on one of them, or has gone from it
  // into a dialog, finds it again whatever else of the turn is drawn anew.
  #drawActions() {
    const { turn } = this;
    this.#deeds.hidden = !(isFinal(turn) && replyText(turn));
    if (this.#deeds.hidden) return;
    this.#how.hidden = !turn.id;
    const at = turn.endedAt ?? "";
    if (at !== this.#ended.getAttribute("datetime")) {
      this.#ended.setAttribute("datetime", at);
      this.#ended.textContent = at && timeOfDay(at);
    }
  }

  #announce() {
    const running = isRunning(this.turn);
    if (!running && !this.#followed) return;
    this.#followed = running;
    this.actions.announce(this.#parts.takeFinished(!running));
    if (!running && ENDINGS[this.turn.state]) this.actions.announce(ENDINGS[this.turn.state][1]);
  }
}

function copyButton(words) {
  const button = iconButton("copy", "Copy", () => copyFrom(button, words()));
  button.setAttribute("aria-label", "Copy the reply");
  return button;
}

function howButton(explain) {
  const button = iconButton("info", "How this came about", explain);
  button.setAttribute("aria-haspopup", "dialog");
  return button;
}

function noticeLine({ kind, detail }) {
  const words =
    kind === "dropped"
      ? `Left out for this model: ${detail}.`
      : detail || kind.replace(/_/g, " ");
  return h("p.notice", { "data-kind": kind }, icon("info"), h("span", { dir: "auto" }, words));
}
