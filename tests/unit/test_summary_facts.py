"""What a summary states, found in a text: sentences, languages, numbers, dates and names."""

from __future__ import annotations

from datetime import UTC, date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mira.memory.chunks import Line
from mira.memory.lived.days import Day, dated, is_covered, meant
from mira.memory.lived.drift import Source
from mira.memory.lived.language import guess
from mira.memory.lived.names import Names, named
from mira.memory.lived.numbers import demanded, known, values
from mira.memory.lived.pieces import bundles, pieces
from mira.memory.lived.plain import plain
from mira.memory.lived.sentences import sentences
from mira.memory.lived.summary import TITLE
from mira.memory.lived.voice import wrong
from mira.messages.content import Role

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def line(text: str, at: datetime = AT, role: Role = Role.USER) -> Line:
    return Line(message_id=UUID(int=1), turn_id=UUID(int=2), role=role, text=text, said_at=at)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("I saw Dr. Brandl at 8 p.m. on Friday. He was kind.", 2),
        ("I paid 3.50 for v2.1. We met J. Smith, e.g. in Graz.", 2),
        ("Am 8. Mai war ich bei Anna. Sie hat z. B. Kuchen gebacken.", 2),
        ("What is it? I asked! Then… nothing.", 3),
        ("私は話した。彼は笑った。", 2),
        ("- One thing\n- Another", 2),
        ("", 0),
        ("… !", 0),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, count: int) -> None:
    assert len(sentences(text)) == count


@given(st.text())
def test_no_word_is_lost_between_sentences(text: str) -> None:
    found = "".join(sentences(text))
    assert all(one.strip() for one in sentences(text))
    assert len(found) <= len(text)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I would like to know what you think of this and how it was for you.", "en"),
        ("Ich weiß nicht, ob das eine gute Idee ist, aber wir können es versuchen.", "de"),
        ("Je ne sais pas si c'est une bonne idée, mais nous pouvons essayer avec vous.", "fr"),
        ("No sé si es una buena idea, pero podemos probar con los otros y las cosas.", "es"),
        ("Я не знаю, хорошая ли это идея.", "ru"),
        ("これはいい考えですか。", "ja"),
        ("这是个好主意吗?", "zh"),
        ("ok", None),
        ("", None),
        ("12345 !!", None),
    ],
)
def test_a_language_is_told_by_script_and_small_words_or_not_at_all(
    text: str, language: str | None
) -> None:
    assert guess(text) == language


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 dogs", "three dogs"),
        ("1,200 euros", "1200 euros"),
        ("1.200 Euro", "1200 Euro"),
        ("5k", "5000"),
        ("42 apples", "forty-two apples"),
        ("42 Äpfel", "zweiundvierzig Äpfel"),
        ("250 pages", "two hundred and fifty pages"),
        ("the 3rd try", "three tries"),
        ("4,50 Euro", "4.5 Euro"),
        ("$2,500", "2500 dollars"),
        ("1.5 million", "1,500,000"),
        ("90 minutes", "1.5 hours"),
        ("14 days", "two weeks"),
        ("12 eggs", "a dozen eggs"),
    ],
)
def test_a_number_is_the_same_however_it_is_written(one: str, other: str) -> None:
    [(_, meant_by_one), *_] = values(one)
    assert meant_by_one & known(other)


def test_words_that_only_look_like_numbers_are_not_demanded() -> None:
    assert demanded("I met one of them, and one day both came; a couple of times.") == []


@pytest.mark.parametrize(
    "text",
    [
        "8 May 2026", "May 8, 2026", "May 8th", "8th of May", "2026-05-08", "8.5.2026",
        "5/8/2026", "08.05.2026", "8. Mai 2026", "the 8th May 2026",
    ],
)  # fmt: skip
def test_a_date_is_the_same_however_it_is_written(text: str) -> None:
    [(_, readings)] = dated(f"It was on {text}, I think.").days
    assert any(is_covered(Day(2026, 5, 8), by) for by in readings)
    assert not any(is_covered(Day(2026, 5, 9), by) for by in readings)
    assert not any(is_covered(Day(2026, 6, 8), by) and by.month == 6 for by in readings[:1])


@pytest.mark.parametrize(
    ("text", "minute"),
    [("at 18:30", 1110), ("6:30 pm", 1110), ("6 p.m.", 1080), ("8 Uhr", 480), ("noon", 720)],
)
def test_a_time_of_day_is_the_same_however_it_is_written(text: str, minute: int) -> None:
    [(_, minutes)] = dated(text).times
    assert minute in minutes


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("tomorrow", date(2026, 3, 3)),
        ("gestern", date(2026, 3, 1)),
        ("on Saturday", date(2026, 3, 7)),
        ("last Friday", date(2026, 2, 27)),
        ("next Monday", date(2026, 3, 9)),
        ("two weeks ago", date(2026, 2, 16)),
        ("in 10 days", date(2026, 3, 12)),
        ("vor drei Tagen", date(2026, 2, 27)),
        ("am Wochenende", date(2026, 3, 7)),
    ],
)
def test_a_relative_word_means_the_day_that_it_meant_when_it_was_said(text: str, day: date) -> None:
    claim = Day(day.year, day.month, day.day)
    found = list(meant(text, date(2026, 3, 2)))
    assert any(is_covered(claim, by) for by in found)
    # And not just any day.
    assert not any(is_covered(Day(2026, 3, 25), by) for by in found)


def test_names_are_found_with_capitals_and_covered_in_other_forms() -> None:
    sentence = "I told Anna's brother that the UK and Vienna are far, and to take v3.4.1."
    assert named(sentence, (), "en") == ["Anna's", "UK", "Vienna", "v3.4.1"]
    names = Names(["anna lives in the United Kingdom, in VIENNA, with v3.4.1"])
    assert all(names.has(name) for name in ("Anna's", "UK", "Viennas", "v3.4.1", "Anna"))
    assert not any(names.has(name) for name in ("Anne", "USA", "Venice", "v3.4.2"))


def test_the_local_date_of_a_message_counts_as_said_also_where_days_begin_elsewhere() -> None:
    late = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # the hour that comes twice in Vienna
    for zone, day in (
        ("Europe/Vienna", "25 October 2026"),
        ("Pacific/Kiritimati", "25 October 2026"),
        ("America/New_York", "24 October 2026"),
    ):
        source = Source([line("See you tomorrow.", late)], ZoneInfo(zone))
        assert source.missing(f"I talked with Ada on {day}.", ()) == {"names": ["Ada"]}
    vienna = Source([line("Hello.", late)], ZoneInfo("Europe/Vienna"))
    assert vienna.missing("It was 02:30.", ()) == {}
    assert vienna.missing("It was 04:30.", ()) == {"dates": ["04:30"]}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("I met her last week and wrote it down.", "last week"),
        ("I told her three days ago.", "three days ago"),
        ("Ich habe ihn letzte Woche und am 3. Mai getroffen.", "letzte Woche"),
        ("Nous nous sommes vus hier avec les enfants, et je suis content.", "hier"),
    ],
)
def test_words_for_a_time_that_will_not_last_are_named(text: str, word: str) -> None:
    assert f'"{word}"' in (wrong(text, language=None) or "")


def test_a_german_here_is_no_french_yesterday() -> None:
    assert wrong("Ich war hier und habe mit ihr über das Haus gesprochen.", language="de") is None


@given(
    st.lists(st.text(alphabet="ab .\n", max_size=900).filter(lambda t: t.strip()), max_size=12),
    st.integers(400, 3_000),
)
def test_pieces_fit_and_hold_every_word_in_order(texts: list[str], most: int) -> None:
    found = pieces([line(text) for text in texts], most)
    assert all(sum(len(one.text) for one in piece) <= most for piece in found)
    words = " ".join(one.text for piece in found for one in piece).split()
    assert "".join(words) == "".join("".join(texts).split())


@given(st.lists(st.text(min_size=1, max_size=700), min_size=1, max_size=40))
def test_joining_notes_comes_to_an_end(notes: list[str]) -> None:
    found = bundles(notes, 1_500)
    assert [one for bundle in found for one in bundle] == notes
    assert len(found) < len(notes) or len(notes) == 1


def test_without_a_model_the_users_own_words_are_remembered_in_the_first_person() -> None:
    lines = [
        line("“Help” me plan a trip to Japan, two weeks, in spring."),
        line("Sure.", AT, Role.ASSISTANT),
    ]
    found = plain(lines, "Ada", ZoneInfo("Pacific/Kiritimati"))
    assert found.trace.startswith("I talked with Ada on 2 March 2026 at 23:00")
    assert "Help" in found.trace
    assert len(found.title.split()) <= TITLE
    assert plain([line("x" * 5_000)], "Ada", ZoneInfo("UTC")).title
    assert plain([], "Ada", ZoneInfo("UTC")).title
