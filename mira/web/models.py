"""What the HTTP surface is asked and what it answers: one Struct for each, and nothing else.

Unknown fields of a request are ignored, so that a newer client can talk to an older server; a
field that is known is checked strictly.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec

from mira.messages.content import Block, Role, ToolResult, plain_text
from mira.messages.stream import MemoriesUsed
from mira.messages.turn import Timings, TurnState, Usage
from mira.messages.wire import PendingAction
from mira.store.files import File
from mira.store.history import HistoryMessage
from mira.store.keys import KeyRecord, Scope
from mira.store.operation import DeadLetter
from mira.store.turns import TurnRecord
from mira.web.summary_health import SummaryHealth

Limit = Annotated[int, msgspec.Meta(ge=1, le=200)]
Cursor = Annotated[str, msgspec.Meta(max_length=200)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class _Model(msgspec.Struct, frozen=True, kw_only=True):
    pass


# Asked.


class Paging(_Model, frozen=True, kw_only=True):
    """`cursor` is the `next_cursor` of the page before; without it the newest come first."""

    limit: Limit = 50
    cursor: Cursor | None = None


class MessagesQuery(Paging, frozen=True, kw_only=True):
    """Messages of a segment, or of a stretch of time (`from` included, `to` not), or both; without
    any of them all there are."""

    since: Moment | None = msgspec.field(default=None, name="from")
    until: Moment | None = msgspec.field(default=None, name="to")
    segment_id: UUID | None = None


class ResultQuery(_Model, frozen=True, kw_only=True):
    """At most `limit` characters from `offset` on."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=200_000)] = 100_000


class EventsQuery(_Model, frozen=True, kw_only=True):
    """Events with a number above `after`; the header Last-Event-ID says the same."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None
    include_thinking: bool = False


class ChatRequest(_Model, frozen=True, kw_only=True):
    """One message. The same `request_id` again is the same turn; without one each is new.

    `stream` asks for server-sent events instead of one answer. `attachments` are ids of files that
    were uploaded before; with them a message may be without words.
    """

    message: Annotated[str, msgspec.Meta(max_length=100_000)] = ""
    request_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None
    attachments: Annotated[tuple[UUID, ...], msgspec.Meta(max_length=10)] = ()
    include_thinking: bool = False
    stream: bool = False


class KeyRequest(_Model, frozen=True, kw_only=True):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    scope: Scope = "chat"


class SecretValue(_Model, frozen=True, kw_only=True):
    value: str


class ActionAnswer(_Model, frozen=True, kw_only=True):
    allow: bool


class SessionRequest(_Model, frozen=True, kw_only=True):
    key: Annotated[str, msgspec.Meta(max_length=200)]


# Answered.


class ChatReply(_Model, frozen=True, kw_only=True):
    """A finished turn. `thinking` only where it was asked for."""

    turn_id: UUID
    request_id: str
    reply: str
    usage: Usage
    memories: MemoriesUsed
    tools_used: tuple[str, ...]
    timings: Timings
    thinking: str | None = None


class ChatAccepted(_Model, frozen=True, kw_only=True, tag_field="type", tag="accepted"):
    """First event of a streamed answer: the message is stored."""

    turn_id: UUID
    request_id: str
    duplicate: bool


class FileInfo(_Model, frozen=True, kw_only=True):
    """A file. `width` and `height` are those of an image as models are shown it; `characters` is
    how many there are of the words of a document, of which there were more if `cut`. `notes` say
    what a person should know of how it was read."""

    id: UUID
    name: str
    kind: Literal["image", "document"]
    media_type: str
    size: int
    width: int | None
    height: int | None
    pages: int | None
    characters: int
    cut: bool
    notes: tuple[str, ...]
    created_at: datetime
    #: The first turn that it was given with.
    turn_id: UUID | None

    @classmethod
    def of(cls, file: File) -> FileInfo:
        return cls(**msgspec.structs.asdict(file))


class TurnFailure(_Model, frozen=True, kw_only=True):
    code: str
    detail: str


class Turn(_Model, frozen=True, kw_only=True):
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
    provider: str | None
    model: str | None
    usage: Usage | None
    timings: Timings | None
    error: TurnFailure | None

    @classmethod
    def of(cls, record: TurnRecord) -> Turn:
        return cls(**_turn_fields(record))


class Message(_Model, frozen=True, kw_only=True):
    """A message of the history. `text` is the words of its blocks; `request_id` is what its turn
    was asked under, by which a client knows its own message again."""

    id: UUID
    turn_id: UUID
    request_id: str
    turn_seq: int
    position: int
    role: Role
    text: str
    blocks: tuple[Block, ...]
    state: str
    created_at: datetime

    @classmethod
    def of(cls, record: HistoryMessage) -> Message:
        return cls(**msgspec.structs.asdict(record), text=plain_text(record.blocks))


class ToolResultPart(_Model, frozen=True, kw_only=True):
    """What a tool answered, or a part of it, however little of it prompts show. `characters` is how
    many there are in all; the next part begins at `next_offset`, null after the last."""

    call_id: str
    is_error: bool
    text: str
    characters: int
    next_offset: int | None

    @classmethod
    def of(cls, result: ToolResult, offset: int, limit: int) -> ToolResultPart:
        end, characters = offset + limit, len(result.text)
        return cls(
            call_id=result.call_id,
            is_error=result.is_error,
            text=result.text[offset:end],
            characters=characters,
            next_offset=end if end < characters else None,
        )


class TurnDetail(Turn, frozen=True, kw_only=True):
    """A turn with its messages. `partial` is what had been written of an answer when last noted."""

    messages: tuple[Message, ...]
    partial: str

    @classmethod
    def with_messages(cls, record: TurnRecord, messages: list[HistoryMessage]) -> TurnDetail:
        return cls(
            **_turn_fields(record),
            messages=tuple(Message.of(m) for m in messages),
            partial="" if record.state is TurnState.COMPLETE else record.checkpoint_text,
        )


class TurnPage(_Model, frozen=True, kw_only=True):
    turns: tuple[Turn, ...]
    next_cursor: str | None


class MessagePage(_Model, frozen=True, kw_only=True):
    messages: tuple[Message, ...]
    next_cursor: str | None


class TurnStanding(_Model, frozen=True, kw_only=True):
    """Where a turn stands after a command."""

    turn_id: UUID
    state: TurnState


class ConversationView(_Model, frozen=True, kw_only=True):
    """The one conversation of a user, and how many days they have spoken in it."""

    id: UUID
    created_at: datetime
    use_days: int
    last_use_date: date | None


class Key(_Model, frozen=True, kw_only=True):
    """A key as it may be shown: never the key itself."""

    id: UUID
    name: str
    scope: Scope
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None

    @classmethod
    def of(cls, record: KeyRecord) -> Key:
        return cls(**msgspec.structs.asdict(record))


class KeyList(_Model, frozen=True, kw_only=True):
    keys: tuple[Key, ...]


class CreatedKey(_Model, frozen=True, kw_only=True):
    """The only answer in which a key is shown."""

    id: UUID
    key: str
    name: str
    scope: Scope


class ActionList(_Model, frozen=True, kw_only=True):
    """Calls that wait for the user's word."""

    actions: tuple[PendingAction, ...]


class ActionDecision(_Model, frozen=True, kw_only=True):
    action_id: UUID
    allow: bool


class Letter(_Model, frozen=True, kw_only=True):
    """A durable message that was given up. `payload` is JSON text; it holds ids, never words."""

    id: int
    user_id: UUID | None
    kind: str
    address: str
    lane: str
    payload: str
    attempts: int
    error: str
    created_at: datetime
    buried_at: datetime
    replayed_at: datetime | None

    @classmethod
    def of(cls, record: DeadLetter) -> Letter:
        return cls(**msgspec.structs.asdict(record))


class LetterPage(_Model, frozen=True, kw_only=True):
    dead_letters: tuple[Letter, ...]
    next_cursor: str | None


class SecretList(_Model, frozen=True, kw_only=True):
    """Names only; no answer ever holds a value."""

    secrets: tuple[str, ...]


class SessionView(_Model, frozen=True, kw_only=True):
    """Who is asking. `source` is key, session or local; `expires_at` stands when one was opened."""

    user_id: UUID
    scope: Scope
    source: str
    expires_at: datetime | None = None


class SigninLink(_Model, frozen=True, kw_only=True):
    """An address that signs a browser in, once, until `expires_at`."""

    url: str
    expires_at: datetime


class Live(_Model, frozen=True, kw_only=True):
    status: str


class Component(_Model, frozen=True, kw_only=True):
    """`status` is ok or down."""

    name: str
    status: str
    critical: bool
    latency_ms: float
    detail: str


class Readiness(_Model, frozen=True, kw_only=True):
    """`status` is ok, degraded (something is down that can be done without) or down."""

    status: str
    components: tuple[Component, ...]


class ModelView(_Model, frozen=True, kw_only=True):
    purpose: str
    model: str
    note: str


class Status(_Model, frozen=True, kw_only=True):
    """What `mira doctor` shows. `summaries` are those of whoever asks."""

    status: str
    version: str
    python: str
    uptime_seconds: float
    components: tuple[Component, ...]
    models: tuple[ModelView, ...]
    engine: dict[str, float]
    connections: int
    work_pending: int
    work_due: int
    dead_letters: int
    summaries: SummaryHealth


def _turn_fields(record: TurnRecord) -> dict[str, Any]:
    names = (f.name for f in msgspec.structs.fields(Turn) if f.name != "error")
    failure = (
        TurnFailure(code=record.error_code, detail=record.error_detail or "")
        if record.error_code
        else None
    )
    return {**{name: getattr(record, name) for name in names}, "error": failure}
