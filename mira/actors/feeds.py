"""What happens in a conversation, live: one feed for each, for any number of followers.

A feed is a cache of the last events, and exists only while something happens or somebody follows:
an idle conversation has none.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from typing import Protocol
from uuid import UUID

import anyio
import msgspec

from mira.actors.runtime.events import EventLog, EventReader
from mira.clock import Clock
from mira.messages.stream import (
    CLOSING,
    AnyTurnEvent,
    Snapshot,
    TextAdded,
    ThinkingAdded,
)
from mira.messages.wire import AskConfirm, TurnBegun

FeedItem = AnyTurnEvent | TurnBegun | AskConfirm

#: Events kept in memory for each conversation that is active.
KEPT = 4096
#: Seconds between two pieces of text for one follower; whatever is no more of it comes at once.
TEXT_EVERY = 1 / 30
#: Seconds after its last event for which a feed without followers is kept.
RETAINED = 300.0
#: Seconds after its last event for which a feed with followers keeps what it has told.
REMEMBERED = 60.0


class Copies(Protocol):
    """Where turn events are copied to, for followers who come when this feed is gone."""

    def add(self, user_id: UUID, event: AnyTurnEvent) -> None:
        """Copy at leisure; never waits and never fails."""
        ...


class Entry:
    """One item of a feed at its place."""

    __slots__ = ("item", "seq", "source")
    attempt = 0

    def __init__(self, seq: int, item: FeedItem, source: str) -> None:
        self.seq = seq
        self.item = item
        self.source = source


class Feed:
    """The live events of one conversation, in order."""

    def __init__(self, user_id: UUID, clock: Clock, copies: Copies) -> None:
        self._user_id = user_id
        self._clock = clock
        self._copies = copies
        self._log: EventLog[Entry] = EventLog(_merge, limit=KEPT)
        self._texts: list[str] = []
        self._text_of: tuple[UUID, int] | None = None
        self._starts: dict[UUID, int] = {}
        #: The turn that speaks here and has not ended.
        self.running: UUID | None = None
        #: Where the last item stands that does not go on with the text before it.
        self._turned_at = 0
        self._turned: anyio.Event | None = None
        self._last_kind: type[object] | None = None
        self._touched = clock.monotonic()
        self.followers = 0

    def append(self, item: FeedItem, source: str = "") -> None:
        """Add an item; `source` names the connection that caused it, and need not hear of it."""
        position = self._log.last_seq + 1
        self._touched = self._clock.monotonic()
        if not isinstance(item, TurnBegun | AskConfirm):
            self._note(item, position)
            self._copies.add(self._user_id, item)
        self._log.append(Entry(position, item, source))
        if type(item) is not self._last_kind or not isinstance(item, TextAdded | ThinkingAdded):
            self._last_kind = type(item)
            self._turned_at = position
            if self._turned is not None:
                self._turned.set()
                self._turned = None

    def _note(self, event: AnyTurnEvent, position: int) -> None:
        if event.turn_id not in self._starts:
            self._starts[event.turn_id] = position
            if len(self._starts) > KEPT // 8:
                del self._starts[next(iter(self._starts))]
        if (event.turn_id, event.attempt) != self._text_of:
            self._text_of = (event.turn_id, event.attempt)
            self._texts = []
        if isinstance(event, TextAdded):
            self._texts.append(event.text)
        self.running = None if isinstance(event, CLOSING) else event.turn_id

    def begin_again(self, turn_id: UUID) -> None:
        """The turn will be tried again: who follows it from now on does not hear how it ended."""
        self._starts.pop(turn_id, None)

    def knows(self, turn_id: UUID) -> bool:
        """Whether the turn can be followed here: it speaks, or all that it said is still here."""
        start = self._starts.get(turn_id, 0)
        return start > self._log.forgotten_seq or (start > 0 and turn_id == self.running)

    def quiet_for(self, seconds: float) -> bool:
        """Whether no turn speaks, and nothing has happened for so long."""
        return self.running is None and self._clock.monotonic() - self._touched > seconds

    def forget(self) -> None:
        """Keep nothing of what was told, so that a client that stays connected costs no more than
        its place: turns that are over are read from their copies."""
        self._log.forget()
        self._starts.clear()
        self._texts, self._text_of = [], None

    def follow(self, turn_id: UUID, after: int) -> AsyncGenerator[tuple[AnyTurnEvent, ...], None]:
        """The turn's events with a higher number than `after`, in batches, until it has ended."""
        return self._follow(self._log.reader(self._seen(turn_id, after)), turn_id, after)

    def _seen(self, turn_id: UUID, after: int) -> int:
        """Where a follower stands who knows the turn's events up to `after`.

        Pieces of text are merged from there on: what is known must not come again with the rest.
        """
        if not self.knows(turn_id):
            return self._log.last_seq
        seen = self._starts[turn_id] - 1
        for entry in self._log.since(self._log.position(seen))[0] if after else ():
            event = entry.item
            if isinstance(event, TurnBegun | AskConfirm) or event.turn_id != turn_id:
                continue
            if event.seq > after or isinstance(event, CLOSING):
                break
            seen = entry.seq
        return seen

    async def _follow(
        self, reader: EventReader[Entry], turn_id: UUID, after: int
    ) -> AsyncGenerator[tuple[AnyTurnEvent, ...], None]:
        async for batch in self._batches(reader):
            mine = tuple(
                item
                for item in (entry.item for entry in batch)
                if not isinstance(item, TurnBegun | AskConfirm) and item.turn_id == turn_id
            )
            if new := tuple(event for event in mine if event.seq > after):
                yield new
            if mine and isinstance(mine[-1], CLOSING):
                return
            if reader.missed and not self.knows(turn_id):
                # Its end was among what was forgotten.
                return

    def all(self, source: str) -> AsyncGenerator[tuple[FeedItem, ...], None]:
        """Everything from now on, and what the running turn has said so far."""
        start = self._log.last_seq + 1
        if self.running is not None:
            start = self._starts.get(self.running, start)
        return self._all(self._log.reader(start - 1), source)

    async def _all(
        self, reader: EventReader[Entry], source: str
    ) -> AsyncGenerator[tuple[FeedItem, ...], None]:
        async for batch in self._batches(reader):
            items = tuple(e.item for e in batch if not source or e.source != source)
            if items:
                yield items

    async def _batches(self, reader: EventReader[Entry]) -> AsyncIterator[Iterable[Entry]]:
        while batch := await reader.batch():
            yield self._caught_up(batch) if reader.missed else batch
            if isinstance(batch[-1].item, TextAdded | ThinkingAdded):
                await self._rest(batch[-1].seq)

    async def _rest(self, seen: int) -> None:
        """Let text gather for a moment, unless or until something else has come."""
        if self._turned_at > seen:
            return
        if self._turned is None:
            self._turned = anyio.Event()
        with anyio.move_on_after(TEXT_EVERY):
            await self._turned.wait()

    def _caught_up(self, batch: tuple[Entry, ...]) -> list[Entry]:
        """For a follower who was so slow that events were forgotten: the running turn's text as
        one snapshot in place of its pieces, and whatever else is still here."""
        if self._text_of is None:
            return list(batch)
        turn_id, attempt = self._text_of
        rest: list[Entry] = []
        last: Entry | None = None
        for entry in batch:
            item = entry.item
            if isinstance(item, TextAdded | ThinkingAdded) and item.turn_id == turn_id:
                last = entry
            else:
                rest.append(entry)
        if last is None or isinstance(last.item, TurnBegun | AskConfirm):
            return rest
        snapshot = Snapshot(
            turn_id=turn_id, attempt=attempt, seq=last.item.seq, text="".join(self._texts)
        )
        at = next((i for i, e in enumerate(rest) if e.seq > last.seq), len(rest))
        rest.insert(at, Entry(last.seq, snapshot, ""))
        return rest


class Feeds:
    """The feeds of all conversations that are active here."""

    def __init__(self, clock: Clock, copies: Copies) -> None:
        self._clock = clock
        self._copies = copies
        self._feeds: dict[UUID, Feed] = {}

    def __len__(self) -> int:
        return len(self._feeds)

    def of(self, user_id: UUID) -> Feed:
        """The feed of one conversation, begun if there is none."""
        feed = self._feeds.get(user_id)
        if feed is None:
            feed = self._feeds[user_id] = Feed(user_id, self._clock, self._copies)
        return feed

    def append(self, user_id: UUID, item: FeedItem) -> None:
        """Add an item to the feed of one conversation, whichever it is now."""
        self.of(user_id).append(item)

    def find(self, user_id: UUID) -> Feed | None:
        """The feed of one conversation, if there is one."""
        return self._feeds.get(user_id)

    def sweep(self) -> int:
        """Drop feeds that nobody follows and in which nothing has happened; return how many.

        Those that somebody follows forget what they have told.
        """
        quiet = [(u, feed) for u, feed in self._feeds.items() if feed.quiet_for(REMEMBERED)]
        dropped = 0
        for user_id, feed in quiet:
            if feed.followers:
                feed.forget()
            elif feed.quiet_for(RETAINED):
                del self._feeds[user_id]
                dropped += 1
        return dropped


def _merge(one: Entry, two: Entry) -> Entry | None:
    """Two neighbouring pieces of text as one, with the number of the later."""
    a, b = one.item, two.item
    if (
        isinstance(a, TextAdded | ThinkingAdded)
        and isinstance(b, TextAdded | ThinkingAdded)
        and (a.turn_id, a.attempt, type(a)) == (b.turn_id, b.attempt, type(b))
    ):
        return Entry(two.seq, msgspec.structs.replace(b, text=a.text + b.text, offset=a.offset), "")
    return None
