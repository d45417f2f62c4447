"""A reply is put together from the events of its turn, and cut where it is finished."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mira.cli.chat.blocks import settled
from mira.cli.chat.reply import Reply
from mira.messages.stream import (
    AnyTurnEvent,
    Cancelled,
    Interrupted,
    Snapshot,
    TextAdded,
    ToolProgress,
    TurnError,
)

TURN = UUID(int=7)


def text(seq: int, offset: int, words: str, attempt: int = 1) -> TextAdded:
    return TextAdded(turn_id=TURN, attempt=attempt, seq=seq, text=words, offset=offset)


def heard(*events: AnyTurnEvent) -> Reply:
    reply = Reply(TURN)
    for event in events:
        reply.apply(event)
    return reply


def test_an_event_that_comes_twice_counts_once() -> None:
    reply = heard(text(1, 0, "one "), text(2, 4, "two"), text(1, 0, "one "))
    assert reply.text == "one two"
    assert not reply.apply(text(2, 4, "two"))


def test_a_higher_attempt_clears_what_was_said() -> None:
    reply = heard(text(1, 0, "false "), text(2, 6, "start"), text(3, 0, "again", attempt=2))
    assert reply.text == "again"
    assert not reply.apply(text(4, 5, "!", attempt=1))


def test_a_snapshot_stands_for_what_was_lost() -> None:
    reply = heard(
        text(1, 0, "one "),
        Snapshot(turn_id=TURN, attempt=1, seq=9, text="one two three"),
        text(10, 13, " four"),
    )
    assert reply.text == "one two three four"


def test_an_end_may_repeat_a_number_after_the_log_was_lost() -> None:
    reply = heard(
        text(5, 0, "half a "),
        Interrupted(turn_id=TURN, attempt=1, seq=5, text="half a sen"),
    )
    assert isinstance(reply.ending, Interrupted)
    assert reply.text == "half a sen"


def test_a_turn_that_is_tried_again_goes_on_after_its_end() -> None:
    reply = heard(
        TurnError(turn_id=TURN, attempt=1, seq=1, code="provider_error", detail="no"),
        text(2, 0, "yes", attempt=2),
    )
    assert reply.ending is None
    assert reply.text == "yes"


def test_what_was_said_stays_when_the_turn_is_stopped() -> None:
    reply = heard(text(1, 0, "so far"), Cancelled(turn_id=TURN, attempt=1, seq=2, text="so far"))
    assert (reply.text, type(reply.ending)) == ("so far", Cancelled)
    assert not reply.apply(text(3, 6, " and more"))


def test_a_tool_is_at_work_from_its_call_to_its_end() -> None:
    def tool(seq: int, phase: str) -> ToolProgress:
        return ToolProgress(
            turn_id=TURN, attempt=1, seq=seq, phase=phase, call_id="c", name="clock"
        )  # fmt: skip

    assert heard(tool(1, "called"), tool(2, "running")).tools == {"c": "clock"}
    assert heard(tool(1, "called"), tool(2, "done")).tools == {}


@given(st.text(min_size=1, max_size=60), st.data())
def test_resuming_anywhere_with_pieces_merged_in_any_way_gives_the_same_text(
    whole: str, data: st.DataObject
) -> None:
    reply = Reply(TURN)
    start = data.draw(st.integers(0, len(whole)))
    if start:
        reply.apply(text(start, 0, whole[:start]))
    # The new connection's pieces overlap with what is known; each keeps its last number.
    at = data.draw(st.integers(0, start))
    while at < len(whole):
        end = data.draw(st.integers(at + 1, len(whole)))
        reply.apply(text(end, at, whole[at:end]))
        at = end
    assert reply.text == whole


MARKDOWN = st.lists(
    st.sampled_from(
        ["word", " more", "\n", "\n\n", "```\n", "~~~\n", "- item\n", "    code\n", "x"]
    ),
    max_size=20,
).map("".join)


@given(MARKDOWN, MARKDOWN)
def test_what_is_finished_stays_finished(before: str, after: str) -> None:
    assert settled(before + after) >= settled(before)


def test_code_is_finished_only_with_its_fence() -> None:
    code = "```python\na = 1\n\nb = 2\n"
    assert settled(f"Look:\n\n{code}") == len("Look:\n\n")
    assert settled(f"{code}```\n\nAnd") == len(f"{code}```\n\n")


def test_an_indented_line_still_belongs_to_the_item_before_it() -> None:
    assert settled("- one\n\n  more of it") == 0
    assert settled("- one\n\n  more of it\n\nNew") == len("- one\n\n  more of it\n\n")
