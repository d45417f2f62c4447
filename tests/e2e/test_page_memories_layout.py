"""How the view of memories looks and is reached: its picture, widths, keyboard, colours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.conftest import Server
from tests.e2e.browser import Chat, script
from tests.e2e.memories import BEES, CELLO, QUARTET, THINGS, Store, View, sentence
from tests.e2e.test_page_layout import CONTRAST, FOCUSED

#: Colours that stand on each other in this view and nowhere else.
PAIRS = [
    ["--soft", "--surface"], ["--warn", "--sunken"], ["--bad", "--bad-tint"], ["--ink", "--said"],
    ["--accent", "--surface"], ["--page", "--bad"],
]  # fmt: skip
OVERLAPS = """
() => {
  const shown = [...document.querySelectorAll("#memory-overview .labels text")]
    .filter((text) => !text.classList.contains("left-out"))
    .map((text) => text.getBoundingClientRect());
  let found = 0;
  shown.forEach((a, i) => shown.slice(i + 1).forEach((b) => {
    const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (x > 1 && y > 3) found += 1;
  }));
  return [shown.length, found];
}
"""
#: The picture has been drawn for the width that there is.
DRAWN = """
() => {
  const svg = document.querySelector("#memory-overview svg");
  return svg && Number(svg.getAttribute("width")) === svg.parentNode.clientWidth;
}
"""
OUTSIDE = """
(svg) => {
  const frame = svg.getBoundingClientRect();
  return [...svg.querySelectorAll(".node")].map((node) => node.getBoundingClientRect())
    .filter((at) => at.left < frame.left || at.right > frame.right
      || at.top < frame.top || at.bottom > frame.bottom).length;
}
"""
SIDEWAYS = """
() => [document.documentElement, ...document.querySelectorAll("#memories > section")]
  .filter((e) => e.clientWidth > 0).map((e) => e.scrollWidth - e.clientWidth)
"""


@pytest.fixture
def linked(server: Server) -> dict[str, dict[str, Any]]:
    """Three memories: two that are linked, and share a name with a third."""
    script(server)
    store = Store(server)
    made = {
        "cello": store.add(CELLO, "Bob"),
        "quartet": store.add(QUARTET),
        "bees": store.add(BEES, "Ada", "Bob"),
    }
    store.link(made["cello"], made["quartet"], "contextualizes", "the same people")
    return made


@pytest.fixture
def view(page: Page, server: Server, linked: dict[str, Any]) -> View:
    Chat(page).open(server.signin_link())
    page.get_by_role("link", name="Memories").click()
    return View(page)


@pytest.fixture
def phone(browser: Browser, server: Server, linked: dict[str, Any]) -> Iterator[View]:
    context = browser.new_context(
        viewport={"width": 360, "height": 700}, has_touch=True, is_mobile=True, locale="en-GB"
    )
    page = context.new_page()
    Chat(page).open(server.signin_link())
    page.get_by_role("link", name="Memories").tap()
    yield View(page)
    context.close()


def test_the_picture_shows_memories_names_and_links_and_says_the_same_in_words(
    view: View,
) -> None:
    overview = view.page.locator("#memory-overview")
    picture = overview.get_by_role("img", name="A picture of 4 things with 3 links")
    expect(picture).to_be_visible()
    expect(picture.locator("circle")).to_have_count(3)
    expect(picture.locator("path.node")).to_have_count(1)
    expect(picture.locator("line.contextualizes")).to_have_count(1)
    expect(picture.locator("line.about")).to_have_count(2)
    overview.get_by_text("The same as a list").click()
    words = overview.locator(".in-words li")
    expect(words.filter(has_text=f"{CELLO} gives the context of {QUARTET}")).to_have_count(1)
    expect(words.filter(has_text="is about Bob")).to_have_count(2)


def test_a_memory_in_the_picture_opens_when_it_is_clicked_and_in_the_list_by_keyboard(
    view: View,
) -> None:
    view.page.locator("#memory-overview circle", has_text=QUARTET).click()
    expect(view.heading).to_have_text(QUARTET)
    section = view.detail.locator("section", has=view.page.get_by_role("heading", name="Links"))
    expect(section.locator("li")).to_contain_text("has its context in")
    expect(section.locator("li")).to_contain_text("the same people")
    section.get_by_role("link", name=CELLO).press("Enter")
    expect(view.heading).to_have_text(CELLO)
    expect(section.locator("circle[data-here]")).to_have_count(1)


def test_a_picture_of_many_is_bounded_and_its_names_do_not_cover_each_other(
    page: Page, server: Server
) -> None:
    store = Store(server)
    names = ("Ada", "Bob", "Cleo", "Dan", "Eve", "Finn")
    made = [store.add(sentence(thing), names[n % 6]) for n, thing in enumerate(THINGS)]
    for one, two in zip(made, made[7:], strict=False):
        if one["id"] != two["id"]:
            store.link(one, two, "precedes")
    Chat(page).open(server.signin_link())
    page.evaluate("location.hash = '#memories/picture'")
    picture = page.locator("#memory-overview svg")
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function(DRAWN)
        assert 30 <= picture.locator(".node").count() <= 60
        named, overlapping = page.evaluate(OVERLAPS)
        assert named >= 6
        assert overlapping == 0
        outside = picture.evaluate(OUTSIDE)
        assert outside == 0


def test_a_phone_shows_the_list_or_what_is_chosen_and_nothing_sideways(
    phone: View, server: Server
) -> None:
    page = phone.page
    Store(server).add("x" * 300)
    page.reload()
    expect(phone.rows).to_have_count(4)
    assert set(page.evaluate(SIDEWAYS)) == {0}
    page.get_by_role("link", name="Picture").tap()
    expect(page.locator("#memory-overview svg")).to_be_visible()
    expect(phone.list).to_be_hidden()
    assert set(page.evaluate(SIDEWAYS)) == {0}
    page.get_by_role("link", name="All memories").tap()
    phone.row("xxx").tap()
    expect(phone.heading).to_have_text("x" * 300)
    phone.detail.get_by_text("Why this importance?").tap()
    expect(phone.detail.locator(".explain-sum")).to_be_visible()
    assert set(page.evaluate(SIDEWAYS)) == {0}
    phone.button("Edit").tap()
    assert set(page.evaluate(SIDEWAYS)) == {0}


def test_every_control_has_a_name_and_shows_its_focus(view: View) -> None:
    view.row(CELLO).click()
    expect(view.heading).to_have_text(CELLO)
    view.page.locator(".skip").focus()
    names = []
    for _ in range(60):
        view.page.keyboard.press("Tab")
        focused = view.page.evaluate(FOCUSED)
        if focused is None:
            break
        assert focused["name"], "a control without a name can be reached"
        assert focused["shown"], f"nothing shows that {focused['name']} has the focus"
        names.append(focused["name"].strip())
    expected = {"Chat", "Memories", "Remember something", "Search memories", "Order", "Which",
                "Edit", "Archive", "Delete", "Why this importance?"}  # fmt: skip
    assert expected <= set(names)
    assert any(name.startswith("Undo: Remembered") for name in names)


def test_the_skip_link_leads_to_the_search_without_leaving_the_view(view: View) -> None:
    skip = view.page.locator(".skip")
    skip.focus()
    expect(skip).to_have_text("Skip to the search")
    skip.press("Enter")
    expect(view.search).to_be_focused()
    expect(view.list).to_be_visible()


def test_escape_in_this_view_does_not_stop_a_reply(view: View, server: Server) -> None:
    script(server, default={"echo": True, "token_ms": 150})
    view.page.get_by_role("link", name="Chat").click()
    turn = Chat(view.page).say("one two three four five six seven eight")
    view.page.get_by_role("link", name="Memories").click()
    view.page.keyboard.press("Escape")
    view.page.get_by_role("link", name="Chat").click()
    turn.reaches("complete")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_can_be_read(browser: Browser, server: Server, theme: str) -> None:
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
