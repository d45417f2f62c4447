// What a screen reader says of a reply. The text on the page is redrawn many times while it
// streams; here each finished paragraph is said once.

const KEEP = 6;

export class Announcer {
  constructor(element) {
    this.element = element;
  }

  say(text) {
    const words = text.trim();
    if (!words) return;
    const line = document.createElement("p");
    line.textContent = words;
    this.element.append(line);
    while (this.element.childElementCount > KEEP) this.element.firstElementChild.remove();
  }
}
