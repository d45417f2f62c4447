"""Memories that nobody has: texts with a natural distribution of words, vectors in clusters.

A text is a sentence of plain English followed by words of an invented language, whose frequencies
fall as those of real ones do (Zipf-Mandelbrot), with as many function words between them as English
has. The terms are those that the real analyser finds.

A vector is the real model's vector of the sentence, drawn towards another sentence of the same
person, with noise: so vectors lie in clusters as real ones do (a few thousand directions, most
pairs nearly at right angles, many near neighbours at cosines of 0.5 to 0.9).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mira.memory.terms import STOP_WORDS, terms

Floats = NDArray[np.float32]

PEOPLE = (
    "Ada", "Grace", "Tom", "Lena", "Omar", "Ines", "Viktor", "Mei", "Paulo", "Sara", "Jonas",
    "Amira", "Felix", "Nora", "Hugo", "Zoe", "Ivan", "Clara", "Samir", "Greta",
)  # fmt: skip
PLACES = (
    "Vienna", "Lisbon", "Oslo", "Kyoto", "Bergen", "Graz", "Porto", "Lyon", "Cork", "Turin",
)  # fmt: skip
DOINGS = (
    "plays the cello in", "is allergic to the pollen of", "bought a used bicycle in",
    "teaches mathematics at a school in", "wants to learn to bake bread in", "broke an ankle in",
    "works for a publisher in", "keeps two cats in a flat in", "plans a long hike near",
    "lost a blue umbrella in", "collects old stamps from", "repairs a sailing boat in",
    "studies the history of", "had dinner with a cousin in", "pays too much rent in",
    "takes the night train to", "planted tomatoes on a balcony in", "met an old friend in",
)  # fmt: skip
#: Invented words, and how many texts hold besides their sentence.
VOCABULARY = 40_000
WORDS = (10, 24)
#: Of three words in a text, about one says nothing.
FUNCTION_WORDS = 0.4
#: How far a vector is drawn towards another sentence, at most, and how long its noise is.
DRAWN, NOISE = 0.5, 0.45


@dataclass(frozen=True)
class Batch:
    """Memories of one user, in rows alike."""

    texts: list[str]
    terms: list[Counter[str]]
    vectors: Floats
    #: For each, whom it is about: places in PEOPLE, and in PLACES.
    people: NDArray[np.int64]
    places: NDArray[np.int64]


class Writer:
    """Writes memories; the same ones for the same seed."""

    def __init__(
        self, encode: Callable[[Sequence[str]], Floats], *, doings: int = len(DOINGS), seed: int = 7
    ) -> None:
        """`encode` is called once, with some eighty sentences for each of `doings`."""
        self._seed = seed
        random = np.random.default_rng(seed)
        self._sentences = [
            (person, place, f"{PEOPLE[person]} {doing} {PLACES[place]}.")
            for person in range(len(PEOPLE))
            for doing in DOINGS[:doings]
            for place in random.choice(len(PLACES), 4, replace=False)
        ]
        self._base = encode([sentence for _, _, sentence in self._sentences])
        self._by_person = [
            np.flatnonzero([p == person for p, _, _ in self._sentences])
            for person in range(len(PEOPLE))
        ]
        self._words = _invented(random, VOCABULARY)
        rank = np.arange(VOCABULARY) + 2.7
        shares = rank**-1.07
        self._shares = np.cumsum(shares / shares.sum())
        self._functional = sorted(word for word in STOP_WORDS if len(word) > 1)
        self._terms = {word: terms(word) for word in self._words}
        self._sentence_terms = [Counter(terms(s)) for _, _, s in self._sentences]

    def batch(self, user: int, count: int) -> Batch:
        """The first `count` memories of a user."""
        random = np.random.default_rng([self._seed, user])
        chosen = random.integers(0, len(self._sentences), count)
        people = np.array([self._sentences[one][0] for one in chosen])
        places = np.array([self._sentences[one][1] for one in chosen])
        towards = np.array([random.choice(self._by_person[p]) for p in people])
        share = random.uniform(0, DRAWN, (count, 1))
        vectors = (1 - share) * self._base[chosen] + share * self._base[towards]
        vectors = _unit(vectors) + NOISE * _unit(random.standard_normal(vectors.shape))
        lengths = random.integers(*WORDS, count)
        words = self._draw(random, int(lengths.sum()))
        texts, counted = [], []
        ends = np.cumsum(lengths).tolist()
        for at, one in enumerate(chosen.tolist()):
            said = words[ends[at] - int(lengths[at]) : ends[at]]
            found = Counter(self._sentence_terms[one])
            for word in said:
                found.update(self._terms.get(word, ()))
            texts.append(f"{self._sentences[one][2]} {' '.join(said)}")
            counted.append(found)
        return Batch(texts, counted, _unit(vectors).astype(np.float32), people, places)

    def questions(self, user: int, count: int) -> list[str]:
        """What that user might ask; no two alike."""
        random = np.random.default_rng([self._seed, user, 1])
        asked = []
        for n in range(count):
            person, place, sentence = self._sentences[random.integers(len(self._sentences))]
            doing = sentence.removeprefix(PEOPLE[person]).rsplit(" ", 1)[0].strip()
            words = " ".join(self._draw(random, 3))
            asked.append(f"Do you remember who {doing} {PLACES[place]}, {words}, number {n}?")
        return asked

    def _draw(self, random: np.random.Generator, count: int) -> list[str]:
        """Running text of invented words and function words."""
        ranks = np.minimum(np.searchsorted(self._shares, random.random(count)), VOCABULARY - 1)
        functional = random.random(count) < FUNCTION_WORDS
        which = random.integers(0, len(self._functional), count)
        return [
            self._functional[word] if says_nothing else self._words[rank]
            for word, says_nothing, rank in zip(
                which.tolist(), functional.tolist(), ranks.tolist(), strict=True
            )
        ]


def _unit(vectors: NDArray[Any]) -> NDArray[Any]:
    unit: NDArray[Any] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _invented(random: np.random.Generator, count: int) -> list[str]:
    """Words of two to four syllables; the frequent ones are short, as real ones are."""
    onsets = ("br", "dr", "kl", "st", "tr", *"bdfgklmnprstvz")
    vowels = "aeiou"
    found: dict[str, None] = {}
    while len(found) < count:
        syllables = 2 + (len(found) > 300) + (len(found) > 6000)
        made = "".join(
            onsets[random.integers(len(onsets))] + vowels[random.integers(len(vowels))]
            for _ in range(syllables)
        )
        found[made + "nmrkt"[random.integers(5)]] = None
    return list(found)
