// Writing a memory, or changing one: its words and its dates.

import { h } from "../../dom.js";

const SHORTEST = 10;
const LONGEST = 4000; // code points, as the server counts

/** A form over `memory` (null: a new one). `save(fields)` may throw; what it says is shown. */
export function memoryForm(memory, { save, cancel }) {
  const words = h("textarea", { rows: "3", required: true, id: "memory-words" });
  words.value = memory?.text ?? "";
  const happens = moment("memory-happens", memory?.happens_at);
  const expires = moment("memory-expires", memory?.expires_at);
  const problem = h("p.form-problem", { role: "alert" });
  const send = h("button.wide", { type: "submit" }, memory ? "Save" : "Remember");
  const submit = async (event) => {
    event.preventDefault();
    problem.textContent = tooShortOrLong(words.value);
    if (problem.textContent || send.disabled) return;
    send.disabled = true;
    try {
      await save({ text: words.value, happens_at: iso(happens), expires_at: iso(expires) });
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      send.disabled = false;
    }
  };
  const form = h(
    "form.memory-form",
    { onsubmit: submit, "aria-label": memory ? "Change this memory" : "A new memory", novalidate: true },
    h("label", { for: "memory-words" }, "One fact that stands by itself"),
    words,
    h(
      "div.memory-dates",
      {},
      h("label", {}, "Happens", happens),
      h("label", {}, "Expires", expires),
    ),
    problem,
    h("div.question-row", {}, h("button.plain", { type: "button", onclick: cancel }, "Cancel"), send),
  );
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    cancel();
  });
  return form;
}

function tooShortOrLong(text) {
  const length = Array.from(text.trim()).length;
  if (length < SHORTEST) return "A memory is a sentence: at least ten characters.";
  if (length > LONGEST) return `A memory has at most ${LONGEST} characters; this has ${length}.`;
  return "";
}

// A moment in the browser's own zone, as its field wants it; what was not changed is sent as it came.
function moment(id, value) {
  const field = h("input", { type: "datetime-local", id });
  if (value) {
    const at = new Date(value);
    field.value = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  }
  field.dataset.given = value ?? "";
  field.dataset.shown = field.value;
  return field;
}

function iso(field) {
  if (field.value === field.dataset.shown) return field.dataset.given || null;
  return field.value ? new Date(field.value).toISOString() : null;
}
