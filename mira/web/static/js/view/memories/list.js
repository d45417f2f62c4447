// The list of memories, or what a search has found.

import { dateOf } from "../../dates.js";
import { h } from "../../dom.js";
import { addressOf, badges, importance } from "./marks.js";

export class List {
  #items = [];
  #shown = null; // the short id of the memory beside the list

  /** `element` is a list; `onMore()` is called for the next page. */
  constructor({ element, more, onMore }) {
    Object.assign(this, { element, more });
    more.addEventListener("click", onMore);
    element.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Show `items`: `{memory}` each. With `add`, after those that are there. */
  show(items, { add = false, more = false } = {}) {
    this.#items = add ? [...this.#items, ...items] : items;
    const rows = items.map(({ memory }) => this.#row(memory));
    if (add) this.element.append(...rows);
    else this.element.replaceChildren(...rows);
    this.more.hidden = !more;
    this.mark(this.#shown);
  }

  get length() {
    return this.#items.length;
  }

  /** Mark the memory that is shown beside the list. */
  mark(shortId) {
    this.#shown = shortId;
    for (const link of this.element.querySelectorAll("a")) {
      if (shortId !== null && link.hash === addressOf(shortId)) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }

  #row(memory) {
    return h(
      "li.memory",
      { "data-status": memory.status },
      h(
        "a.memory-link",
        { href: addressOf(memory.short_id) },
        h("span.memory-text", { dir: "auto" }, memory.text),
        h(
          "span.memory-row",
          {},
          importance(memory.importance),
          ...badges(memory),
          h("time.memory-time", { datetime: memory.created_at }, dateOf(memory.created_at)),
        ),
      ),
    );
  }

  // Arrows walk through the list, as in a menu; Tab walks too.
  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const links = [...this.element.querySelectorAll("a")];
    const next = links[links.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
}
