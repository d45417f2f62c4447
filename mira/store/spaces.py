"""Embedding spaces: which models' vectors a user has, and where they lie.

A user's searches use the vectors of one model alone (`active`). While they are being moved to
another (`next`), what is written gets vectors in both; the switch is one update.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import IntEnum
from uuid import UUID

import asyncpg
import msgspec

from mira.errors import ValidationFailed
from mira.store.database import Tx

#: Dimensions for which there is a table.
DIMENSIONS = (384, 768, 1024)


class Source(IntEnum):
    """The two things that are searched."""

    MEMORIES = 1
    PASSAGES = 2


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """The vectors of one model."""

    id: int
    model: str
    dimension: int

    @property
    def table(self) -> str:
        return f"vectors_{self.dimension}"


class Spaces(msgspec.Struct, frozen=True, kw_only=True):
    """Those of one user."""

    active: Space
    next: Space | None = None

    @property
    def all(self) -> tuple[Space, ...]:
        return (self.active,) if self.next is None else (self.active, self.next)


async def register(tx: Tx, model: str, dimension: int, now: datetime) -> Space:
    """The space of a model; made if absent.

    Raises ValidationFailed for a dimension without a table, or for a model that is known with
    another one.
    """
    if dimension not in DIMENSIONS:
        raise ValidationFailed(f"Embeddings of {dimension} dimensions cannot be stored.")
    await tx.execute(
        "insert into embedding_models (name, dimension, created_at) select $1, $2, $3 "
        "where not exists (select from embedding_models where name = $1) on conflict do nothing",
        model, dimension, now,
    )  # fmt: skip
    row = await tx.row("select id, dimension from embedding_models where name = $1", model)
    assert row is not None
    if row["dimension"] != dimension:
        raise ValidationFailed(f"{model} was known with {row['dimension']} dimensions.")
    return Space(id=row["id"], model=model, dimension=dimension)


async def find(tx: Tx, user_id: UUID) -> Spaces | None:
    """The user's spaces; None as long as nothing of theirs has a vector."""
    row = await tx.row(f"select {COLUMNS} from {TABLES} where s.user_id = $1", user_id)  # noqa: S608
    return None if row is None else of_row(row)


#: What `of_row` reads, for statements that read it together with something else.
COLUMNS = (
    "a.id, a.name, a.dimension, n.id as next_id, n.name as next_name, n.dimension as next_dimension"
)
TABLES = (
    "embedding_spaces s join embedding_models a on a.id = s.active "
    "left join embedding_models n on n.id = s.next"
)


def of_row(row: asyncpg.Record) -> Spaces | None:
    """The spaces in a row that has COLUMNS; None if they are null."""
    if row["id"] is None:
        return None
    following = (
        None
        if row["next_id"] is None
        else Space(id=row["next_id"], model=row["next_name"], dimension=row["next_dimension"])
    )
    active = Space(id=row["id"], model=row["name"], dimension=row["dimension"])
    return Spaces(active=active, next=following)


async def ensure(tx: Tx, user_id: UUID, model: str, dimension: int, now: datetime) -> Spaces:
    """The user's spaces; those of who has none become `model`. Raises as `register` does."""
    found = await find(tx, user_id)
    if found is not None:
        return found
    space = await register(tx, model, dimension, now)
    await tx.execute(
        "insert into embedding_spaces (user_id, active, switched_at) values ($1, $2, $3) "
        "on conflict do nothing",
        user_id, space.id, now,
    )  # fmt: skip
    found = await find(tx, user_id)
    assert found is not None
    return found


async def known(tx: Tx) -> list[Space]:
    """Every space that there is."""
    rows = await tx.fetch("select id, name, dimension from embedding_models order by id")
    return [Space(id=row["id"], model=row["name"], dimension=row["dimension"]) for row in rows]


async def set_next(tx: Tx, user_id: UUID, space: Space | None) -> None:
    """Begin (or, with None, give up) the move to another space."""
    await tx.execute(
        "update embedding_spaces set next = $2 where user_id = $1",
        user_id, None if space is None else space.id,
    )  # fmt: skip


async def switch(tx: Tx, user_id: UUID, now: datetime) -> None:
    """The next space becomes the active one, at once."""
    await tx.execute(
        "update embedding_spaces set active = next, next = null, switched_at = $2 "
        "where user_id = $1 and next is not null",
        user_id, now,
    )  # fmt: skip


def literal(vector: Sequence[float]) -> str:
    """A vector as SQL reads it (`$1::text::halfvec`)."""
    return "[" + ",".join([f"{x:.6g}" for x in vector]) + "]"
