// One memory whole: its words, what is known of it, where it comes from, what it is linked to, why
// it matters, what happened to it; and what can be done with it.

import { dateOf, timeOfDay } from "../../dates.js";
import { h, hidden, icon, iconButton } from "../../dom.js";
import { explanationTable } from "./explain.js";
import { historyList } from "./history.js";
import { addressOf, badges, importance, sourceOf } from "./marks.js";
import { Picture } from "./picture.js";

export class Detail {
  #picture = new Picture();

  /** `actions`: edit(memory), confirm(memory), archive(memory), restore(memory), remove(memory),
   *  undo(memory, event), explain(memory) → a promise of the explanation. */
  constructor(element, actions) {
    Object.assign(this, { element, actions });
    this.heading = h("h2.memory-heading", { tabindex: "-1", dir: "auto" });
  }

  /** Show `memory` with its `links` (a list), `events` (a list) and `graph` around it. */
  show(memory, { links, events, graph }) {
    this.heading.textContent = memory.text;
    this.element.replaceChildren(
      h("a.chip.to-list", { href: "#memories" }, icon("back"), h("span", {}, "All memories")),
      this.heading,
      h("p.memory-row", {}, importance(memory.importance), ...badges(memory)),
      this.#buttons(memory),
      facts(memory),
      section("Evidence", ...evidence(memory)),
      ...(memory.annotations.length ? [section("Notes", notes(memory))] : []),
      section("Links", ...this.#links(memory, links, graph)),
      this.#why(memory),
      section("History", historyList(events, (event) => this.actions.undo(memory, event))),
    );
  }

  /** Replace the words by a form, until `restore` is called. Returns `restore`. */
  edit(form) {
    const hiding = [this.heading, this.element.querySelector(".memory-actions")];
    hiding.forEach((element) => (element.hidden = true));
    this.heading.after(form);
    form.querySelector("textarea").focus();
    return () => {
      form.remove();
      hiding.forEach((element) => (element.hidden = false));
      this.element.querySelector(".memory-actions button")?.focus();
    };
  }

  #buttons(memory) {
    if (memory.shared) return h("p.memory-actions", {}, "Shared by all: only the operator may change it.");
    const { actions } = this;
    const archived = memory.status === "archived";
    return h(
      "div.memory-actions",
      {},
      archived ? null : iconButton("edit", "Edit", () => actions.edit(memory)),
      archived ? null : iconButton("check", "Confirm", () => actions.confirm(memory)),
      archived
        ? iconButton("retry", "Restore", () => actions.restore(memory))
        : iconButton("archive", "Archive", () => actions.archive(memory)),
      iconButton("trash", "Delete", () => actions.remove(memory)),
    );
  }

  #links(memory, links, graph) {
    if (links.length === 0 && graph.edges.length === 0) {
      return [h("p.nothing", {}, "Nothing is linked to it yet.")];
    }
    this.#picture.show(graph, memory.id);
    const rows = links.map((link) =>
      h(
        "li",
        {},
        h("em", {}, `${link.words} `),
        h("a", { href: addressOf(link.memory.short_id), dir: "auto" }, link.memory.text),
        link.reason ? h("span.reason", { dir: "auto" }, ` (${link.reason})`) : null,
      ),
    );
    return [this.#picture.element, h("ul.in-words", {}, ...rows)];
  }

  #why(memory) {
    const body = h("div", { role: "status" });
    const fold = h(
      "details.why",
      {},
      h("summary", {}, icon("chevron"), h("span", {}, "Why this importance?")),
      body,
    );
    fold.addEventListener("toggle", async () => {
      if (!fold.open || body.childElementCount > 0) return;
      body.textContent = "Reckoning …";
      try {
        body.replaceChildren(explanationTable(await this.actions.explain(memory)));
      } catch (problem) {
        body.textContent = problem.message;
      }
    });
    return fold;
  }
}

function section(name, ...content) {
  return h("section.part", {}, h("h3", {}, name), ...content);
}

function facts(memory) {
  const rows = [
    ["Name", h("code", {}, memory.short_id)],
    ["Written", moment(memory.created_at)],
    memory.happens_at ? ["Happens", moment(memory.happens_at)] : null,
    memory.expires_at ? ["Expires", moment(memory.expires_at)] : null,
    ["True", validity(memory)],
    memory.successor ? ["Superseded by", reference(memory.successor)] : null,
    ["Was of use", times(memory.access_count)],
    ["Said again", times(memory.mention_count)],
    memory.entities.length ? ["About", memory.entities.map(({ name }) => name).join(", ")] : null,
  ];
  const cells = rows.filter(Boolean).map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { dir: "auto" }, value)));
  return h("dl.facts", {}, ...cells);
}

const times = (count) => ["not yet", "once", "twice"][count] ?? `${count} times`;

const moment = (iso) => h("time", { datetime: iso }, `${dateOf(iso)}, ${timeOfDay(iso)}`);

function validity({ valid_from: from, valid_to: to }) {
  const since = h("time", { datetime: from }, dateOf(from));
  const until = to ? h("time", { datetime: to }, dateOf(to)) : "now";
  return h("span", {}, since, " to ", until);
}

const reference = ({ short_id: id, text }) => h("a", { href: addressOf(id), dir: "auto" }, text);

function evidence(memory) {
  const { segment, messages, memories } = memory.evidence;
  const where = segment ? `, in the talk of ${dateOf(segment.opened_at)}` : "";
  const title = segment?.title ? `: ${segment.title}` : "";
  return [
    h("p", { dir: "auto" }, `${sourceOf(memory)}${where}${title}.`),
    ...messages.map((message) =>
      h(
        "blockquote.quote",
        { "data-role": message.role },
        hidden(message.role === "user" ? "You said: " : "MIRA said: "),
        h("p", { dir: "auto" }, message.text),
        h("footer", {}, message.role === "user" ? "You" : "MIRA", ", ", moment(message.created_at)),
      ),
    ),
    memories.length ? h("ul.in-words", {}, ...memories.map((one) => h("li", {}, reference(one)))) : null,
  ].filter(Boolean);
}

function notes(memory) {
  const by = { user: "you", model: "MIRA", review: "review" };
  const rows = memory.annotations.map((note) =>
    h("li", {}, h("span", { dir: "auto" }, note.text), h("span.reason", {}, ` (${by[note.author]}, ${dateOf(note.at)})`)),
  );
  return h("ul.in-words", {}, ...rows);
}
