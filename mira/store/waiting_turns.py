"""The turns of a user that are under way, as a client is told of them when it connects."""

from __future__ import annotations

from uuid import UUID

from mira.messages.content import attached_in, decode_blocks, plain_text
from mira.messages.wire import QueuedTurn
from mira.store.database import Tx


async def read(tx: Tx, user_id: UUID) -> list[QueuedTurn]:
    """The running and the waiting turns, in order."""
    rows = await tx.fetch(
        "select t.id, t.request_id, t.state, m.content from turns t "
        "left join messages m on m.user_id = t.user_id and m.turn_seq = t.seq "
        "and m.attempt = 0 and m.position = 0 "
        "where t.user_id = $1 and t.state in ('received', 'running') order by t.seq",
        user_id,
    )
    return [
        QueuedTurn(
            turn_id=row["id"],
            request_id=row["request_id"],
            content=plain_text(blocks),
            state=row["state"],
            attachments=attached_in(blocks),
        )
        for row in rows
        for blocks in [decode_blocks(row["content"] or "[]")]
    ]
