// How memories hang together, drawn: memories as dots that grow with their importance, the people
// and things they are about as diamonds, links as lines. A picture is for eyes; whoever shows one
// says the same in words beside it.

import { h } from "../../dom.js";
import { layout } from "../../force.js";
import { addressOf } from "./marks.js";

const SVG = "http://www.w3.org/2000/svg";
/** More than this is no picture any more. */
export const MOST = 60;
const LABELS = 16; // beyond it only what stands out is named; the rest says its name when pointed at
const LABEL = 26;

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
  #graph = { nodes: [], edges: [] };
  #around = null;
  #width = 0;

  constructor() {
    new ResizeObserver(() => {
      if (this.element.clientWidth !== this.#width) this.#draw();
    }).observe(this.element);
  }

  /** Draw `graph`; the node of id `around` is marked as the one that it is about. */
  show(graph, around = null) {
    const nodes = graph.nodes.slice(0, MOST);
    const ids = new Set(nodes.map((node) => node.id));
    const edges = graph.edges.filter((edge) => ids.has(edge.from_id) && ids.has(edge.to_id));
    this.#graph = { nodes, edges };
    this.#around = around;
    this.#draw();
  }

  #draw() {
    const { nodes, edges } = this.#graph;
    this.#width = this.element.clientWidth;
    this.element.hidden = nodes.length === 0;
    if (nodes.length === 0 || this.#width === 0) {
      this.element.replaceChildren();
      return;
    }
    const width = this.#width;
    const height = Math.round(Math.min(Math.max(width * 0.7, 220), 150 + nodes.length * 12, 460));
    const places = layout(
      nodes.map((node) => node.id),
      edges.map((edge) => [edge.from_id, edge.to_id]),
      { width, height, margin: 34 },
    );
    const named = this.#named(nodes, edges);
    const words = `Picture of ${nodes.length} things and ${edges.length} links between them; the list beside it says the same.`;
    this.element.replaceChildren(
      s(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": words },
        arrow(),
        s("g", {}, ...edges.map((edge) => line(edge, places))),
        s("g", {}, ...nodes.map((node) => this.#node(node, places.get(node.id), named, width))),
      ),
    );
  }

  // Those whose names are written out: all of a few; of many, what has most links, and what matters.
  #named(nodes, edges) {
    if (nodes.length <= LABELS) return new Set(nodes.map((node) => node.id));
    const degree = new Map();
    for (const { from_id: from, to_id: to } of edges) {
      degree.set(from, (degree.get(from) ?? 0) + 1);
      degree.set(to, (degree.get(to) ?? 0) + 1);
    }
    const rank = (node) => (degree.get(node.id) ?? 0) + (node.importance ?? 0);
    const sorted = nodes.toSorted((a, b) => rank(b) - rank(a)).slice(0, LABELS);
    return new Set([...sorted.map((node) => node.id), this.#around]);
  }

  #node(node, { x, y }, named, width) {
    const memory = node.kind === "memory";
    const size = memory ? 4.5 + 9 * Math.sqrt(node.importance ?? 0) : 5;
    const shape = memory
      ? s("circle", { r: size })
      : s("path", { d: `M0 ${-size}L${size} 0L0 ${size}L${-size} 0Z` });
    const label = cut(node.label, Math.min(LABEL, Math.floor(width / 16)));
    const group = s(
      "g",
      {
        class: `node ${node.kind}${named.has(node.id) ? " named" : ""}`,
        transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`,
        "data-status": node.status,
        "data-here": node.id === this.#around ? "" : null,
      },
      s("title", {}, node.label),
      shape,
      text(label, { y: size + 12, ...side(x, label, width) }),
    );
    if (memory && node.id !== this.#around) {
      group.addEventListener("click", () => {
        location.hash = addressOf(node.short_id);
      });
    }
    return group;
  }
}

/** The same in words: each thing with what it is linked to. */
export function pictureInWords({ nodes, edges }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const name = (node) =>
    node.kind === "memory"
      ? h("a", { href: addressOf(node.short_id), dir: "auto" }, node.label)
      : h("span", { dir: "auto" }, node.label);
  const rows = edges
    .map((edge) => [byId.get(edge.from_id), edge.type.replace(/_/g, " "), byId.get(edge.to_id)])
    .filter(([from, , to]) => from && to)
    .map(([from, type, to]) => h("li", {}, name(from), h("em", {}, ` ${type} `), name(to)));
  const linked = new Set(edges.flatMap((edge) => [edge.from_id, edge.to_id]));
  const alone = nodes.filter((node) => !linked.has(node.id));
  return h(
    "ul.in-words",
    {},
    ...rows,
    ...alone.map((node) => h("li", {}, name(node), h("em", {}, " stands alone"))),
  );
}

// Labels near an edge grow towards the middle.
function side(x, label, width) {
  const half = label.length * 3.1;
  if (x < half) return { "text-anchor": "start", x: -8 };
  if (x > width - half) return { "text-anchor": "end", x: 8 };
  return { "text-anchor": "middle" };
}

function text(words, attributes) {
  return s("text", attributes, words);
}

function line(edge, places) {
  const from = places.get(edge.from_id);
  const to = places.get(edge.to_id);
  const far = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const stop = Math.min(13, far / 3) / far; // before the node, so that the arrow is seen
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
    s("title", {}, [edge.type.replace(/_/g, " "), edge.reason].filter(Boolean).join(": ")),
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
