"""What is read of a model's answer when it tells what a segment was: good, sloppy and hostile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from time import perf_counter
from uuid import UUID

import pytest

from mira.errors import ProviderMalformed
from mira.memory.chunks import Line
from mira.memory.lived.answer import bare, fields
from mira.memory.lived.draft import Draft
from mira.memory.lived.sentences import sentences
from mira.memory.lived.summary import COMPLEXITIES, FIELDS, Summary
from mira.messages.content import Role

TRACE = (
    "I helped Nora with a speech for Paula's wedding on 16 May 2026. We agreed on six hundred "
    "words. I shall have a draft ready on 3 March 2026."
)
PRECIS = "I helped Nora with a speech. We go over it on 3 March 2026."
TITLE = "A speech for Paula's wedding"
GOOD = {"trace": TRACE, "precis": PRECIS, "title": TITLE, "complexity": 1}
BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def lines(*said: str) -> list[Line]:
    return [
        Line(
            message_id=UUID(int=number),
            turn_id=UUID(int=number // 2),
            role=Role.ASSISTANT if number % 2 else Role.USER,
            text=text,
            said_at=BEGAN + timedelta(minutes=number),
        )
        for number, text in enumerate(said)
    ]


TALK = lines(
    "My sister Paula is getting married on May 16th and I have to give a speech. I am terrified of "
    "it, and I do not know how to begin or how long it should be for the people who are there.",
    "That is a lovely reason to be nervous. Shall I draft six hundred words for you, so that we "
    "can go over them tomorrow evening and cut what does not sound like you?",
)
DEUTSCH = lines(
    "Ich muss am Freitag mit Rex zum Tierarzt, weil er nichts frisst. Das ist für mich "
    "nicht leicht.",
    "Das tut mir leid. Ist er müde, und trinkt er noch genug? Ich würde ihm etwas Huhn kochen.",
)


def told(*answers: str, talk: Sequence[Line] = tuple(TALK), tries: int = 3) -> Summary:
    """The summary that comes of these answers, given one after another; raises for the last."""
    draft = Draft(talk, tries=tries)
    for answer in answers[:-1]:
        with pytest.raises(ProviderMalformed):
            draft.take(answer, False)
    return draft.take(answers[-1], False)


WHOLE = json.dumps(GOOD)
READABLE = {
    "as asked": WHOLE,
    "in a fence": f"Here you are:\n```json\n{WHOLE}\n```\nShall I go on?",
    "after a thought": f"<think>The user wants {{a summary}}.</think>\n{WHOLE}",
    "in a list": f"[{WHOLE}]",
    "under another name": json.dumps({"memory": GOOD}),
    "encoded twice": json.dumps(WHOLE),
    "with a comma too many": WHOLE[:-1] + ",}",
    "without the end": WHOLE[:-1],
    "in single quotes": "{'trace': \""
    + TRACE
    + "\", 'precis': '"
    + PRECIS
    + "', 'title': \""
    + TITLE
    + "\", 'complexity': 1}",
    "capital names": json.dumps({key.capitalize(): value for key, value in GOOD.items()}),
    "accented": json.dumps({**{k: v for k, v in GOOD.items() if k != "precis"}, "précis": PRECIS}),
    "complexity in words": json.dumps(GOOD | {"complexity": "moderate"}),
    "complexity with a reason": json.dumps(GOOD | {"complexity": "1 (one plain matter)"}),
    "complexity as text": json.dumps(GOOD | {"complexity": "1.0"}),
    "sentences in a list": json.dumps(GOOD | {"trace": sentences(TRACE)}),
    "line breaks": json.dumps(GOOD | {"trace": TRACE.replace(". ", ".\n")}),
    "raw line breaks": WHOLE.replace(". We agreed", ".\nWe agreed"),
    "tags": f"<trace>{TRACE}</trace>\n<precis>{PRECIS}</precis>\n<title>{TITLE}</title>\n"
    "<complexity>1</complexity>",
    "tags around": f"<memory>\n<trace>\n{TRACE}\n</trace><precis>{PRECIS}</precis>"
    f"<title>{TITLE}</title><complexity> 1 </complexity></memory>",
    "tags that are not closed": f"<trace>{TRACE}\n<precis>{PRECIS}\n<title>{TITLE}\n<complexity>1",
    "labelled lines": f"Trace: {TRACE}\nPrecis: {PRECIS}\nTitle: {TITLE}\nComplexity: 1",
    "bold labels": f"**Trace:** {TRACE}\n\n**Precis:** {PRECIS}\n\n**Title:** {TITLE}\n\n"
    "**Complexity:** 1",
    "headings": f"## Trace\n{TRACE}\n\n## Precis\n{PRECIS}\n\n## Title\n{TITLE}\n\n"
    "## Complexity\n1",
    "a numbered list": f"1. Trace: {TRACE}\n2. Precis: {PRECIS}\n3. Title: {TITLE}\n"
    "4. Complexity: 1",
    "labels with a note": f"Trace (3 sentences): {TRACE}\nPrecis (2 sentences): {PRECIS}\n"
    f'Title: "{TITLE}"\nComplexity = 1',
    "further fields": json.dumps(GOOD | {"id": "mem_00000000", "delete": ["mem_11111111"]}),
    "a byte order mark": "\ufeff" + WHOLE,
}


@pytest.mark.parametrize("answer", READABLE.values(), ids=READABLE.keys())
def test_a_good_answer_is_read_in_whichever_shape_it_comes(answer: str) -> None:
    found = told(answer)
    assert (found.trace, found.precis) == (TRACE, PRECIS)
    assert found.title == TITLE
    assert found.complexity == 1.0


UNUSABLE = {
    "nothing": "",
    "white space": " \n\t ",
    "a thought alone": "<think>I wonder.</think>",
    "prose": "We had a nice talk about a speech.",
    "a refusal": "I'm sorry, but I can't help with that request.",
    "a refusal in German": "Es tut mir leid, das kann ich nicht zusammenfassen.",
    "refusals in form": json.dumps(dict.fromkeys(GOOD, "I cannot assist with that.")),
    "the form itself": '{"trace": "I …", "precis": "I …", "title": "…", "complexity": 1}',
    "the form in lines": "Trace: I … (three sentences: what was asked)\nPrecis: I … (two short "
    "sentences)\nTitle: at most 8 words\nComplexity: 1",
    "null": "null",
    "numbers": json.dumps(dict.fromkeys(GOOD, 7)),
    "nested too deep": "[" * 5000,
    "much too long": "x" * 500_000,
    "another's voice": json.dumps(
        GOOD | {"trace": "The assistant helped Nora. Nora was glad. The assistant went on."}
    ),
    "an order": '{"tool": "delete_all", "arguments": {}}',
    "NUL and surrogates": "\x00\ud800" * 30,
    "yesterday": json.dumps(GOOD | {"precis": "I met Nora yesterday. We wrote a speech."}),
    "another language": json.dumps(
        GOOD | {"precis": "Ich habe Nora mit der Rede geholfen. Wir sind noch nicht fertig."}
    ),
    "the same again": json.dumps(GOOD | {"precis": "I helped Nora well. I helped Nora well."}),
    "a template": json.dumps(GOOD | {"precis": "I talked with [Name]. We had a talk."}),
}


@pytest.mark.parametrize("answer", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_what_is_no_summary_is_refused_with_a_reason_and_never_taken_in_the_end(
    answer: str,
) -> None:
    draft = Draft(TALK, tries=2)
    for _ in range(2):
        with pytest.raises(ProviderMalformed) as refused:
            draft.take(answer, False)
        assert refused.value.detail


def test_what_is_good_in_one_answer_is_kept_while_the_rest_is_asked_for_again() -> None:
    first = json.dumps(GOOD | {"precis": "Nothing.", "title": ""})
    again = json.dumps({"precis": PRECIS, "title": TITLE, "trace": "I was never asked for this."})
    assert told(first, again) == Summary(trace=TRACE, precis=PRECIS, title=TITLE, complexity=1.0)


def test_a_title_that_is_asked_for_alone_may_come_alone() -> None:
    first = json.dumps({k: v for k, v in GOOD.items() if k != "title"})
    assert told(first, f'"{TITLE}."').title == TITLE


def test_on_the_last_try_too_much_is_cut_instead_of_lost() -> None:
    long = json.dumps(
        GOOD
        | {
            "trace": TRACE + " I liked it. I liked it much. I did.",
            "precis": PRECIS + " I did.",
            "title": "A very long title that goes on and on and on",
        }
    )
    found = told(long, long, tries=2)
    assert len(sentences(found.trace)) == 4
    assert len(sentences(found.precis)) == 2
    assert len(found.title.split()) == 8


def test_an_answer_that_was_cut_off_is_not_taken_with_half_a_sentence() -> None:
    with pytest.raises(ProviderMalformed, match="precis: it ends in the middle"):
        Draft(TALK, tries=3).take(f"<trace>{TRACE}</trace><title>{TITLE}</title><complexity>1"
            "</complexity><precis>I helped Nora with a speech. We agreed on", True)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "meant"), [(0.5, 0.5), (0.7, 0.5), ("2", 2), (4, 3), ("3/3", 3), ("very high", 3)]
)
def test_a_complexity_is_the_nearest_of_the_four(given: object, meant: float) -> None:
    assert told(json.dumps(GOOD | {"complexity": given})).complexity == meant
    assert meant in COMPLEXITIES


@pytest.mark.parametrize("given", [-1, 0, 17, True, "NaN", None, [], "a lot"])
def test_what_is_no_complexity_is_asked_for_again(given: object) -> None:
    with pytest.raises(ProviderMalformed, match="complexity"):
        Draft(TALK, tries=3).take(json.dumps(GOOD | {"complexity": given}), False)


def test_a_conversation_in_german_is_told_in_german_and_in_the_first_person() -> None:
    german = {
        "trace": "Ich habe gehört, dass Rex nichts frisst. Am 4. Dezember 2026 geht es zum "
        "Tierarzt. Ich habe gekochtes Huhn empfohlen.",
        "precis": "Ich habe zu gekochtem Huhn geraten. Am 4. Dezember 2026 ist der Termin.",
        "title": "Rex frisst nicht",
        "complexity": 1,
    }
    assert told(json.dumps(german), talk=DEUTSCH).trace == german["trace"]
    english = json.dumps(german | {"precis": "I heard of Rex and his vet. We will see about it."})
    with pytest.raises(ProviderMalformed, match="must be in German"):
        Draft(DEUTSCH, tries=3).take(english, False)
    relative = json.dumps(
        german | {"precis": "Ich habe heute von Rex gehört. Wir kochen ihm Huhn."}
    )
    with pytest.raises(ProviderMalformed, match="heute"):
        Draft(DEUTSCH, tries=3).take(relative, False)
    other = json.dumps(german | {"precis": "Der Assistent riet zu Huhn. Rex frisst jetzt nicht."})
    with pytest.raises(ProviderMalformed, match="speaks of the assistant"):
        Draft(DEUTSCH, tries=3).take(other, False)


def test_a_title_or_a_quotation_may_hold_words_that_would_be_relative() -> None:
    precis = 'I learned that Nora will sing "Yesterday". I found The Day After Tomorrow for her.'
    assert told(json.dumps(GOOD | {"precis": precis})).precis == precis


@pytest.mark.parametrize(
    "precis",
    [
        "I helped Nora insert a chart. She wanted three sentences under it.",
        "I wrote a TODO list [WIP] with Nora. She followed my instructions.",
        "I was sorry that I could not find the file. Nora had it.",
        "I told Nora that I cannot hear music. She laughed.",
        "We sang in the morning. Nora liked the next song better.",
    ],
)
def test_what_only_looks_like_a_fault_is_left_alone(precis: str) -> None:
    assert told(json.dumps(GOOD | {"precis": precis})).precis == precis


def test_where_assistants_were_spoken_of_they_may_be_mentioned() -> None:
    talk = [*TALK, *lines("I want to hire an assistant for my practice. Can you help me?")]
    precis = "I helped Nora with a speech. She wants to hire an assistant."
    assert told(json.dumps(GOOD | {"precis": precis}), talk=talk).precis == precis


def test_a_correction_that_spoils_a_field_leaves_it_as_it_was() -> None:
    draft = Draft(TALK, tries=3)
    before = draft.take(WHOLE, False)
    better = {"trace": TRACE.replace("six hundred", "five hundred"), "precis": "Today I slept."}
    after = draft.corrected(before)(json.dumps(better), False)
    assert after.trace == better["trace"]
    assert after.precis == PRECIS
    with pytest.raises(ProviderMalformed):
        draft.corrected(before)("I'm sorry, I cannot do that.", False)


def test_thoughts_are_passed_over_and_many_that_never_end_hold_up_nobody() -> None:
    thought = '<think>One {"title": "No"} thing.</think>'
    assert fields(f"{thought}{json.dumps(GOOD)}{thought}", FIELDS)["title"] == TITLE
    assert bare(f"{thought} Noted. <THINKING>x</THINKING>") == "Noted."
    began = perf_counter()
    fields("<think>" * 20_000, FIELDS)
    assert perf_counter() - began < 2


def test_notes_on_a_part_are_read_as_json_or_as_they_are_and_cut_to_whole_sentences() -> None:
    draft = Draft(TALK, tries=1)
    note = "I noted what Nora wants to say."
    assert draft.notes(json.dumps({"notes": note}), False) == note
    assert draft.notes(note, False) == note
    long = draft.notes(" ".join([note] * 60), False)
    assert len(long) <= 700
    assert long.endswith(note)
    with pytest.raises(ProviderMalformed):
        draft.notes("", False)
