"""The page's reading of a turn's events: exactly the text that was sent, however it arrives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playwright.sync_api import Browser, Page

from tests.e2e.browser import Server

RUN = """
async (events) => {
  const { applyEvent, createTurn, replyText } = await import("/static/js/turn.js");
  const turn = createTurn({ id: "t" });
  const results = events.map((event) => applyEvent(turn, event));
  return { results, text: replyText(turn), state: turn.state, attempt: turn.attempt,
           last: turn.last, parts: turn.parts, error: turn.error };
}
"""


def text(seq: int, words: str, offset: int, attempt: int = 1) -> dict[str, Any]:
    return {"type": "text", "seq": seq, "attempt": attempt, "text": words, "offset": offset}


def complete(seq: int, reply: str, attempt: int = 1) -> dict[str, Any]:
    return {"type": "complete", "seq": seq, "attempt": attempt, "reply": reply,
            "usage": {}, "at": "2026-01-05T09:00:00Z"}  # fmt: skip


def run(page: Page, *events: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = page.evaluate(RUN, list(events))
    return result


def test_pieces_become_the_text(bare: Page) -> None:
    seen = run(bare, text(1, "Hello ", 0), text(2, "world", 6), complete(3, "Hello world"))
    assert (seen["text"], seen["state"]) == ("Hello world", "complete")
    assert seen["results"] == ["applied"] * 3


def test_repeated_and_overlapping_pieces_change_nothing(bare: Page) -> None:
    seen = run(bare, text(1, "Hel", 0), text(2, "lo", 3), text(1, "Hel", 0), text(2, "lo", 3),
               text(4, "Hello wor", 0), text(5, "ld", 9))  # fmt: skip
    assert seen["text"] == "Hello world"
    assert seen["results"][2:4] == ["ignored", "ignored"]


def test_offsets_count_code_points_not_utf_16_units(bare: Page) -> None:
    seen = run(bare, text(1, "👩‍🚀🌍", 0), text(2, "🌍!", 3), text(3, "?", 5))
    assert seen["text"] == "👩‍🚀🌍!?"


def test_a_gap_is_reported_once_and_filled_by_what_follows(bare: Page) -> None:
    seen = run(bare, text(1, "Hel", 0), text(3, "wor", 6), text(2, "lo ", 3), text(3, "wor", 6))
    assert seen["results"] == ["applied", "gap", "applied", "applied"]
    assert seen["text"] == "Hello wor"


def test_a_gap_that_cannot_be_filled_does_not_stop_the_reply(bare: Page) -> None:
    seen = run(bare, text(3, "wor", 6), text(3, "wor", 6), text(4, "ld", 9))
    assert seen["results"] == ["gap", "applied", "applied"]
    assert seen["text"] == "world"


def test_a_higher_attempt_starts_again_and_a_lower_one_is_ignored(bare: Page) -> None:
    tool = {"type": "tool", "seq": 2, "attempt": 1, "phase": "running", "call_id": "c", "name": "x"}
    seen = run(bare, text(1, "void", 0), {**tool, "detail": ""}, text(3, "Good", 0, attempt=2),
               text(4, "late", 4, attempt=1), complete(5, "Good", attempt=2))  # fmt: skip
    assert seen["text"] == "Good"
    assert [part["kind"] for part in seen["parts"]] == ["text"]
    assert seen["results"][3] == "ignored"


def test_a_snapshot_replaces_the_text_and_events_go_on_after_it(bare: Page) -> None:
    snapshot = {"type": "snapshot", "seq": 9, "attempt": 1, "text": "One two "}
    seen = run(bare, text(1, "On", 0), snapshot, text(9, "wo ", 5), text(10, "three", 8))
    assert seen["text"] == "One two three"


def test_nothing_of_the_same_attempt_follows_the_end(bare: Page) -> None:
    seen = run(bare, text(1, "Yes", 0), complete(2, "Yes"), text(3, " and no", 3))
    assert (seen["text"], seen["state"]) == ("Yes", "complete")


@pytest.mark.parametrize(
    ("event", "state"),
    [
        ({"type": "cancelled", "text": "Half"}, "cancelled"),
        ({"type": "interrupted", "text": "Half"}, "interrupted"),
        ({"type": "error", "code": "provider_error", "detail": "Down.", "retry": True}, "failed"),
    ],
)
def test_a_turn_that_ends_early_keeps_its_words(
    bare: Page, event: dict[str, Any], state: str
) -> None:
    seen = run(bare, text(1, "Half", 0), {"seq": 2, "attempt": 1, **event})
    assert (seen["text"], seen["state"]) == ("Half", state)


def test_a_turn_tried_again_forgets_its_failure(bare: Page) -> None:
    error = {"type": "error", "seq": 2, "attempt": 1, "code": "x", "detail": "y", "retry": True}
    seen = run(bare, text(1, "Half", 0), error, text(3, "Whole", 0, attempt=2))
    assert (seen["text"], seen["state"], seen["error"]) == ("Whole", "running", None)


def test_any_replay_of_any_stream_ends_with_its_text(browser: Browser, server: Server) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(server.url)

    @given(st.data())
    def check(data: st.DataObject) -> None:
        pieces = data.draw(
            st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1)
        )
        events, offset = [], 0
        for seq, piece in enumerate(pieces, 1):
            events.append(text(seq, piece, offset))
            offset += len(piece)
        # The line breaks again and again: each time some of the past is sent once more, and
        # neighbours may have been merged into one event, as for a slow client.
        sent, at = [], 0
        while at < len(events):
            back = data.draw(st.integers(0, at))
            upto = data.draw(st.integers(at + 1, len(events)))
            merged = "".join(pieces[back:upto])
            if data.draw(st.booleans()):
                sent.append(text(upto, merged, events[back]["offset"]))
            else:
                sent.extend(events[back:upto])
            at = upto
        sent.append(complete(len(events) + 1, "".join(pieces)))
        assert run(page, *sent[:-1])["text"] == "".join(pieces)
        assert run(page, *sent)["text"] == "".join(pieces)

    check()
    context.close()
