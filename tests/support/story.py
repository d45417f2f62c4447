"""A story that a user tells, as rows of the conversation, and what is to be learned from it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from mira.ids import SystemIds
from mira.messages.content import Text, ToolResult, ToolUse, encode_blocks
from mira.store.database import Database
from tests.support.keeper import fact, memories_of

ids = SystemIds()
SAID = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

STORY = (
    "My dog Rex turns three on Saturday, and my sister Anna is coming over.",
    "How lovely!",
    "She lives in Linz and hates coriander.",
    "Noted.",
)
FACTS = memories_of(
    fact(
        "The user's dog Rex turns three on 2026-03-07.", 1, happens_at="2026-03-07",
        entities=[{"name": "Rex", "type": "PERSON"}], hints=[{"index": 1, "bond": "same party"}],
    ),
    fact(
        "Anna, the user's sister, visits on 2026-03-07.", 1,
        entities=[{"name": "Anna", "type": "PERSON"}],
    ),
    fact("Anna lives in Linz and hates coriander.", 3, entities=[{"name": "Linz", "type": "GPE"}]),
)  # fmt: skip
TEXTS = [item["text"] for item in FACTS["memories"]]

#: Everything that a segment leaves behind, without what differs from run to run.
ROWS = """
select m.text, m.status, m.source, m.source_segment is not null as segment,
  cardinality(m.source_messages) as messages, m.happens_at, m.expires_at, m.valid_from,
  s.mention_count, (select array_agg(e.name || '/' || e.type order by e.name) from memory_entities x
    join entities e on e.id = x.entity_id where x.memory_id = m.id) as entities,
  (select array_agg(o.text || '/' || l.type || '/' || l.reason order by o.text) from memory_links l
    join memories o on o.id = l.to_id where l.from_id = m.id) as links
from memories m join memory_scores s on s.memory_id = m.id order by m.doc
"""


async def tell_story(
    database: Database,
    user_id: UUID,
    *said: str,
    state: str = "collapsed",
    segment_id: UUID | None = None,
    surfaced: Sequence[UUID] = (),
    tool_result: str = "",
) -> UUID:
    """A segment in which the user and the assistant speak in turn; returns its id.

    `surfaced` are memories that were before the assistant in its last turn; `tool_result` is what
    a tool gave back in it. With a `segment_id` the story goes on.
    """
    now = SAID
    async with database.user(user_id) as tx:
        seq = await tx.value(
            "update conversations set next_seq = next_seq + $2 where user_id = $1 "
            "returning next_seq - $2",
            user_id, (len(said) + 1) // 2,
        )  # fmt: skip
        if segment_id is None:
            segment_id = ids.new()
            await tx.execute(
                "insert into segments (id, user_id, state, opened_at, last_message_at, "
                "collapsed_at) values ($1, $2, $3::text, $4::timestamptz, $4::timestamptz, "
                "case when $3::text = 'collapsed' then $4::timestamptz end)",
                segment_id, user_id, state, now,
            )  # fmt: skip
        turn_id = ids.new()
        for place, words in enumerate(said):
            by_user = place % 2 == 0
            at = now + timedelta(minutes=place)
            if by_user:
                turn_id = ids.new()
                await tx.execute(
                    "insert into turns (id, user_id, seq, request_id, request_digest, state, "
                    "attempt, segment_id, accepted_at, settled_at) "
                    "values ($1::uuid, $2, $3, $1::uuid::text, '', 'complete', 1, $4, $5, $5)",
                    turn_id, user_id, seq, segment_id, at,
                )  # fmt: skip
                seq += 1
            rows = [("user" if by_user else "assistant", encode_blocks((Text(text=words),)))]
            if not by_user and tool_result and place >= len(said) - 2:
                use = ToolUse(call_id="c", name="web", arguments="{}")
                result = ToolResult(call_id="c", text=tool_result)
                rows = [
                    ("assistant", encode_blocks((use,))),
                    ("tool", encode_blocks((result,))),
                    *rows,
                ]
            for position, (role, content) in enumerate(rows):
                await tx.execute(
                    "insert into messages (id, user_id, turn_id, turn_seq, attempt, position, "
                    "role, content, created_at) select $1, $2, id, seq, $4, $5, $6, $7::jsonb, $8 "
                    "from turns where id = $3",
                    ids.new(), user_id, turn_id, 0 if by_user else 1,
                    0 if by_user else position + 1, role, content, at,
                )  # fmt: skip
        if surfaced:
            await tx.execute(
                "insert into retrieval_traces "
                "(id, user_id, turn_id, purpose, at, results, surfaced) "
                "values ($1, $2, $3, 'turn', $4, '[]', $5)",
                ids.new(), user_id, turn_id, now, list(surfaced),
            )  # fmt: skip
    return segment_id
