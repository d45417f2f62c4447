"""What a search reads before anything else, in one statement: a round trip costs more than most of
these rows."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import asyncpg
import msgspec

from mira.store import spaces
from mira.store.database import Tx
from mira.store.passages import Names
from mira.store.postings import Corpus
from mira.store.spaces import Source, Spaces


class OfMemories(msgspec.Struct, frozen=True, kw_only=True):
    """What the search over memories begins with."""

    #: None as long as nothing has a vector.
    spaces: Spaces | None
    corpus: Corpus
    use_days: int
    #: The numbers of those that are not to be found.
    without: list[int]


class OfPassages(msgspec.Struct, frozen=True, kw_only=True):
    """What the search over the history begins with."""

    spaces: Spaces | None
    corpus: Corpus
    names: Names
    #: As above.
    without: list[int]


_WITH_SPACES = (
    f"(select $1::uuid as id) me left join ({spaces.TABLES}) on s.user_id = me.id "
    "left join corpora c on c.user_id = me.id and c.source = $2"
)


async def of_memories(tx: Tx, user_id: UUID, exclude: Sequence[UUID]) -> OfMemories:
    """`exclude`: memories that are not to be found; unknown ones are left out."""
    row = await tx.row(
        f"select {spaces.COLUMNS}, c.documents, c.length, v.use_days, "  # noqa: S608
        "  array(select doc from memories where user_id = $1 and id = any($3)) as without "
        f"from {_WITH_SPACES} left join conversations v on v.user_id = me.id",
        user_id, Source.MEMORIES, list(exclude),
    )  # fmt: skip
    assert row is not None
    return OfMemories(
        spaces=spaces.of_row(row), corpus=_corpus(row), use_days=row["use_days"] or 0,
        without=row["without"],
    )  # fmt: skip


async def of_passages(tx: Tx, user_id: UUID, exclude: Sequence[UUID]) -> OfPassages:
    """`exclude`: messages that are not to be found; those that are not indexed are left out."""
    row = await tx.row(
        f"select {spaces.COLUMNS}, c.documents, c.length, "  # noqa: S608
        "  coalesce(u.display_name, u.name) as called, u.assistant_name, u.timezone, "
        "  array(select doc from passages where user_id = $1 and message_id = any($3)) as without "
        f"from {_WITH_SPACES} join users u on u.id = me.id",
        user_id, Source.PASSAGES, list(exclude),
    )  # fmt: skip
    assert row is not None
    return OfPassages(
        spaces=spaces.of_row(row), corpus=_corpus(row), without=row["without"],
        names=Names(
            user=row["called"], assistant=row["assistant_name"], timezone=row["timezone"]
        ),
    )  # fmt: skip


def _corpus(row: asyncpg.Record) -> Corpus:
    return Corpus(row["documents"] or 0, row["length"] or 0)
