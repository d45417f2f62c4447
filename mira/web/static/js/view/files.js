// A file as the page shows it: a picture small, a document by its name. Both lead to the file.

import { h, icon } from "../dom.js";
import { at } from "../file_api.js";

const STEPS = [
  [1024 * 1024, "MB"],
  [1024, "kB"],
];

/** A size as people read it. */
export function sizeName(bytes) {
  for (const [step, name] of STEPS) {
    if (bytes >= step) return `${(bytes / step).toFixed(bytes < 10 * step ? 1 : 0)} ${name}`;
  }
  return `${bytes} bytes`;
}

/** `file`: {id, name, kind, size}. */
export function fileChip({ id, name, kind, size }) {
  const props = { href: at(id), target: "_blank", rel: "noopener", title: name };
  if (kind === "image") {
    const picture = h("img", { src: at(id, "small"), alt: name, loading: "lazy" });
    return h("a.file-image", props, picture);
  }
  return h(
    "a.file-document",
    { ...props, download: name },
    icon("document"),
    h("span.file-name", { dir: "auto" }, name),
    h("span.file-size", {}, sizeName(size)),
  );
}
