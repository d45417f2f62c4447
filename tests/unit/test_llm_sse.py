"""Server-sent events, in whatever pieces they come."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.errors import ProviderMalformed
from mira.llm import sse
from mira.llm.sse import Events

STREAM = (
    "event: message_start\ndata: {\"a\":1}\n\n"
    ": a comment\n\n"
    "data:two\ndata: lines\nid: 7\nretry: 10\n\n"
    "event: empty\n\n"
    "event: ping\ndata: {}\n\n"
    "data: ünïcode ✓\n\n"
).encode()  # fmt: skip
FOUND = [
    (b"message_start", b'{"a":1}'),
    (b"", b"two\nlines"),
    (b"ping", b"{}"),
    (b"", "ünïcode ✓".encode()),
]


def fed(*pieces: bytes) -> list[tuple[bytes, bytes]]:
    events = Events("somebody")
    return [event for piece in pieces for event in events.feed(piece)]


@given(
    cuts=st.lists(st.integers(0, len(STREAM) * 2), max_size=12).map(sorted),
    ending=st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_events_are_the_same_wherever_the_stream_is_cut_and_however_lines_end(
    cuts: list[int], ending: bytes
) -> None:
    # A last line feed, since a carriage return at the very end may be half of a line ending.
    whole = STREAM.replace(b"\n", ending) + b"\n"
    edges = [0, *cuts, len(whole)]
    pieces = [whole[start:end] for start, end in pairwise(edges)]
    assert fed(*pieces) == FOUND


def test_an_event_comes_with_the_piece_that_ends_it_and_not_before() -> None:
    events = Events("somebody")
    assert events.feed(b"data: one\n") == []
    assert events.feed(b"\ndata: two\n\ndata: thr") == [(b"", b"one"), (b"", b"two")]
    assert events.feed(b"ee") == []
    assert events.feed(b"\n\n") == [(b"", b"three")]


def test_a_stream_that_breaks_off_gives_no_half_event() -> None:
    assert fed(b"data: whole\n\ndata: half") == [(b"", b"whole")]


@pytest.mark.parametrize("piece", [b"x" * 100, b"data: x\n" * 100])
def test_an_event_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch, piece: bytes) -> None:
    monkeypatch.setattr(sse, "LIMIT", 1000)
    events = Events("somebody")
    assert events.feed(piece) == []
    with pytest.raises(ProviderMalformed, match="somebody"):
        events.feed(piece * 10)
