"""What the door of a conversation works with, wired by the composition root."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from mira.actors.feeds import Feeds
from mira.actors.recall import Recall
from mira.actors.renders import Renders
from mira.actors.tool_run import Tools
from mira.clock import Clock
from mira.ids import Ids
from mira.llm.base import Request
from mira.llm.routing import Routed
from mira.prompt.composer import Composer
from mira.prompt.inputs import SUMMARIES
from mira.store.database import Database


class Stage(StrEnum):
    """The stages of a turn, in order; effects may come several times."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    COMPOSED = "composed"
    FIRST_EVENT = "first_event"
    CHECKPOINTED = "checkpointed"
    EFFECT_STARTED = "effect_started"
    EFFECT_DONE = "effect_done"
    COMMITTED = "committed"
    SETTLED = "settled"


#: Told when a turn reaches a stage, at once and in the way of the turn: it must be quick.
StageObserver = Callable[[Stage, UUID], None]


class Model(Protocol):
    """A model behind its routing: retries, time-outs and failover are inside."""

    @property
    def window(self) -> int:
        """Tokens that it can read and write in all."""
        ...

    def stream(self, request: Request) -> AbstractAsyncContextManager[Routed]:
        """As mira.llm.base.Provider.stream."""
        ...


@dataclass(frozen=True)
class Parts:
    """The door's surroundings. `generation` is the number of this server's start."""

    database: Database
    clock: Clock
    ids: Ids
    model: Model
    composer: Composer
    tools: Tools
    feeds: Feeds
    generation: int
    history_tokens: int
    max_output_tokens: int
    reached: StageObserver
    #: Called when a write was refused because another server or activation has taken over.
    stale: Callable[[], None]
    #: What the user must know of the model that answers, if anything.
    notice: Callable[[], str | None]
    recall: Recall
    #: Keeps the last render of each section for whoever wants to see it.
    renders: Renders
    #: Seconds of silence that end a segment.
    segment_idle: float
    #: Seconds that the Subcortex has.
    subcortex_deadline: float
    #: Whether there is a model that can be a Subcortex; else every turn would wait for nothing.
    considers: Callable[[], bool] = lambda: True
    #: Summaries of earlier segments that a prompt holds in full, at most.
    max_summaries: int = SUMMARIES
    #: Whether prompts show a few example turns.
    primer: bool = False
