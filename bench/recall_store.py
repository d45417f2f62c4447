"""Stores the conversations of a data set as the product stores its own, each as a user of its own.

Turns and messages are written as the house leaves them after a conversation, a session a segment;
taking them into the search is the product's own work (HistoryIndex), with the real model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from bench.memory_house import House
from bench.recall_data import Conversation, Message
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory.indexing import HistoryIndex
from mira.messages.content import Text, encode_blocks
from mira.store import passages
from mira.store.database import Tx
from mira.store.users import ensure_user


@dataclass(frozen=True)
class Stored:
    """A conversation and the user whose it is now; messages by their number in the store."""

    conversation: Conversation
    user_id: UUID
    names: dict[UUID, str]


async def store(
    house: House, conversation: Conversation, step: Callable[[int], None] = lambda _: None
) -> Stored:
    """Store a conversation, if it is not there, and take it into the search. `step` hears of
    messages taken in."""
    ids, clock = SystemIds(), SystemClock()
    user = await ensure_user(house.database, ids.new(), _name(conversation), "UTC", clock.now())
    async with house.database.user(user.id) as tx:
        if not await tx.value("select exists (select from turns where user_id = $1)", user.id):
            await write_all(tx, ids, user.id, conversation)
    index = HistoryIndex(house.database, house.encoders, clock)
    done = 0
    while await index.step(user.id):
        async with house.database.user(user.id) as tx:
            now = (await passages.marks(tx, user.id)).encoded
        step(now - done)
        done = now
    said = [message for session in conversation.sessions for message in session]
    async with house.database.user(user.id) as tx:
        rows = await tx.fetch("select id, turn_seq from messages where user_id = $1", user.id)
    return Stored(conversation, user.id, {row["id"]: said[row["turn_seq"] - 1].id for row in rows})


def _name(conversation: Conversation) -> str:
    """Names a user for just this conversation: another text is another user's."""
    digest = hashlib.sha256(repr((conversation.user, conversation.sessions)).encode()).hexdigest()
    return f"recall-{digest[:24]}"


async def write_all(tx: Tx, ids: SystemIds, user_id: UUID, conversation: Conversation) -> None:
    """Write a conversation as the house leaves one behind, not taken into the search yet."""
    await tx.execute(
        "update users set display_name = coalesce($2, 'User'), "
        "assistant_name = coalesce($3, assistant_name) where id = $1",
        user_id, conversation.user, conversation.assistant,
    )  # fmt: skip
    seq = 0
    for session in conversation.sessions:
        if not session:
            continue
        segment = ids.new()
        await tx.execute(
            "insert into segments (id, user_id, state, opened_at, last_message_at, collapsed_at) "
            "values ($1, $2, 'collapsed', $3, $4, $4)",
            segment, user_id, session[0].at, session[-1].at,
        )  # fmt: skip
        for message in session:
            seq += 1
            await _write(tx, ids, user_id, segment, seq, message)
    await tx.execute("update conversations set next_seq = $2 where user_id = $1", user_id, seq + 1)


async def _write(
    tx: Tx, ids: SystemIds, user_id: UUID, segment: UUID, seq: int, message: Message
) -> None:
    turn, number = ids.new(), ids.new()
    await tx.execute(
        "insert into turns (id, user_id, seq, request_id, request_digest, state, attempt, "
        "segment_id, accepted_at, started_at, finished_at, settled_at) "
        "values ($1, $2, $3, $4, ''::bytea, 'complete', 1, $5, $6, $6, $6, $6)",
        turn, user_id, seq, str(turn), segment, message.at,
    )  # fmt: skip
    await tx.execute(
        "insert into messages (id, user_id, turn_id, turn_seq, attempt, position, role, content, "
        "created_at) values ($1, $2, $3, $4, 1, 0, $5, $6::text::jsonb, $7)",
        number, user_id, turn, seq, str(message.role),
        encode_blocks((Text(text=message.text),)), message.at,
    )  # fmt: skip
