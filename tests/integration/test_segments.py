"""Segments as the door of a conversation opens and ends them, whatever the keeper does."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mira.actors.continuum import door_of
from mira.errors import NotFound, ProviderRejected
from mira.ids import SystemIds
from mira.llm.scripted import calls, says
from mira.messages.content import Text, ToolUse
from mira.messages.segment import SummaryMade
from mira.messages.stream import Completed, TurnError
from mira.store import segments, turns
from mira.store.database import Database
from mira.store.users import User
from tests.support.core import Core, JumpingClock, running_core
from tests.support.effects import FileTools

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def talking(database: Database) -> AsyncIterator[tuple[Core, JumpingClock]]:
    clock = JumpingClock()
    async with running_core(database, says("Good."), clock=clock) as core:
        yield core, clock
    assert core.bugs == []


async def rows(core: Core, user: User, sql: str) -> list[Any]:
    async with core.database.user(user.id) as tx:
        return await tx.fetch(sql)


async def states(core: Core, user: User) -> list[str]:
    return [
        r["state"] for r in await rows(core, user, "select state from segments order by opened_at")
    ]


async def until_states(core: Core, user: User, *wanted: str) -> None:
    with anyio.fail_after(20):
        while await states(core, user) != list(wanted):
            core.system.look_for_durable()
            await core.parts.clock.sleep(0.02)


async def timer(core: Core, user: User) -> Any:
    found = await rows(core, user, "select due_at from outbox where lane = 'silence'")
    return found[0]["due_at"] if found else None


async def test_a_segment_ends_after_two_hours_of_silence_and_not_before(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, clock):
        await core.ask(user.id, "Good morning.")
        [opened] = await rows(core, user, "select last_message_at from segments")
        assert await timer(core, user) == opened["last_message_at"] + timedelta(minutes=120)
        clock.jump(minutes=119)
        core.system.look_for_durable()
        await core.ask(user.id, "Still here.")
        # The timer rings at the time that was set, finds that somebody has spoken, and is set anew.
        clock.jump(minutes=2)
        with anyio.fail_after(20):
            while await timer(core, user) == opened["last_message_at"] + timedelta(minutes=120):
                core.system.look_for_durable()
                await core.parts.clock.sleep(0.02)
        assert await states(core, user) == ["active"]
        [spoken] = await rows(core, user, "select last_message_at from segments")
        assert await timer(core, user) == spoken["last_message_at"] + timedelta(minutes=120)
        clock.jump(minutes=119)
        await until_states(core, user, "collapsing")
        assert await timer(core, user) is None
        [asked] = await rows(core, user, "select address from outbox where lane = 'summaries'")
        assert asked["address"] == str(user.id)


async def test_who_speaks_while_a_segment_collapses_opens_the_next_and_is_answered(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, _):
        await core.ask(user.id, "marmalade")
        await core.conversations.collapse(user.id)
        assert isinstance(await core.ask(user.id, "two"), Completed)
        said = await rows(
            core, user,
            "select s.state = 'active', m.content -> 0 ->> 'text' as words from messages m "
            "join turns t on t.id = m.turn_id join segments s on s.id = t.segment_id "
            "where m.role = 'user' order by m.turn_seq",
        )  # fmt: skip
        assert [tuple(r.values()) for r in said] == [(False, "marmalade"), (True, "two")]
        # What was said before stands in the prompt word for word until it is summarised.
        prompt = core.model.requests[-1].messages
        assert "marmalade" in str(prompt)


async def test_a_paused_segment_outlasts_any_silence_until_somebody_speaks(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, clock):
        await core.ask(user.id, "wait for me")
        paused = await core.conversations.pause(user.id)
        assert await timer(core, user) is None
        clock.jump(days=30)
        core.system.look_for_durable()
        assert await states(core, user) == ["paused"]
        await core.ask(user.id, "back again")
        assert await states(core, user) == ["active"]
        [segment] = await rows(core, user, "select id, last_message_at from segments")
        assert segment["id"] == paused
        assert await timer(core, user) == segment["last_message_at"] + timedelta(minutes=120)


async def test_a_pause_that_is_ended_counts_silence_from_then(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, clock):
        await core.ask(user.id, "wait for me")
        await core.conversations.pause(user.id)
        clock.jump(hours=5)
        await core.conversations.resume(user.id)
        clock.jump(minutes=119)
        core.system.look_for_durable()
        assert await states(core, user) == ["active"]
        clock.jump(minutes=2)
        await until_states(core, user, "collapsing")


async def test_without_an_open_segment_there_is_nothing_to_pause_resume_or_end(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, _):
        for steer in (
            core.conversations.pause,
            core.conversations.resume,
            core.conversations.collapse,
        ):
            with pytest.raises(NotFound, match="no open segment"):
                await steer(user.id)
        await core.ask(user.id, "hello")
        await core.conversations.collapse(user.id)
        with pytest.raises(NotFound):
            await core.conversations.collapse(user.id)
        assert await states(core, user) == ["collapsing"]


async def test_a_timer_that_was_set_before_a_restart_rings_after_it(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, _):
        await core.ask(user.id, "hello")
    clock = JumpingClock()
    clock.jump(hours=3)
    async with running_core(database, says("Good."), clock=clock) as core:
        await until_states(core, user, "collapsing")


async def test_a_segment_whose_timer_was_lost_gets_another_when_somebody_speaks(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, _):
        await core.ask(user.id, "hello")
    async with database.user(user.id) as tx:
        assert await tx.execute("delete from outbox where lane = 'silence'") == 1
    async with talking(database) as (core, clock):
        await core.ask(user.id, "hello again")
        assert await timer(core, user) is not None
        clock.jump(minutes=119)
        core.system.look_for_durable()
        assert await states(core, user) == ["active"]
        clock.jump(minutes=2)
        await until_states(core, user, "collapsing")


async def test_no_silence_ends_a_segment_while_a_message_waits_for_its_answer(
    database: Database, user: User
) -> None:
    ids, clock = SystemIds(), JumpingClock()
    now = clock.now()
    async with database.user(user.id) as tx:
        generation = await tx.value("select generation from house")
        fence = await turns.activate(tx, user.id, generation)
        accepted = await turns.accept(
            tx, user.id, turn_id=ids.new(), message_id=ids.new(), request_id="one", digest=b"",
            blocks=(Text(text="one"),), at=now, limit=9, generation=generation,
        )  # fmt: skip
        await turns.take(tx, user.id, fence, ids.new(), now, 7200.0)
        # As after a process that ended in the middle of it.
        await turns.run_again(tx, user.id, accepted.turn_id)
        clock.jump(hours=5)
        later = clock.now()
        silence = await segments.begin_collapse(tx, user.id, fence, None, later, 7200.0)
    assert silence.outcome == "early"
    assert silence.due is not None
    assert silence.due > later


async def test_a_turn_that_is_tried_again_days_later_opens_a_segment_of_its_own_time(
    database: Database, user: User
) -> None:
    clock = JumpingClock()
    async with running_core(database, ProviderRejected("no"), says("Better."), clock=clock) as core:
        turn_id = await core.say(user.id, "hello")
        assert isinstance((await core.events(user.id, turn_id))[-1], TurnError)
        await core.conversations.collapse(user.id)
        clock.jump(days=2)
        await core.conversations.retry(user.id, turn_id)
        assert isinstance((await core.events(user.id, turn_id))[-1], Completed)
        clock.jump(minutes=119)
        core.system.look_for_durable()
        await core.system.workers.quiet()
        assert (await states(core, user))[-1] == "active"
        clock.jump(minutes=2)
        with anyio.fail_after(20):
            while (await states(core, user))[-1] == "active":
                core.system.look_for_durable()
                await core.parts.clock.sleep(0.02)


async def test_segments_follow_each_other_though_the_clock_is_set_back(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, clock):
        clock.jump(days=3)
        await core.ask(user.id, "one")
        await core.conversations.collapse(user.id)
        clock.jump(days=-3)
        for words in ("two", "three"):
            await core.ask(user.id, words)
            await core.conversations.collapse(user.id)
        said = await rows(
            core, user,
            "select m.content -> 0 ->> 'text' as words from messages m "
            "join turns t on t.id = m.turn_id join segments s on s.id = t.segment_id "
            "where m.role = 'user' order by s.opened_at, s.id",
        )  # fmt: skip
        assert [row["words"] for row in said] == ["one", "two", "three"]
        # What was said last stands in the next prompt, whatever date it bears.
        await core.ask(user.id, "four")
        prompt = str(core.model.requests[-1].messages)
        assert "three" in prompt
        assert "'one'" not in prompt


async def test_what_came_of_an_action_leaves_the_memories_in_context_where_they_were(
    database: Database, user: User, tmp_path: Path
) -> None:
    tools = FileTools(tmp_path / "sent")
    send = calls(ToolUse(call_id="call-1", name="send", arguments='{"text": "milk"}'))
    async with running_core(database, send, says("I asked."), tools=tools) as core:
        await core.ask(user.id, "Send it.")
    kept = f'{{"surfaced": ["{user.id}"]}}'
    async with database.user(user.id) as tx:
        await tx.execute("update conversations set working_state = $1::jsonb", kept)
    async with running_core(database, says("Sent."), tools=tools) as core:
        [action] = (await core.conversations.standing(user.id)).confirmations
        await core.conversations.confirm(user.id, action.action_id, True)
        with anyio.fail_after(20):
            while len(await rows(core, user, "select from turns where settled_at is not null")) < 2:
                await core.parts.clock.sleep(0.02)
        [door] = await rows(core, user, "select working_state::text as state from conversations")
        assert door["state"] == kept


async def test_of_a_summary_of_no_segment_nothing_is_announced(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, _):
        await core.ask(user.id, "hello")
        nothing = SummaryMade(segment_id=SystemIds().new())
        async with database.user(user.id) as tx:
            await core.system.tell_durable(tx, door_of(user.id), nothing, lane="segments")
        assert isinstance(await core.ask(user.id, "still here?"), Completed)
        with anyio.fail_after(20):
            while await rows(core, user, "select from outbox where lane = 'segments'"):
                await core.parts.clock.sleep(0.02)
        assert "SegmentCollapsed" not in core.events_heard.names()
        assert await states(core, user) == ["active"]


async def test_a_clock_that_was_set_back_ends_nothing_early(database: Database, user: User) -> None:
    async with talking(database) as (core, clock):
        clock.jump(days=2)
        await core.ask(user.id, "hello from the future")
        clock.jump(days=-2)
        core.system.look_for_durable()
        await core.ask(user.id, "and from now")
        assert await states(core, user) == ["active"]


async def test_the_tools_that_were_used_are_noted_and_the_working_state_begins_anew(
    database: Database, user: User
) -> None:
    async with talking(database) as (core, _):
        await core.ask(user.id, "hello")
        async with core.database.user(user.id) as tx:
            await tx.execute("update conversations set working_state = '{\"surfaced\": []}'")
        await core.conversations.collapse(user.id)
        [segment] = await rows(core, user, "select tools from segments")
        assert segment["tools"] == []
        [door] = await rows(core, user, "select working_state::text as state from conversations")
        assert door["state"] == "{}"
