"""The map of the house: which events there are, who publishes them, and who hears them.

Only the door of a conversation publishes. Before the commit contributors add to its transaction;
after it the stages of handlers run, one stage after another.
"""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from mira.actors import indexer, memory_keeper_parts, subcortex
from mira.actors.continuum import KIND, Continuum
from mira.actors.indexer import HistoryIndex, Indexer
from mira.actors.memory_keeper import MemoryKeeper
from mira.actors.memory_keeper_parts import KeeperParts, keeper_of
from mira.actors.parts import Parts
from mira.actors.runtime.actor import Context
from mira.actors.runtime.routes import Route, Routes
from mira.actors.runtime.system import Kind
from mira.actors.subcortex import Subcortex, SubcortexParts
from mira.errors import MailboxFull
from mira.messages.memory import CatchUp
from mira.messages.turn import TurnCompleted, UseDayAdvanced
from mira.telemetry import logger

log = logger("events")


def kinds(
    parts: Parts,
    index: HistoryIndex,
    keeper: KeeperParts,
    considering: SubcortexParts,
    idle: float,
) -> dict[str, Kind]:
    """Every kind of actor with its rank: an ask goes only to a higher one."""
    return {
        subcortex.KIND: Kind(
            factory=lambda address: Subcortex(considering, UUID(address.key)),
            rank=3,
            idle=60.0,
        ),
        indexer.KIND: Kind(
            factory=lambda address: Indexer(index, UUID(address.key)),
            rank=3,
            idle=60.0,
        ),
        memory_keeper_parts.KIND: Kind(
            factory=lambda address: MemoryKeeper(keeper, UUID(address.key)),
            rank=3,
            idle=60.0,
        ),
        KIND: Kind(
            factory=lambda address: Continuum(parts, UUID(address.key)),
            rank=1,
            idle=idle,
        ),
    }


def _look(user_id: UUID, ctx: Context, *, new_day: bool = False) -> None:
    """Let the keeper of memories look around; if it has no room for that, it does so later."""
    with suppress(MailboxFull):
        ctx.tell_nowait(keeper_of(user_id), CatchUp(new_day=new_day))


async def _begin_use_day(event: UseDayAdvanced, ctx: Context) -> None:
    log.info("use_day_advanced", ordinal=event.ordinal)
    _look(event.user_id, ctx, new_day=True)


async def _look_around(event: TurnCompleted, ctx: Context) -> None:
    _look(event.user_id, ctx)


async def _note_usage(event: TurnCompleted, ctx: Context) -> None:
    log.info(
        "turn_usage",
        input_tokens=event.usage.input_tokens,
        output_tokens=event.usage.output_tokens,
        cache_read_tokens=event.usage.cache_read_tokens,
        calls=event.usage.calls,
    )


def routes() -> Routes:
    """Who hears what. An event that is not listed is published and heard by nobody yet."""
    return Routes(
        {
            UseDayAdvanced: Route(stages=((_begin_use_day,),)),
            TurnCompleted: Route(stages=((_note_usage, _look_around),)),
        }
    )
