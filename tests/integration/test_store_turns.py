"""Turns in the database: accepted once, taken in order, closed by the first writer."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta

import anyio
import pytest

from mira.errors import Conflict, NotFound, RateLimited, StaleEpoch
from mira.ids import SystemIds
from mira.messages.content import RESULT_SHOWN, Role, Text, ToolResult
from mira.messages.turn import TurnState, Usage
from mira.store import history, turns, waiting_turns
from mira.store.database import Database
from mira.store.turns import AcceptedTurn, Closing, Fence, NewMessage, SkippedTurn, TakenTurn
from mira.store.users import User

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ids = SystemIds()


async def accept(
    database: Database,
    user: User,
    text: str,
    *,
    request_id: str | None = None,
    at: datetime = NOW,
    limit: int = 64,
    generation: int = 0,
) -> AcceptedTurn:
    async with database.user(user.id) as tx:
        return await turns.accept(
            tx,
            user.id,
            turn_id=ids.new(),
            message_id=ids.new(),
            request_id=request_id or str(ids.new()),
            digest=hashlib.sha256(text.encode()).digest(),
            blocks=(Text(text=text),),
            at=at,
            limit=limit,
            generation=generation,
        )


async def activate(database: Database, user: User) -> Fence:
    async with database.user(user.id) as tx:
        return await turns.activate(tx, user.id, 0)


async def take(database: Database, user: User, fence: Fence) -> TakenTurn | SkippedTurn | None:
    async with database.user(user.id) as tx:
        return await turns.take(tx, user.id, fence, ids.new(), NOW, 7200.0)


async def close(
    database: Database, user: User, fence: Fence, taken: TakenTurn, state: TurnState, text: str
) -> TurnState:
    closing = Closing(
        turn_id=taken.turn_id,
        attempt=taken.attempt,
        state=state,
        messages=(
            NewMessage(
                id=ids.new(), position=1, role=Role.ASSISTANT, blocks=(Text(text=text),),
                state=state if state is not TurnState.FAILED else "complete",
            ),
        ),
        usage=Usage(input_tokens=3, output_tokens=2, calls=1),
    )  # fmt: skip
    async with database.user(user.id) as tx:
        return await turns.close(tx, user.id, fence, closing, NOW)


async def test_an_accepted_message_is_there_before_anything_else_happens(
    database: Database, user: User
) -> None:
    accepted = await accept(database, user, "good morning")
    async with database.user(user.id) as tx:
        [message] = await history.of_turn(tx, user.id, accepted.turn_id)
        [waiting] = await waiting_turns.read(tx, user.id)
    assert message.blocks == (Text(text="good morning"),)
    assert (accepted.seq, waiting.state, waiting.content) == (1, "received", "good morning")
    assert accepted.wake is not None


async def test_the_same_request_id_is_one_turn_and_with_other_words_a_conflict(
    database: Database, user: User
) -> None:
    first = await accept(database, user, "hello", request_id="r")
    again = await accept(database, user, "hello", request_id="r")
    assert again.duplicate
    assert again.turn_id == first.turn_id
    with pytest.raises(Conflict):
        await accept(database, user, "other", request_id="r")
    async with database.user(user.id) as tx:
        assert len(await waiting_turns.read(tx, user.id)) == 1


async def test_racing_sends_with_one_request_id_are_one_turn(
    database: Database, user: User
) -> None:
    got: list[AcceptedTurn] = []

    async def send() -> None:
        got.append(await accept(database, user, "hello", request_id="same"))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(send)
    assert len({a.turn_id for a in got}) == 1
    assert sum(not a.duplicate for a in got) == 1


async def test_fifty_racing_sends_get_fifty_consecutive_places(
    database: Database, user: User
) -> None:
    got: list[int] = []

    async def send(n: int) -> None:
        got.append((await accept(database, user, f"message {n}")).seq)

    async with anyio.create_task_group() as group:
        for n in range(50):
            group.start_soon(send, n)
    assert sorted(got) == list(range(1, 51))


async def test_beyond_the_limit_of_waiting_turns_a_send_is_refused_and_leaves_no_trace(
    database: Database, user: User
) -> None:
    for n in range(3):
        await accept(database, user, f"m{n}", limit=3)
    with pytest.raises(RateLimited):
        await accept(database, user, "one too many", limit=3)
    async with database.user(user.id) as tx:
        assert len(await waiting_turns.read(tx, user.id)) == 3
        assert len(await history.page(tx, user.id, before=None, limit=10)) == 3


async def test_an_unknown_conversation_is_not_found(database: Database, user: User) -> None:
    stranger = User(id=ids.new(), name="nobody", timezone="UTC")
    with pytest.raises(NotFound):
        await accept(database, stranger, "hello")


@pytest.mark.parametrize(
    ("moments", "dates"),
    [
        # Vienna is one hour ahead of UTC in winter: 23:30 UTC is the next day there.
        (["2026-01-10T22:30", "2026-01-10T23:30"], [date(2026, 1, 10), date(2026, 1, 11)]),
        (["2026-01-10T08:00", "2026-01-10T20:00"], [date(2026, 1, 10)]),
        # The clock goes back: the same local hour twice is one day.
        (["2026-10-25T00:30", "2026-10-25T01:30"], [date(2026, 10, 25)]),
        (["2028-02-28T12:00", "2028-02-29T12:00", "2028-03-01T12:00"],
         [date(2028, 2, 28), date(2028, 2, 29), date(2028, 3, 1)]),
        # Time that goes back (a corrected clock) repeats no day.
        (["2026-05-05T12:00", "2026-05-04T12:00"], [date(2026, 5, 5)]),
    ],
)  # fmt: skip
async def test_a_use_day_begins_with_the_first_message_of_the_users_own_date(
    database: Database, user: User, moments: list[str], dates: list[date]
) -> None:
    for moment in moments:
        await accept(database, user, moment, at=datetime.fromisoformat(moment + "+00:00"))
    async with database.user(user.id) as tx:
        rows = await tx.fetch("select local_date, ordinal from use_days order by ordinal")
    assert [(r["ordinal"], r["local_date"]) for r in rows] == list(enumerate(dates, 1))


async def test_turns_are_taken_in_the_order_in_which_they_were_accepted(
    database: Database, user: User
) -> None:
    for n in range(3):
        await accept(database, user, f"m{n}", at=NOW - timedelta(minutes=n))
    fence = await activate(database, user)
    texts = []
    while isinstance(taken := await take(database, user, fence), TakenTurn):
        texts.append(taken.blocks)
        await close(database, user, fence, taken, TurnState.COMPLETE, "ok")
    assert texts == [(Text(text=f"m{n}"),) for n in range(3)]


async def test_a_turn_cancelled_while_it_waits_is_skipped(database: Database, user: User) -> None:
    first = await accept(database, user, "a")
    second = await accept(database, user, "b")
    async with database.user(user.id) as tx:
        assert await turns.request_cancel(tx, user.id, first.turn_id, NOW) is TurnState.RECEIVED
    fence = await activate(database, user)
    skipped = await take(database, user, fence)
    assert isinstance(skipped, SkippedTurn)
    assert skipped.turn_id == first.turn_id
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    assert taken.turn_id == second.turn_id


async def test_the_first_writer_closes_a_turn_and_the_second_is_told_how_it_stands(
    database: Database, user: User
) -> None:
    await accept(database, user, "a")
    fence = await activate(database, user)
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    assert await close(database, user, fence, taken, TurnState.COMPLETE, "done") == "complete"
    assert await close(database, user, fence, taken, TurnState.CANCELLED, "no") == "complete"
    async with database.user(user.id) as tx:
        said = await history.of_turn(tx, user.id, taken.turn_id)
    assert [m.blocks for m in said] == [(Text(text="a"),), (Text(text="done"),)]


async def test_an_older_activation_can_no_longer_write(database: Database, user: User) -> None:
    await accept(database, user, "a")
    old = await activate(database, user)
    taken = await take(database, user, old)
    assert isinstance(taken, TakenTurn)
    await activate(database, user)
    with pytest.raises(StaleEpoch):
        await close(database, user, old, taken, TurnState.COMPLETE, "too late")
    async with database.user(user.id) as tx:
        assert (await turns.get(tx, user.id, taken.turn_id)).state is TurnState.RUNNING


async def test_an_older_server_can_neither_accept_nor_write(database: Database, user: User) -> None:
    await accept(database, user, "a")
    fence = await activate(database, user)
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    async with database.engine() as tx:
        await tx.execute("update house set generation = generation + 1")
    with pytest.raises(StaleEpoch):
        await close(database, user, fence, taken, TurnState.COMPLETE, "too late")
    with pytest.raises(StaleEpoch):
        await accept(database, user, "b")
    with pytest.raises(StaleEpoch):
        await activate(database, user)


async def test_the_wake_up_is_done_only_when_no_turn_waits(database: Database, user: User) -> None:
    first = await accept(database, user, "a")
    fence = await activate(database, user)
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    assert first.wake is not None
    second = await accept(database, user, "b")
    assert second.wake == (first.wake[0], first.wake[1] + 1)
    await close(database, user, fence, taken, TurnState.COMPLETE, "ok")
    async with database.user(user.id) as tx:
        settled = await turns.settle(tx, user.id, taken.turn_id, NOW, first.wake[0])
        assert not settled.done
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    await close(database, user, fence, taken, TurnState.COMPLETE, "ok")
    async with database.user(user.id) as tx:
        settled = await turns.settle(tx, user.id, taken.turn_id, NOW, first.wake[0])
        assert settled.done
        # What is left is the timer of the segment, and one word to the indexer for both turns.
        left = await tx.value("select array_agg(kind || '/' || lane order by kind) from outbox")
        assert left == ["continuum/silence", "indexer/history"]


async def test_only_the_newest_turn_without_an_answer_can_be_tried_again(
    database: Database, user: User
) -> None:
    first = await accept(database, user, "a")
    fence = await activate(database, user)
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    await close(database, user, fence, taken, TurnState.CANCELLED, "par")
    async with database.user(user.id) as tx:
        again = await turns.retry(tx, user.id, first.turn_id, NOW, 0)
    assert again.seq == first.seq
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    assert taken.attempt == 2
    await close(database, user, fence, taken, TurnState.COMPLETE, "whole")
    async with database.user(user.id) as tx:
        shown = await history.of_turn(tx, user.id, first.turn_id)
        assert [m.blocks for m in shown] == [(Text(text="a"),), (Text(text="whole"),)]
        with pytest.raises(Conflict, match="complete"):
            await turns.retry(tx, user.id, first.turn_id, NOW, 0)
        with pytest.raises(NotFound):
            await turns.retry(tx, user.id, ids.new(), NOW, 0)
    await accept(database, user, "b")
    async with database.user(user.id) as tx:
        with pytest.raises(Conflict, match="newest"):
            await turns.retry(tx, user.id, first.turn_id, NOW, 0)


async def test_messages_cannot_be_changed_or_removed(database: Database, user: User) -> None:
    import asyncpg

    await accept(database, user, "a")
    for sql in ("update messages set content = '[]'", "delete from messages"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with database.user(user.id) as tx:
                await tx.execute(sql)


async def test_the_live_part_of_a_segment_is_whole_turns_within_bounds_and_always_the_newest(
    database: Database, user: User
) -> None:
    fence = await activate(database, user)
    for n in range(6):
        await accept(database, user, f"question {n}")
        taken = await take(database, user, fence)
        assert isinstance(taken, TakenTurn)
        await close(database, user, fence, taken, TurnState.COMPLETE, f"answer {n}")
    async with database.user(user.id) as tx:
        here = taken.segment_id if isinstance(taken, TakenTurn) else user.id
        everything = await history.of_segment(tx, user.id, here, characters=100_000, turns=100)
        three = await history.of_segment(tx, user.id, here, characters=100_000, turns=3)
        tiny = await history.of_segment(tx, user.id, here, characters=1, turns=100)
        some = await history.of_segment(tx, user.id, here, characters=200, turns=100)
        later = await history.of_segment(
            tx, user.id, here, characters=100_000, turns=100, after_seq=4
        )
        page = await history.page(tx, user.id, before=(3, 1), limit=3)
    assert [m.turn_seq for m in everything] == [n for n in range(1, 7) for _ in range(2)]
    assert [m.turn_seq for m in three] == [4, 4, 5, 5, 6, 6]
    assert [m.turn_seq for m in later] == [5, 5, 6, 6]
    assert [(m.turn_seq, m.role) for m in tiny] == [(6, "user"), (6, "assistant")]
    assert 2 < len(some) < 12
    assert len(some) % 2 == 0
    assert [(m.turn_seq, m.position) for m in page] == [(3, 0), (2, 1), (2, 0)]


async def test_a_result_counts_in_the_live_part_with_what_prompts_show_of_it(
    database: Database, user: User
) -> None:
    fence, segment_id = await activate(database, user), ids.new()
    for n, result in enumerate(("short", "x" * 10 * RESULT_SHOWN, "short")):
        await accept(database, user, f"question {n}")
        taken = await take(database, user, fence)
        assert isinstance(taken, TakenTurn)
        closing = Closing(
            turn_id=taken.turn_id, attempt=taken.attempt, state=TurnState.COMPLETE, usage=Usage(),
            messages=(
                NewMessage(
                    id=ids.new(), position=1, role=Role.TOOL, state="complete",
                    blocks=(ToolResult(call_id="c1", text=result),),
                ),
            ),
        )  # fmt: skip
        segment_id = taken.segment_id
        async with database.user(user.id) as tx:
            await turns.close(tx, user.id, fence, closing, NOW)
    async with database.user(user.id) as tx:

        async def seen(characters: int) -> set[int]:
            found = await history.of_segment(
                tx, user.id, segment_id, characters=characters, turns=100
            )
            return {message.turn_seq for message in found}

        assert await seen(RESULT_SHOWN + 2_000) == {1, 2, 3}
        assert await seen(RESULT_SHOWN - 2_000) == {3}


async def test_another_user_sees_nothing_of_it(database: Database, user: User, other: User) -> None:
    accepted = await accept(database, user, "private")
    async with database.user(other.id) as tx:
        assert await history.page(tx, user.id, before=None, limit=10) == []
        with pytest.raises(NotFound):
            await turns.get(tx, user.id, accepted.turn_id)
        with pytest.raises(NotFound):
            await turns.request_cancel(tx, user.id, accepted.turn_id, NOW)
