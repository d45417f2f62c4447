// Small helpers to build elements. Text is always set as text, never parsed.

/** `h("p.note", {title: "…"}, "words", child)`; properties beginning with "on" are listeners. */
export function h(name, props = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const icon = (name) => h(`span.icon.${name}`, { "aria-hidden": "true" });

/** A text button with an icon. */
export const iconButton = (name, label, onclick) =>
  h("button.chip", { type: "button", onclick }, icon(name), h("span", {}, label));

/** A tool's name as people say it: `email_tool` is "email". */
export const toolName = (name) => name.replace(/_/g, " ").replace(/ tool$/, "");

export const hidden = (words) => h("span.sr", {}, words);

/** Copy `text`; outside of https the clipboard API is missing, so the old way is kept. */
export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = h("textarea.sr", { readonly: true });
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** Copy, and say so on the button for a moment. */
export async function copyFrom(button, text) {
  const mark = button.querySelector(".icon");
  const words = button.querySelector("span:not(.icon)");
  try {
    await copyText(text);
  } catch {
    words.textContent = "Not allowed";
    return;
  }
  mark.className = "icon check";
  words.textContent = "Copied";
  clearTimeout(button.reset);
  button.reset = setTimeout(() => {
    mark.className = "icon copy";
    words.textContent = "Copy";
  }, 1600);
}
