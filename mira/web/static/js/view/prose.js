// A text that grows: only the blocks that changed are drawn again, so a long reply stays cheap
// while it streams, and a selection in an earlier paragraph survives.

import { h } from "../dom.js";
import { blocksOf } from "../markdown.js";

export class Prose {
  element = h("div.prose", { dir: "auto" });
  #drawn = []; // {raw, nodes}
  #text = null;
  #links = "{}";
  #said = 0;

  update(text) {
    if (text === this.#text) return;
    this.#text = text;
    const { blocks, links } = blocksOf(text);
    let same = 0;
    if (links === this.#links) {
      while (same < blocks.length && this.#drawn[same]?.raw === blocks[same].raw) same += 1;
    }
    this.#links = links;
    for (const { nodes } of this.#drawn.splice(same)) nodes.forEach((node) => node.remove());
    for (const block of blocks.slice(same)) {
      const nodes = [...block.render().childNodes];
      this.element.append(...nodes);
      this.#drawn.push({ raw: block.raw, nodes });
    }
  }

  /** The words of blocks that are finished and were not asked for before; the last one counts as
   *  finished when `ended`. */
  takeFinished(ended) {
    const until = ended ? this.#drawn.length : this.#drawn.length - 1;
    const fresh = this.#drawn.slice(this.#said, Math.max(this.#said, until));
    this.#said = Math.max(this.#said, until);
    return fresh.map(({ nodes }) => nodes.map((node) => node.textContent).join("")).join("\n");
  }
}
