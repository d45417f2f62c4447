"""How the page looks and is reached: phone width, colours, keyboard, names for everything."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.browser import Chat, Server, script

WIDE = (
    "| one | two | three | four | five | six |\n|---|---|---|---|---|---|\n"
    "| a long cell | a long cell | a long cell | a long cell | a long cell | a long cell |\n\n"
    "```text\n" + "x" * 300 + "\n```\n\n" + "y" * 300
)
CONTRAST = """
(pairs) => pairs.map(([front, back]) => {
  const light = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const parts = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number);
    probe.remove();
    const [r, g, b] = parts.map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [a, b] = [light(front), light(back)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
})
"""
PAIRS = [
    ["--ink", "--page"], ["--ink", "--surface"], ["--ink", "--said"], ["--soft", "--page"],
    ["--soft", "--surface"], ["--soft", "--sunken"], ["--accent", "--page"],
    ["--on-accent", "--accent"], ["--bad", "--page"], ["--ink", "--bad-tint"],
]  # fmt: skip


def test_a_phone_shows_everything_without_scrolling_sideways(
    browser: Browser, server: Server
) -> None:
    script(server, {"contains": "wide", "text": WIDE})
    context = browser.new_context(
        viewport={"width": 360, "height": 700}, has_touch=True, is_mobile=True
    )
    try:
        chat = Chat(context.new_page()).open(server.signin_link())
        chat.field.fill("wide " + "z" * 300)
        chat.page.get_by_role("button", name="Send", exact=True).tap()
        chat.page.locator(".turn").last.locator(".code").wait_for()
        sideways = chat.page.evaluate(
            "() => [document.documentElement, document.getElementById('scroller')]"
            ".map((e) => e.scrollWidth - e.clientWidth)"
        )
        assert sideways == [0, 0]
        expect(chat.field).to_be_in_viewport()
    finally:
        context.close()


def test_on_a_touch_screen_enter_breaks_the_line(browser: Browser, server: Server) -> None:
    script(server)
    context = browser.new_context(
        viewport={"width": 360, "height": 700}, has_touch=True, is_mobile=True
    )
    try:
        chat = Chat(context.new_page()).open(server.signin_link())
        chat.field.fill("one")
        chat.field.press("Enter")
        expect(chat.field).to_have_value("one\n")
    finally:
        context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_follow_the_system_and_can_be_read(
    browser: Browser, server: Server, theme: str
) -> None:
    context = browser.new_context(color_scheme="dark" if theme == "dark" else "light")
    try:
        page = context.new_page()
        page.goto(server.url)
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        ratios = page.evaluate(CONTRAST, PAIRS)
        too_low = [(pair, ratio) for pair, ratio in zip(PAIRS, ratios, strict=True) if ratio < 4.5]
        assert too_low == []
    finally:
        context.close()


def test_a_chosen_theme_is_kept(bare: Page) -> None:
    button = bare.get_by_role("button", name="Colours")
    html = bare.locator("html")
    expect(html).to_have_attribute("data-theme", "light")
    button.click()
    button.click()
    expect(html).to_have_attribute("data-theme", "dark")
    expect(button).to_have_accessible_name("Colours: dark")
    bare.reload()
    expect(html).to_have_attribute("data-theme", "dark")
    button.click()
    expect(html).to_have_attribute("data-theme", "light")


FOCUSED = """
() => {
  const at = document.activeElement;
  if (at === document.body) return null;
  const name = at.ariaLabel || at.labels?.[0]?.textContent || at.textContent.trim();
  // The message field shows its focus on the frame around it.
  const frame = at.matches("textarea") ? at.closest(".composer") : null;
  const shown = frame
    ? getComputedStyle(frame).borderTopColor !== getComputedStyle(frame.parentNode).borderTopColor
    : getComputedStyle(at).outlineStyle === "solid";
  return { name, shown };
}
"""


def test_every_control_has_a_name_and_shows_its_focus(chat: Chat) -> None:
    chat.say("something to act on").reaches("complete")
    chat.field.fill("x")
    chat.page.locator(".skip").focus()  # the first thing on the page
    names = []
    for _ in range(60):
        chat.page.keyboard.press("Tab")
        focused = chat.page.evaluate(FOCUSED)
        if focused is None:
            break
        assert focused["name"], "a control without a name can be reached"
        assert focused["shown"], f"nothing shows that {focused['name']} has the focus"
        names.append(focused["name"])
    assert {"Message to MIRA", "Send", "Sign out", "Copy the reply"} <= set(names)


def test_the_conversation_is_a_log_with_who_said_what(chat: Chat) -> None:
    chat.say("who speaks?").reaches("complete")
    log = chat.page.get_by_role("log", name="Messages")
    said = log.locator("article").last.inner_text().split("\n")
    assert "You said:" in said
    assert "MIRA:" in said
