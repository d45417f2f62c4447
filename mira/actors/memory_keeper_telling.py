"""A segment told by a model: asked for, part by part if it is long, checked, and corrected once.

What comes of it is worth keeping or is an error; either way it says what was spent. Beside one
call, and one for each further part, a segment costs at most `REPAIRS` calls: fields that could not
stand are asked for again by themselves, and what the segment does not bear out is corrected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar
from zoneinfo import ZoneInfo

import msgspec

from mira.actors.memory_keeper_checking import Checked, Checking
from mira.actors.memory_keeper_parts import KeeperParts, Step
from mira.actors.memory_keeper_questions import Answered, Question
from mira.errors import ContextOverflow
from mira.memory.chunks import Line
from mira.memory.lived import summary
from mira.memory.lived.draft import Draft
from mira.memory.lived.drift import Source
from mira.memory.lived.language import NAMES
from mira.memory.lived.pieces import bundles, pieces
from mira.memory.lived.summary import Remembered, Said, Summary, said
from mira.memory.quoting import quoted
from mira.store.turns import NewCall

T = TypeVar("T")

PURPOSE = "summary"
#: Calls beyond those without which there would be no summary.
REPAIRS = 3
#: Answers of which the four fields are put together, at most; one repair is left for what is not
#: true.
TRIES = 3
#: Characters of the conversation that a model which cannot tell is shown.
SHORT = 2_400
#: Tokens of its answer.
SHORT_ANSWER = 240
#: Sentences that one correction is about, and characters of a passage that is shown for it.
CORRECTED, PASSAGE = 6, 400


class Doubted(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence that is to be corrected, as the question shows it."""

    sentence: str
    reason: str
    passages: tuple[Said, ...]


@dataclass(frozen=True)
class Material:
    """A segment with all that it is told from."""

    lines: tuple[Line, ...]
    user: str
    zone: ZoneInfo
    source: Source
    #: The summaries of the segments just before, oldest first.
    known: tuple[Remembered, ...]


@dataclass(frozen=True)
class Told:
    """What was told, how true it is, and whether it was corrected."""

    summary: Summary
    checked: Checked
    corrected: bool
    parts: int


class Telling:
    """Asks for the summary of one segment. Used once."""

    def __init__(self, parts: KeeperParts, material: Material, checking: Checking) -> None:
        self._parts = parts
        self._material = material
        self._checking = checking
        self._repairs = REPAIRS
        self.calls: list[NewCall] = []

    async def tell(self) -> Told:
        """The summary, checked. Raises ProviderError if no usable one came, Unavailable.

        What was spent stands in `calls` in every case.
        """
        try:
            return await self._tell(self._parts.telling.characters)
        except ContextOverflow:
            # The model counts otherwise than we do.
            return await self._tell(max(1_500, self._parts.telling.characters // 3))

    async def tell_briefly(self) -> Summary:
        """What a model that cannot tell makes of it, in one call. Raises ProviderError."""
        lines = self._material.lines
        shown = pieces(lines, SHORT)[0] if lines else ()
        question = Question(
            purpose=PURPOSE,
            template="summary_short",
            # Lines are what it manages best, and few of them: it may go on without an end.
            schema=None,
            instructions={"user": self._material.user},
            data={"lines": said(shown, self._material.zone, most=SHORT // 3)},
            longest=SHORT_ANSWER,
        )
        return self._taken(
            await self._parts.telling.ask(question, Draft(lines, tries=1).take, tries=1), once=True
        )

    async def _tell(self, characters: int) -> Told:
        material = self._material
        parts = pieces(material.lines, characters)
        notes: tuple[str, ...] = ()
        for part in parts[:-1]:
            notes = (*notes, await self._noted(part, notes[-1:]))
            self._parts.reached(Step.NOTED)
        notes = await self._joined(notes, characters)
        draft = Draft(material.lines, tries=TRIES)
        question = self._question(
            "summary",
            summary.SCHEMA,
            {
                "user": material.user,
                "language": self._language,
                "trace": "three or four",
                "precis": "two",
            },
            {
                "known": material.known,
                "notes": tuple(quoted(note) for note in notes),
                "lines": said(parts[-1] if parts else (), material.zone),
                "zone": material.zone.key,
            },
        )
        tries = max(1, min(TRIES, 1 + self._repairs))
        told = self._taken(
            await self._parts.telling.ask(question, draft.take, tries=tries, again="summary_again")
        )
        self._parts.reached(Step.TOLD)
        found = await self._checking.check(told)
        if not found.drift.flags or self._repairs < 1:
            return Told(told, found, False, len(parts))
        return await self._corrected(draft, told, found, len(parts))

    async def _noted(self, part: Sequence[Line], before: tuple[str, ...]) -> str:
        """The notes on a part that is not the last."""
        return await self._ask_notes(before, said(part, self._material.zone))

    async def _joined(self, notes: tuple[str, ...], characters: int) -> tuple[str, ...]:
        """Notes that leave room for the last part: of many, several become one."""
        while len(notes) > 2 and sum(map(len, notes)) > characters // 2:
            notes = tuple(
                [
                    await self._ask_notes(some, ()) if len(some) > 1 else some[0]
                    for some in bundles(notes, characters)
                ]
            )
        return notes

    async def _ask_notes(self, notes: tuple[str, ...], lines: tuple[Said, ...]) -> str:
        material = self._material
        question = self._question(
            "summary_part",
            summary.NOTES_SCHEMA,
            {"user": material.user, "language": self._language},
            {
                "notes": tuple(quoted(note) for note in notes),
                "lines": lines,
                "zone": material.zone.key,
            },
        )
        draft = Draft(material.lines, tries=1)
        return self._taken(
            await self._parts.telling.ask(
                question, draft.notes, tries=2 if self._repairs else 1, again="summary_again"
            )
        )

    async def _corrected(self, draft: Draft, told: Summary, found: Checked, parts: int) -> Told:
        """The summary after the model was shown what the segment does not bear out: whichever of
        the two is the truer."""
        material = self._material
        question = self._question(
            "summary_correction",
            summary.CORRECTION_SCHEMA,
            {"language": self._language},
            {
                "trace": quoted(told.trace),
                "precis": quoted(told.precis),
                "flagged": tuple(
                    Doubted(
                        sentence=quoted(flag.sentence),
                        reason=quoted(flag.reason),
                        passages=said(
                            [
                                msgspec.structs.replace(one.line, text=one.text)
                                for one in flag.passages
                            ],
                            material.zone,
                            most=PASSAGE,
                        ),
                    )
                    for flag in found.drift.flags[:CORRECTED]
                ),
            },
        )
        answered = await self._parts.telling.ask(question, draft.corrected(told), tries=1)
        self.calls += answered.calls
        self._repairs -= 1
        if answered.value is None:
            if answered.error is not None and answered.error.outage:
                raise answered.error
            return Told(told, found, False, parts)
        again = await self._checking.check(answered.value)
        if again.drift.score > found.drift.score:
            return Told(told, found, False, parts)
        return Told(answered.value, again, True, parts)

    @property
    def _language(self) -> str:
        language = self._material.source.language
        return NAMES[language] if language else "the language in which the user writes"

    def _question(
        self,
        template: str,
        schema: str,
        instructions: dict[str, str],
        data: dict[str, object],
    ) -> Question:
        return Question(
            purpose=PURPOSE,
            template=template,
            schema=schema,
            instructions=instructions,
            data=data,
        )

    def _taken(self, answered: Answered[T], *, once: bool = False) -> T:
        """The value, with what it cost counted. Raises the error if there is none."""
        self.calls += answered.calls
        if not once:
            made = sum(call.error is None for call in answered.calls)
            self._repairs = max(0, self._repairs - max(0, made - 1))
        return answered.taken()
