"""The line being typed in a chat."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mira.cli.chat.editor import Editor
from mira.cli.chat.keys import Key


def typed(*keys: str) -> Editor:
    """An editor after these keys; whatever is no key's name is text."""
    editor = Editor()
    for key in keys:
        press(editor, key)
    return editor


def press(editor: Editor, key: str) -> str | None:
    return editor.press(Key(key) if key in NAMES else Key("text", key))


NAMES = [
    "enter", "newline", "backspace", "delete", "kill-word", "kill-start", "kill-end", "left",
    "right", "word-left", "word-right", "home", "end", "up", "down", "eof", "redraw",
]  # fmt: skip


def test_text_goes_in_where_the_cursor_stands() -> None:
    assert typed("wold", "left", "left", "r", "home", "the ").text == "the world"


def test_enter_gives_the_text_and_empties_the_line() -> None:
    editor = typed("hello", "left")
    assert press(editor, "enter") == "hello"
    assert (editor.text, editor.cursor) == ("", 0)


def test_a_new_line_is_not_entered_and_home_and_end_stay_in_their_line() -> None:
    editor = typed("one", "newline", "two", "home", "1", "end", "2")
    assert editor.text == "one\n1two2"


def test_words_and_parts_of_lines_can_be_removed() -> None:
    assert typed("one two three ", "kill-word").text == "one two "
    assert typed("one two", "word-left", "kill-start").text == "two"
    assert typed("one two", "home", "word-right", "kill-end").text == "one"


def test_backspace_removes_a_character_with_what_is_combined_with_it() -> None:
    assert typed("ae\u0301", "backspace").text == "a"


def test_earlier_lines_come_back_and_the_draft_after_them() -> None:
    editor = typed("first", "enter", "second", "enter", "draft", "up", "up", "up")
    assert editor.text == "first"
    press(editor, "down")
    assert editor.text == "second"
    press(editor, "down")
    assert editor.text == "draft"


def test_a_repeated_line_is_remembered_once() -> None:
    editor = typed("same", "enter", "same", "enter", "up", "up")
    assert editor.history == ["same"]


def test_control_characters_of_a_paste_are_shown_harmlessly() -> None:
    rows, _, _ = typed("a\x1b[31mb").rows(20)
    assert rows == ["a\ufffd[31mb"]


@given(
    st.lists(st.one_of(st.sampled_from(NAMES), st.text(max_size=8)), max_size=30),
    st.integers(3, 20),
)
def test_whatever_is_pressed_the_cursor_is_in_the_text_and_no_row_is_too_wide(
    keys: list[str], width: int
) -> None:
    editor = typed(*keys)
    assert 0 <= editor.cursor <= len(editor.text)
    rows, row, index = editor.rows(width)
    assert all(cell_len(shown) < width for shown in rows)
    assert 0 <= index <= len(rows[row])
    assert sum(len(shown) for shown in rows) == len(editor.text.replace("\n", ""))
