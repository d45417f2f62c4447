"""The view of segments, and how an answer came about, as a person reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, expect

from mira.ids import SystemIds
from tests.conftest import Server
from tests.e2e.browser import Chat, Turn
from tests.e2e.memories import BEES, Store
from tests.e2e.test_page_layout import CONTRAST, FOCUSED
from tests.support.segments import PRECIS, SAID, SCRIPT, TITLE, TRACE
from tests.support.web import http

HOSTILE = "<img src=x onerror=\"document.title='owned'\"> & <b>bold</b>"
READ = {"phrases": ["bees on the roof"], "entities": ["Ada"], "retain": []}
#: Colours that stand on each other here and nowhere else.
PAIRS = [["--soft", "--page"], ["--ink", "--surface"], ["--accent", "--surface"],
         ["--ink", "--said"], ["--accent", "--page"]]  # fmt: skip
SIDEWAYS = """
() => [document.documentElement, ...document.querySelectorAll(
    "#segments > section, .bar-in, dialog[open], dialog[open] .trace-body")]
  .filter((e) => e.clientWidth > 0).map((e) => e.scrollWidth - e.clientWidth)
"""


def reading(complexity: str = "straightforward") -> dict[str, Any]:
    """What the Subcortex answers."""
    return {"text": json.dumps(READ | {"complexity": complexity})}


class Segments:
    """The view on a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.rows = page.get_by_role("list", name="Segments").get_by_role("listitem")
        self.current = page.get_by_role("group", name="The open segment")
        self.problem = page.locator("#segment-problem")
        self.count = page.locator("#segment-count")
        self.prompt = page.locator("#prompt-sections details")
        self.dialog = page.get_by_role("dialog")

    def open(self) -> Segments:
        self.page.get_by_role("link", name="Segments", exact=True).click()
        expect(self.count).not_to_be_empty()
        return self

    def button(self, name: str) -> Locator:
        return self.current.get_by_role("button", name=name)

    def row(self, title: str) -> Locator:
        return self.rows.filter(has_text=title)


@pytest.fixture
def talk(page: Page, server: Server) -> Iterator[Chat]:
    """The conversation; models that sum up and read. Nothing may break the page's policy."""
    broken: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            broken.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: broken.append(str(error)))
    server.double.script(SCRIPT | {"aside": reading()})
    yield Chat(page).open(server.signin_link())
    assert broken == []


def ended(server: Server, count: int, **summary: Any) -> list[str]:
    """Segments that ended long ago, one each day, with summaries; their titles, oldest first."""
    titles = []
    for day in range(count):
        segment_id, title = SystemIds().new(), f"Day {day} of the garden"
        server.rows(
            "insert into segments (id, user_id, state, opened_at, last_message_at, collapsed_at, "
            "title, tools) values ($1, $2, 'collapsed', "
            "timestamptz '2025-03-01 10:00Z' + make_interval(days => $3), "
            "timestamptz '2025-03-01 10:40Z' + make_interval(days => $3), now(), $4, "
            "array['memory_tool'])",
            segment_id, server.person.id, day, summary.get("title", title),
        )  # fmt: skip
        server.rows(
            "insert into summaries (segment_id, user_id, title, trace, precis, complexity, parts, "
            "drift, provider, model, made_at) "
            "values ($1, $2, $3, $4, $5, 3, 1, $6, 'anthropic', 'double', now())",
            segment_id, server.person.id, summary.get("title", title),
            summary.get("trace", "I heard how the beds were dug."), "I heard of the garden.",
            summary.get("drift", 0.25),
        )  # fmt: skip
        titles.append(title)
    return titles


def how(turn: Turn) -> Locator:
    """Open how an answer came about."""
    turn.button("How this came about").click()
    dialog = turn.element.page.get_by_role("dialog", name="How this came about")
    expect(dialog.get_by_role("heading", name="Time")).to_be_visible()
    return dialog


def part(dialog: Locator, name: str) -> Locator:
    heading = dialog.page.get_by_role("heading", name=name, exact=True)
    return dialog.locator("section", has=heading)


def test_an_open_segment_is_ended_and_its_summary_appears_by_itself(talk: Chat) -> None:
    talk.say(SAID).reaches("complete")
    view = Segments(talk.page).open()
    expect(talk.page).to_have_title("Segments · MIRA")
    expect(view.current).to_contain_text("Open since")
    expect(view.rows).to_have_count(1)
    view.button("End now").click()
    expect(view.dialog).to_contain_text("cannot be undone")
    view.dialog.get_by_role("button", name="Cancel").click()
    expect(view.current).to_contain_text("Open since")
    view.button("End now").click()
    view.dialog.get_by_role("button", name="End it").click()
    expect(view.current).to_contain_text("No segment is open")
    row = view.row(TITLE)
    row.locator("summary").click()
    expect(row).to_contain_text(TRACE)
    expect(row).to_contain_text(PRECIS)
    expect(row).to_contain_text("Complexity 2")
    expect(row.locator(".facts")).to_contain_text("several matters")
    expect(row.locator(".facts")).to_contain_text("keeper")
    talk.page.get_by_role("link", name="Chat").click()
    talk.say("And now something else.").reaches("complete")
    view.open()
    expect(view.rows).to_have_count(2)
    expect(view.rows.first).to_contain_text("The open segment")


def test_a_summary_that_failed_says_so_and_is_tried_again_with_a_button(
    talk: Chat, server: Server
) -> None:
    segment_id = SystemIds().new()
    server.rows(
        "insert into segments (id, user_id, state, opened_at, last_message_at, collapsing_at) "
        "values ($1, $2, 'collapsing', now() - interval '3 hours', now() - interval '2 hours', "
        "now() - interval '1 hour')",
        segment_id, server.person.id,
    )  # fmt: skip
    server.rows(
        "insert into outbox (user_id, kind, address, lane, key, payload, due_at, created_at) "
        "select user_id, 'memory_keeper', user_id::text, 'summaries/' || id, id::text, "
        "jsonb_build_object('type', 'SummariseSegment', 'segment_id', id, 'failed', 3), "
        "now() + interval '20 hours', now() from segments where id = $1",
        segment_id,
    )
    view = Segments(talk.page).open()
    row = view.rows.first
    expect(row).to_contain_text("Summary failed")
    row.locator("summary").click()
    expect(row).to_contain_text("A model failed 3 times at the summary. It is tried again")
    row.get_by_role("button", name="Try again now").click()
    expect(row.locator(".segment-trace")).not_to_be_empty()
    expect(row).not_to_contain_text("Summary failed")


def test_a_segment_is_paused_and_resumed(talk: Chat) -> None:
    talk.say(SAID).reaches("complete")
    view = Segments(talk.page).open()
    view.button("Pause").press("Enter")
    expect(view.current).to_contain_text("Paused: no silence ends it")
    expect(view.rows.first).to_contain_text("Paused")
    view.button("Resume").click()
    expect(view.current).to_contain_text("Open since")
    expect(view.button("Pause")).to_be_visible()


def test_a_segment_that_was_ended_elsewhere_meanwhile_is_said_to_be(
    talk: Chat, server: Server
) -> None:
    talk.say(SAID).reaches("complete")
    view = Segments(talk.page).open()
    expect(view.button("Pause")).to_be_visible()
    with http(server.url, server.key) as elsewhere:
        elsewhere.post("/v1/segments/active/collapse").raise_for_status()
    view.button("Pause").click()
    expect(view.problem).to_contain_text("There is no open segment")
    expect(view.current).to_contain_text("No segment is open")


def test_a_long_list_comes_in_pages_newest_first(talk: Chat, server: Server) -> None:
    titles = ended(server, 33)
    view = Segments(talk.page).open()
    expect(view.count).to_have_text("30 or more segments")
    expect(view.rows.first).to_contain_text(titles[-1])
    more = talk.page.get_by_role("button", name="Show more")
    visible = more.and_(talk.page.locator(":visible"))
    visible.click()
    expect(view.rows).to_have_count(33)
    expect(view.rows.last).to_contain_text(titles[0])
    expect(view.count).to_have_text("33 segments")
    expect(view.rows.nth(30).locator("summary")).to_be_focused()
    expect(visible).to_have_count(0)


def test_drift_is_told_in_words(talk: Chat, server: Server) -> None:
    ended(server, 1, drift=0.25)
    view = Segments(talk.page).open()
    expect(view.rows.first).to_contain_text("Some drift, 25 %")
    expect(view.rows.first).to_contain_text("1 Mar 2025")
    view.rows.first.locator("summary").press("Enter")
    expect(view.rows.first.locator(".facts")).to_contain_text("memory")


def test_an_empty_house_says_that_nothing_was_said(talk: Chat) -> None:
    view = Segments(talk.page).open()
    expect(view.count).to_have_text("Nothing was said yet.")
    expect(view.current).to_contain_text("No segment is open")
    expect(view.current.get_by_role("button")).to_have_count(0)
    expect(talk.page.locator("#prompt-lead")).to_contain_text("No prompt was sent")


def test_the_prompt_as_it_stands_is_read_section_by_section(talk: Chat) -> None:
    talk.say("hello").reaches("complete")
    view = Segments(talk.page).open()
    expect(talk.page.locator("#prompt-lead")).to_contain_text(re.compile(r"about [\d,.]+ tokens"))
    first = view.prompt.first
    expect(first).to_contain_text("instructions")
    expect(first.locator("pre")).to_be_hidden()
    first.locator("summary").press("Enter")
    expect(first.locator("pre")).to_be_visible()
    expect(first.locator("pre")).not_to_be_empty()
    expect(view.prompt.last).to_contain_text("this moment")


def test_an_answer_tells_what_was_looked_for_shown_sent_and_spent(
    talk: Chat, server: Server
) -> None:
    memory = Store(server).add(BEES, "Ada")
    dialog = how(talk.say("What does Ada keep on the roof?").reaches("complete"))
    looked = part(dialog, "What was looked for")
    expect(looked).to_contain_text("a straightforward one")
    expect(looked).to_contain_text("medium effort")
    expect(looked.get_by_role("list", name="Phrases")).to_have_text("bees on the roof")
    expect(looked).to_contain_text("Names: Ada")
    shown = part(dialog, "Memories shown")
    expect(shown.get_by_role("link", name=BEES)).to_be_visible()
    expect(shown).to_contain_text("found by the search")
    expect(shown).to_contain_text("score")
    sections = part(dialog, "The prompt").get_by_role("table")
    expect(sections.get_by_role("rowheader", name="Proactive memory")).to_be_visible()
    calls = part(dialog, "Calls of models").get_by_role("table")
    expect(calls.get_by_role("rowheader", name="The answer")).to_be_visible()
    expect(calls.get_by_role("rowheader", name="Reading the message")).to_be_visible()
    expect(part(dialog, "Time").get_by_role("rowheader", name="Recalled")).to_be_visible()
    shown.get_by_role("link", name=BEES).click()
    expect(dialog).to_be_hidden()
    expect(talk.page).to_have_url(f"{server.url}/#memories/{memory['short_id']}")
    expect(talk.page.get_by_role("heading", name=BEES)).to_be_visible()


def test_an_answer_that_was_not_read_before_says_so_in_plain_words(
    talk: Chat, server: Server
) -> None:
    server.double.script(SCRIPT | {"aside": {"text": "I cannot say."}})
    dialog = how(talk.say("hello").reaches("complete"))
    looked = part(dialog, "What was looked for")
    expect(looked).to_contain_text("The message itself was searched")
    expect(looked).to_contain_text("high effort")
    expect(looked.get_by_role("list", name="Phrases")).to_have_count(0)


def test_the_account_is_left_with_escape_and_a_running_reply_goes_on(
    talk: Chat, server: Server
) -> None:
    first = talk.say("hello").reaches("complete")
    server.double.script(SCRIPT | {"default": {"echo": True, "token_ms": 150}})
    running = talk.say("one two three four five six seven eight nine ten")
    dialog = how(first)
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    talk.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(first.button("How this came about")).to_be_focused()
    running.reaches("complete")


def test_the_focus_goes_back_though_something_was_said_elsewhere_meanwhile(
    talk: Chat, server: Server
) -> None:
    first = talk.say("hello").reaches("complete")
    dialog = how(first)
    with http(server.url, server.person.key) as client:
        assert client.post("/v1/chat", json={"message": "said elsewhere"}).status_code == 200
    expect(talk.turn("said elsewhere").button("How this came about")).to_have_count(1)
    talk.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(first.button("How this came about")).to_be_focused()


def test_words_are_shown_as_words_whatever_they_look_like(talk: Chat, server: Server) -> None:
    ended(server, 1, title=HOSTILE, trace=HOSTILE)
    Store(server).add(HOSTILE)
    turn = talk.say(HOSTILE).reaches("complete")
    server.rows(
        "update turn_traces set trace = jsonb_set(trace, '{subcortex,phrases}', $2::jsonb) "
        "where user_id = $1",
        server.person.id, json.dumps([HOSTILE]),
    )  # fmt: skip
    dialog = how(turn)
    expect(part(dialog, "What was looked for")).to_contain_text(HOSTILE)
    expect(part(dialog, "Memories shown")).to_contain_text(HOSTILE)
    assert dialog.locator("img, b").count() == 0
    talk.page.keyboard.press("Escape")
    view = Segments(talk.page).open()
    row = view.rows.last
    row.locator("summary").click()
    expect(row.locator(".segment-trace")).to_have_text(HOSTILE)
    for section in view.prompt.all():
        section.locator("summary").click()
    assert talk.page.locator("#segments img, #segments b").count() == 0
    assert "owned" not in talk.page.title()


def test_a_session_that_ended_leads_back_to_sign_in(talk: Chat, profile: BrowserContext) -> None:
    turn = talk.say("hello").reaches("complete")
    profile.clear_cookies()
    turn.button("How this came about").click()
    expect(talk.page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(talk.page.get_by_role("dialog")).to_have_count(0)


def test_every_control_has_a_name_and_shows_its_focus(talk: Chat) -> None:
    talk.say("hello").reaches("complete")
    Segments(talk.page).open()
    names = _reached_by_tab(talk.page)
    expected = {"Chat", "Memories", "Segments", "Pause", "End now"}
    assert expected <= set(names)
    assert any("The open segment" in name for name in names)
    assert any(name.startswith("Base") for name in names)
    skip = talk.page.locator(".skip")
    skip.focus()
    expect(skip).to_have_text("Skip to the segments")
    skip.press("Enter")
    expect(talk.page.locator("#segments-title")).to_be_focused()


def _reached_by_tab(page: Page) -> list[str]:
    page.locator(".skip").focus()
    names = []
    for _ in range(60):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused is None:
            break
        assert focused["name"], "a control without a name can be reached"
        assert focused["shown"], f"nothing shows that {focused['name']} has the focus"
        names.append(focused["name"].strip())
    return names


def test_a_phone_shows_one_thing_at_a_time_and_nothing_sideways(
    browser: Browser, server: Server
) -> None:
    server.double.script(SCRIPT | {"aside": reading()})
    ended(server, 2, title="x" * 120, trace="y" * 300)
    Store(server).add(f"{BEES} {'z' * 200}", "Ada")
    context = browser.new_context(
        viewport={"width": 360, "height": 700}, has_touch=True, is_mobile=True, locale="en-GB"
    )
    try:
        page = context.new_page()
        chat = Chat(page).open(server.signin_link())
        chat.field.fill("What does Ada keep?")
        page.get_by_role("button", name="Send").tap()
        dialog = how(chat.turn("What does Ada keep?").reaches("complete"))
        dialog.get_by_text("What recalling was made of").tap()
        assert set(page.evaluate(SIDEWAYS)) == {0}
        dialog.get_by_role("button", name="Close").tap()
        view = Segments(page).open()
        view.rows.last.locator("summary").tap()
        assert set(page.evaluate(SIDEWAYS)) == {0}
        page.get_by_role("link", name="The prompt").tap()
        expect(view.rows.first).to_be_hidden()
        view.prompt.first.locator("summary").tap()
        expect(view.prompt.first.locator("pre")).to_be_visible()
        assert set(page.evaluate(SIDEWAYS)) == {0}
        page.get_by_role("link", name="All segments").tap()
        expect(view.rows.first).to_be_visible()
    finally:
        context.close()


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
