"""How well the check of summaries tells what was said from what was not, with the real models."""

from __future__ import annotations

from collections import Counter
from zoneinfo import ZoneInfo

import pytest

from mira.memory.embedding import Embedder
from mira.memory.lived.drift import Drift, Source, check
from mira.memory.lived.summary import Summary
from mira.memory.pool import CpuPool
from mira.memory.recogniser import DEFAULT_MODEL, Recogniser
from tests.support.lived import SEGMENTS, Lived, changed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def recogniser(pool: CpuPool) -> Recogniser:
    found = Recogniser(DEFAULT_MODEL, pool)
    await found.warm()
    return found


async def drift_of(
    lived: Lived, told: str, embedder: Embedder | None, recogniser: Recogniser | None
) -> Drift:
    source = Source(lived.lines(), ZoneInfo(lived.zone), also=(lived.user,))
    summary = Summary(trace=told, precis="", title="", complexity=1.0)
    return await check(summary, source, encoder=embedder, recogniser=recogniser)


async def test_of_what_is_true_one_in_ten_sentences_is_doubted_at_most(
    embedder: Embedder, recogniser: Recogniser
) -> None:
    doubted = []
    total = 0
    for lived in SEGMENTS:
        found = await drift_of(lived, " ".join(lived.true), embedder, recogniser)
        assert found.sentences == len(lived.true)
        total += found.sentences
        doubted += [(flag.sentence, flag.reason) for flag in found.flags]
    assert len(SEGMENTS) >= 10
    assert total >= 40
    assert len(doubted) <= 0.1 * total, doubted


async def test_nine_in_ten_changed_names_numbers_and_dates_are_found(
    recogniser: Recogniser,
) -> None:
    tried: Counter[str] = Counter()
    missed: list[tuple[str, str]] = []
    for lived in SEGMENTS:
        source = Source(lived.lines(), ZoneInfo(lived.zone), also=(lived.user,))
        for place, sentence in enumerate(lived.true):
            for what, untrue in changed(sentence, place):
                tried[what] += 1
                entities = await recogniser.entities(untrue)
                if not source.missing(untrue, entities):
                    missed.append((what, untrue))
    assert all(tried[what] >= 20 for what in ("name", "number", "date"))
    for what in ("name", "number", "date"):
        lost = [untrue for kind, untrue in missed if kind == what]
        assert len(lost) <= 0.1 * tried[what], (tried, missed)


async def test_an_older_summary_is_the_source_of_what_it_tells_not_of_what_is_always_said(
    embedder: Embedder, recogniser: Recogniser
) -> None:
    fence = Lived(
        user="Ada", zone="UTC", began="2026-03-07T10:00",
        said=("I will paint the garden fence, if it does not rain.", "Two coats are enough."),
        true=(),
    )  # fmt: skip
    borrowed = "I heard that the garden fence was painted green last, and the gate red."
    usual = "I gave my advice on it."
    summary = Summary(trace=f"{borrowed} {usual}", precis="", title="", complexity=1.0)
    source = Source(fence.lines(), ZoneInfo(fence.zone), also=(fence.user,))
    drift = await check(
        summary, source, encoder=embedder, recogniser=recogniser, older=[summary.trace]
    )
    assert [(flag.sentence, flag.kinds) for flag in drift.flags] == [(borrowed, ("elsewhere",))]
