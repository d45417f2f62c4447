"""Feeds: what followers get of a turn that was long, is over, or was copied with gaps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import anyio
import pytest

from mira.actors.copies import whole_attempt
from mira.actors.feeds import KEPT, REMEMBERED, RETAINED, Feeds
from mira.actors.voice import Voice
from mira.clock import ManualClock
from mira.messages.stream import AnyTurnEvent, Cancelled, Snapshot, TextAdded

USER, FIRST, SECOND = UUID(int=1), UUID(int=2), UUID(int=3)


class NoCopies:
    """Copies that nobody keeps."""

    def add(self, user_id: UUID, event: AnyTurnEvent) -> None:
        pass


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def feeds(clock: ManualClock) -> Feeds:
    return Feeds(clock, NoCopies())


def _voice(feeds: Feeds, turn_id: UUID, attempt: int = 1) -> Voice:
    return Voice(turn_id, attempt, lambda event: feeds.append(USER, event))


async def _all(following: AsyncIterator[tuple[AnyTurnEvent, ...]]) -> list[AnyTurnEvent]:
    with anyio.fail_after(5):
        return [event async for batch in following for event in batch]


def _shown(events: list[AnyTurnEvent]) -> str:
    """What a client shows that knows what a snapshot is."""
    text = ""
    for event in events:
        if isinstance(event, Snapshot):
            text = event.text
        elif isinstance(event, TextAdded):
            assert event.offset == len(text)
            text += event.text
    return text


@pytest.mark.anyio
async def test_who_joins_a_reply_longer_than_what_is_kept_gets_all_of_it(feeds: Feeds) -> None:
    voice = _voice(feeds, FIRST)
    for n in range(KEPT + 500):
        voice.text(f"{n} ")
    following = feeds.of(USER).follow(FIRST, 0)
    voice.cancelled("")
    assert _shown(await _all(following)) == "".join(f"{n} " for n in range(KEPT + 500))


@pytest.mark.anyio
async def test_who_joins_everything_in_the_middle_of_a_long_reply_gets_it_from_its_beginning(
    feeds: Feeds,
) -> None:
    voice = _voice(feeds, FIRST)
    for n in range(KEPT + 500):
        voice.text(f"{n} ")
    batches = feeds.of(USER).all("")
    with anyio.fail_after(5):
        events = [e for e in await anext(batches) if isinstance(e, TextAdded | Snapshot)]
    await batches.aclose()
    assert _shown(list(events)) == "".join(f"{n} " for n in range(KEPT + 500))


@pytest.mark.anyio
async def test_a_turn_that_is_over_and_partly_forgotten_is_not_followed_here(feeds: Feeds) -> None:
    voice = _voice(feeds, FIRST)
    voice.text("short")
    voice.cancelled("short")
    assert feeds.of(USER).knows(FIRST)
    later = _voice(feeds, SECOND)
    for n in range(KEPT + 1):
        later.text(f"{n} ")
    assert not feeds.of(USER).knows(FIRST)
    assert feeds.of(USER).knows(SECOND)


@pytest.mark.anyio
async def test_a_turn_that_is_silent_for_long_is_heard_when_it_speaks(
    feeds: Feeds, clock: ManualClock
) -> None:
    voice = _voice(feeds, FIRST)
    feeds.of(USER)
    clock.advance(RETAINED + 1)
    assert feeds.sweep() == 1
    heard = feeds.of(USER).follow(FIRST, 0)
    voice.cancelled("late")
    with anyio.fail_after(5):
        [event] = await anext(heard)
    await heard.aclose()
    assert isinstance(event, Cancelled)


@pytest.mark.anyio
async def test_a_client_that_stays_connected_costs_little_and_hears_what_comes_next(
    feeds: Feeds, clock: ManualClock
) -> None:
    feed = feeds.of(USER)
    feed.followers += 1
    heard = feed.all("")
    first = _voice(feeds, FIRST)
    first.text("x" * 100_000)
    first.cancelled("")
    with anyio.fail_after(5):
        assert len(await anext(heard)) == 2
        clock.advance(REMEMBERED + 1)
        assert feeds.sweep() == 0
        assert not feed.knows(FIRST)
        _voice(feeds, SECOND).text("next")
        [event] = await anext(heard)
    await heard.aclose()
    assert isinstance(event, TextAdded)
    assert (event.turn_id, event.text) == (SECOND, "next")


@pytest.mark.anyio
async def test_a_running_turn_is_never_forgotten(feeds: Feeds, clock: ManualClock) -> None:
    feeds.of(USER).followers += 1
    voice = _voice(feeds, FIRST)
    voice.text("still here")
    clock.advance(RETAINED + 1)
    feeds.sweep()
    following = feeds.of(USER).follow(FIRST, 0)
    voice.cancelled("")
    assert _shown(await _all(following)) == "still here"


def _said(*words: str, attempt: int = 1) -> list[AnyTurnEvent]:
    events: list[AnyTurnEvent] = []
    voice = Voice(FIRST, attempt, events.append)
    for word in words:
        voice.text(word)
    voice.cancelled("".join(words))
    return events


def test_a_copy_counts_only_if_every_event_is_in_it_once() -> None:
    whole = _said("one", "two", "three")
    assert whole_attempt(whole, 1) == whole
    assert not whole_attempt([whole[0], *whole[2:]], 1)
    assert not whole_attempt(whole[1:], 1)
    assert not whole_attempt(whole[:-1], 1)
    assert not whole_attempt([whole[0], *whole], 1)
    assert not whole_attempt([], 1)


def test_of_a_turn_that_was_tried_again_the_copy_tells_the_last_attempt_alone() -> None:
    first, second = _said("no"), _said("yes", attempt=2)
    assert whole_attempt([*first, *second], 2) == second
    assert not whole_attempt(first, 2)
