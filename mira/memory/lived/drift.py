"""Whether a summary says what was said: each sentence of it held against the segment.

A sentence is flagged when it names a person or thing, a number or a date that the segment does
not have, when no passage of the segment comes near to it, or when an older summary comes far
nearer than any. What a message's own date is, and what "tomorrow" meant in it, is in the segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

import msgspec
import numpy as np

from mira.memory.chunks import Line
from mira.memory.encoding import Encoder
from mira.memory.entities import Mention
from mira.memory.lived.days import Dated, Day, dated, is_covered, meant, minutes, ordinals
from mira.memory.lived.language import guess
from mira.memory.lived.names import Names, named
from mira.memory.lived.numbers import demanded, known
from mira.memory.lived.sentences import sentences
from mira.memory.lived.summary import Summary
from mira.memory.lived.support import Passage, passages, support
from mira.memory.terms import term_frequencies

#: A sentence is weakly supported if no passage is as near as this and the segment has less than
#: half of what it is made of; one that is made of little says too little to be untrue. Fitted on 18
#: summaries of real chats and held against 12 others: 4 of 100 true sentences are weak, and 40 to
#: 50 of 100 that are true of another chat of the same two people.
WEAK, SHARED, LITTLE = 0.45, 0.5, 3
#: An older summary is the likelier source of a sentence if it is this near, and so much nearer.
ELSEWHERE, NEARER = 0.70, 0.20
#: Minutes by which a time of day may differ from that of a message.
CLOSE = 5


class Recogniser(Protocol):
    """What finds names. See mira.memory.recogniser."""

    async def entities(self, text: str) -> tuple[Mention, ...]: ...


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence that is not covered. `field` is trace or precis, `place` counts from 0."""

    field: str
    place: int
    sentence: str
    #: For the model: what is not covered, in words.
    reason: str
    #: For the books: of names, numbers, dates, support and elsewhere those that were missed.
    kinds: tuple[str, ...]
    passages: tuple[Passage, ...] = ()


#: Of what every conversation can be told.
_FRAME = frozenset(
    term
    for term in term_frequencies(
        "talk talked talking speak spoke spoken said say tell told chat chatted converse conversed "
        "conversation catch caught discuss discussed end ended begin began start started greet "
        "goodbye bye later friendly wish wished luck thank thanked agree agreed ask asked answer "
        "answered help helped message messages together user we both one other each call called "
        "reden geredet gesprochen sprechen gespräch unterhalten besprochen fragen gefragt hilfe "
        "geholfen danken verabschiedet nachricht"
    )
)


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """How true a summary is."""

    sentences: int
    flags: tuple[Flag, ...] = ()

    @property
    def score(self) -> float:
        """The share of sentences that are flagged, from 0 to 1."""
        return len(self.flags) / self.sentences if self.sentences else 0.0

    @property
    def record(self) -> list[Mapping[str, object]]:
        """The flags without a word of them."""
        return [{"field": f.field, "place": f.place, "kinds": list(f.kinds)} for f in self.flags]


class Source:
    """What a segment holds that a summary may say."""

    def __init__(self, lines: Sequence[Line], zone: ZoneInfo, *, also: Sequence[str] = ()) -> None:
        """`also`: names that go without saying, such as the user's own."""
        self.passages = passages(lines)
        self.language = guess("\n".join(line.text for line in lines if line.by_user))
        self._terms = term_frequencies(" ".join(line.text for line in lines)).keys()
        self._known = _FRAME | term_frequencies(" ".join(also)).keys()
        self._names = Names([*(line.text for line in lines), *also])
        self._numbers: set[float] = {float(len(lines))}
        self._days: set[Day] = set()
        self._times: set[int] = set()
        alone: set[int] = set()
        for line in lines:
            at = line.said_at.astimezone(zone)
            today = at.date()
            self._days.add(Day(today.year, today.month, today.day))
            self._times |= {(minutes(at) + off) % 1440 for off in range(-CLOSE, CLOSE + 1)}
            found = dated(line.text)
            for _, readings in found.days:
                # A date without a year is near to the day on which it was said.
                self._days |= {
                    day if day.year or day.month is None else Day(year, day.month, day.day)
                    for day in readings
                    for year in (today.year - 1, today.year, today.year + 1)
                }
            self._days |= set(meant(line.text, today))
            for _, readings_ in found.times:
                self._times |= readings_
            for day in ordinals(line.text):
                alone.add(day)
                if day < today.day:
                    following = today.replace(day=1) + timedelta(31)
                    self._days.add(Day(following.year, following.month, day))
            self._numbers |= known(line.text)
        # "On the 21st": of any month that is spoken of.
        months = {(day.year, day.month) for day in self._days if day.year and day.month}
        self._days |= {Day(year, month, day) for year, month in months for day in alone}
        # "At six" says a number where a summary writes a time.
        self._times |= {
            int(hour) * 60 + half
            for number in self._numbers
            if 0 < number <= 24 and number == int(number)
            for hour in (number % 24, (number + 12) % 24)
            for half in (0,)
        }

    def missing(self, sentence: str, entities: Sequence[Mention]) -> dict[str, list[str]]:
        """What a sentence says that the segment does not have, by kind."""
        found: dict[str, list[str]] = {}
        stated: Dated = dated(sentence)
        names = [n for n in named(stated.rest, entities, self.language) if not self._names.has(n)]
        numbers = [
            written for written, values in demanded(stated.rest) if not values & self._numbers
        ]
        dates = [
            written
            for written, readings in stated.days
            if not any(is_covered(claim, by) for claim in readings for by in self._days)
            and not self._is_number(written)
        ]
        dates += [written for written, times in stated.times if not times & self._times]
        for kind, missed in (("names", names), ("numbers", numbers), ("dates", dates)):
            if missed:
                found[kind] = list(dict.fromkeys(missed))
        return found

    def bears_out(self, sentence: str) -> bool:
        """Whether the segment's words alone bear a sentence out, however they are put."""
        content = self._content(sentence)
        return len(content) < LITTLE or len(content & self._terms) >= SHARED * len(content)

    def is_telling(self, sentence: str) -> bool:
        """Whether a sentence says enough to be untrue: "I gave my advice" is of any conversation,
        and so it stands word for word among older summaries."""
        return len(self._content(sentence)) >= LITTLE

    def _content(self, sentence: str) -> AbstractSet[str]:
        return term_frequencies(dated(sentence).rest).keys() - self._known

    def _is_number(self, written: str) -> bool:
        return written.isdigit() and float(written) in self._numbers


async def check(
    summary: Summary,
    source: Source,
    *,
    encoder: Encoder | None,
    recogniser: Recogniser | None,
    older: Sequence[str] = (),
) -> Drift:
    """Hold a summary against its segment, and against older summaries (their texts).

    Without an encoder only names, numbers and dates are compared. Raises Unavailable.
    """
    told = [
        (field, place, sentence)
        for field, text in (("trace", summary.trace), ("precis", summary.precis))
        for place, sentence in enumerate(sentences(text))
    ]
    words = [sentence for _, _, sentence in told]
    supported = await support(encoder, words, source.passages) if encoder is not None else ()
    elsewhere = await _nearest(encoder, words, older) if encoder is not None else []
    flags = []
    for number, (field, place, sentence) in enumerate(told):
        entities = await recogniser.entities(sentence) if recogniser is not None else ()
        missed = source.missing(sentence, entities)
        reasons = [f"the conversation has no {', '.join(what)}" for what in missed.values()]
        kinds = list(missed)
        if supported:
            cosine = supported[number].cosine
            if cosine < WEAK and not source.bears_out(sentence):
                kinds.append("support")
                reasons.append("nothing like it was said")
            elif (
                elsewhere
                and elsewhere[number] >= max(ELSEWHERE, cosine + NEARER)
                and source.is_telling(sentence)
            ):
                kinds.append("elsewhere")
                reasons.append("it is of an earlier conversation, not of this one")
        if kinds:
            flags.append(
                Flag(
                    field=field,
                    place=place,
                    sentence=sentence,
                    reason="; ".join(reasons),
                    kinds=tuple(kinds),
                    passages=supported[number].passages if supported else (),
                )
            )
    return Drift(sentences=len(told), flags=tuple(flags))


async def _nearest(encoder: Encoder, told: Sequence[str], older: Sequence[str]) -> list[float]:
    """For each sentence how near the nearest sentence of older summaries is."""
    others = [sentence for text in older for sentence in sentences(text)]
    if not told or not others:
        return []
    vectors = await encoder.texts([*told, *others])
    cosines = vectors[: len(told)] @ vectors[len(told) :].T
    return [float(one) for one in np.max(cosines, axis=1)]
