"""A summary held against its segment, and against the older summaries that are like it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from mira.actors.memory_keeper_parts import KeeperParts, Step
from mira.errors import Unavailable
from mira.memory.encoding import ready
from mira.memory.lived import drift
from mira.memory.lived.drift import Drift, Source
from mira.memory.lived.summary import Summary
from mira.store import summary_vectors

#: Older summaries, beyond those that the model was shown, that a new one is compared with.
NEAREST = 3


@dataclass(frozen=True)
class Checked:
    """How true a summary is, and its vector, if there is a model that makes one."""

    drift: Drift
    vector: Sequence[float] | None = None
    vector_model: str | None = None
    nearest: tuple[tuple[UUID, float], ...] = ()


@dataclass(frozen=True)
class Earlier:
    """A summary that the model was shown."""

    segment_id: UUID
    text: str


class Checking:
    """Checks the summaries of one segment."""

    def __init__(
        self,
        parts: KeeperParts,
        user_id: UUID,
        segment_id: UUID,
        source: Source,
        known: Sequence[Earlier],
    ) -> None:
        """`known`: the summaries that the model is shown."""
        self._parts = parts
        self._user_id = user_id
        self._segment_id = segment_id
        self._source = source
        self._known = tuple(known)

    async def check(self, told: Summary) -> Checked:
        """Without an encoder only names, numbers and dates are compared. Raises Unavailable."""
        encoder = ready(self._parts.encoders)
        vector: Sequence[float] | None = None
        older: list[str] = [one.text for one in self._known]
        nearest: tuple[tuple[UUID, float], ...] = ()
        if encoder is not None:
            vector = (await encoder.texts([told.text]))[0].tolist()
            async with self._parts.database.user(self._user_id) as tx:
                found = await summary_vectors.nearest(
                    tx, self._user_id, self._segment_id, vector, encoder.model,
                    without=[one.segment_id for one in self._known], limit=NEAREST,
                )  # fmt: skip
            older += [one.text for one in found]
            nearest = tuple((one.segment_id, one.cosine) for one in found)
        held = await drift.check(
            told,
            self._source,
            encoder=encoder,
            recogniser=self._parts.recogniser,
            older=older,
        )
        self._parts.reached(Step.CHECKED)
        return Checked(held, vector, encoder.model if encoder else None, nearest)


async def give_vectors(parts: KeeperParts, user_id: UUID, *, limit: int) -> None:
    """Encode summaries that have no vector of the present model: those that were told while it was
    not loaded, or before it was chosen. Left for another time while it cannot."""
    encoder = ready(parts.encoders)
    if encoder is None:
        return
    async with parts.database.user(user_id) as tx:
        left = await summary_vectors.missing(tx, user_id, encoder.model, limit)
    if not left:
        return
    try:
        texts = [f"{one.title}\n{one.trace}\n{one.precis}" for one in left]
        vectors = await encoder.texts(texts)
    except Unavailable:
        return
    async with parts.database.user(user_id) as tx:
        for one, vector in zip(left, vectors, strict=True):
            await summary_vectors.give(tx, user_id, one, vector.tolist(), encoder.model)
