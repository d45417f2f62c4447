"""Names in texts, by the spaCy model that ships with MIRA."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from blockbuster import blockbuster_ctx
from structlog.testing import capture_logs

from mira.memory.entities import TYPES, Mention
from mira.memory.pool import CpuPool
from mira.memory.recogniser import DEFAULT_MODEL, PIECE, READ, Recogniser, load_model, pieces

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def loaded() -> Any:
    """The model, loaded once."""
    return load_model(DEFAULT_MODEL)


@pytest.fixture
async def recogniser(pool: CpuPool, loaded: Any) -> Recogniser:
    opened = Recogniser(DEFAULT_MODEL, pool, lambda _: loaded)
    await opened.warm()
    return opened


async def test_people_places_and_firms_are_found_with_what_they_are(
    recogniser: Recogniser,
) -> None:
    found = await recogniser.entities(
        "Anna Müller flew from Vienna to New York last Tuesday to meet Tim Cook at Apple."
    )
    assert found == (
        Mention("Anna Müller", "PERSON"),
        Mention("Vienna", "GPE"),
        Mention("New York", "GPE"),
        Mention("Tim Cook", "PERSON"),
        Mention("Apple", "ORG"),
    )


async def test_dates_and_numbers_are_no_entities(recogniser: Recogniser) -> None:
    text = "On 3 May 2024 at 5 pm he paid $20 for two tickets, 10 percent off, his third in a row."
    assert await recogniser.entities(text) == ()


async def test_a_name_is_given_once_as_it_first_stands(recogniser: Recogniser) -> None:
    found = await recogniser.entities(
        "Maria Silva lives in Lisbon. I called Maria Silva's office in Lisbon about Lisbon."
    )
    assert [m for m in found if "Lisbon" in m.name] == [Mention("Lisbon", "GPE")]
    assert len([m for m in found if "Silva" in m.name]) == 1


async def test_every_type_is_one_that_is_kept(recogniser: Recogniser) -> None:
    found = await recogniser.entities(
        "She speaks German, read War and Peace at the Eiffel Tower, and followed the Olympics. "
        "The First Amendment protects the Americans. NASA launched Apollo 11 from Florida."
    )
    assert len(found) > 4
    assert {mention.type for mention in found} <= set(TYPES)


@pytest.mark.parametrize(
    "text",
    ["", " \n\t", "a", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "我昨天在东京", "אני בתל אביב",
     "\x00\x07", "x" * 100_000, " " * 100_000, "?!" * 50_000],
)  # fmt: skip
async def test_no_text_is_too_strange(recogniser: Recogniser, text: str) -> None:
    assert isinstance(await recogniser.entities(text), tuple)


async def test_of_a_long_text_the_beginning_is_read(recogniser: Recogniser) -> None:
    filler = "and so it went on and on without anyone noticing it at all. "
    text = "Ada Lovelace wrote this. " + filler * (READ // len(filler) + 1) + "Alan Turing read it."
    names = {mention.name for mention in await recogniser.entities(text)}
    assert "Ada Lovelace" in names
    assert "Alan Turing" not in names


def test_pieces_are_short_end_between_words_and_lose_nothing() -> None:
    text = "One sentence here. And another one,\nwith a new line. " * 500
    parts = list(pieces(text))
    assert "".join(parts) == text[:READ]
    assert all(len(part) <= PIECE for part in parts)
    assert all(part[-1].isspace() for part in parts[:-1])
    assert "".join(pieces("y" * 5000)) == "y" * 5000
    assert list(pieces("")) == []


async def test_many_may_ask_at_once(recogniser: Recogniser) -> None:
    found: dict[int, tuple[Mention, ...]] = {}

    async def ask(number: int) -> None:
        found[number] = await recogniser.entities("Tim Cook works for Apple in California.")

    async with anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(ask, number)
    assert len(set(found.values())) == 1
    assert Mention("Tim Cook", "PERSON") in found[0]


async def test_a_run_without_blanks_costs_no_more_than_words_do(recogniser: Recogniser) -> None:
    """spaCy's own tokenizer takes time to the square of such a run."""
    nlp: Any = recogniser._nlp
    longest = 0
    tokenizer = nlp.tokenizer

    def watching(text: str) -> Any:
        nonlocal longest
        longest = max(longest, *map(len, text.split()))
        return tokenizer(text)

    nlp.tokenizer = watching
    try:
        await recogniser.entities("'s" * 299 + " " + "(" * 300 + " " + "word " * 50)
    finally:
        nlp.tokenizer = tokenizer
    assert longest == 60


async def test_the_event_loop_is_never_blocked(pool: CpuPool) -> None:
    with blockbuster_ctx("mira"):
        recogniser = Recogniser(DEFAULT_MODEL, pool)
        await recogniser.warm()
        assert await recogniser.entities("Tim Cook works for Apple.", live=True)


async def test_a_missing_model_is_said_once_and_finds_nothing(pool: CpuPool) -> None:
    recogniser = Recogniser("no_such_model", pool)
    with capture_logs() as logs:
        assert await recogniser.entities("Tim Cook works for Apple.") == ()
        for _ in range(3):
            await recogniser.warm()
            assert await recogniser.entities("Tim Cook works for Apple.") == ()
    assert not recogniser.ready
    assert [(line["event"], line["model"]) for line in logs] == [("ner_missing", "no_such_model")]


async def test_a_model_in_a_folder_is_used_with_the_parts_that_it_needs(
    pool: CpuPool, tmp_path: Path
) -> None:
    """A pipeline of another make, with its own labels, saved to the disk."""
    import spacy

    nlp = spacy.blank("de")
    nlp.add_pipe("sentencizer")
    ruler = nlp.add_pipe("entity_ruler")
    ruler.add_patterns([{"label": "PER", "pattern": "Frau Huber"}])  # type: ignore[attr-defined]
    nlp.to_disk(tmp_path / "without names")
    recogniser = Recogniser(str(tmp_path / "without names"), pool)
    with capture_logs() as logs:
        await recogniser.warm()
    assert [line["event"] for line in logs] == ["ner_missing"], "it has no part that finds names"

    ner = nlp.add_pipe("ner")
    ner.add_label("PER")  # type: ignore[attr-defined]
    nlp.initialize()
    nlp.to_disk(tmp_path / "with names")
    recogniser = Recogniser(str(tmp_path / "with names"), pool)
    await recogniser.warm()
    assert recogniser.ready
    found = await recogniser.entities("Frau Huber wohnt in Graz.")
    assert {mention.type for mention in found} <= {"PERSON"}


def test_loading_it_leaves_torch_alone() -> None:
    program = (
        "import asyncio, sys\n"
        "from mira.memory.pool import CpuPool\n"
        "from mira.memory.recogniser import Recogniser\n"
        "async def main():\n"
        "    pool = CpuPool()\n"
        "    recogniser = Recogniser('en_core_web_sm', pool)\n"
        "    assert 'spacy' not in sys.modules\n"
        "    await recogniser.warm()\n"
        "    print(recogniser.ready, 'torch' in sys.modules)\n"
        "    await pool.aclose()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.split()[-2:] == ["True", "False"]
