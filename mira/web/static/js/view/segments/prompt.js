// The prompt as it was last sent: its sections in their order, each unfolding to its text.

import { momentOf } from "../../dates.js";
import { h, icon } from "../../dom.js";
import { placeOf, sectionName, tokens } from "./words.js";

/** Show `sections` in `element`, with a line on the whole in `lead`. What is unfolded stays so. */
export function showPrompt({ element, lead }, sections) {
  const open = new Set(
    [...element.querySelectorAll("details[open]")].map((fold) => fold.dataset.name),
  );
  lead.textContent = sections.length ? onTheWhole(sections) : NOTHING;
  element.replaceChildren(...sections.map((section) => row(section, open.has(section.name))));
}

const NOTHING =
  "No prompt was sent in the last two weeks. With your next message it can be read here.";

function onTheWhole(sections) {
  const sum = sections.reduce((total, section) => total + section.tokens, 0);
  const newest = sections.reduce((last, { at }) => (at > last ? at : last), sections[0].at);
  const count = sections.length === 1 ? "one section" : `${sections.length} sections`;
  return `What stood beside the conversation itself when it was last sent, ${momentOf(newest)}: ${count}, about ${tokens(sum)}.`;
}

function row(section, open) {
  const text = section.error
    ? h("p.problem", {}, `It was left out: ${section.error}`)
    : h("pre.prompt-text", { dir: "auto", tabindex: "0", "aria-label": `Text of ${sectionName(section.name)}` }, section.text);
  return h(
    "details.prompt-section",
    { open, "data-name": section.name },
    h(
      "summary",
      {},
      icon("chevron"),
      h("span.prompt-name", {}, sectionName(section.name)),
      h("span.prompt-place", {}, section.error ? "left out" : placeOf(section.placement)),
      h("span.prompt-tokens", {}, tokens(section.tokens)),
    ),
    text,
  );
}
