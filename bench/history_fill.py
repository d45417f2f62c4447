"""Puts a long history into a database: by COPY, the rows that a year of turns would have left.

Segments of forty messages, all collapsed, each with a summary; turns, messages, and the index over
them as HistoryIndex would have written it.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from hashlib import sha256
from io import BytesIO
from typing import Any
from uuid import UUID

import numpy as np

from bench.memory_data import Batch, Floats
from bench.memory_fill import vector_rows
from mira.ids import Ids
from mira.messages.content import Text, encode_blocks
from mira.store import signatures
from mira.store.spaces import Source

#: Messages of one segment.
SEGMENT = 40
#: Signatures in a row, of 384 numbers.
_MANY = 32
TABLES = (
    "conversations", "segments", "turns", "messages", "summaries", "passages", "postings",
    "term_counts", "corpora", "vectors_384", "signatures",
)  # fmt: skip

Connection = Any


async def fill_history(
    connection: Connection, ids: Ids, user: UUID, space: int, batch: Batch, now: datetime
) -> None:
    """Give a user who has said nothing yet one message for each text, the newest a day before
    `now`. In one transaction of the caller, without the checks of what rows refer to."""
    if not batch.texts:
        return
    conversation = _Conversation(ids, user, batch, now - timedelta(days=1))
    await conversation.write(connection)
    await _index(connection, user, batch, conversation)
    await _vectors(connection, user, space, batch, conversation)


class _Conversation:
    """What was said, before it is indexed. A user's message and its answer are a turn."""

    def __init__(self, ids: Ids, user: UUID, batch: Batch, until: datetime) -> None:
        count = len(batch.texts)
        self.user = user
        self.texts = batch.texts
        #: Passages are numbered with a gap between segments.
        self.docs = [n + 1 + n // SEGMENT for n in range(count)]
        self.at = [until - timedelta(minutes=count - n) for n in range(count)]
        self.seqs = [n // 2 + 1 for n in range(count)]
        self.segments = [ids.new() for _ in range(0, count, SEGMENT)]
        self.turns = [ids.new() for _ in range(0, count, 2)]
        self.messages = [ids.new() for _ in range(count)]

    def segment_of(self, n: int) -> UUID:
        return self.segments[n // SEGMENT]

    async def write(self, connection: Connection) -> None:
        user, at, count = self.user, self.at, len(self.texts)
        spans = [
            (one, k * SEGMENT, min((k + 1) * SEGMENT, count) - 1)
            for k, one in enumerate(self.segments)
        ]
        await connection.copy_records_to_table(
            "segments",
            columns=["id", "user_id", "state", "opened_at", "last_message_at", "collapsing_at",
                     "collapsed_at", "extracted_at", "title"],
            records=[
                (one, user, "collapsed", at[a], at[b], at[b], at[b], at[b], self._title(a))
                for one, a, b in spans
            ],
        )  # fmt: skip
        await connection.copy_records_to_table(
            "summaries",
            columns=["segment_id", "user_id", "title", "trace", "precis", "complexity", "parts",
                     "drift", "made_at"],
            records=[
                (one, user, self._title(a), " ".join(self.texts[a : a + 4]),
                 " ".join(self.texts[a : a + 2]), 1.0, 1, 0.0, at[b])
                for one, a, b in spans
            ],
        )  # fmt: skip
        await connection.copy_records_to_table(
            "turns",
            columns=["id", "user_id", "seq", "request_id", "request_digest", "state", "attempt",
                     "segment_id", "accepted_at", "started_at", "finished_at", "settled_at"],
            records=[
                (one, user, k + 1, f"history-{k + 1}", sha256(one.bytes).digest(), "complete", 1,
                 self.segment_of(2 * k), at[2 * k], at[2 * k], at[2 * k], at[2 * k])
                for k, one in enumerate(self.turns)
            ],
        )  # fmt: skip
        await connection.copy_records_to_table(
            "messages",
            columns=["id", "user_id", "turn_id", "turn_seq", "attempt", "position", "role",
                     "content", "created_at"],
            records=[
                (self.messages[n], user, self.turns[n // 2], self.seqs[n], n % 2, n % 2,
                 _role(n), encode_blocks((Text(text=text),)), at[n])
                for n, text in enumerate(self.texts)
            ],
        )  # fmt: skip
        await connection.execute(
            "update conversations set next_seq = $2 + 1, indexed_seq = $2, encoded_seq = $2 "
            "where user_id = $1",
            user, self.seqs[-1],
        )  # fmt: skip

    def _title(self, n: int) -> str:
        return " ".join(self.texts[n].split()[:6])


def _role(n: int) -> str:
    return "assistant" if n % 2 else "user"


async def _index(connection: Connection, user: UUID, batch: Batch, said: _Conversation) -> None:
    docs, count = said.docs, len(batch.texts)
    await connection.copy_records_to_table(
        "passages",
        columns=["user_id", "doc", "message_id", "segment_id", "turn_seq", "role", "said_at",
                 "length", "asks", "timed", "counted"],
        records=[
            (user, docs[n], said.messages[n], said.segment_of(n), said.seqs[n], _role(n),
             said.at[n], batch.terms[n].total(), n % 7 == 0, n % 5 == 0, n % 4 == 0)
            for n in range(count)
        ],
    )  # fmt: skip
    rows = sorted(
        (term, docs[n], tf, found.total())
        for n, found in enumerate(batch.terms)
        for term, tf in found.items()
    )
    await connection.copy_records_to_table(
        "postings", records=[(user, int(Source.PASSAGES), *row) for row in rows]
    )
    held = Counter(term for found in batch.terms for term in found)
    await connection.copy_records_to_table(
        "term_counts",
        records=[(user, int(Source.PASSAGES), term, n) for term, n in sorted(held.items())],
    )
    await connection.execute(
        "insert into corpora values ($1, 2, $2, $3, $4)",
        user, count, sum(found.total() for found in batch.terms), docs[-1] + 1,
    )  # fmt: skip


async def _vectors(
    connection: Connection, user: UUID, space: int, batch: Batch, said: _Conversation
) -> None:
    """Each message has two: of itself with what is around it (unit 0), and of itself (1)."""
    own = batch.vectors
    around = own + 0.5 * np.roll(own, 1, 0) + 0.5 * np.roll(own, -1, 0)
    around /= np.linalg.norm(around, axis=1, keepdims=True)
    for unit, vectors in enumerate((around.astype(np.float32), own)):
        await connection.copy_to_table(
            "vectors_384",
            source=BytesIO(vector_rows(user, Source.PASSAGES, space, said.docs, unit, vectors)),
            format="binary",
        )
        await _signatures(connection, user, space, said.docs, unit, vectors)


async def _signatures(
    connection: Connection, user: UUID, space: int, docs: list[int], unit: int, vectors: Floats
) -> None:
    signs = np.zeros((-(-(docs[-1] + 1) // _MANY) * _MANY, vectors.shape[1] // 8), np.uint8)
    signs[docs] = np.packbits(vectors > 0, axis=1)
    first = signatures.number(0, unit) // _MANY
    await connection.copy_records_to_table(
        "signatures",
        records=[
            (user, int(Source.PASSAGES), space, first + block,
             signs[block * _MANY : (block + 1) * _MANY].tobytes())
            for block in range(len(signs) // _MANY)
        ],
    )  # fmt: skip
