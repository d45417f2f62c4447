"""Bytes of a terminal become keys, however they are split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.cli.chat.keys import Key, KeyReader


def read(*parts: bytes) -> list[Key]:
    reader = KeyReader()
    return [key for part in parts for key in reader.feed(part)]


def joined(keys: list[Key]) -> list[Key]:
    """Text that came in pieces as one."""
    together: list[Key] = []
    for key in keys:
        if key.name == "text" and together and together[-1].name == "text":
            together[-1] = Key("text", together[-1].text + key.text)
        else:
            together.append(key)
    return together


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"\r", "enter"),
        (b"\n", "enter"),
        (b"\x1b\r", "newline"),
        (b"\x7f", "backspace"),
        (b"\x1b[3~", "delete"),
        (b"\x1b[A", "up"),
        (b"\x1bOA", "up"),
        (b"\x1b[1;5D", "word-left"),
        (b"\x1bb", "word-left"),
        (b"\x04", "eof"),
        (b"\x15", "kill-start"),
    ],
)
def test_a_key_is_told_by_its_bytes(raw: bytes, name: str) -> None:
    assert read(raw) == [Key(name)]


def test_a_pasted_text_is_one_piece_whose_line_breaks_enter_nothing() -> None:
    keys = read(b"a\x1b[200~one\r\ntwo\rthree\x1b[A\x1b[201~\r")
    assert keys == [Key("text", "a"), Key("text", "one\ntwo\nthree\x1b[A"), Key("enter")]


def test_unknown_keys_are_left_out_and_hide_nothing() -> None:
    assert read(b"\x1b[24~a\x1bXb\x00c") == [Key("text", t) for t in ("a", "Xb", "c")]


def test_what_is_no_utf8_does_not_stop_the_reading() -> None:
    assert joined(read(b"a\xff\xfeb\r")) == [Key("text", "a\ufffd\ufffdb"), Key("enter")]


PIECES = st.sampled_from(
    ["a", "ü", "漢", "👍🏽", " ", "\r", "\x7f", "\x1b[A", "\x1b[3~", "\x1bOH", "\x1b[1;5C",
     "\x1b\r", "\x1b[200~paste ü\r\x1b[201~", "\x17", "\x00"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12), st.data())
def test_it_does_not_matter_where_the_bytes_are_split(
    pieces: list[str], data: st.DataObject
) -> None:
    raw = "".join(pieces).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    parts = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    assert joined(read(*parts)) == joined(read(raw))
