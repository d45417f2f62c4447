"""A segment cut into chunks: every word of the user in one of them, nothing but words in any."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mira.memory.chunks import Line, again, cut, lines_of, shortened
from mira.messages.content import Block, Role, Text, Thinking, ToolResult, ToolUse
from mira.store.history import HistoryMessage
from tests.support.conversation import SAID, line

_said = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.integers(1, 400)), max_size=40
)


def _lines(said: list[tuple[str, int]]) -> list[Line]:
    return [line(n, who, "x" * size) for n, (who, size) in enumerate(said, 1)]


@given(said=_said, most=st.integers(50, 600), before=st.integers(0, 300))
def test_every_line_of_the_user_is_in_exactly_one_chunk_in_order(
    said: list[tuple[str, int]], most: int, before: int
) -> None:
    lines = _lines(said)
    chunks = cut(lines, most=most, before=before)
    in_chunks = [one for chunk in chunks for one in chunk.lines]
    assert [one for one in in_chunks if one.by_user] == [one for one in lines if one.by_user]
    assert in_chunks == [one for one in lines if one in in_chunks]
    for chunk in chunks:
        assert any(one.by_user for one in chunk.lines)
        size = sum(len(one.text) for one in chunk.lines)
        assert size <= most or len(chunk.lines) == 1
        place = lines.index(chunk.lines[0])
        assert list(chunk.before) == lines[place - len(chunk.before) : place]
        assert sum(len(one.text) for one in chunk.before) <= before
        # What was written down of a chunk is enough to have it again.
        assert again(lines, chunk.message_ids, before=before) == chunk


def test_the_end_of_a_chunk_is_read_again_before_the_next() -> None:
    lines = [line(n, "user", f"{n}" * 100) for n in range(1, 7)]
    chunks = cut(lines, most=300, before=250)
    assert [len(chunk.lines) for chunk in chunks] == [3, 3]
    assert chunks[1].before == (lines[1], lines[2])


def _message(number: int, role: Role, *blocks: Block) -> HistoryMessage:
    return HistoryMessage(
        id=UUID(int=number), turn_id=UUID(int=100), request_id="r", turn_seq=1, position=number,
        role=role, blocks=blocks, state="complete", created_at=SAID,
    )  # fmt: skip


def test_only_words_are_lines_and_nothing_that_was_put_before_the_model() -> None:
    use = ToolUse(call_id="c", name="web", arguments='{"q": "secret plan"}')
    result = ToolResult(call_id="c", text="The user is a millionaire.")
    thought = Thinking(text="The user seems sad.")
    messages = [
        _message(1, Role.USER, Text(text="Look it up.")),
        _message(2, Role.ASSISTANT, thought, Text(text="One moment."), use),
        _message(3, Role.TOOL, result),
        _message(4, Role.ASSISTANT, Text(text="  ")),
        _message(5, Role.ASSISTANT, Text(text="Done. " * 1000)),
    ]
    lines = lines_of(messages, {UUID(int=100): ("mem_00000001",)})
    assert [one.message_id.int for one in lines] == [1, 2, 5]
    said = " ".join(one.text for one in lines)
    for hidden in ("millionaire", "sad", "secret plan"):
        assert hidden not in said
    assert [one.recalled for one in lines] == [(), ("mem_00000001",), ("mem_00000001",)]
    # An answer is context: its middle may be missing. The user's words are whole.
    assert len(lines[2].text) <= 1500
    long = _message(6, Role.USER, Text(text="word " * 20_000))
    assert len(lines_of([long], {})[0].text) == 99_999


@given(st.text(max_size=200), st.integers(10, 100))
def test_a_shortened_text_is_never_longer_than_allowed(text: str, most: int) -> None:
    short = shortened(text, most)
    assert len(short) <= max(most, 0) or short == text
    assert len(text) > most or short == text
