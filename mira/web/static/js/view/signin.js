// Sign-in with a key. The key goes to the server once and is nowhere kept; what remains is a
// cookie that no script can read.

import * as api from "../api.js";

export class SignIn {
  constructor({ stage, form, field, error, onSignedIn }) {
    Object.assign(this, { stage, form, field, error, onSignedIn });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
  }

  show(reason = "") {
    this.stage.hidden = false;
    this.error.textContent = reason;
    this.field.focus();
  }

  hide() {
    this.stage.hidden = true;
  }

  async #submit() {
    const key = this.field.value.trim();
    if (!key) return;
    this.error.textContent = "";
    try {
      await api.signIn(key);
    } catch (problem) {
      this.error.textContent = explain(problem);
      this.field.select();
      return;
    } finally {
      if (!this.error.textContent) this.field.value = "";
    }
    this.onSignedIn();
  }
}

function explain(problem) {
  if (problem.status === 401 || problem.status === 403) return "This key is not known, or was revoked.";
  if (problem instanceof api.ApiError) return problem.message;
  return "The server cannot be reached.";
}
