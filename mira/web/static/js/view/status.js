// The health mark in the bar: whether what is on the page is the present.

const WORDS = {
  connecting: "Connecting",
  connected: "Connected",
  waiting: "Reconnecting",
  stopping: "Server stopping",
  offline: "No network",
};

export class Status {
  #timer = 0;

  constructor(element) {
    this.element = element;
    this.words = element.querySelector(".health-text");
  }

  /** `at`: the moment of the next attempt, in milliseconds of Date.now(). */
  show(state, at = null) {
    clearInterval(this.#timer);
    this.element.dataset.state = state;
    const say = () => {
      const seconds = at === null ? 0 : Math.ceil((at - Date.now()) / 1000);
      this.element.title = seconds > 0 ? `Trying again in ${seconds} s` : "";
      if (this.words.textContent !== WORDS[state]) this.words.textContent = WORDS[state];
    };
    say();
    if (at !== null) this.#timer = setInterval(say, 1000);
  }
}
