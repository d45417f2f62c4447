// Why a memory matters as much as it does: the score, term by term.

import { h } from "../../dom.js";

/** A table of the terms of `explanation`. */
export function explanationTable(explanation) {
  return h(
    "div.explain",
    {},
    h(
      "table.terms",
      {},
      h("caption.sr", {}, "The terms of the importance"),
      h(
        "thead",
        {},
        h("tr", {}, ...["Term", "Value", "How it comes about"].map((name) => h("th", { scope: "col" }, name))),
      ),
      h("tbody", {}, ...explanation.terms.map(termRow)),
    ),
    h(
      "p.explain-sum",
      {},
      h("strong", {}, `Importance ${explanation.score.toFixed(3)}`),
      ` on day ${explanation.use_days} of your conversation.`,
    ),
  );
}

function termRow({ name, value, formula, numbers }) {
  const given = Object.entries(numbers).map(([of, number]) => `${of} = ${round(number)}`);
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, name),
    h("td.term-value", {}, round(value)),
    h("td", {}, h("span.term-formula", {}, formula), h("span.term-numbers", {}, given.join(", "))),
  );
}

const round = (number) => String(Math.round(number * 1000) / 1000);
