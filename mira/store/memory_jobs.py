"""Work on memories that is due every so many use-days, and what such work leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

import msgspec

from mira.messages.base import Address
from mira.store.database import Tx


class Job(StrEnum):
    ROLL_OVER = "roll_over"
    CONSOLIDATION = "consolidation"
    FLOOR_REVIEW = "floor_review"
    ENTITY_MERGE = "entity_merge"
    #: No work, but the day on which links could not be found, however often it was tried.
    LINKS_FAILED = "links_failed"


#: Due after so many use-days.
EVERY = {
    Job.ROLL_OVER: 1,
    Job.CONSOLIDATION: 7,
    Job.FLOOR_REVIEW: 7,
    Job.ENTITY_MERGE: 7,
    Job.LINKS_FAILED: 1,
}


class LastRun(msgspec.Struct, frozen=True, kw_only=True):
    """When a job was last done; use-day 0 and no time if never."""

    use_day: int = 0
    at: datetime | None = None

    def due(self, job: Job, use_days: int) -> bool:
        """Whether enough use-days have passed, however many more."""
        return use_days - self.use_day >= EVERY[job]


async def last_run(tx: Tx, user_id: UUID, job: Job) -> LastRun:
    row = await tx.row(
        "select last_run_use_day, last_run_at from memory_jobs where user_id = $1 and job = $2",
        user_id, job.value,
    )  # fmt: skip
    return LastRun(use_day=row["last_run_use_day"], at=row["last_run_at"]) if row else LastRun()


async def ran(tx: Tx, user_id: UUID, job: Job, use_day: int, now: datetime) -> None:
    """A job was done; in the transaction of its effect."""
    await tx.execute(
        "insert into memory_jobs (user_id, job, last_run_use_day, last_run_at) "
        "values ($1, $2, $3, $4) on conflict (user_id, job) do update "
        "set last_run_use_day = greatest(memory_jobs.last_run_use_day, excluded.last_run_use_day), "
        "last_run_at = excluded.last_run_at",
        user_id, job.value, use_day, now,
    )  # fmt: skip


async def refusals(tx: Tx, user_id: UUID) -> dict[frozenset[UUID], int]:
    """Sets of memories whose merging was refused, and how often."""
    rows = await tx.fetch(
        "select members, refusals from refused_merges where user_id = $1", user_id
    )
    return {frozenset(row["members"]): row["refusals"] for row in rows}


async def refuse(tx: Tx, user_id: UUID, sets: Sequence[frozenset[UUID]], now: datetime) -> None:
    """The merging of these sets was refused once more."""
    await tx.many(
        "insert into refused_merges as r (user_id, members, last_at) values ($1, $2, $3) "
        "on conflict (user_id, members) do update set refusals = r.refusals + 1, last_at = $3",
        [(user_id, sorted(members), now) for members in sets],
    )


async def waiting_in(tx: Tx, to: Address, keys: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Those of these (lane, key) for which a durable message to this address is undone."""
    rows = await tx.fetch(
        "select lane, key from outbox where kind = $1 and address = $2 "
        "and (lane, key) in (select * from unnest($3::text[], $4::text[]))",
        to.kind, to.key, [lane for lane, _ in keys], [key for _, key in keys],
    )  # fmt: skip
    return {(row["lane"], row["key"]) for row in rows}


async def has_dated(tx: Tx, user_id: UUID, now: datetime) -> bool:
    """Whether the calendar alone will change a score of this user's within a month."""
    found: bool = await tx.value(
        "select exists (select from memories where user_id = $1 and status = 'active' and "
        "(happens_at between $2 and $3 or expires_at between $2 and $3))",
        user_id, now - timedelta(days=7), now + timedelta(days=60),
    )  # fmt: skip
    return found
