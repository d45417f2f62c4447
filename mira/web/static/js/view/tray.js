// What waits for the user: actions to allow or refuse, and notifications to put away.

import { timeOfDay } from "../dates.js";
import { h, icon, toolName } from "../dom.js";

export class Tray {
  #confirmations = new Map();
  #notifications = new Map();

  /** `decide(actionId, allow)` and `acknowledge(id)` return whether the answer could be sent. */
  constructor(element, { decide, acknowledge, announce }) {
    Object.assign(this, { element, decide, acknowledge, announce });
  }

  /** The server's whole list, at the start of a connection. */
  reset(confirmations = [], notifications = []) {
    this.#confirmations.clear();
    this.#notifications.clear();
    this.element.replaceChildren();
    confirmations.forEach((action) => this.addConfirmation(action));
    notifications.forEach((notification) => this.addNotification(notification));
  }

  addConfirmation({ action_id: id, tool, call, expires }) {
    if (this.#confirmations.has(id)) return;
    const answer = (allow) => () => this.decide(id, allow) && this.#remove(this.#confirmations, id);
    const name = toolName(tool);
    const card = h(
      "section.ask",
      { "aria-label": `Confirm ${name}` },
      h("div.ask-head", {}, icon("tool"), h("strong", {}, `May MIRA use ${name}?`)),
      h("pre.ask-call", { tabindex: "0" }, readable(call)),
      h(
        "div.ask-row",
        {},
        h("span.ask-expires", {}, until(expires)),
        h("button.plain", { type: "button", onclick: answer(false) }, "Refuse"),
        h("button.wide", { type: "button", onclick: answer(true) }, "Allow"),
      ),
    );
    this.#confirmations.set(id, card);
    this.element.append(card);
    this.announce(`MIRA asks: may it use ${name}?`);
  }

  addNotification({ id, kind = "", body = "" }) {
    if (this.#notifications.has(id)) return;
    const dismiss = () => this.acknowledge(id) && this.#remove(this.#notifications, id);
    const card = h(
      "section.ask.note",
      { "aria-label": kind || "Notification" },
      icon("info"),
      h("p", { dir: "auto" }, typeof body === "string" ? body : JSON.stringify(body)),
      h("button.quiet", { type: "button", "aria-label": "Put away", onclick: dismiss }, icon("close")),
    );
    this.#notifications.set(id, card);
    this.element.append(card);
    this.announce(card.textContent);
  }

  #remove(cards, id) {
    cards.get(id)?.remove();
    cards.delete(id);
  }
}

function readable(call) {
  try {
    return JSON.stringify(JSON.parse(call), null, 2);
  } catch {
    return call;
  }
}

function until(expires) {
  const date = new Date(expires);
  if (Number.isNaN(date.getTime())) return "";
  return `Open until ${timeOfDay(expires)}`;
}
