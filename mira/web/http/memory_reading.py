"""Memories searched, explained, and seen as a graph."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from mira.memory.memories import Graph
from mira.memory.passages import PassageHit
from mira.memory.query import RecallQuery
from mira.memory.search import MemoryHit
from mira.messages.content import plain_text
from mira.store import history
from mira.web.endpoint import Call, Endpoint
from mira.web.http.memories import ref
from mira.web.memory_models import Memory, MemoryExplanation, MemoryLink
from mira.web.memory_terms import terms
from mira.web.memory_words import RELATIONS
from mira.web.reading import storable
from mira.web.recall_models import (
    FoundMessage,
    GraphEdge,
    GraphNode,
    GraphQuery,
    MemoryGraph,
    SearchAnswer,
    SearchHit,
    SearchQuery,
)

#: Of the nodes of a graph how many may be entities.
_ENTITIES = 1 / 3
#: An entity that few memories share links nothing.
_SHARED = 2


async def search_memories(call: Call[SearchQuery, None]) -> SearchAnswer:
    asked = call.query
    query = RecallQuery(
        phrases=(asked.q,),
        intent=asked.intent,
        limit=asked.limit,
        as_of=None if asked.as_of is None else storable("as_of", asked.as_of),
    )
    memories: list[SearchHit] = []
    messages: list[SearchHit] = []
    if asked.source != "messages":
        found = await call.services.memories.search(call.user_id, query, traced=False)
        memories = [_memory_hit(call, hit) for hit in found.hits]
    if asked.source != "memories":
        said = await call.services.passages.search(call.user_id, query)
        messages = await _message_hits(call, said.hits)
    return SearchAnswer(hits=tuple(_by_turns(memories, messages)[: asked.limit]))


async def explain_memory(call: Call[None, None]) -> MemoryExplanation:
    memories = call.services.memories
    memory = await memories.get(call.user_id, ref(call))
    found = await memories.explain(call.user_id, memory.id)
    return MemoryExplanation(
        memory_id=memory.id,
        short_id=memory.short_id,
        score=found.score,
        use_days=found.given.use_days,
        terms=terms(found, call.services.clock.now()),
    )


async def memory_graph(call: Call[GraphQuery, None]) -> MemoryGraph:
    asked = call.query
    found = await call.services.memories.graph(call.user_id, around=asked.around, limit=asked.limit)
    return _graph(found, asked.limit)


def _by_turns(one: Sequence[SearchHit], other: Sequence[SearchHit]) -> list[SearchHit]:
    """The best of one, the best of the other, and so on: their scores do not compare."""
    pairs = zip_longest(one, other)
    return [hit for pair in pairs for hit in pair if hit is not None]


def _memory_hit(call: Call[Any, Any], hit: MemoryHit) -> SearchHit:
    return SearchHit(
        source="memory",
        score=hit.score,
        relevance=hit.relevance,
        lanes={name: score for name, (_, score) in hit.lanes.items()},
        memory=Memory.of(hit.memory, call.user_id),
        linked=tuple(MemoryLink.of(one) for one in hit.linked),
    )


async def _message_hits(call: Call[Any, Any], hits: Sequence[PassageHit]) -> list[SearchHit]:
    async with call.services.database.user(call.user_id) as tx:
        rows = await history.of_ids(tx, call.user_id, [hit.message_id for hit in hits])
    messages = {row.id: row for row in rows}
    return [
        SearchHit(
            source="message",
            score=hit.relevance,
            relevance=hit.relevance,
            lanes={name: score for name, (_, score) in hit.lanes.items()},
            message=FoundMessage(
                message_id=hit.message_id,
                turn_id=messages[hit.message_id].turn_id,
                segment_id=hit.segment_id,
                role=hit.role,
                text=plain_text(messages[hit.message_id].blocks),
                said_at=hit.said_at,
            ),
        )
        for hit in hits
        if hit.message_id in messages
    ]


def _graph(found: Graph, limit: int) -> MemoryGraph:
    """At most `limit` nodes: of the entities those that most of the memories share."""
    count: dict[Any, int] = {}
    for _, entity_id in found.about:
        count[entity_id] = count.get(entity_id, 0) + 1
    shared = [one for one in found.entities if count.get(one.id, 0) >= _SHARED]
    shared.sort(key=lambda one: (-count[one.id], one.key))
    # Entities take their share, and whatever the memories leave over.
    room = max(int(limit * _ENTITIES), limit - len(found.memories))
    entities = shared[:room]
    memories = found.memories[: limit - len(entities)]
    nodes = [
        *(
            GraphNode(
                id=one.id, kind="memory", label=one.text, short_id=one.short_id,
                importance=one.importance, status=one.status,
            )
            for one in memories
        ),
        *(GraphNode(id=one.id, kind="entity", label=one.name, type=one.type) for one in entities),
    ]  # fmt: skip
    present = {node.id for node in nodes}
    edges = [
        *(GraphEdge(from_id=e.from_id, to_id=e.to_id, type=e.type, words=RELATIONS[e.type][0],
                    reason=e.reason)
          for e in found.links),
        *(GraphEdge(from_id=one, to_id=entity, type="about", words="is about")
          for one, entity in found.about),
    ]  # fmt: skip
    return MemoryGraph(
        nodes=tuple(nodes),
        edges=tuple(e for e in edges if e.from_id in present and e.to_id in present),
    )


ENDPOINTS = (
    Endpoint("GET", "/v1/memories/search", search_memories,
             "Search memories, messages of the conversation, or both, by meaning and words",
             scope="read", query=SearchQuery, answer=SearchAnswer),
    Endpoint("GET", "/v1/memories/graph", memory_graph,
             "Memories and what they are about as nodes and edges",
             scope="read", query=GraphQuery, answer=MemoryGraph, problems=(404,)),
    Endpoint("GET", "/v1/memories/{memory_id}/explain", explain_memory,
             "Why a memory matters as much as it does: the score, term by term",
             scope="read", answer=MemoryExplanation),
)  # fmt: skip
