"""What the page does when the line breaks: nothing is lost, nothing is said twice."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.browser import Chat, Server, script, stored
from tests.e2e.line import Line, line_to

WORDS = " ".join(f"word{n}" for n in range(120))


@pytest.fixture
def line(server: Server) -> Iterator[Line]:
    with line_to(server.url) as opened:
        yield opened


@pytest.fixture
def chat(page: Page, server: Server, line: Line) -> Chat:
    """The page, signed in over the line that can break."""
    script(server, {"contains": "count", "text": WORDS, "token_ms": 40})
    link = server.signin_link().replace(server.url, line.url)
    return Chat(page).open(link)


def times_stored(server: Server, text: str) -> int:
    return sum(m["role"] == "user" and m["blocks"][0]["text"] == text for m in stored(server))


def test_a_reply_goes_on_after_a_break_without_gap_or_repetition(chat: Chat, line: Line) -> None:
    turn = chat.say("count through the break")
    for seen in ("word5", "word20", "word40"):
        expect(turn.text).to_contain_text(f"{seen} ")
        line.cut()
        expect(chat.health).not_to_have_attribute("data-state", "connected")
        line.mend()
        chat.connected()
    turn.reaches("complete")
    expect(turn.text).to_have_text(WORDS)


def test_a_reply_that_ended_while_the_line_was_cut_is_whole(
    chat: Chat, line: Line, server: Server
) -> None:
    turn = chat.say("count while I am away")
    expect(turn.text).to_contain_text("word5 ")
    line.cut()
    for _ in range(200):
        if stored(server, 1)[0]["role"] == "assistant":
            break
        chat.page.wait_for_timeout(50)
    line.mend()
    turn.reaches("complete")
    expect(turn.text).to_have_text(WORDS)


def test_the_page_says_that_it_reconnects(chat: Chat, line: Line) -> None:
    line.cut()
    expect(chat.health).to_have_text("Reconnecting")
    line.mend()
    expect(chat.health).to_have_text("Connected")


def test_what_is_written_without_a_line_is_sent_when_it_is_back(
    chat: Chat, line: Line, server: Server
) -> None:
    line.cut()
    expect(chat.health).to_have_text("Reconnecting")
    one, two = chat.say("said into the void"), chat.say("and once more")
    expect(one.element).to_contain_text("Will be sent when the connection is back")
    line.mend()
    one.reaches("complete")
    two.reaches("complete")
    assert times_stored(server, "said into the void") == 1
    assert times_stored(server, "and once more") == 1


def test_what_was_not_sent_survives_a_reload(chat: Chat, line: Line, server: Server) -> None:
    line.cut()
    expect(chat.health).to_have_text("Reconnecting")
    chat.say("kept over the reload")
    chat.field.fill("and a draft")
    line.mend()
    chat.page.reload()
    chat.turn("kept over the reload").reaches("complete")
    expect(chat.field).to_have_value("and a draft")
    assert times_stored(server, "kept over the reload") == 1


def test_a_message_whose_acceptance_was_lost_is_not_said_twice(
    chat: Chat, line: Line, server: Server
) -> None:
    line.deafen()
    turn = chat.say("did you get this?")
    for _ in range(200):
        newest = stored(server, 2)
        if newest[0]["role"] == "assistant" and times_stored(server, "did you get this?"):
            break
        chat.page.wait_for_timeout(50)
    turn.reaches("sending")
    line.cut()
    line.mend()
    turn.reaches("complete")
    expect(turn.text).to_have_text("did you get this?")
    expect(turn.element).to_have_count(1)
    assert times_stored(server, "did you get this?") == 1


def test_a_page_opened_in_the_middle_of_a_reply_shows_all_of_it(chat: Chat, server: Server) -> None:
    turn = chat.say("count across a reload")
    expect(turn.text).to_contain_text("word10 ")
    chat.page.reload()
    turn.reaches("running")
    turn.reaches("complete")
    expect(turn.text).to_have_text(WORDS)


def test_waits_between_attempts_grow_and_are_bounded(bare: Page) -> None:
    waits = bare.evaluate(
        "async () => { const { backOff } = await import('/static/js/connection.js');"
        " return [0, 1, 2, 3, 4, 5, 6, 50].map((n) => [backOff(n, 0), backOff(n, 1)]); }"
    )
    assert waits[0] == [250, 500]
    assert waits[1] == [500, 1000]
    assert waits[-1] == [4000, 8000]
    assert all(a[1] <= b[1] for a, b in pairwise(waits))
