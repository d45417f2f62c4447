"""Answers of models as JSON: good ones, sloppy ones, and those that nobody can read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.errors import ProviderMalformed
from mira.memory.answers import decoded, items, read, share, whole_number, words, yes

GOOD = {"memories": [{"text": "Ada has a dog.", "lines": [1]}, {"text": "It is called Rex."}]}
TEXT = json.dumps(GOOD)

SLOPPY = {
    "as asked": TEXT,
    "fenced": f"```json\n{TEXT}\n```",
    "fenced in prose": f"Here you are:\n\n```\n{TEXT}\n```\nAnything else?",
    "in prose": f"Sure! {TEXT} I hope that helps [1].",
    "after thinking": f"<think>Is {{this}} a fact? [no]</think>\n{TEXT}",
    "with a mark of the file": "\ufeff" + TEXT,
    "encoded twice": json.dumps(TEXT),
    "with a footnote before it": f"As seen in [1]: {TEXT}",
}
DAMAGED = {
    "commas missing": TEXT.replace(", ", " "),
    "single quotes": TEXT.replace('"', "'"),
    "comma at the end": TEXT.replace("}]}", "},]}"),
    "python": "{'memories': [{'text': 'Ada has a dog.', 'lines': [1], 'x': None, }, "
    "{'text': 'It is called Rex.'}]}",
    "no quotes around names": '{memories: [{text: "Ada has a dog.", lines: [1]}, '
    '{text: "It is called Rex."}]}',
    "fence never closed": f"```json\n{TEXT[:-1]}",
}


@pytest.mark.parametrize("text", SLOPPY.values(), ids=SLOPPY.keys())
def test_an_answer_is_found_whatever_stands_around_it(text: str) -> None:
    answer = read(text)
    assert answer.value == GOOD
    assert not answer.damaged
    assert not answer.cut


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_answer_is_repaired_and_that_is_said(text: str) -> None:
    answer = read(text)
    assert answer.damaged
    texts = [item["text"] for item in items(answer.value, "memories", "text")]
    assert texts[0] == "Ada has a dog."


@pytest.mark.parametrize("text", ["", "  \n", "I found nothing worth keeping.", "42", '"words"'])
def test_an_answer_without_json_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ProviderMalformed) as caught:
        read(text)
    assert caught.value.detail


def test_an_answer_nested_without_end_is_refused() -> None:
    for text in ("[" * 100_000, '{"a":' * 60 + "1" + "}" * 60, "[" * 90 + "]" * 90):
        with pytest.raises(ProviderMalformed):
            read(text)


@given(at=st.integers(1, len(TEXT) - 1))
def test_of_an_answer_that_was_cut_only_whole_items_are_taken(at: int) -> None:
    try:
        answer = read(TEXT[:at])
        found = items(answer.value, "memories", "text")
    except ProviderMalformed:
        return
    assert answer.cut
    assert found == GOOD["memories"][: len(found)]


def test_objects_one_after_another_are_a_list() -> None:
    lines = '{"text": "Ada has a dog."}\n{"text": "It is called Rex."}'
    assert len(items(read(lines).value, "memories", "text")) == 2


@pytest.mark.parametrize(
    "value",
    [
        {"memories": [{"text": "a"}]},
        [{"text": "a"}],
        {"text": "a"},
        {"memories": {"text": "a"}},
        {"facts": [{"text": "a"}]},
        {"memories": [[{"text": "a"}]]},
        {"result": {"memories": [{"text": "a"}]}},
        {"memories": {"1": {"text": "a"}}},
    ],
)
def test_a_list_is_understood_in_every_shape_that_models_give_it(value: Any) -> None:
    assert items(value, "memories", "text") == [{"text": "a"}]


def test_an_answer_to_something_else_is_refused_not_read_as_nothing() -> None:
    assert items({"memories": None}, "memories", "text") == []
    assert items([], "memories", "text") == []
    for value in ({}, {"a": 1, "b": 2}, {"memories": 7}):
        with pytest.raises(ProviderMalformed):
            items(value, "memories", "text")


@given(st.text(max_size=300))
def test_no_text_makes_reading_fail_in_another_way(text: str) -> None:
    try:
        value = read(text).value
    except ProviderMalformed:
        return
    assert isinstance(value, dict | list)


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800"])
def test_what_no_database_holds_is_not_let_in_by_an_escape(escape: str) -> None:
    whole = f'{{"texts": [{{"text": "one{escape}two", "k{escape}": 1}}]}}'
    for text in (whole, whole.replace("1}", "1,}"), f"Here: {whole}"):
        assert read(text).value == {"texts": [{"text": "one\ufffdtwo", "k\ufffd": 1}]}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["memories", "text", "lines", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_json.filter(lambda value: isinstance(value, dict | list)))
def test_every_json_document_is_read_as_itself(value: Any) -> None:
    assert read(json.dumps(value)).value == decoded(value)


def test_numbers_and_words_are_read_as_meant() -> None:
    numbers = (3, "3", "line 3", "[3]", 3.0, True, "three", None, 10**12)
    assert [whole_number(v) for v in numbers] == [3] * 5 + [None] * 4
    assert [share(v, 0.7) for v in (0.5, "0.5", "50%", 3, -1, "high", None, True)] == [
        0.5, 0.5, 0.5, 1.0, 0.0, 0.7, 0.7, 0.7,
    ]  # fmt: skip
    assert [yes(v) for v in (True, "true", "Yes", "approve", 1, "no", "maybe", None)] == [
        True, True, True, True, False, False, False, False,
    ]  # fmt: skip
    assert words("  two\n words ", most=20) == "two words"
    assert words(["no"], most=20) == ""
    assert len(words("a" * 50, most=20)) == 20
