// Light, dark, or as the system says. A classic script in the head: it runs before the first
// paint, so that no page ever flashes in the wrong colours.
(() => {
  "use strict";
  const KEY = "mira.theme";
  const ORDER = ["auto", "light", "dark"];
  const ICON = { auto: "auto", light: "sun", dark: "moon" };
  const SAYS = { auto: "as the system", light: "light", dark: "dark" };
  const BAR = { light: "#f6f7fa", dark: "#0f131c" };
  const system = window.matchMedia("(prefers-color-scheme: dark)");

  function chosen() {
    try {
      const value = localStorage.getItem(KEY);
      return ORDER.includes(value) ? value : "auto";
    } catch {
      return "auto"; // storage may be forbidden: the system's choice is a good one
    }
  }

  function apply() {
    const choice = chosen();
    const shown = choice === "auto" ? (system.matches ? "dark" : "light") : choice;
    document.documentElement.dataset.theme = shown;
    document.querySelector("meta[name=theme-color]")?.setAttribute("content", BAR[shown]);
    const button = document.getElementById("theme");
    if (button) {
      const label = `Colours: ${SAYS[choice]}`;
      button.setAttribute("aria-label", label);
      button.title = label;
      button.firstElementChild.className = `icon ${ICON[choice]}`;
    }
  }

  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", () => {
      const next = ORDER[(ORDER.indexOf(chosen()) + 1) % ORDER.length];
      try {
        localStorage.setItem(KEY, next);
      } catch {
        document.documentElement.dataset.theme = next;
      }
      apply();
    });
  });
})();
