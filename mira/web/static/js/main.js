// Where the parts of the page meet.

import * as api from "./api.js";
import { History } from "./history.js";
import { Outbox, forgetEverything } from "./outbox.js";
import { Session } from "./session.js";
import { Thread } from "./thread.js";
import { isOpen } from "./turn.js";
import { Announcer } from "./view/announcer.js";
import { Composer } from "./view/composer.js";
import { SignIn } from "./view/signin.js";
import { Status } from "./view/status.js";
import { ThreadView } from "./view/thread.js";
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
    signedOut: () => show("signin"),
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
  onSend: (text) => {
    session.send(text);
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

function show(which) {
  const chat = which === "chat";
  by("chat").hidden = !chat;
  by("signout").hidden = !chat;
  by("health").hidden = !chat;
  if (chat) signIn.hide();
  else signIn.show();
}

async function start() {
  if (!(await session.start())) return;
  show("chat");
  view.goToEnd();
  composer.appear();
}

start();
