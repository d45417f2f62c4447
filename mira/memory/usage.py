"""Which memories an answer has used. What is merely shown earns nothing.

A memory is used if the answer names its short id, in its words or in the arguments of a call, or
if one of its sentences says nearly the same: a cosine of ECHO or more. No language model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from uuid import UUID

import numpy as np

from mira.clock import Clock
from mira.errors import Unavailable
from mira.memory.encoding import Encoder, Encoders
from mira.memory.model import Memory
from mira.messages.content import Role, Text, ToolUse
from mira.store import history, memories, memory_scores, traces
from mira.store.database import Database, Tx
from mira.store.history import HistoryMessage

#: How like a memory a sentence must be.
ECHO = 0.6
#: How many sentences of an answer are compared, and from how many words up.
SENTENCES, SHORTEST = 64, 4

_ID = re.compile(r"\bmem_[0-9a-f]{8}\b")
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_END = re.compile(r"(?<=[.!?…])[\"'”’)*_]*\s+|\n+|(?<=[。！？])")
_MARKUP = re.compile(r"^\s*(?:[-*•>#]+|\d{1,2}[.)])\s*|[*_`]+")


def cited(texts: Iterable[str]) -> tuple[str, ...]:
    """The short ids that texts name, each once, in their order."""
    return tuple(dict.fromkeys(found for text in texts for found in _ID.findall(text)))


def sentences(answer: str) -> list[str]:
    """The first sentences of an answer, without code and markup and those of a few words."""
    found = (_MARKUP.sub("", part).strip() for part in _END.split(_CODE.sub("\n", answer)))
    return [one for one in found if len(one.split()) >= SHORTEST or not one.isascii()][:SENTENCES]


async def echoed(
    encoder: Encoder, answer: str, shown: Sequence[Memory], *, echo: float = ECHO
) -> tuple[UUID, ...]:
    """Those of the memories that a sentence of the answer says nearly in its words.

    Raises Unavailable while the encoder cannot.
    """
    said = sentences(answer)
    if not said or not shown:
        return ()
    vectors = await encoder.texts([*(one.text for one in shown), *said])
    likeness = np.asarray(vectors[: len(shown)]) @ np.asarray(vectors[len(shown) :]).T
    nearest = likeness.max(axis=1)
    return tuple(one.id for one, best in zip(shown, nearest, strict=True) if best >= echo)


class Usage:
    """Counts what was used, for any user. Safe to use from many tasks at once."""

    def __init__(self, database: Database, encoders: Encoders, clock: Clock) -> None:
        self._database = database
        self._encoders = encoders
        self._clock = clock

    async def count(self, user_id: UUID, turn_id: UUID) -> list[UUID]:
        """Count what the answer of a turn has used, once a turn each; returns what was counted.

        Done again it counts nothing again. Without an encoder only citations count.
        """
        async with self._database.user(user_id) as tx:
            said = await history.of_turn(tx, user_id, turn_id)
            found = await traces.of_turn(tx, user_id, turn_id)
            before = {one for trace in found for one in trace.used}
            shown = {one for trace in found for one in trace.surfaced} - before
            rows = await memories.find(tx, user_id, list(shown))
        answer = "\n".join(_words(one) for one in said if one.role is Role.ASSISTANT)
        named = cited([answer, *(arguments for one in said for arguments in _arguments(one))])
        active = [one for one in rows.values() if one.status == "active"]
        alike = await self._echoed(answer, active)
        async with self._database.user(user_id) as tx:
            known = await memories.resolve(tx, user_id, named)
            used = [one for one in dict.fromkeys((*known.values(), *alike)) if one not in before]
            counted = await self._counted(tx, user_id, turn_id, used)
            for trace in found:
                of_trace = [one for one in trace.surfaced if one in used]
                if of_trace:
                    await traces.note(tx, user_id, trace.id, used=[*trace.used, *of_trace])
        return counted

    async def _echoed(self, answer: str, shown: Sequence[Memory]) -> tuple[UUID, ...]:
        encoder = self._encoders.current
        if encoder is None:
            return ()
        try:
            return await echoed(encoder, answer, shown)
        except Unavailable:
            return ()

    async def _counted(
        self, tx: Tx, user_id: UUID, turn_id: UUID, used: Sequence[UUID]
    ) -> list[UUID]:
        if not used:
            return []
        use_day = await memories.use_days(tx, user_id)
        counted = await memories.used(tx, user_id, used, turn_id, use_day)
        await memory_scores.refresh(tx, user_id, counted, self._clock.now())
        return counted


def _words(said: HistoryMessage) -> str:
    return "\n".join(block.text for block in said.blocks if isinstance(block, Text))


def _arguments(said: HistoryMessage) -> list[str]:
    return [block.arguments for block in said.blocks if isinstance(block, ToolUse)]
