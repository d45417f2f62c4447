"""Frames of the WebSocket, and the one union in which durable messages are written down."""

from __future__ import annotations

from uuid import UUID

import msgspec

from mira.messages import indexing, memory, segment, stream, turn
from mira.messages.base import Message
from mira.messages.content import Attached

# Frames from the client.


class _Frame(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    pass


class Auth(_Frame, frozen=True, kw_only=True, tag="auth"):
    key: str


class Send(_Frame, frozen=True, kw_only=True, tag="message"):
    request_id: str
    content: str
    #: Ids of files that were uploaded before.
    attachments: tuple[UUID, ...] = ()
    include_thinking: bool = False


class Cancel(_Frame, frozen=True, kw_only=True, tag="cancel"):
    turn_id: UUID


class Retry(_Frame, frozen=True, kw_only=True, tag="retry"):
    turn_id: UUID


class Resume(_Frame, frozen=True, kw_only=True, tag="resume"):
    turn_id: UUID
    after: int = 0


class Confirm(_Frame, frozen=True, kw_only=True, tag="confirm"):
    action_id: UUID
    allow: bool


class Ack(_Frame, frozen=True, kw_only=True, tag="ack"):
    id: UUID


class Ping(_Frame, frozen=True, kw_only=True, tag="ping"):
    pass


ClientFrame = Auth | Send | Cancel | Retry | Resume | Confirm | Ack | Ping

# Frames to the client, beside the numbered events of a turn.


class QueuedTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that is running or waiting. `state` is as in TurnState."""

    turn_id: UUID
    request_id: str
    content: str
    state: str
    attachments: tuple[Attached, ...] = ()


class PendingAction(msgspec.Struct, frozen=True, kw_only=True):
    action_id: UUID
    tool: str
    call: str
    expires: str


class Ready(_Frame, frozen=True, kw_only=True, tag="ready"):
    """First frame after authentication. Notifications come with reminders, empty until then."""

    user_id: UUID
    active_turn: QueuedTurn | None
    queued: tuple[QueuedTurn, ...]
    confirmations: tuple[PendingAction, ...] = ()
    notifications: tuple[msgspec.Raw, ...] = ()


class TurnBegun(_Frame, frozen=True, kw_only=True, tag="turn"):
    """A turn of this user that another device began, or that has changed its state."""

    turn_id: UUID
    content: str
    state: str
    attachments: tuple[Attached, ...] = ()


class Accepted(_Frame, frozen=True, kw_only=True, tag="accepted"):
    """The message is stored. `duplicate` means that this request_id was accepted before."""

    turn_id: UUID
    request_id: str
    duplicate: bool = False


class AskConfirm(_Frame, frozen=True, kw_only=True, tag="confirm"):
    action_id: UUID
    tool: str
    call: str
    expires: str


class FrameError(_Frame, frozen=True, kw_only=True, tag="error"):
    """A frame was not accepted. The connection stays unless it says otherwise by closing."""

    code: str
    detail: str
    request_id: str | None = None
    turn_id: UUID | None = None
    retry_after: float | None = None


class Pong(_Frame, frozen=True, kw_only=True, tag="pong"):
    pass


class Shutdown(_Frame, frozen=True, kw_only=True, tag="shutdown"):
    """The server is stopping; connect again after `reconnect_after` seconds."""

    reconnect_after: float


ServerFrame = Ready | TurnBegun | Accepted | AskConfirm | FrameError | Pong | Shutdown

_frames = msgspec.json.Decoder(ClientFrame)
_encoder = msgspec.json.Encoder()


def decode_frame(raw: str | bytes) -> ClientFrame:
    """Read a client's frame. Raises msgspec.DecodeError or ValidationError (its subclass)."""
    return _frames.decode(raw)


def encode(value: ServerFrame | stream.AnyTurnEvent) -> bytes:
    """JSON bytes of one frame to a client."""
    return _encoder.encode(value)


#: Every message that may be written to the outbox: payloads hold ids, never text.
Durable = (
    turn.TakeTurns
    | turn.SettleAction
    | segment.SegmentDue
    | segment.SummaryMade
    | segment.BriefMade
    | segment.MemoriesMade
    | indexing.IndexHistory
    | memory.ExtractSegment
    | memory.PollBatch
    | memory.SummariseSegment
    | memory.RecheckDrift
    | memory.CompressSegment
    | memory.LinkMemories
    | memory.CountUse
    | memory.RollOverUseDay
    | memory.RefreshDated
    | memory.Consolidate
    | memory.ReviewFloor
    | memory.MergeEntities
    | memory.Reembed
)
_durable = msgspec.json.Decoder(Durable)
_events = msgspec.json.Decoder(stream.AnyTurnEvent)


def encode_durable(message: Message) -> str:
    """JSON text of a durable message. Raises TypeError if its kind is not listed in Durable."""
    if not isinstance(message, Durable):
        raise TypeError(f"{type(message).__name__} is not listed as durable")
    return _encoder.encode(message).decode()


def decode_durable(raw: str | bytes) -> Message:
    """Read what `encode_durable` wrote. Raises msgspec.ValidationError on anything else."""
    return _durable.decode(raw)


def decode_event(raw: str | bytes) -> stream.AnyTurnEvent:
    """Read a turn event back from its copy."""
    return _events.decode(raw)
