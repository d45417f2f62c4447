"""Memories: listed, written, changed, archived, linked, annotated, merged."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from mira.errors import NotFound
from mira.memory.model import EntityName, NewMemory
from mira.memory.model import Memory as MemoryRecord
from mira.messages.content import Role
from mira.store import history, segments
from mira.store.history import HistoryMessage
from mira.web.endpoint import Call, Endpoint
from mira.web.memory_models import (
    AnnotationRequest,
    LinkRequest,
    LinksQuery,
    Memory,
    MemoryDetail,
    MemoryEdit,
    MemoryEvidence,
    MemoryLink,
    MemoryLinks,
    MemoryNamed,
    MemoryPage,
    MemoryPaging,
    MemoryRequest,
    MergeRequest,
    Note,
    Quote,
    StoredMemory,
)
from mira.web.reading import cut, read_cursor, storable, write_cursor
from mira.web.segment_models import Segment

#: Messages shown of where a memory comes from.
_MOST_EVIDENCE = 20
_Importance = Annotated[float, Meta(ge=0, le=1)]


def ref(call: Call[Any, Any]) -> str:
    """How the path names a memory. Whether there is one is for the memory to say."""
    name: str = call.request.path_params["memory_id"]
    return name


async def list_memories(call: Call[MemoryPaging, None]) -> MemoryPage:
    asked = call.query
    before: tuple[datetime | float, UUID] | None
    if asked.order == "recent":
        before = read_cursor(asked.cursor, tuple[datetime, UUID])
    else:
        before = read_cursor(asked.cursor, tuple[_Importance, UUID])
    records = await call.services.memories.page(
        call.user_id, status=asked.status, order=asked.order, before=before, limit=asked.limit + 1
    )
    records, more = cut(records, asked.limit)
    next_cursor = None
    if more:
        last = records[-1]
        key = last.created_at if asked.order == "recent" else last.importance
        next_cursor = write_cursor(key, last.id)
    return MemoryPage(
        memories=tuple(Memory.of(record, call.user_id) for record in records),
        next_cursor=next_cursor,
    )


async def create_memory(call: Call[None, MemoryRequest]) -> StoredMemory:
    asked = call.body
    new = NewMemory(
        text=asked.text,
        source="user",
        happens_at=_moment("happens_at", asked.happens_at),
        expires_at=_moment("expires_at", asked.expires_at),
        entities=tuple(EntityName(one.name, one.type) for one in asked.entities),
    )
    stored = await call.services.memories.create(call.user_id, new, actor="user")
    return StoredMemory(memory=Memory.of(stored.memory, call.user_id), outcome=stored.outcome)


async def get_memory(call: Call[None, None]) -> MemoryDetail:
    memories = call.services.memories
    record = await memories.get(call.user_id, ref(call))
    return MemoryDetail.whole(
        record,
        call.user_id,
        evidence=await _evidence(call, record),
        annotations=await memories.annotations(call.user_id, record.id),
        successor=await _if_there(call, record.superseded_by),
    )


async def edit_memory(call: Call[None, MemoryEdit]) -> Memory:
    asked = call.body
    record = await call.services.memories.edit(
        call.user_id,
        ref(call),
        version=asked.version,
        text=None if isinstance(asked.text, UnsetType) else asked.text,
        happens_at=_given("happens_at", asked.happens_at),
        expires_at=_given("expires_at", asked.expires_at),
        actor="user",
    )
    return Memory.of(record, call.user_id)


async def delete_memory(call: Call[None, None]) -> None:
    await call.services.memories.delete(call.user_id, ref(call), actor="user")


async def confirm_memory(call: Call[None, None]) -> Memory:
    record = await call.services.memories.touch(call.user_id, ref(call), actor="user")
    return Memory.of(record, call.user_id)


async def archive_memory(call: Call[None, None]) -> Memory:
    record = await call.services.memories.archive(call.user_id, ref(call), actor="user")
    return Memory.of(record, call.user_id)


async def restore_memory(call: Call[None, None]) -> Memory:
    record = await call.services.memories.restore(call.user_id, ref(call), actor="user")
    return Memory.of(record, call.user_id)


async def list_links(call: Call[LinksQuery, None]) -> MemoryLinks:
    linked = await call.services.memories.links(call.user_id, ref(call), depth=call.query.depth)
    return MemoryLinks(links=tuple(MemoryLink.of(one) for one in linked))


async def link_memories(call: Call[None, LinkRequest]) -> MemoryLinks:
    asked, memories = call.body, call.services.memories
    await memories.link(
        call.user_id, ref(call), asked.to, asked.type, reason=asked.reason, actor="user"
    )
    linked = await memories.links(call.user_id, ref(call))
    return MemoryLinks(links=tuple(MemoryLink.of(one) for one in linked))


async def annotate_memory(call: Call[None, AnnotationRequest]) -> Note:
    note = await call.services.memories.annotate(
        call.user_id, ref(call), call.body.text, author="user"
    )
    return Note.of(note)


async def merge_memories(call: Call[None, MergeRequest]) -> Memory:
    record = await call.services.memories.merge(
        call.user_id, call.body.ids, call.body.text, actor="user"
    )
    return Memory.of(record, call.user_id)


def _given(name: str, at: datetime | UnsetType | None) -> datetime | UnsetType | None:
    return UNSET if isinstance(at, UnsetType) else _moment(name, at)


def _moment(name: str, at: datetime | None) -> datetime | None:
    return None if at is None else storable(name, at)


async def _evidence(call: Call[Any, Any], record: MemoryRecord) -> MemoryEvidence:
    said: list[HistoryMessage] = []
    segment = None
    async with call.services.database.user(call.user_id) as tx:
        if record.source_messages:
            wanted = record.source_messages[:_MOST_EVIDENCE]
            said = await history.of_ids(tx, call.user_id, wanted)
        elif record.source_turn is not None:
            of_turn = await history.of_turn(tx, call.user_id, record.source_turn)
            said = [message for message in of_turn if message.role is Role.USER]
        if record.source_segment is not None:
            segment = await segments.get(tx, call.user_id, record.source_segment)
    sources = [await _if_there(call, one) for one in record.source_memories[:_MOST_EVIDENCE]]
    return MemoryEvidence(
        segment=Segment.of(segment) if segment else None,
        turn_id=record.source_turn,
        messages=tuple(Quote.of(message) for message in said),
        memories=tuple(MemoryNamed.of(one) for one in sources if one is not None),
    )


async def _if_there(call: Call[Any, Any], memory_id: UUID | None) -> MemoryRecord | None:
    if memory_id is None:
        return None
    try:
        return await call.services.memories.get(call.user_id, memory_id)
    except NotFound:
        return None


ENDPOINTS = (
    Endpoint("GET", "/v1/memories", list_memories,
             "Memories, the newest or the most important first",
             scope="read", query=MemoryPaging, answer=MemoryPage),
    Endpoint("POST", "/v1/memories", create_memory,
             "Remember one fact; one that is known already is reinforced instead",
             scope="chat", body=MemoryRequest, answer=StoredMemory),
    Endpoint("POST", "/v1/memories/merge", merge_memories,
             "Make one memory of several, which are archived",
             scope="chat", body=MergeRequest, answer=Memory, problems=(404, 409)),
    Endpoint("GET", "/v1/memories/{memory_id}", get_memory,
             "One memory with its evidence, annotations and successor",
             scope="read", answer=MemoryDetail),
    Endpoint("PATCH", "/v1/memories/{memory_id}", edit_memory,
             "Change text or dates, if nobody else has changed it since it was read",
             scope="chat", body=MemoryEdit, answer=Memory, problems=(409,)),
    Endpoint("DELETE", "/v1/memories/{memory_id}", delete_memory,
             "Delete a memory and its words for good; this alone cannot be undone",
             scope="chat", answer=None, status=204),
    Endpoint("POST", "/v1/memories/{memory_id}/confirm", confirm_memory,
             "Say that a memory holds and matters: one more mention, by which it stays longer",
             scope="chat", answer=Memory),
    Endpoint("POST", "/v1/memories/{memory_id}/archive", archive_memory,
             "Take a memory out of every search", scope="chat", answer=Memory),
    Endpoint("POST", "/v1/memories/{memory_id}/restore", restore_memory,
             "Take a memory back from the archive", scope="chat", answer=Memory, problems=(409,)),
    Endpoint("GET", "/v1/memories/{memory_id}/links", list_links,
             "Memories linked with this one, in either direction",
             scope="read", query=LinksQuery, answer=MemoryLinks),
    Endpoint("POST", "/v1/memories/{memory_id}/links", link_memories,
             "Say how a memory stands to another; a link that is there stays as it is",
             scope="chat", body=LinkRequest, answer=MemoryLinks),
    Endpoint("POST", "/v1/memories/{memory_id}/annotations", annotate_memory,
             "Put a remark beside a memory",
             scope="chat", body=AnnotationRequest, answer=Note),
)  # fmt: skip
