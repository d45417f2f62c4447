"""The memory side of the house: models that compute here, memories, the history's search, keeper.

Serving begins before the models are loaded: until then what is said is found by its words.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import anyio

from mira.actors.memory_keeper_parts import KeeperParts
from mira.actors.memory_keeper_questions import Questions
from mira.actors.recall import Recall
from mira.actors.recall_searches import Searches
from mira.actors.tool_box import ToolBox
from mira.actors.tool_memories import TurnMemories
from mira.app.resources import Resources
from mira.app.tools import find_tools
from mira.errors import MiraError
from mira.llm.models import Models
from mira.memory.embedding import DEFAULT_MODEL, Embedder, backend_for
from mira.memory.indexing import HistoryIndex
from mira.memory.memories import Memories
from mira.memory.passages import PassageSearch
from mira.memory.pool import CpuPool
from mira.memory.quoting import TEMPLATES
from mira.memory.recogniser import Recogniser
from mira.memory.steps import Steps
from mira.prompt.templates import Templates
from mira.store.vector_copies import VectorCopies

#: How long the day's housekeeping waits after the message that it is found with.
REST = timedelta(minutes=1)


class HouseEncoders:
    """The embedding model of the settings, and the one before it as long as users have its
    vectors. See mira.memory.encoding.Encoders."""

    def __init__(self, current: Embedder, before: Embedder | None) -> None:
        self.current = current
        self._before = before
        #: Whether the models have been loaded, or it has turned out that they cannot be.
        self.tried = False

    def of(self, model: str) -> Embedder | None:
        for embedder in (self.current, self._before):
            if embedder is not None and embedder.ready and embedder.model == model:
                return embedder
        return None

    async def warm(self) -> None:
        try:
            for embedder in (self.current, self._before):
                if embedder is not None:
                    await embedder.warm()
        finally:
            self.tried = True

    async def aclose(self) -> None:
        for embedder in (self.current, self._before):
            if embedder is not None:
                await embedder.aclose()


@dataclass(frozen=True)
class Remembering:
    """What the rest of the house is given."""

    pool: CpuPool
    encoders: HouseEncoders
    recogniser: Recogniser
    memories: Memories
    passages: PassageSearch
    index: HistoryIndex
    keeper: KeeperParts
    recall: Recall
    tools: ToolBox

    async def warm(self) -> None:
        """Load the models. A failure has been said in the log, and costs meaning, not words."""
        for one in (self.encoders, self.recogniser):
            try:
                await one.warm()
            except MiraError:
                continue

    async def aclose(self) -> None:
        """Put the models away; bounded. Idempotent."""
        with anyio.CancelScope(shield=True):
            await self.encoders.aclose()
            await self.pool.aclose()


def remember(resources: Resources, models: Models) -> Remembering:
    """Wire it. Nothing is loaded yet."""
    settings, database, clock, ids = (
        resources.settings, resources.database, resources.clock, resources.ids,
    )  # fmt: skip
    pool = CpuPool(settings.compute_threads)
    folder, shared = settings.home / "models", VectorCopies(resources.cache)

    def embedder(name: str) -> Embedder:
        return Embedder(backend_for(name, folder), pool, clock, shared=shared)

    before = settings.embedding_model_before or DEFAULT_MODEL
    encoders = HouseEncoders(
        embedder(settings.embedding_model),
        embedder(before) if before != settings.embedding_model else None,
    )
    recogniser = Recogniser(settings.ner_model, pool)
    memories = Memories(database, encoders, recogniser, clock, ids)
    keeper = KeeperParts(
        database=database,
        clock=clock,
        ids=ids,
        memories=memories,
        steps=Steps(database, encoders, clock, ids),
        encoders=encoders,
        questions=Questions(models.for_purpose("extraction"), Templates(TEMPLATES), ids),
        telling=Questions(models.for_purpose("summary"), Templates(TEMPLATES), ids),
        batches=lambda: models.batches("extraction"),
        able=lambda: not models.for_purpose("extraction").name.startswith("local:"),
        tells=lambda: not models.for_purpose("summary").name.startswith("local:"),
        recogniser=recogniser,
        rest=REST,
    )
    tools = ToolBox(
        find_tools(),
        clock=clock,
        memories=lambda user_id, turn_id: TurnMemories(memories, user_id, turn_id),
    )
    passages = PassageSearch(database, encoders)
    index = HistoryIndex(database, encoders, clock)
    searches = Searches(database=database, memories=memories, passages=passages)
    recall = Recall(searches, recogniser, clock, ids)
    return Remembering(pool, encoders, recogniser, memories, passages, index, keeper, recall, tools)
