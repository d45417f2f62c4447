// What goes wrong in a view is said in one place of it, and stands there until something that was
// begun later goes well.

export class Trying {
  #begun = 0;
  #told = 0; // how much had been begun when the last problem was told

  /** `signedOut()` when the session has ended. */
  constructor(element, signedOut) {
    Object.assign(this, { element, signedOut });
  }

  /** What `act` resolves to; undefined if it failed, which is said. */
  async run(act) {
    const mine = ++this.#begun;
    try {
      const answer = await act();
      if (mine > this.#told) this.element.textContent = "";
      return answer;
    } catch (problem) {
      this.#told = this.#begun;
      if (problem.status === 401) this.signedOut();
      else this.element.textContent = problem.status ? problem.message : AWAY;
      return undefined;
    }
  }
}

const AWAY = "The server cannot be reached.";
