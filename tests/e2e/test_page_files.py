"""Files on the page: chosen, dropped, sent with a message, seen again after a reload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import Server
from tests.e2e.browser import Chat
from tests.support.files import image_bytes, photo

DROP = """
(form, name) => {
  const data = new DataTransfer();
  data.items.add(new File(["The cellar key hangs there."], name, { type: "text/plain" }));
  form.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true }));
}
"""


@pytest.fixture
def broken(page: Page) -> Iterator[list[str]]:
    """What breaks on the page, which nothing may."""
    seen: list[str] = []
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on(
        "console",
        lambda message: (
            seen.append(message.text) if "Content Security Policy" in message.text else None
        ),
    )
    yield seen
    assert seen == []


def row(page: Page) -> Any:
    return page.get_by_role("list", name="Files to be sent").get_by_role("listitem")


def choose(page: Page, *paths: Path) -> None:
    page.locator("#picker").set_input_files([str(path) for path in paths])


@pytest.fixture
def roof(tmp_path: Path) -> Path:
    path = tmp_path / "roof.png"
    path.write_bytes(image_bytes(photo(900, 600), "PNG"))
    return path


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    path = tmp_path / "keys.txt"
    path.write_text("The cellar key hangs there.")
    return path


def test_chosen_files_go_with_the_message_and_are_there_after_a_reload(
    chat: Chat, server: Server, broken: list[str], roof: Path, keys: Path
) -> None:
    page = chat.page
    choose(page, roof, keys)
    expect(row(page)).to_have_count(2)
    expect(row(page).get_by_role("img", name="roof.png")).to_be_visible()
    expect(row(page).filter(has_text="keys.txt")).to_contain_text("27 bytes")
    turn = chat.say("What is on the roof?").reaches("complete")
    expect(row(page)).to_have_count(0)
    for _ in range(2):
        files = turn.element.get_by_role("list", name="Files")
        picture = files.get_by_role("img", name="roof.png")
        expect(picture).to_be_visible()
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 512
        expect(files.get_by_role("link", name="keys.txt")).to_be_visible()
        page.reload()
        turn = chat.turn("What is on the roof?")


def test_a_message_can_be_a_file_alone(chat: Chat, broken: list[str], keys: Path) -> None:
    page, send = chat.page, chat.page.get_by_role("button", name="Send", exact=True)
    expect(send).to_be_disabled()
    choose(page, keys)
    expect(send).to_be_enabled()
    send.click()
    turn = page.locator(".turn")
    expect(turn).to_have_attribute("data-state", "complete")
    expect(turn.get_by_role("link", name="keys.txt")).to_be_visible()
    expect(turn.locator(".bubble")).to_be_hidden()


def test_a_file_can_be_dropped_and_removed_again(
    chat: Chat, server: Server, broken: list[str]
) -> None:
    page = chat.page
    page.locator("#composer").evaluate(DROP, "dropped.txt")
    expect(row(page)).to_contain_text("dropped.txt")
    page.get_by_role("button", name="Remove dropped.txt").click()
    expect(row(page)).to_have_count(0)
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()


def test_a_file_that_is_refused_says_why_and_holds_the_message_back(
    chat: Chat, broken: list[str], tmp_path: Path
) -> None:
    page = chat.page
    wrong = tmp_path / "run.txt"
    wrong.write_bytes(b"\x7fELF\x02\x01\x01\x00")
    choose(page, wrong)
    expect(row(page).get_by_role("alert")).to_contain_text("none of the kinds of files")
    chat.field.fill("see")
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Remove run.txt").click()
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_enabled()


def test_files_that_wait_are_kept_with_the_draft(chat: Chat, broken: list[str], keys: Path) -> None:
    page = chat.page
    choose(page, keys)
    expect(row(page).get_by_role("link", name="keys.txt")).to_be_visible()
    chat.field.fill("half a thought")
    page.reload()
    expect(row(page).get_by_role("link", name="keys.txt")).to_be_visible()
    expect(chat.field).to_have_value("half a thought")


def test_on_a_narrow_screen_nothing_goes_over_the_edge(
    chat: Chat, broken: list[str], roof: Path, tmp_path: Path
) -> None:
    page = chat.page
    page.set_viewport_size({"width": 320, "height": 640})
    long = tmp_path / ("a very long name of a file " * 6 + ".txt")
    long.write_text("words")
    choose(page, roof, long)
    expect(row(page)).to_have_count(2)
    chat.say("see").reaches("complete")
    wide = page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert wide == 0
