// How an answer came about, in a dialog over the conversation. The dialog is the browser's own: it
// keeps the focus, Escape closes it, and the focus goes back to where it was.

import * as api from "../../segment_api.js";
import * as memoryApi from "../../memory_api.js";
import { h, icon } from "../../dom.js";
import { calls, memories, missing, passages, prompt, reading, timing, tools } from "./parts.js";

export class TracePanel {
  #asked = 0; // the newest question; answers to older ones come too late

  /** `signedOut()` when the session has ended. */
  constructor({ signedOut }) {
    this.signedOut = signedOut;
    this.body = h("div.trace-body", { "aria-live": "polite" });
    this.dialog = h(
      "dialog.trace",
      {
        "aria-labelledby": "trace-title",
        // Not to be heard by the page: there Escape stops a running reply.
        onkeydown: (event) => event.key === "Escape" && event.stopPropagation(),
        onclick: (event) => this.#clicked(event),
        onclose: () => (this.#asked += 1),
      },
      h(
        "header.trace-head",
        {},
        h("h2", { id: "trace-title" }, "How this came about"),
        h(
          "button.quiet",
          { type: "button", "aria-label": "Close", title: "Close", onclick: () => this.dialog.close() },
          icon("close"),
        ),
      ),
      this.body,
    );
    document.body.append(this.dialog);
  }

  /** Show the account of the turn `id`. */
  async open(id) {
    const mine = ++this.#asked;
    this.body.replaceChildren(h("p.nothing", {}, "Reading …"));
    this.dialog.showModal();
    try {
      const trace = await api.trace(id);
      const [found, said] = await Promise.all([
        read(trace.account?.memories.map((one) => one.id) ?? [], memoryApi.get),
        read(trace.account?.passages.map((one) => one.message_id) ?? [], api.message),
      ]);
      if (mine === this.#asked) this.#show(trace, found, said);
    } catch (problem) {
      if (mine !== this.#asked) return;
      if (problem.status === 401) {
        this.dialog.close();
        this.signedOut();
      } else {
        const words = problem.status ? problem.message : "The server cannot be reached.";
        this.body.replaceChildren(h("p.problem", { role: "alert" }, words));
      }
    }
  }

  #show(trace, found, said) {
    const { account } = trace;
    const used = new Set(trace.retrievals.flatMap((one) => one.used));
    const parts = account
      ? [
          reading(account),
          memories(account, found, used),
          passages(account, said),
          missing(account),
          prompt(account),
        ]
      : [h("p.nothing", {}, "Nothing was written down of how this answer was prepared.")];
    const again =
      trace.attempt > 1 ? h("p", {}, `This is attempt ${trace.attempt}; calls of earlier ones are listed too.`) : null;
    const rest = [again, timing(trace.timings, account), tools(trace.tools), calls(trace.calls, trace.cost_usd)];
    this.body.replaceChildren(...[...parts, ...rest].filter(Boolean));
    this.body.scrollTop = 0;
  }

  #clicked(event) {
    const outside = event.target === this.dialog;
    const leads = event.target.closest("a") !== null; // to a memory, on another view
    if (outside || leads) this.dialog.close();
  }
}

// What `get` gives for each id; null for what is not there any more. Other failures are raised.
async function read(ids, get) {
  const gone = (problem) => {
    if (problem.status === 404) return null;
    throw problem;
  };
  return new Map(await Promise.all(ids.map(async (id) => [id, await get(id).catch(gone)])));
}
