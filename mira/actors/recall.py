"""What a turn recalls before the model is asked. No actor: the door calls it.

The Subcortex is asked first. Where it has not answered within its head start, a search with the
message as it stands begins beside it; when it answers in time its phrases replace the message, and
when it is late, fails or answers rubbish, that search stands. So a quick Subcortex saves a search,
and a slow one costs no more than its deadline. Each part is isolated: one that fails is left out
and named.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar
from uuid import UUID

import anyio

from mira.actors.recall_choice import (
    Choice,
    Haul,
    choose,
    further_traces,
    picked,
    wanted_texts,
    with_linked,
)
from mira.actors.recall_searches import Candidate, Found, Searches
from mira.actors.recalled import Recalled, Wanted
from mira.clock import Clock
from mira.errors import DeadlineExceeded, MiraError
from mira.ids import Ids
from mira.memory.entities import Mention
from mira.memory.model import LinkedMemory
from mira.memory.passages import PassageRanking
from mira.memory.query import LONGEST_PHRASE
from mira.memory.retention import retained
from mira.messages.subcortex import Considered, InContext
from mira.store import traces
from mira.store.traces import Trace
from mira.telemetry import logger

log = logger("recall")
T = TypeVar("T")

#: Seconds that each part may take.
LONGEST = 3.0
#: Seconds that the Subcortex has before the message itself is searched. Its deadline leaves a
#: search several times what it takes even then. A model that answers sooner has made the search
#: needless, and on a busy server, where models and searches take longer, needless searches would
#: make them take longer yet.
HEAD_START = 0.5
#: Characters of a message in which names are looked for: what takes a few milliseconds.
NAMED_IN = 600

#: Does work beside the turn, which is over before the turn is.
Beside = Callable[[Callable[[], Awaitable[None]]], None]

#: Asks the Subcortex, given the memories that may be retained. Raises no MiraError.
Consider = Callable[[tuple[InContext, ...]], Awaitable[Considered]]


class Recogniser(Protocol):
    """Finds names in texts. See mira.memory.recogniser."""

    @property
    def ready(self) -> bool: ...

    async def entities(self, text: str, *, live: bool = False) -> Sequence[Mention]: ...


class Recall:
    """Recalls for any turn of any user. Safe to use from many tasks at once."""

    def __init__(
        self, searches: Searches, recogniser: Recogniser | None, clock: Clock, ids: Ids, *,
        longest: float = LONGEST, head_start: float = HEAD_START,
    ) -> None:  # fmt: skip
        """`longest`: seconds that each part may take; `head_start`: those of the Subcortex before
        the message itself is searched."""
        self.searches = searches
        self.recogniser = recogniser
        self.clock = clock
        self.ids = ids
        self.longest = longest
        self.head_start = head_start

    async def for_turn(
        self, wanted: Wanted, consider: Consider | None = None, beside: Beside | None = None
    ) -> Recalled:
        """What the model is to be shown, within the deadline of `consider` and that of a search.

        Without `consider` the message itself is searched. Traces are written `beside` the turn;
        without it, before this returns. Raises nothing: what fails is left out and named in the
        result. A cancelled turn is left at once.
        """
        return await _Turn(self, wanted).recall(consider, beside)


@dataclass
class _Search:
    """What one search over both sources has found so far."""

    phrases: tuple[str, ...] = ()
    memories: Found | None = None
    passages: PassageRanking | None = None

    @property
    def empty(self) -> bool:
        return self.memories is None and self.passages is None


class _Turn:
    """The recall of one turn."""

    def __init__(self, surroundings: Recall, wanted: Wanted) -> None:
        self._searches = surroundings.searches
        self._recogniser = surroundings.recogniser
        self._clock = surroundings.clock
        self._ids = surroundings.ids
        self._longest = surroundings.longest
        self._head_start = surroundings.head_start
        self._wanted = wanted
        self._timings: dict[str, float] = {}
        self._failed: dict[str, str] = {}
        self._names: tuple[str, ...] = ()
        self._like_replies: tuple[Candidate, ...] = ()

    async def recall(self, consider: Consider | None, beside: Beside | None) -> Recalled:
        began = self._clock.monotonic()
        by_message, by_phrases = _Search(), _Search()
        speculating, naming = anyio.CancelScope(), anyio.CancelScope()
        unhelped = anyio.Event()
        if consider is None:
            unhelped.set()
        considered: Considered | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._speculate, by_message, unhelped, speculating)
            group.start_soon(self._find_names, naming)
            group.start_soon(self._read_replies)
            in_context = await self._part("retained", self._in_context) or ()
            if consider is not None:
                considered = await self._consider(consider, in_context)
            # A name that is not found by now is not waited for.
            naming.cancel()
            if considered is not None and considered.phrases:
                # If it has ended, it still stands in for what the phrases do not find.
                speculating.cancel()
                entities = tuple(dict.fromkeys((*considered.entities, *self._names)))
                await self._search(by_phrases, considered.phrases, entities, "recall")
            unhelped.set()
        used = by_message if by_phrases.empty else by_phrases
        haul = Haul(
            retained=retained(in_context, _choice(considered)),
            memories=used.memories or Found(), passages=used.passages, phrases=used.phrases,
            like_replies=self._like_replies,
        )  # fmt: skip
        choice = await self._choose(haul)
        made = further_traces(haul, choice, self._wanted, self._ids, self._clock.now())

        async def trace() -> None:
            await self._part("traces", lambda: self._trace(haul, choice, made))

        if beside is None:
            await trace()
        else:
            beside(trace)
        traced = (haul.memories.trace_id, *(one.id for one in made))
        self._timings["all"] = (self._clock.monotonic() - began) * 1000
        return Recalled(
            memories=choice.memories, passages=choice.passages, considered=considered,
            speculative=by_phrases.empty, failed=self._failed,
            traces=tuple(one for one in traced if one is not None),
            timings=self._timings, dropped=choice.dropped,
        )  # fmt: skip

    # What goes on at the same time.

    async def _speculate(
        self, search: _Search, unhelped: anyio.Event, scope: anyio.CancelScope
    ) -> None:
        """Search with the message when the head start is over, or at once when `unhelped`."""
        with scope:
            with anyio.move_on_after(self._head_start):
                await unhelped.wait()
            words = self._wanted.words[:LONGEST_PHRASE]
            await self._search(search, (words,), (), "speculative")

    async def _search(
        self, search: _Search, phrases: tuple[str, ...], entities: tuple[str, ...], purpose: str
    ) -> None:
        """Both sources at once; `search` gets what each has found."""
        searches, wanted = self._searches, self._wanted
        search.phrases = phrases

        async def memories() -> None:
            search.memories = await self._part(
                f"{purpose}:memories",
                lambda: searches.of_phrases(wanted, phrases, entities, purpose),
            )

        async def passages() -> None:
            search.passages = await self._part(
                f"{purpose}:history", lambda: searches.of_history(wanted, phrases, entities)
            )

        async with anyio.create_task_group() as group:
            group.start_soon(memories)
            group.start_soon(passages)

    async def _find_names(self, scope: anyio.CancelScope) -> None:
        recogniser = self._recogniser
        if recogniser is None or not recogniser.ready:
            return
        with scope:
            words = self._wanted.words[:NAMED_IN]
            found = await self._part("names", lambda: recogniser.entities(words, live=True))
            self._names = tuple(one.name for one in found or ())

    async def _read_replies(self) -> None:
        found = await self._part("replies", lambda: self._searches.of_replies(self._wanted))
        self._like_replies = found or ()

    # The parts.

    async def _in_context(self) -> tuple[Candidate, ...]:
        return await self._searches.in_context(self._wanted)

    async def _consider(
        self, consider: Consider, in_context: tuple[Candidate, ...]
    ) -> Considered | None:
        offered = tuple(
            InContext(
                id=one.id, short_id=one.memory.short_id, importance=one.importance,
                text=one.memory.text,
            )
            for one in in_context
        )  # fmt: skip
        began = self._clock.monotonic()
        try:
            return await consider(offered)
        finally:
            self._timings["subcortex"] = (self._clock.monotonic() - began) * 1000

    async def _choose(self, haul: Haul) -> Choice:
        """What is shown, read with its words and with what belongs to it."""
        wanted, searches = self._wanted, self._searches
        shown, said = picked(haul, wanted), wanted_texts(haul, wanted)
        texts: Mapping[UUID, str] = {}
        beside: Mapping[UUID, Sequence[LinkedMemory]] = {}

        async def read_texts() -> None:
            nonlocal texts
            texts = await self._part("texts", lambda: searches.texts(wanted.user_id, said)) or {}

        async def read_beside() -> None:
            nonlocal beside
            beside = await self._part("linked", lambda: searches.beside(shown, wanted.held)) or {}

        async with anyio.create_task_group() as group:
            group.start_soon(read_texts)
            group.start_soon(read_beside)
        return choose(haul, wanted, texts, beside)

    async def _trace(self, haul: Haul, choice: Choice, made: Sequence[Trace]) -> None:
        """Note what was shown of each search."""
        wanted, found = self._wanted, haul.memories
        async with self._searches.database.user(wanted.user_id) as tx:
            if found.trace_id is not None:
                candidates = {one.id for one in found.candidates}
                shown = with_linked(choice, candidates)
                await traces.note(tx, wanted.user_id, found.trace_id, surfaced=shown)
            for one in made:
                await traces.write(tx, wanted.user_id, one)

    async def _part(self, name: str, work: Callable[[], Awaitable[T]]) -> T | None:
        """What a part gives, within its time; None if it fails, which is noted."""
        began = self._clock.monotonic()
        try:
            with anyio.fail_after(self._longest):
                return await work()
        except TimeoutError:
            self._failed[name] = DeadlineExceeded.code
        except MiraError as error:
            self._failed[name] = error.code
        except Exception:
            # A bug, but none for which a message should go without an answer.
            log.error("recall_failed", stage=name, exc_info=True)
            self._failed[name] = MiraError.code
        finally:
            self._timings[name] = (self._clock.monotonic() - began) * 1000
        return None


def _choice(considered: Considered | None) -> tuple[UUID, ...] | None:
    """The memories that were chosen to stay; None if nobody has chosen."""
    if considered is None or considered.fallback is not None:
        return None
    return considered.retain
