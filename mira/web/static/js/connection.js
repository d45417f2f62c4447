// The WebSocket: connect, notice when it is dead, come back with growing patience.
//
// States, told through `onState`: connecting, connected, waiting (with the moment of the next
// attempt), stopping (the server said that it is going), offline (this device has no network).

const FIRST_DELAY = 500;
const LONGEST_DELAY = 8_000;
const READY_WITHIN = 12_000;
const PING_EVERY = 20_000;
const ANSWER_WITHIN = 10_000;
const UNAUTHORIZED = 4401; // the server's close code

/** Milliseconds before attempt number `failures`, between half and the whole of the step. */
export function backOff(failures, chance = Math.random()) {
  const step = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** Math.min(failures, 10));
  return step / 2 + (step / 2) * chance;
}

export class Connection {
  #socket = null;
  #ready = false;
  #failures = 0;
  #notBefore = null; // milliseconds that a stopping server asked for
  #retryTimer = 0;
  #watchTimer = 0;
  #running = false;

  /** `onFrame(frame)` gets every frame; `onReady(frame)` the first of each connection, before it;
   *  `mayConnect()` resolves to false when there is no session: then the connection stops. */
  constructor({ onFrame, onReady, onState, mayConnect }) {
    this.onFrame = onFrame;
    this.onReady = onReady;
    this.onState = onState;
    this.mayConnect = mayConnect;
    window.addEventListener("online", () => this.#hurry());
    window.addEventListener("offline", () => this.#running && !this.#ready && this.onState("offline"));
    document.addEventListener("visibilitychange", () => !document.hidden && this.#hurry());
  }

  start() {
    this.#running = true;
    this.#failures = 0;
    this.#open();
  }

  stop() {
    this.#running = false;
    clearTimeout(this.#retryTimer);
    this.#drop();
  }

  get ready() {
    return this.#ready;
  }

  /** Send a frame if connected. Returns whether it was handed to the socket. */
  send(frame) {
    if (!this.#ready || this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  #open() {
    clearTimeout(this.#retryTimer);
    this.#drop();
    this.onState("connecting");
    const url = new URL("/v1/ws", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.onmessage = ({ data }) => socket === this.#socket && this.#receive(data);
    socket.onclose = ({ code }) => socket === this.#socket && this.#lost(code);
    this.#watch(READY_WITHIN);
  }

  #receive(data) {
    const frame = JSON.parse(data);
    this.#watch(this.#ready || frame.type === "ready" ? PING_EVERY : READY_WITHIN);
    if (frame.type === "ready") {
      this.#ready = true;
      this.#failures = 0;
      this.#notBefore = null;
      this.onState("connected");
      this.onReady(frame);
    } else if (frame.type === "shutdown") {
      this.#notBefore = Math.max(0, frame.reconnect_after * 1000);
      this.onState("stopping");
    } else if (frame.type !== "pong") {
      this.onFrame(frame);
    }
  }

  // One timer serves both ends: quiet for a while, then ask; no answer to that, then give up.
  #watch(delay) {
    clearTimeout(this.#watchTimer);
    this.#watchTimer = setTimeout(() => {
      if (!this.send({ type: "ping" })) return this.#lost();
      this.#watchTimer = setTimeout(() => this.#lost(), ANSWER_WITHIN);
    }, delay);
  }

  #drop() {
    clearTimeout(this.#watchTimer);
    const socket = this.#socket;
    this.#socket = null;
    this.#ready = false;
    socket?.close();
  }

  async #lost(code = 0) {
    const doubtful = !this.#ready || code === UNAUTHORIZED;
    this.#drop();
    if (!this.#running) return;
    const delay = this.#notBefore ?? backOff(this.#failures);
    const stopping = this.#notBefore !== null;
    this.#failures += 1;
    this.#notBefore = null;
    if (doubtful) {
      // Perhaps the session has ended. HTTP can tell.
      if (!(await this.mayConnect())) return this.stop();
      if (!this.#running || this.#socket !== null) return;
    }
    this.onState(
      stopping ? "stopping" : navigator.onLine ? "waiting" : "offline",
      Date.now() + delay,
    );
    clearTimeout(this.#retryTimer);
    this.#retryTimer = setTimeout(() => this.#open(), delay);
  }

  #hurry() {
    if (this.#running && this.#socket === null && this.#notBefore === null) this.#open();
  }
}
