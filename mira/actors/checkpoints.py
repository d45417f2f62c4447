"""Partial text kept in Postgres while a turn runs, off the turn's path."""

from __future__ import annotations

from uuid import UUID

import anyio

from mira.actors.parts import Parts, Stage
from mira.actors.transcript import Transcript
from mira.actors.voice import Voice
from mira.errors import MiraError
from mira.store import turns
from mira.telemetry import logger

log = logger("turn")

#: Seconds from the first event to the first checkpoint. A turn that is over sooner needs none: if
#: the process dies in that time, the turn is run again and clients are told to clear.
FIRST = 0.05
#: Seconds between further checkpoints.
EVERY = 1.0


class Checkpoints:
    """Writes what clients may have seen: soon after the first event, then every second."""

    def __init__(self, parts: Parts, user_id: UUID, turn_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id
        self._turn_id = turn_id
        self._begun = anyio.Event()

    @property
    def begun(self) -> bool:
        return self._begun.is_set()

    def begin(self) -> None:
        """The first event is out."""
        self._begun.set()

    async def run(self, voice: Voice, transcript: Transcript) -> None:
        """Write until cancelled. A checkpoint that fails is logged, and the next is tried."""
        await self._begun.wait()
        await self._parts.clock.sleep(FIRST)
        kept: tuple[int, str] | None = None
        while True:
            now = (voice.attempt, transcript.text)
            if now != kept:
                await self._write(*now)
                kept = now
            await self._parts.clock.sleep(EVERY)

    async def _write(self, attempt: int, text: str) -> None:
        try:
            async with self._parts.database.user(self._user_id) as tx:
                await turns.checkpoint(tx, self._user_id, self._turn_id, attempt, text)
        except MiraError as error:
            log.warning("checkpoint_failed", error=error.code)
        except Exception:
            # A bug, but none for which an answer should be broken off.
            log.error("checkpoint_failed", exc_info=True)
        else:
            self._parts.reached(Stage.CHECKPOINTED, self._turn_id)
