// Where the parts of the page meet.

import * as api from "./api.js";
import { History } from "./history.js";
import { Outbox, forgetEverything } from "./outbox.js";
import { Session } from "./session.js";
import { Thread } from "./thread.js";
import { isOpen } from "./turn.js";
import { Announcer } from "./view/announcer.js";
import { Composer } from "./view/composer.js";
import { memoriesView } from "./view/memories/index.js";
import { segmentsView } from "./view/segments/index.js";
import { SignIn } from "./view/signin.js";
import { Status } from "./view/status.js";
import { ThreadView } from "./view/thread.js";
import { TracePanel } from "./view/trace/panel.js";
import { Tray } from "./view/tray.js";

const by = (id) => document.getElementById(id);

const announcer = new Announcer(by("announcer"));
const status = new Status(by("health"));
const thread = new Thread();
const history = new History(thread);

const session = new Session({
  thread,
  history,
  outbox: new Outbox(),
  view: {
    state: (state, at) => status.show(state, at),
    signedOut: () => signedOut(),
    ask: (frame) => tray.addConfirmation(frame),
    notify: (frame) => tray.addNotification(frame),
    resetTray: (confirmations, notifications) => tray.reset(confirmations, notifications),
  },
});

const tray = new Tray(by("tray"), {
  decide: (id, allow) => session.decide(id, allow),
  acknowledge: (id) => session.acknowledge(id),
  announce: (text) => announcer.say(text),
});

const view = new ThreadView({
  scroller: by("scroller"),
  element: by("thread"),
  latest: by("latest"),
  thread,
  history,
  actions: {
    cancel: (turn) => session.cancel(turn),
    retry: (turn) => session.retry(turn),
    resend: (turn) => session.resend(turn),
    explain: (turn) => traces.open(turn.id),
    edit: (turn) => composer.restore(session.withdraw(turn)),
    announce: (text) => announcer.say(text),
  },
});

const composer = new Composer({
  form: by("composer"),
  field: by("message"),
  send: by("send"),
  stop: by("stop"),
  count: by("count"),
  attach: by("attach"),
  picker: by("picker"),
  row: by("attaching"),
  announce: (text) => announcer.say(text),
  onSend: (text, files) => {
    session.send(text, files);
    view.goToEnd();
  },
  onStop: () => session.cancel(thread.running() ?? thread.turns.find(isOpen)),
});

const signIn = new SignIn({
  stage: by("signin"),
  form: by("signin-form"),
  field: by("key"),
  error: by("signin-error"),
  onSignedIn: () => start(),
});

thread.addEventListener("turn", () => composer.setRunning(thread.turns.some(isOpen)));

by("signout").addEventListener("click", async () => {
  session.stop();
  await api.signOut().catch(() => undefined); // without a server there is no session to end
  forgetEverything();
  location.reload(); // nothing of the conversation stays in the document
});

const actions = { announce: (text) => announcer.say(text), signedOut: () => signedOut() };
const traces = new TracePanel(actions);

// The views of someone who is signed in, by what the address says. Beside the conversation itself:
// what opens one, where the skip link leads in it, and what that is called.

const VIEWS = {
  memories: { view: memoriesView(actions), first: "memory-search", called: "search" },
  segments: { view: segmentsView(actions), first: "segments-title", called: "segments" },
};
const CHAT = { first: "message", called: "message field" };

let signedIn = false;

function viewOf(hash) {
  const [name] = hash.slice(1).split("/");
  return Object.hasOwn(VIEWS, name) ? name : "chat";
}

function route() {
  if (!signedIn) return;
  const which = viewOf(location.hash);
  const fresh = by(which).hidden;
  show(which);
  for (const [name, { view }] of Object.entries(VIEWS)) if (name !== which) view.close();
  if (which !== "chat") {
    VIEWS[which].view.open(location.hash);
    if (fresh) VIEWS[which].view.focus();
  } else if (fresh) {
    document.title = "MIRA";
    composer.appear();
  }
}

function show(which) {
  document.body.dataset.view = which;
  for (const name of ["chat", ...Object.keys(VIEWS), "signin"]) by(name).hidden = name !== which;
  for (const name of ["signout", "health", "views"]) by(name).hidden = which === "signin";
  for (const name of ["chat", ...Object.keys(VIEWS)]) {
    if (name === which) by(`to-${name}`).setAttribute("aria-current", "page");
    else by(`to-${name}`).removeAttribute("aria-current");
  }
  by("skip").textContent = `Skip to the ${(VIEWS[which] ?? CHAT).called}`;
  if (which === "signin") signIn.show();
  else signIn.hide();
}

function signedOut() {
  signedIn = false;
  show("signin");
}

window.addEventListener("hashchange", route);

by("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says which view is shown, not where in it
  by((VIEWS[viewOf(location.hash)] ?? CHAT).first).focus();
});

async function start() {
  if (!(await session.start())) return;
  signedIn = true;
  route();
  view.goToEnd();
}

start();
