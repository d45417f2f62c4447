// How memories hang together, drawn: memories as dots that grow with their importance, the people
// and things they are about as diamonds, links as lines. A picture is for eyes; whoever shows one
// says the same in words beside it.

import { h } from "../../dom.js";
import { layout } from "../../force.js";
import { placeLabels } from "./labels.js";
import { addressOf } from "./marks.js";

const SVG = "http://www.w3.org/2000/svg";
/** More than this is no picture any more. */
export const MOST = 60;
const LETTERS = 30; // of a name in the picture, where it is wide

function s(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter(Boolean));
  return element;
}

export class Picture {
  element = h("div.picture");
  #nodes = [];
  #edges = [];
  #around = null;
  #width = 0;

  constructor() {
    new ResizeObserver(() => {
      if (this.element.clientWidth !== this.#width) this.#draw();
    }).observe(this.element);
  }

  /** Draw `graph`; the node of id `around` is marked as the one that it is about. */
  show(graph, around = null) {
    const ids = new Set(graph.nodes.slice(0, MOST).map((node) => node.id));
    this.#edges = graph.edges.filter((edge) => ids.has(edge.from_id) && ids.has(edge.to_id));
    this.#nodes = graph.nodes.slice(0, MOST).map((node) => ({ ...node, size: sizeOf(node) }));
    this.#around = around;
    this.#draw();
  }

  #draw() {
    const nodes = this.#nodes;
    const edges = this.#edges;
    this.#width = this.element.clientWidth;
    this.element.hidden = nodes.length === 0;
    this.element.replaceChildren();
    if (nodes.length === 0 || this.#width === 0) return;
    const width = this.#width;
    const height = Math.round(Math.min(130 + nodes.length * 14, 480, Math.max(width, 300)));
    const places = layout(
      nodes.map((node) => node.id),
      edges.map((edge) => [edge.from_id, edge.to_id]),
      { width, height, margin: 30 },
    );
    const most = Math.min(LETTERS, Math.floor(width / 20));
    const labels = new Map(nodes.map((node) => [node.id, s("text", {}, cut(node.label, most))]));
    const words = `A picture of ${nodes.length} things with ${edges.length} links; the list beside it says the same.`;
    this.element.append(
      s(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words },
        arrow(),
        s("g", {}, ...edges.map((edge) => line(edge, places))),
        s("g", {}, ...nodes.map((node) => this.#mark(node, places.get(node.id), labels.get(node.id)))),
        s("g", { class: "labels" }, ...labels.values()),
      ),
    );
    this.element.append(h("p.picture-key", { "aria-hidden": "true" }, ...key()));
    this.#name(places, labels, { width, height });
  }

  #mark(node, { x, y }, label) {
    const size = node.size;
    const here = node.id === this.#around;
    const mark = s(
      node.kind === "memory" ? "circle" : "path",
      {
        class: `node ${node.kind}`,
        ...(node.kind === "memory" ? { r: size } : { d: `M0 ${-size}L${size} 0L0 ${size}L${-size} 0Z` }),
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        "data-status": node.status,
        "data-here": here ? "" : null,
      },
      s("title", {}, node.label),
    );
    mark.addEventListener("mouseenter", () => label.classList.add("pointed"));
    mark.addEventListener("mouseleave", () => label.classList.remove("pointed"));
    if (node.kind === "memory" && !here) {
      mark.addEventListener("click", () => {
        location.hash = addressOf(node.short_id);
      });
    }
    return mark;
  }

  // The names that fit are written out, those of what has most links first.
  #name(places, labels, size) {
    const degree = new Map();
    for (const { from_id: from, to_id: to } of this.#edges) {
      degree.set(from, (degree.get(from) ?? 0) + 1);
      degree.set(to, (degree.get(to) ?? 0) + 1);
    }
    const rank = (node) =>
      (node.id === this.#around ? 1000 : 0) + (degree.get(node.id) ?? 0) + (node.importance ?? 1);
    const boxes = this.#nodes
      .toSorted((a, b) => rank(b) - rank(a))
      .map((node) => ({
        id: node.id,
        ...places.get(node.id),
        r: node.size,
        w: labels.get(node.id).getComputedTextLength() + 4,
      }));
    const placed = placeLabels(boxes, boxes, size);
    for (const { id, x, y, r, w } of boxes) {
      const label = labels.get(id);
      const spot = placed.get(id);
      const most = size.width - w - 4;
      label.setAttribute("x", (spot?.x ?? Math.max(4, Math.min(x - w / 2, most))).toFixed(1));
      label.setAttribute("y", (spot?.y ?? Math.min(y + r + 13, size.height - 4)).toFixed(1));
      if (!spot) label.classList.add("left-out");
    }
  }
}

/** The same in words: each thing with what it is linked to. */
export function pictureInWords({ nodes, edges }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const name = (node) =>
    node.kind === "memory"
      ? h("a", { href: addressOf(node.short_id), dir: "auto" }, node.label)
      : h("strong", { dir: "auto" }, node.label);
  const rows = edges
    .map((edge) => [byId.get(edge.from_id), edge.words, byId.get(edge.to_id)])
    .filter(([from, , to]) => from && to)
    .map(([from, words, to]) => h("li", {}, name(from), h("em", {}, ` ${words} `), name(to)));
  const linked = new Set(edges.flatMap((edge) => [edge.from_id, edge.to_id]));
  const alone = nodes.filter((node) => !linked.has(node.id));
  return h(
    "ul.in-words",
    {},
    ...rows,
    ...alone.map((node) => h("li", {}, name(node), h("em", {}, " stands alone"))),
  );
}

// What the shapes and colours mean.
function key() {
  const sign = (kind, words) => h("span", { "data-sign": kind }, words);
  return [
    sign("memory", "memory"),
    sign("entity", "whom or what it is about"),
    sign("conflicts", "conflicts"),
    sign("supersedes", "supersedes"),
  ];
}

const sizeOf = (node) => (node.kind === "memory" ? 3.5 + 8 * Math.sqrt(node.importance ?? 0) : 7);

function line(edge, places) {
  const from = places.get(edge.from_id);
  const to = places.get(edge.to_id);
  const far = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const stop = Math.min(12, far / 3) / far; // before the node, so that the arrow is seen
  return s(
    "line",
    {
      class: `edge ${edge.type}`,
      x1: from.x.toFixed(1),
      y1: from.y.toFixed(1),
      x2: (to.x - (to.x - from.x) * stop).toFixed(1),
      y2: (to.y - (to.y - from.y) * stop).toFixed(1),
      "marker-end": edge.type === "about" ? null : "url(#picture-arrow)",
    },
    s("title", {}, [edge.words, edge.reason].filter(Boolean).join(": ")),
  );
}

function arrow() {
  const head = s("path", { d: "M0 0L6 3L0 6Z", class: "arrow-head" });
  const marker = { id: "picture-arrow", viewBox: "0 0 6 6", refX: 5, refY: 3, orient: "auto" };
  return s("defs", {}, s("marker", { ...marker, markerWidth: 6, markerHeight: 6 }, head));
}

function cut(words, most) {
  const letters = Array.from(words);
  return letters.length <= most ? words : `${letters.slice(0, most - 1).join("").trimEnd()}…`;
}
