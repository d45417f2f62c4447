// Markdown to elements. Whatever a model writes is foreign: its HTML is sanitised, its links open
// without an opener, and no image is fetched from anywhere but this server.

import DOMPurify from "../vendor/purify.es.js";
import { Marked } from "../vendor/marked.esm.js";
import { h, icon } from "./dom.js";

// HTML in a text is shown as it was written, but for these few tags, which are common in tables
// and lists. None of them has attributes here.
const BARE_TAGS = /&lt;(\/?)(b|br|del|details|em|i|ins|kbd|mark|s|strong|sub|summary|sup|u)\s*\/?&gt;/gi;
const SIGNS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function literal({ text, block }) {
  const safe = text.replace(/[&<>"]/g, (sign) => SIGNS[sign]).replace(BARE_TAGS, "<$1$2>");
  return block ? `<div>${safe.trim()}</div>` : safe;
}

const marked = new Marked({ gfm: true, breaks: true, renderer: { html: literal } });

const POLICY = {
  ALLOWED_TAGS: (
    "a b blockquote br code dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i img input ins kbd " +
    "li mark ol p pre q s samp span strong sub summary sup table tbody td tfoot th thead tr u ul var"
  ).split(" "),
  ALLOWED_ATTR: (
    "align alt checked class colspan dir disabled href lang open rel rowspan src start target " +
    "title type"
  ).split(" "),
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const LINKS = new Set(["http:", "https:", "mailto:"]);
const PICTURE = /^data:image\/(png|jpeg|gif|webp|avif);base64,/i;

function address(value) {
  try {
    return new URL(value, location.href);
  } catch {
    return null;
  }
}

function tameLink(link) {
  const url = link.hasAttribute("href") ? address(link.getAttribute("href")) : null;
  if (url === null || !LINKS.has(url.protocol)) {
    link.removeAttribute("href");
    return;
  }
  link.setAttribute("rel", "noopener noreferrer");
  link.setAttribute("target", "_blank");
}

/** Pictures in the text itself and files of this server stay; others become a link. */
function tameImage(image) {
  const source = image.getAttribute("src") ?? "";
  const url = address(source);
  const ours = url?.origin === location.origin && url.pathname.startsWith("/v1/files/");
  if (PICTURE.test(source) || ours) {
    image.setAttribute("loading", "lazy");
    return;
  }
  const linkable = url !== null && LINKS.has(url.protocol) && url.origin !== location.origin;
  const name = image.getAttribute("alt") || (linkable ? url.hostname : "no description");
  const label = `Picture: ${name}`;
  const link = linkable && image.closest("a") === null
    ? h("a.picture", { href: url.href, rel: "noopener noreferrer", target: "_blank" }, label)
    : h("span.picture", {}, label);
  image.replaceWith(link);
}

function dressCode(pre) {
  const code = pre.querySelector("code");
  const language = /language-([\w+#.-]+)/.exec(code?.className ?? "")?.[1] ?? "";
  const copy = h("button.chip.copy-code", { type: "button" }, icon("copy"), h("span", {}, "Copy"));
  copy.setAttribute("aria-label", language ? `Copy the ${language} code` : "Copy the code");
  const head = h("div.code-head", {}, h("span.code-language", {}, language), copy);
  const frame = h("div.code");
  pre.replaceWith(frame);
  pre.tabIndex = 0; // so that a wide line can be scrolled with the keyboard
  frame.append(head, pre);
}

/** A fragment of harmless elements from foreign HTML. */
export function sanitise(html) {
  const fragment = DOMPurify.sanitize(html, POLICY);
  for (const element of fragment.querySelectorAll("[class]")) {
    const keep = element.localName === "code" && /^language-[\w+#.-]+$/.test(element.className);
    if (!keep) element.removeAttribute("class"); // the page's own classes are not for the text
  }
  for (const input of fragment.querySelectorAll("input")) {
    if (input.type !== "checkbox") input.remove();
    else input.disabled = true;
  }
  fragment.querySelectorAll("img").forEach(tameImage);
  fragment.querySelectorAll("a").forEach(tameLink);
  fragment.querySelectorAll("pre").forEach(dressCode);
  for (const table of fragment.querySelectorAll("table")) {
    const frame = h("div.table", { tabindex: "0" });
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

/** The top-level blocks of a text: `{raw, render()}` each. Blocks with equal `raw` look the same,
 *  as long as `links` (the text's reference links) is the same too. */
export function blocksOf(text) {
  const tokens = marked.lexer(text);
  const links = JSON.stringify(tokens.links);
  const blocks = tokens
    .filter((token) => token.type !== "space" && token.type !== "def")
    .map((token) => ({ raw: token.raw, render: () => sanitise(marked.parser([token])) }));
  return { blocks, links };
}
