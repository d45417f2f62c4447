// A question before something is done. The dialog is the browser's own: it keeps the focus, and
// Escape closes it.

import { h } from "../dom.js";

/** Ask; resolves to true for yes. `words` are paragraphs; `yes` is what the button says. */
export function ask(title, words, yes, { danger = false } = {}) {
  return new Promise((resolve) => {
    const finish = (answer) => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    const no = h("button.plain", { type: "button", onclick: () => finish(false) }, "Cancel");
    const go = h("button.wide", { type: "button", onclick: () => finish(true) }, yes);
    if (danger) go.classList.add("danger");
    const dialog = h(
      "dialog.question",
      { "aria-labelledby": "question-title", oncancel: (event) => (event.preventDefault(), finish(false)) },
      h("h2", { id: "question-title" }, title),
      ...words.map((line) => h("p", { dir: "auto" }, line)),
      h("div.question-row", {}, no, go),
    );
    document.body.append(dialog);
    dialog.showModal();
    no.focus();
  });
}
