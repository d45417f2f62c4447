"""The view of memories: found, read, changed, put away, and every step taken back."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Route, expect

from tests.conftest import Server
from tests.e2e.browser import Chat, script
from tests.e2e.memories import BEES, CELLO, QUARTET, THINGS, Store, View, sentence


@pytest.fixture
def store(server: Server) -> Store:
    return Store(server)


@pytest.fixture
def view(page: Page, server: Server, store: Store) -> Iterator[View]:
    """The view, open, with three memories in it. Nothing on it may break the page's policy."""
    broken: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            broken.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: broken.append(str(error)))
    script(server)
    for text in (BEES, CELLO, QUARTET):
        store.add(text)
    Chat(page).open(server.signin_link())
    page.get_by_role("link", name="Memories").click()
    opened = View(page)
    expect(opened.rows).to_have_count(3)
    yield opened
    assert broken == []


def test_the_view_has_an_address_and_the_chat_goes_on_behind_it(
    page: Page, server: Server, store: Store
) -> None:
    script(server)
    memory = store.add(BEES)
    chat = Chat(page).open(server.signin_link())
    chat.field.fill("half a thought")
    page.get_by_role("link", name="Memories").click()
    expect(page).to_have_url(f"{server.url}/#memories")
    expect(page).to_have_title("Memories · MIRA")
    expect(View(page).search).to_be_focused()
    expect(chat.field).to_be_hidden()
    page.get_by_role("link", name="Chat").click()
    expect(chat.field).to_have_value("half a thought")
    chat.field.fill("")
    chat.say("still there?").reaches("complete")
    page.goto(f"{server.url}/#memories/{memory['short_id']}")
    page.reload()
    expect(View(page).heading).to_have_text(BEES)
    page.go_back()
    expect(chat.turn("still there?").element).to_be_visible()


def test_the_list_is_ordered_by_importance_or_age_and_shows_it(view: View, store: Store) -> None:
    store.add(CELLO)
    order = view.page.get_by_label("Order")
    order.select_option("recent")
    expect(view.rows.first).to_contain_text(QUARTET)
    order.select_option("importance")
    expect(view.rows.first).to_contain_text(CELLO)
    numbers = [float(text) for text in view.list.locator(".weight-number").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[0] > numbers[-1]
    expect(view.count).to_have_text("3 memories")


def test_a_long_list_comes_in_pages(view: View, store: Store) -> None:
    for thing in THINGS[:50]:
        store.add(sentence(thing))
    stored = len(store.ask("GET", "?limit=100")["memories"])
    assert stored > 40
    view.page.reload()
    more = view.page.get_by_role("button", name="Show more")
    expect(view.count).to_have_text("40 or more memories")
    more.click()
    expect(view.rows).to_have_count(stored)
    expect(view.count).to_have_text(f"{stored} memories")
    expect(more).to_be_hidden()


def test_what_is_searched_is_found_and_what_is_not_there_is_said_not_to_be(view: View) -> None:
    view.search.fill("cello")
    expect(view.count).to_have_text(re.compile(r"\d memor(y|ies) found"))
    expect(view.rows.first).to_contain_text(CELLO)
    view.search.press("ArrowDown")
    view.rows.first.press("Enter")
    expect(view.heading).to_have_text(CELLO)
    view.search.fill("")
    expect(view.rows).to_have_count(3)


def test_an_empty_house_says_what_will_be_there(page: Page, server: Server) -> None:
    Chat(page).open(server.signin_link())
    page.get_by_role("link", name="Memories").click()
    view = View(page)
    expect(view.count).to_contain_text("Nothing is remembered yet")
    view.search.fill("bees")
    expect(view.count).to_have_text("Nothing is remembered about that.")


def test_a_memory_shows_where_it_comes_from_and_what_took_its_place(
    view: View, store: Store, server: Server
) -> None:
    with_turn = Chat(view.page)
    view.page.get_by_role("link", name="Chat").click()
    with_turn.say("The bees live on the roof").reaches("complete")
    old, new = store.add(f"{BEES} now"), store.add("The hives of Ada have moved to the garden")
    store.ask("POST", f"/{old['id']}/annotations", {"text": "until the spring"})
    server.rows(
        "update memories set source = 'extraction', source_messages = array(select id from "
        "messages where user_id = $1 and role = 'user'), superseded_by = $3, "
        "valid_to = '2026-03-01T12:00:00Z' where id = $2",
        server.person.id, old["id"], new["id"],
    )  # fmt: skip
    view.open(old)
    expect(view.detail.locator(".quote")).to_contain_text("The bees live on the roof")
    expect(view.detail.locator(".badge").first).to_have_text("Superseded")
    expect(view.detail.locator(".facts")).to_contain_text("1 Mar")
    expect(view.detail).to_contain_text("until the spring")
    view.detail.get_by_role("link", name=new["text"]).first.click()
    expect(view.heading).to_have_text(new["text"])
    expect(view.heading).to_be_focused()


def test_a_step_is_taken_back_after_saying_what_that_does(view: View, store: Store) -> None:
    memory = store.add(BEES)
    changed = BEES.replace("two", "three")
    view.open(memory)
    view.button("Edit").click()
    view.detail.get_by_label("One fact that stands by itself").fill(changed)
    view.button("Save").click()
    expect(view.heading).to_have_text(changed)
    view.events.first.get_by_role("button").click()
    expect(view.dialog).to_contain_text(f"the words “{changed}” become “{BEES}”")
    expect(view.dialog.get_by_role("button", name="Cancel")).to_be_focused()
    view.page.keyboard.press("Escape")
    expect(view.dialog).to_be_hidden()
    assert store.get(memory)["text"] == changed
    view.events.first.get_by_role("button").click()
    view.answer("Undo")
    expect(view.heading).to_have_text(BEES)
    expect(view.events.nth(1)).to_contain_text("Undone")
    expect(view.events.nth(1).get_by_role("button")).to_have_count(0)
    expect(view.row(BEES)).to_have_count(1)
    assert store.get(memory)["text"] == BEES


def test_a_step_that_cannot_be_taken_back_any_more_is_refused_with_the_reason(
    view: View, store: Store
) -> None:
    memory = store.add(BEES)
    store.ask("PATCH", f"/{memory['id']}", {"version": store.get(memory)["version"], "text": CELLO})
    view.open({**memory, "text": CELLO})
    version = store.get(memory)["version"]
    store.ask("PATCH", f"/{memory['id']}", {"version": version, "text": QUARTET})
    view.events.first.get_by_role("button").click()
    view.answer("Undo")
    expect(view.problem).to_contain_text("changed since")


def test_a_memory_is_confirmed_and_counts_for_more(view: View, store: Store) -> None:
    memory = store.add(BEES)
    view.open(memory)
    expect(view.events.first).to_be_visible()
    before, importance = view.events.count(), store.get(memory)["importance"]
    view.button("Confirm").click()
    expect(view.events).to_have_count(before + 1)
    assert store.get(memory)["importance"] > importance


def test_a_memory_goes_to_the_archive_and_comes_back(view: View, store: Store) -> None:
    memory = store.add(BEES)
    view.open(memory)
    view.button("Archive").click()
    expect(view.detail.locator(".badge").first).to_have_text("Archived")
    expect(view.rows).to_have_count(2)
    view.page.get_by_label("Which").select_option("archived")
    expect(view.row(BEES)).to_have_count(1)
    view.button("Restore").click()
    expect(view.count).to_have_text("Nothing is archived.")
    assert store.get(memory)["status"] == "active"


def test_a_change_made_elsewhere_meanwhile_is_not_overwritten(view: View, store: Store) -> None:
    memory = store.add(BEES)
    view.open(memory)
    view.button("Edit").click()
    field = view.detail.get_by_label("One fact that stands by itself")
    field.fill("Ada has given up her bees")
    version = store.get(memory)["version"]
    store.ask("PATCH", f"/{memory['id']}", {"version": version, "text": f"{BEES} in Graz"})
    view.button("Save").click()
    expect(view.detail.get_by_role("alert")).to_contain_text("changed")
    expect(field).to_have_value("Ada has given up her bees")
    assert store.get(memory)["text"] == f"{BEES} in Graz"
    field.press("Escape")
    expect(field).to_have_count(0)


def test_something_new_is_remembered_once_however_often_it_is_sent(
    view: View, store: Store
) -> None:
    text = "Ada learns Arabic on Sundays"
    view.page.get_by_role("button", name="Remember something").click()
    form = view.page.get_by_role("form", name="A new memory")
    form.get_by_label("One fact that stands by itself").fill("short")
    form.get_by_role("button", name="Remember").click()
    expect(form.get_by_role("alert")).to_contain_text("at least ten characters")
    form.get_by_label("One fact that stands by itself").fill(text)
    form.get_by_role("button", name="Remember").dblclick()
    expect(view.heading).to_have_text(text)
    expect(form).to_have_count(0)
    expect(view.rows).to_have_count(4)
    found = store.ask("GET", "?limit=100")["memories"]
    assert [m["mention_count"] for m in found if m["text"] == text] == [0]


def test_deleting_is_asked_about_and_is_for_good(view: View, store: Store) -> None:
    memory = store.add(BEES)
    view.open(memory)
    view.button("Delete").click()
    expect(view.dialog).to_contain_text("cannot be undone")
    view.answer("Cancel")
    assert store.get(memory)["status"] == "active"
    view.button("Delete").click()
    view.answer("Delete")
    expect(view.rows).to_have_count(2)
    expect(view.detail).to_be_hidden()


def test_the_importance_is_explained_term_by_term(view: View, store: Store) -> None:
    memory = store.add(BEES)
    view.open(memory)
    view.detail.get_by_text("Why this importance?").click()
    rows = view.detail.locator(".terms tbody tr")
    expect(rows).to_have_count(11)
    shown = {
        row.locator("th").inner_text(): float(row.locator(".term-value").inner_text())
        for row in rows.all()
    }
    parts = ("use", "links", "names", "mentions", "newness")
    assert shown["sum"] == pytest.approx(sum(shown[part] for part in parts), abs=0.003)
    expect(view.detail.locator(".explain-sum")).to_contain_text(f"{shown['importance']:.3f}")


def test_words_are_shown_as_words_whatever_they_look_like(view: View, store: Store) -> None:
    text = "<img src=x onerror=\"document.title='owned'\"> & <b>bold</b>"
    memory = store.add(text, "<i>Ada</i>")
    view.page.reload()
    view.open(memory)
    expect(view.row(text)).to_have_count(1)
    assert view.page.locator("#memories img, #memories b, #memories i").count() == 0
    assert "owned" not in view.page.title().split(" · ")[-1]


def test_a_memory_that_is_not_there_is_said_not_to_be(view: View) -> None:
    view.page.evaluate("location.hash = '#memories/mem_00000000'")
    expect(view.problem).to_have_text("There is no such memory.")
    expect(view.detail).to_be_hidden()


def test_what_went_wrong_stays_said_when_the_list_comes_later(view: View) -> None:
    held: list[Route] = []
    view.page.route(re.compile(r"/v1/memories\?"), lambda route: held.append(route))
    view.page.evaluate("location.hash = '#'")
    view.page.reload()
    view.page.evaluate("location.hash = '#memories/mem_00000000'")
    expect(view.problem).to_have_text("There is no such memory.")
    with view.page.expect_response(re.compile(r"/v1/memories\?")):
        held.pop().continue_()
    expect(view.page.locator("#memory-count")).not_to_be_empty()
    expect(view.problem).to_have_text("There is no such memory.")


def test_a_session_that_ended_leads_back_to_sign_in(
    view: View, server: Server, profile: BrowserContext
) -> None:
    profile.clear_cookies()
    view.search.fill("bees")
    expect(view.page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(view.rows).to_have_count(0)
