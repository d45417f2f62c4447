"""For each sentence of a summary the passages of the segment that come nearest to saying it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from anyio import to_thread

from mira.memory.chunks import Line
from mira.memory.encoding import Encoder
from mira.memory.lived.sentences import sentences
from mira.memory.terms import term_frequencies

#: Words of a passage; passages of one segment that are compared: of more, those that share most
#: words with the summary.
WORDS, MOST = 60, 240
#: Passages that are told to the model for one sentence.
TOLD = 3


class Passage(msgspec.Struct, frozen=True):
    """A few sentences of one line."""

    line: Line
    text: str


class Supported(msgspec.Struct, frozen=True):
    """The passages nearest to a sentence, nearest first, and how near the first is."""

    cosine: float
    passages: tuple[Passage, ...]


def passages(lines: Sequence[Line]) -> list[Passage]:
    """The lines in passages of about `WORDS` words, each also together with the line before it."""
    found: list[Passage] = []
    before = ""
    for line in lines:
        pieces = _pieces(line.text)
        found += (Passage(line, piece) for piece in pieces)
        if before and pieces and len(pieces[0].split()) < WORDS:
            found.append(Passage(line, f"{before} {pieces[0]}"))
        before = " ".join(pieces[-1].split()[-WORDS:]) if pieces else ""
    return found


async def support(
    encoder: Encoder, told: Sequence[str], found: Sequence[Passage]
) -> tuple[Supported, ...]:
    """For each of the sentences `told` its support. Raises Unavailable."""
    chosen = found if len(found) <= MOST else await to_thread.run_sync(_likeliest, told, found)
    if not told or not chosen:
        return tuple(Supported(0.0, ()) for _ in told)
    vectors = await encoder.texts([*told, *(one.text for one in chosen)])
    cosines = vectors[: len(told)] @ vectors[len(told) :].T
    result = []
    for row in cosines:
        best = np.argsort(-row, kind="stable")
        result.append(Supported(float(row[best[0]]), tuple(chosen[int(at)] for at in best[:TOLD])))
    return tuple(result)


def _likeliest(told: Sequence[str], found: Sequence[Passage]) -> Sequence[Passage]:
    """In a thread: the passages that share most with what is told, the rarer the better."""
    wanted = term_frequencies(" ".join(told))
    spread: Counter[str] = Counter()
    terms = [term_frequencies(one.text).keys() & wanted.keys() for one in found]
    for some in terms:
        spread.update(some)
    weights = [sum(1.0 / spread[term] for term in some) for some in terms]
    best = sorted(range(len(found)), key=lambda at: (-weights[at], at))[:MOST]
    return [found[at] for at in sorted(best)]


def _pieces(text: str) -> list[str]:
    found: list[str] = []
    held: list[str] = []
    for sentence in sentences(text):
        words = sentence.split()
        for at in range(0, len(words), WORDS):
            piece = words[at : at + WORDS]
            if held and len(held) + len(piece) > WORDS:
                found.append(" ".join(held))
                held = []
            held += piece
    return [*found, " ".join(held)] if held else found
