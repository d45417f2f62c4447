"""Whom and what memories are about."""

from __future__ import annotations

from uuid import UUID

from mira.web.endpoint import Call, Endpoint
from mira.web.memory_models import Entity, EntityMerge, EntityPage, EntityPaging
from mira.web.reading import BigInt, cut, read_cursor, write_cursor


async def list_entities(call: Call[EntityPaging, None]) -> EntityPage:
    asked = call.query
    records = await call.services.memories.entities(
        call.user_id,
        before=read_cursor(asked.cursor, tuple[BigInt, UUID]),
        limit=asked.limit + 1,
        q=asked.q or None,
    )
    records, more = cut(records, asked.limit)
    return EntityPage(
        entities=tuple(Entity.of(record) for record in records),
        next_cursor=write_cursor(records[-1].memories, records[-1].id) if more else None,
    )


async def merge_entities(call: Call[None, EntityMerge]) -> Entity:
    record = await call.services.memories.merge_entities(
        call.user_id, call.body.into, call.body.others, actor="user"
    )
    return Entity.of(record)


ENDPOINTS = (
    Endpoint("GET", "/v1/entities", list_entities,
             "Whom and what memories are about, those of most memories first",
             scope="read", query=EntityPaging, answer=EntityPage),
    Endpoint("POST", "/v1/entities/merge", merge_entities,
             "Let one entity stand for others of its type too",
             scope="chat", body=EntityMerge, answer=Entity, problems=(404,)),
)  # fmt: skip
