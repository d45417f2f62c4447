"""What the surfaces may ask of conversations: accept, follow, cancel, retry, confirm.

The one door that web, CLI and tests use. Accepting is durable before it returns; following a turn
never slows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from datetime import datetime
from uuid import UUID

import anyio
import msgspec

from mira.actors.continuum import door_of
from mira.actors.copies import EventCopies, whole_attempt
from mira.actors.endings import last_events
from mira.actors.feeds import Feed, FeedItem, Feeds
from mira.actors.parts import Stage, StageObserver
from mira.actors.runtime.system import ActorSystem
from mira.actors.summaries_again import ask_again
from mira.clock import Clock
from mira.errors import DeadlineExceeded, StaleEpoch, Unavailable, ValidationFailed
from mira.ids import Ids
from mira.messages.base import DurableRow, Message, Written
from mira.messages.content import Text, attached_in, plain_text
from mira.messages.segment import CollapseSegment, PauseSegment, ResumeSegment
from mira.messages.stream import AnyTurnEvent
from mira.messages.text import is_storable
from mira.messages.turn import CancelTurn, SettleAction, TakeTurns, TurnState
from mira.messages.wire import PendingAction, QueuedTurn, TurnBegun
from mira.store import effects, history, turns, waiting_turns
from mira.store.database import Database
from mira.store.turns import WAKE_LANE, AcceptedTurn

#: Files that may go with one message.
MAX_FILES = 10
MAX_CHARACTERS = 100_000
MAX_REQUEST_ID = 200
#: How the request_ids of turns begin that the server itself begins (see begin_follow_up).
OWN_REQUESTS = "action:"
#: Seconds for which the user's word on a segment waits for the turn that runs.
STEER_WITHIN = 20.0
#: Lane in which decisions on pending actions reach the door.
ACTIONS_LANE = "actions"


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """The message is stored. `duplicate`: under this request_id it was before."""

    turn_id: UUID
    request_id: str
    seq: int
    state: TurnState
    duplicate: bool


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is going on in a conversation now."""

    active: QueuedTurn | None
    queued: tuple[QueuedTurn, ...]
    confirmations: tuple[PendingAction, ...]


class Conversations:
    """All conversations of this server."""

    def __init__(
        self,
        *,
        system: ActorSystem,
        database: Database,
        clock: Clock,
        ids: Ids,
        feeds: Feeds,
        copies: EventCopies,
        generation: int,
        waiting_turns: int,
        reached: StageObserver,
    ) -> None:
        self._system = system
        self._database = database
        self._clock = clock
        self._ids = ids
        self._feeds = feeds
        self._copies = copies
        self._generation = generation
        self._waiting_turns = waiting_turns
        self._reached = reached

    async def accept(
        self,
        user_id: UUID,
        *,
        request_id: str,
        content: str,
        attachments: Sequence[UUID] = (),
        source: str = "",
    ) -> Receipt:
        """Store a message with its files, by their ids; it will be answered, whatever happens to
        this process. With files it may be without words.

        `source` names the connection that sends it: its own feed is not told of it. Raises
        ValidationFailed naming the field; Conflict when the request_id stands for other words;
        RateLimited when too many turns wait; Unavailable when it cannot be stored.
        """
        check_message(request_id, content, attachments)
        now = self._clock.now()
        # Shielded: a message that is stored is also handed on, though its sender leaves.
        with _replaced_is_unavailable(), anyio.CancelScope(shield=True):
            accepted = await turns.accept(
                self._database.step,
                user_id,
                turn_id=self._ids.new(),
                message_id=self._ids.new(),
                request_id=request_id,
                digest=_digest(content, attachments),
                blocks=(Text(text=content),) if content else (),
                files=attachments,
                at=now,
                limit=self._waiting_turns,
                generation=self._generation,
            )
            self._wake(user_id, accepted, now)
        if not accepted.duplicate:
            self._reached(Stage.ACCEPTED, accepted.turn_id)
            self._tell_others(user_id, accepted, content, source)
        return Receipt(
            turn_id=accepted.turn_id,
            request_id=request_id,
            seq=accepted.seq,
            state=accepted.state,
            duplicate=accepted.duplicate,
        )

    def _wake(self, user_id: UUID, accepted: AcceptedTurn, now: datetime) -> None:
        """Hand the door its wake-up. After the commit only."""
        if accepted.wake is None:
            return
        row_id, version = accepted.wake
        row = DurableRow(
            id=row_id, version=version, to=door_of(user_id), lane=WAKE_LANE, key=WAKE_LANE,
            message=TakeTurns(at=now), attempts=0, due_at=now,
        )  # fmt: skip
        # The lane has this one row, so it is always the head.
        self._system.durable_written(Written(row=row, head=True))

    def _tell_others(
        self, user_id: UUID, accepted: AcceptedTurn, content: str, source: str
    ) -> None:
        begun = TurnBegun(
            turn_id=accepted.turn_id, content=content, state=TurnState.RECEIVED,
            attachments=accepted.attached,
        )  # fmt: skip
        self._feeds.of(user_id).append(begun, source)

    async def cancel(self, user_id: UUID, turn_id: UUID) -> TurnState:
        """Stop a turn, running or waiting; a final one stays as it is. Returns where it stood.

        Raises NotFound.
        """
        async with self._database.user(user_id) as tx:
            state = await turns.request_cancel(tx, user_id, turn_id, self._clock.now())
        if not state.final:
            self._system.control(door_of(user_id), CancelTurn(turn_id=turn_id))
        return state

    async def retry(self, user_id: UUID, turn_id: UUID, *, source: str = "") -> Receipt:
        """Try the newest turn again that has ended without an answer.

        Raises NotFound, Conflict, Unavailable.
        """
        now = self._clock.now()
        async with self._database.user(user_id) as tx:
            with _replaced_is_unavailable():
                accepted = await turns.retry(tx, user_id, turn_id, now, self._generation)
            # Before the commit: what the new attempt says must not be taken for the old one's.
            self._feeds.of(user_id).begin_again(turn_id)
            record = await turns.get(tx, user_id, turn_id)
            said = await history.of_turn(tx, user_id, turn_id)
        self._wake(user_id, accepted, now)
        blocks = said[0].blocks if said else ()
        accepted = msgspec.structs.replace(accepted, attached=attached_in(blocks))
        self._tell_others(user_id, accepted, plain_text(blocks), source)
        return Receipt(
            turn_id=turn_id,
            request_id=record.request_id,
            seq=accepted.seq,
            state=TurnState.RECEIVED,
            duplicate=False,
        )

    async def confirm(self, user_id: UUID, action_id: UUID, allow: bool) -> None:
        """The user's word on a pending action; saying the same again changes nothing.

        Raises NotFound, Conflict (it has expired, or the other was said before).
        """
        now = self._clock.now()
        async with self._database.user(user_id) as tx:
            if await effects.decide(tx, user_id, action_id, allow, now):
                await self._system.tell_durable(
                    tx, door_of(user_id), SettleAction(action_id=action_id, at=now),
                    lane=ACTIONS_LANE, key=str(action_id),
                )  # fmt: skip

    async def pause(self, user_id: UUID) -> UUID:
        """Let no silence end the open segment until somebody speaks; returns it.

        This, `resume` and `collapse` wait for the turn that runs. They raise NotFound if no segment
        is open, and Unavailable if the conversation stays busy.
        """
        return await self._steer(user_id, PauseSegment())

    async def resume(self, user_id: UUID) -> UUID:
        """End the pause of the open segment; returns it. See `pause`."""
        return await self._steer(user_id, ResumeSegment())

    async def collapse(self, user_id: UUID) -> UUID:
        """End the open segment; returns it. Its summary and memories follow by themselves; the
        next message opens another. See `pause`."""
        return await self._steer(user_id, CollapseSegment())

    async def summarise_again(self, user_id: UUID, segment_id: UUID) -> None:
        """Try the summary of a segment that failed again now; asking twice changes nothing more.

        Raises NotFound; Conflict for a segment that is open or has its summary.
        """
        async with self._database.user(user_id) as tx:
            await ask_again(self._system, tx, user_id, segment_id)

    async def _steer(self, user_id: UUID, message: Message) -> UUID:
        with _replaced_is_unavailable():
            try:
                answer = await self._system.ask(door_of(user_id), message, timeout=STEER_WITHIN)
            except DeadlineExceeded:
                raise Unavailable(
                    "The conversation is busy with a turn. Try again when it has been answered."
                ) from None
        assert isinstance(answer, UUID)
        return answer

    async def standing(self, user_id: UUID) -> Standing:
        """The turn that runs, those that wait, and the actions that wait for the user."""
        async with self._database.user(user_id) as tx:
            waiting = await waiting_turns.read(tx, user_id)
            confirmations = await effects.confirmations(tx, user_id, self._clock.now())
        running = [t for t in waiting if t.state == TurnState.RUNNING]
        return Standing(
            active=running[0] if running else None,
            queued=tuple(t for t in waiting if t.state != TurnState.RUNNING),
            confirmations=tuple(confirmations),
        )

    @asynccontextmanager
    async def follow(
        self, user_id: UUID, turn_id: UUID, after: int = 0
    ) -> AsyncIterator[AsyncIterator[tuple[AnyTurnEvent, ...]]]:
        """The turn's events with a higher number than `after`, in order, in batches.

        Ends after the closing event. Adjacent text of one batch is merged: the event then has the
        number of the last and the offset of the first. Where events were lost a Snapshot stands
        for them. Raises NotFound.
        """
        feed = self._feeds.of(user_id)
        with _following(feed):
            # The place is taken before the database is asked, so that nothing falls between.
            live: AsyncGenerator[tuple[AnyTurnEvent, ...], None] = feed.follow(turn_id, after)
            if not feed.knows(turn_id):
                async with self._database.user(user_id) as tx:
                    record = await turns.get(tx, user_id, turn_id)
                if record.state.final and not feed.knows(turn_id):
                    live = self._past(user_id, turn_id, record.attempt, after)
            async with aclosing(live) as batches:
                yield batches

    async def _past(
        self, user_id: UUID, turn_id: UUID, attempt: int, after: int
    ) -> AsyncGenerator[tuple[AnyTurnEvent, ...], None]:
        """A turn that is over and whose feed is gone: its copy, or what the database knows."""
        copied = whole_attempt(await self._copies.read(user_id, turn_id), attempt)
        if copied:
            events = tuple(e for e in copied if e.seq > after)
        else:
            async with self._database.user(user_id) as tx:
                record = await turns.get(tx, user_id, turn_id)
                said = await history.of_turn(tx, user_id, turn_id)
            events = tuple(e for e in last_events(record, said) if e.seq > after)
        if events:
            yield events

    @asynccontextmanager
    async def feed(
        self, user_id: UUID, *, source: str = ""
    ) -> AsyncIterator[AsyncIterator[tuple[FeedItem, ...]]]:
        """Everything in this conversation from now on, and what the running turn has said so far.

        Turns begun by `source` are not announced. Never ends by itself; a reader that takes long
        between batches gets larger ones.
        """
        feed = self._feeds.of(user_id)
        with _following(feed):
            async with aclosing(feed.all(source)) as batches:
                yield batches


@contextmanager
def _replaced_is_unavailable() -> Iterator[None]:
    """To a client it is no conflict of its own making that another server has taken over."""
    try:
        yield
    except StaleEpoch as error:
        raise Unavailable(error.detail) from None


class _following:
    """Counts a follower, so that the feed is kept."""

    __slots__ = ("_feed",)

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def __enter__(self) -> None:
        self._feed.followers += 1

    def __exit__(self, *_: object) -> None:
        self._feed.followers -= 1


def _digest(content: str, attachments: Sequence[UUID]) -> bytes:
    """What tells one message from another under the same request_id."""
    # No words hold a NUL.
    return hashlib.sha256("\0".join((content, *map(str, attachments))).encode()).digest()


def check_message(request_id: str, content: str, attachments: Sequence[UUID] = ()) -> None:
    """Raise ValidationFailed, naming each field that is not acceptable."""
    wrong: list[tuple[str, str]] = []
    if not request_id or len(request_id) > MAX_REQUEST_ID or not is_storable(request_id):
        wrong.append(("request_id", f"must have 1 to {MAX_REQUEST_ID} ordinary characters"))
    elif request_id.startswith(OWN_REQUESTS):
        wrong.append(("request_id", f"must not begin with {OWN_REQUESTS}"))
    if not content.strip() and not (attachments and content == ""):
        wrong.append(("content", "must not be empty"))
    elif len(content) > MAX_CHARACTERS:
        wrong.append(("content", f"must not be longer than {MAX_CHARACTERS} characters"))
    elif not is_storable(content):
        wrong.append(("content", "must not contain NUL or lone surrogates"))
    if len(attachments) > MAX_FILES:
        wrong.append(("attachments", f"must not be more than {MAX_FILES}"))
    elif len(set(attachments)) < len(attachments):
        wrong.append(("attachments", "must not name a file twice"))
    if wrong:
        detail = "; ".join(f"{name} {what}" for name, what in wrong)
        raise ValidationFailed(detail[0].upper() + detail[1:] + ".", tuple(wrong))
