"""Turns: accepted, taken, checkpointed, closed, settled; and what is waiting.

Every function works in the caller's transaction of the turn's user. The steps themselves are
functions of the database (schema/functions/turns.sql); those that take a Caller can be a
transaction of their own (Database.step).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mira.errors import Conflict, NotFound, RateLimited, StaleEpoch, ValidationFailed
from mira.messages.content import (
    Attached,
    Block,
    Role,
    attached_in,
    decode_blocks,
    encode_blocks,
)
from mira.messages.turn import TakeTurns, Timings, TurnState, Usage
from mira.messages.wire import encode_durable
from mira.store.database import Caller, Tx

#: Lane and key of a door's wake-up (as written by wake_door).
WAKE_LANE = "turns"


class AcceptedTurn(msgspec.Struct, frozen=True, kw_only=True):
    turn_id: UUID
    seq: int
    state: TurnState
    duplicate: bool
    #: The wake-up's row in the outbox; None for a duplicate.
    wake: tuple[int, int] | None
    #: The files that go with it, of a message just accepted.
    attached: tuple[Attached, ...] = ()


class Fence(msgspec.Struct, frozen=True, kw_only=True):
    """Who may write to a conversation: this activation of this server."""

    epoch: int
    generation: int


class TakenTurn(msgspec.Struct, frozen=True, kw_only=True):
    turn_id: UUID
    seq: int
    attempt: int
    origin: str
    request_id: str
    accepted_at: datetime
    use_day: int | None
    #: The user's message; None and () where the server began the turn.
    message_id: UUID | None
    blocks: tuple[Block, ...]
    segment_id: UUID
    segment_opened: bool


class SkippedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """It was cancelled while it waited, and is final."""

    turn_id: UUID
    seq: int
    attempt: int


class NewMessage(msgspec.Struct, frozen=True, kw_only=True, rename={"blocks": "content"}):
    """A message to be stored; written as the columns are named."""

    id: UUID
    position: int
    role: Role
    blocks: tuple[Block, ...]
    state: str = "complete"


class NewCall(msgspec.Struct, frozen=True, kw_only=True):
    """A physical call of a provider, for the books; see model_calls."""

    id: UUID
    purpose: str
    provider: str
    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reported: bool
    first_event_ms: float | None
    total_ms: float
    error: str | None


class Closing(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn ends, with all that is written with it."""

    turn_id: UUID
    attempt: int
    state: TurnState
    messages: tuple[NewMessage, ...] = ()
    calls: tuple[NewCall, ...] = ()
    provider: str | None = None
    model: str | None = None
    usage: Usage | None = None
    timings: Timings | None = None
    error_code: str | None = None
    error_detail: str | None = None
    #: JSON text of the door's working state, and of how the answer came about; None: as it was.
    working: str | None = None
    trace: str | None = None


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """`done`: no other turn waits, and the door's wake-up is done. `index`: id and version of the
    indexer's wake-up in the outbox; None if the turn had been settled before."""

    done: bool
    index: tuple[int, int] | None


class TurnRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as it stands."""

    id: UUID
    seq: int
    request_id: str
    origin: str
    state: TurnState
    attempt: int
    segment_id: UUID | None
    accepted_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    settled_at: datetime | None
    cancel_requested_at: datetime | None
    checkpoint_text: str
    provider: str | None
    model: str | None
    usage: Usage | None
    timings: Timings | None
    error_code: str | None
    error_detail: str | None


async def accept(
    caller: Caller,
    user_id: UUID,
    *,
    turn_id: UUID,
    message_id: UUID,
    request_id: str,
    digest: bytes,
    blocks: tuple[Block, ...],
    at: datetime,
    limit: int,
    generation: int,
    files: Sequence[UUID] = (),
) -> AcceptedTurn:
    """Store a message with its files and its turn, or find the one that stands under this
    request_id.

    Raises ValidationFailed (one of the files is not there), Conflict (other words under it),
    RateLimited (`limit` turns wait), NotFound (no such user), StaleEpoch (another server has taken
    over).
    """
    row = await caller.call(
        "accept_turn",
        user_id, turn_id, message_id, request_id, digest, encode_blocks(blocks), list(files), at,
        limit, encode_durable(TakeTurns(at=at)), generation,
    )  # fmt: skip
    match row["outcome"]:
        case "accepted" | "duplicate" as outcome:
            fresh = outcome == "accepted"
            return AcceptedTurn(
                turn_id=row["turn"],
                seq=row["seq"],
                state=TurnState(row["state"]),
                duplicate=not fresh,
                wake=(row["outbox_id"], row["outbox_version"]) if fresh else None,
                attached=attached_in(decode_blocks(row["attached"])),
            )
        case "conflict":
            raise Conflict("This request_id was already used for another message.")
        case "files":
            what = "name a file that is not there; it may have been removed"
            raise ValidationFailed(f"Attachments {what}.", (("attachments", what),))
        case "full":
            raise RateLimited(f"{limit} messages are waiting already.", retry_after=5.0)
        case "stale":
            raise StaleEpoch("Another server has taken over this database.")
        case _:
            raise NotFound("There is no such conversation.")


async def retry(
    tx: Tx, user_id: UUID, turn_id: UUID, at: datetime, generation: int
) -> AcceptedTurn:
    """Put the newest turn back in line. Raises NotFound, Conflict with the reason, StaleEpoch."""
    row = await tx.row(
        "select * from retry_turn($1, $2, $3, $4::jsonb, $5)",
        user_id, turn_id, at, encode_durable(TakeTurns(at=at)), generation,
    )  # fmt: skip
    assert row is not None
    match row["outcome"]:
        case "accepted":
            return AcceptedTurn(
                turn_id=turn_id,
                seq=row["seq"],
                state=TurnState.RECEIVED,
                duplicate=False,
                wake=(row["outbox_id"], row["outbox_version"]),
            )
        case "missing":
            raise NotFound("There is no such turn.")
        case "stale":
            raise StaleEpoch("Another server has taken over this database.")
        case _:
            raise Conflict(f"This turn cannot be tried again: {row['reason']}.")


async def request_cancel(tx: Tx, user_id: UUID, turn_id: UUID, at: datetime) -> TurnState:
    """Note that the user wants it stopped; return where it stands. Raises NotFound."""
    state = await tx.value("select request_cancel($1, $2, $3)", user_id, turn_id, at)
    if state is None:
        raise NotFound("There is no such turn.")
    return TurnState(state)


async def activate(tx: Tx, user_id: UUID, generation: int) -> Fence:
    """Take the conversation over from any earlier activation. Raises StaleEpoch."""
    epoch = await tx.value("select activate_conversation($1, $2)", user_id, generation)
    if epoch is None:
        raise StaleEpoch("Another server has taken over this database.")
    return Fence(epoch=epoch, generation=generation)


async def take(
    caller: Caller, user_id: UUID, fence: Fence, new_segment: UUID, at: datetime, idle: float
) -> TakenTurn | SkippedTurn | None:
    """The next waiting turn, running from now; None if none waits. `idle`: seconds of silence that
    end a segment, whose timer begins with its first turn. Raises StaleEpoch."""
    row = await caller.call(
        "take_turn", user_id, fence.epoch, fence.generation, new_segment, at, idle
    )
    match row["outcome"]:
        case "none":
            return None
        case "stale":
            raise StaleEpoch("Another activation has taken over this conversation.")
        case "cancelled":
            return SkippedTurn(turn_id=row["turn"], seq=row["seq"], attempt=row["attempt"])
    return TakenTurn(
        turn_id=row["turn"],
        seq=row["seq"],
        attempt=row["attempt"],
        origin=row["origin"],
        request_id=row["request_id"],
        accepted_at=row["accepted_at"],
        use_day=row["use_day"],
        message_id=row["message"],
        blocks=decode_blocks(row["content"]) if row["content"] else (),
        segment_id=row["segment"],
        segment_opened=row["segment_opened"],
    )


async def close(
    caller: Caller, user_id: UUID, fence: Fence, closing: Closing, at: datetime
) -> TurnState:
    """End a running turn; the first writer wins. Returns the state in which it stands now.

    Raises StaleEpoch if another activation or server has taken over; nothing is written then.
    """
    [state] = await caller.call(
        "close_turn",
        user_id, fence.epoch, fence.generation, closing.turn_id, closing.attempt, closing.state, at,
        _json(closing.messages), _json(closing.calls), closing.provider, closing.model,
        _json(closing.usage), _json(closing.timings), closing.error_code, closing.error_detail,
        closing.working, closing.trace,
    )  # fmt: skip
    if state is None:
        raise StaleEpoch("Another activation has taken over this conversation.")
    return TurnState(state)


async def settle(caller: Caller, user_id: UUID, turn_id: UUID, at: datetime, wake: int) -> Settled:
    """The closing event was handled; the wake-up of the door is the row `wake` of the outbox."""
    row = await caller.call("settle_turn", user_id, turn_id, at, wake)
    index = (row["index_id"], row["index_version"]) if row["index_id"] else None
    return Settled(done=row["done"], index=index)


async def checkpoint(tx: Tx, user_id: UUID, turn_id: UUID, attempt: int, text: str) -> None:
    """Keep what clients may have seen of a running attempt; nothing if it has ended meanwhile."""
    await tx.execute(
        "update turns set checkpoint_attempt = $3, checkpoint_text = $4 "
        "where id = $2 and user_id = $1 and state = 'running' and attempt = $3",
        user_id, turn_id, attempt, text,
    )  # fmt: skip


async def next_attempt(tx: Tx, user_id: UUID, turn_id: UUID, fence: Fence, attempt: int) -> None:
    """What clients saw of `attempt` is void; the turn goes on as the next. Raises StaleEpoch."""
    changed = await tx.execute(
        "update turns set attempt = attempt + 1, checkpoint_text = '' "
        "where user_id = $1 and id = $2 and state = 'running' and attempt = $3 "
        "and may_write($1, $4, $5)",
        user_id, turn_id, attempt, fence.epoch, fence.generation,
    )  # fmt: skip
    if not changed:
        raise StaleEpoch("Another activation has taken over this conversation.")


async def left_running(tx: Tx, user_id: UUID) -> list[TurnRecord]:
    """Turns that an earlier activation left in the middle, oldest first."""
    rows = await tx.fetch(
        _SELECT + "where user_id = $1 and state in ('received', 'running') and state = 'running' "
        "order by seq",
        user_id,
    )
    return [_record(row) for row in rows]


async def has_checkpoint(tx: Tx, user_id: UUID, turn_id: UUID) -> bool:
    """Whether a client may have seen something of the turn's present attempt."""
    seen: bool = await tx.value(
        "select checkpoint_attempt = attempt from turns where user_id = $1 and id = $2",
        user_id, turn_id,
    )  # fmt: skip
    return seen


async def run_again(tx: Tx, user_id: UUID, turn_id: UUID) -> None:
    """Put a turn that left no trace back in line, ahead of all later ones (its seq is older)."""
    await tx.execute(
        "update turns set state = 'received' where user_id = $1 and id = $2 and state = 'running'",
        user_id, turn_id,
    )  # fmt: skip


async def unsettled(tx: Tx, user_id: UUID) -> list[TurnRecord]:
    """Turns that have ended, but whose closing event was not handled to the end; oldest first."""
    rows = await tx.fetch(
        _SELECT + "where user_id = $1 and settled_at is null "
        "and state in ('complete', 'cancelled', 'interrupted', 'failed') order by seq",
        user_id,
    )
    return [_record(row) for row in rows]


async def get(tx: Tx, user_id: UUID, turn_id: UUID) -> TurnRecord:
    """Raises NotFound."""
    row = await tx.row(_SELECT + "where user_id = $1 and id = $2", user_id, turn_id)
    if row is None:
        raise NotFound("There is no such turn.")
    return _record(row)


async def page(tx: Tx, user_id: UUID, *, before: int | None, limit: int) -> list[TurnRecord]:
    """At most `limit` turns with seq < `before`, newest first."""
    rows = await tx.fetch(
        _SELECT + "where user_id = $1 and seq < coalesce($2, 9223372036854775807) "
        "order by seq desc limit $3",
        user_id, before, limit,
    )  # fmt: skip
    return [_record(row) for row in rows]


_SELECT = """
select id, seq, request_id, origin, state, attempt, segment_id, accepted_at, started_at,
  finished_at, settled_at, cancel_requested_at, checkpoint_text, provider, model,
  usage::text, timings::text, error_code, error_detail
from turns
"""


def _record(row: object) -> TurnRecord:
    fields = dict(row)  # type: ignore[call-overload]
    for name, kind in (("usage", Usage), ("timings", Timings)):
        fields[name] = msgspec.json.decode(fields[name], type=kind) if fields[name] else None
    fields["state"] = TurnState(fields["state"])
    return TurnRecord(**fields)


def _json(value: Sequence[object] | msgspec.Struct | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
