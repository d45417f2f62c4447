"""Turns when something goes wrong between their steps: nothing lost, nothing doubled, no thread
stopped for good."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import anyio
import pytest

from mira.actors.continuum import KIND, door_of
from mira.actors.parts import Stage
from mira.actors.taking_over import take_over
from mira.actors.tool_run import ToolRun
from mira.clock import SystemClock
from mira.errors import DatabaseUnavailable, ProviderRejected, Unavailable, ValidationFailed
from mira.ids import SystemIds
from mira.llm.scripted import Answer, calls, says
from mira.messages.content import Text, ToolResult, ToolUse
from mira.messages.stream import Completed, TurnError
from mira.messages.tool import ToolCall
from mira.messages.turn import SettleAction, TurnState
from mira.store import effects, turns
from mira.store.database import Database
from mira.store.turns import Closing, TakenTurn
from mira.store.users import User
from tests.conftest import Place
from tests.integration.test_store_turns import NOW, accept, activate, close, take
from tests.support.core import as_owner, cut_off, let_back, running_core
from tests.support.effects import FileTools

pytestmark = pytest.mark.anyio
ids = SystemIds()


def _note(call_id: str = "c1", name: str = "note") -> ToolUse:
    return ToolUse(call_id=call_id, name=name, arguments='{"text": "milk"}')


async def _state(database: Database, user: User, turn_id: UUID) -> TurnState:
    async with database.user(user.id) as tx:
        return (await turns.get(tx, user.id, turn_id)).state


class Interrupting(FileTools):
    """Tools that do something when they are opened."""

    def __init__(self, path: Path, act: Callable[[], object]) -> None:
        super().__init__(path)
        self._act = act

    async def open(self, user_id: UUID, turn_id: UUID) -> ToolRun:
        await self._act()  # type: ignore[misc]
        return await super().open(user_id, turn_id)


async def test_a_database_lost_before_an_effect_is_an_outage_and_the_turn_is_answered_later(
    place: Place, database: Database, user: User, tmp_path: Path
) -> None:
    opened = 0

    async def once() -> None:
        nonlocal opened
        opened += 1
        if opened == 1:
            await cut_off(place)

    script = [calls(_note()), calls(_note()), says("Noted.")]
    tools = Interrupting(tmp_path / "notes", once)
    async with running_core(database, *script, tools=tools) as core:
        turn_id = await core.say(user.id, "note milk")
        with anyio.fail_after(20):
            # Not let back before the door has met the outage and given the turn up.
            while not core.system.stats().kinds[KIND].handled:
                await anyio.lowlevel.checkpoint()
            await let_back(place)
            events = await core.events(user.id, turn_id)
    assert isinstance(events[-1], Completed)
    assert events[-1].reply == "Noted."
    assert opened == 2
    assert (tmp_path / "notes").read_text() == "note: milk\n"
    assert core.bugs == []


async def test_a_zone_that_python_does_not_know_costs_what_needs_it_and_not_the_answer(
    place: Place, database: Database, user: User
) -> None:
    async def live_in(zone: str) -> None:
        async with database.engine() as tx:
            await tx.execute("update users set timezone = $1 where id = $2", zone, user.id)

    async with running_core(database, says("Good.")) as core:
        # A zone that the database knows and Python does not.
        await live_in("FOO+5")
        with anyio.fail_after(20):
            assert isinstance(await core.ask(user.id, "one"), Completed)
            assert "mira:now" not in str(core.model.requests[-1].messages)
            await live_in("UTC")
            assert isinstance(await core.ask(user.id, "two"), Completed)
    assert core.bugs == []


async def test_a_turn_that_is_tried_again_is_in_its_own_prompt_once(
    database: Database, user: User
) -> None:
    script: list[Answer] = [says("Hello."), ProviderRejected("no"), says("There."), says("Bye.")]
    async with running_core(database, *script) as core:
        with anyio.fail_after(20):
            await core.ask(user.id, "first")
            turn_id = await core.say(user.id, "second")
            assert isinstance((await core.events(user.id, turn_id))[-1], TurnError)
            await core.conversations.retry(user.id, turn_id)
            assert isinstance((await core.events(user.id, turn_id))[-1], Completed)
            await core.ask(user.id, "third")
    for request in core.model.requests[2:]:
        words = [b.text for m in request.messages for b in m.blocks if isinstance(b, Text)]
        assert sum("second" in text for text in words) == 1
        assert sum("first" in text for text in words) == 1


async def test_a_stopping_server_begins_no_further_turn(database: Database, user: User) -> None:
    running = anyio.Event()

    def reached(stage: Stage, _turn: UUID) -> None:
        if stage is Stage.FIRST_EVENT:
            running.set()

    slow = says("One two three.", wait=0.2)
    async with running_core(database, slow, reached=reached) as core:
        first = await core.say(user.id, "one")
        second = await core.say(user.id, "two")
        await running.wait()
    assert await _state(database, user, first) is TurnState.COMPLETE
    assert await _state(database, user, second) is TurnState.RECEIVED
    assert len(core.model.requests) == 1
    async with running_core(database, says("Two.")) as core:
        with anyio.fail_after(20):
            assert isinstance((await core.events(user.id, second))[-1], Completed)


async def test_a_message_whose_sender_leaves_at_once_is_answered_at_once(
    database: Database, user: User
) -> None:
    async with running_core(database, says("Yes.")) as core:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await core.conversations.accept(user.id, request_id="r", content="are you there")
        async with database.user(user.id) as tx:
            [turn] = await turns.page(tx, user.id, before=None, limit=10)
        with anyio.fail_after(0.9):
            assert isinstance((await core.events(user.id, turn.id))[-1], Completed)


async def test_a_decision_outlives_the_settling_of_an_earlier_turn(
    database: Database, user: User, tmp_path: Path
) -> None:
    """The first message after a crash may be the user's word: what it asks for is done before it
    is forgotten, though a turn still has to be settled before it."""
    await accept(database, user, "send milk")
    fence = await activate(database, user)
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    action_id = ids.new()
    call = ToolCall(turn_id=taken.turn_id, call_id="c1", name="send", arguments='{"text": "milk"}')
    async with database.user(user.id) as tx:
        await effects.propose(tx, user.id, action_id, call, NOW)
    await close(database, user, fence, taken, TurnState.COMPLETE, "May I?")
    async with database.user(user.id) as tx:
        await effects.decide(tx, user.id, action_id, True, NOW)
        await tx.execute("delete from outbox")
    kept: list[int] = []

    async def look() -> None:
        async with database.engine() as tx:
            kept.append(await tx.value("select count(*) from outbox where lane = 'actions'"))

    tools = Interrupting(tmp_path / "sent", look)
    async with running_core(database, says("Sent."), tools=tools) as core:
        async with database.user(user.id) as tx:
            await core.system.tell_durable(
                tx, door_of(user.id), SettleAction(action_id=action_id, at=NOW), lane="actions",
                key=str(action_id),
            )  # fmt: skip
        with anyio.fail_after(20):
            while len(core.model.requests) < 1:
                await anyio.lowlevel.checkpoint()
    assert kept[0] == 1
    assert (tmp_path / "sent").read_text() == "send: milk\n"


async def test_a_turn_that_asked_before_its_process_died_does_not_ask_again(
    database: Database, user: User
) -> None:
    async with running_core(database, says("Fine.")) as core:
        parts = core.parts
    await accept(database, user, "send milk", generation=parts.generation)
    async with database.user(user.id) as tx:
        fence = await turns.activate(tx, user.id, parts.generation)
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    async with database.user(user.id) as tx:
        await effects.propose(
            tx, user.id, ids.new(),
            ToolCall(turn_id=taken.turn_id, call_id="c1", name="send", arguments="{}"), NOW,
        )  # fmt: skip
    await take_over(parts, user.id)
    assert await _state(database, user, taken.turn_id) is TurnState.INTERRUPTED


async def test_a_turn_that_dies_every_time_before_anything_is_seen_is_given_up(
    database: Database, user: User
) -> None:
    async with running_core(database, says("Fine.")) as core:
        parts = core.parts
    await accept(database, user, "poison", generation=parts.generation)
    begun = 0
    while True:
        standing = await take_over(parts, user.id)
        taken = await take(database, user, standing.fence)
        if taken is None:
            break
        begun += 1
    assert begun == 8
    async with database.user(user.id) as tx:
        [turn] = await turns.page(tx, user.id, before=None, limit=10)
    assert turn.state is TurnState.INTERRUPTED


async def test_a_retry_that_overtakes_the_settling_is_settled_again(
    database: Database, user: User
) -> None:
    accepted = await accept(database, user, "one")
    fence = await activate(database, user)
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    closing = Closing(turn_id=taken.turn_id, attempt=1, state=TurnState.FAILED)
    async with database.user(user.id) as tx:
        await turns.close(tx, user.id, fence, closing, NOW)
    async with database.user(user.id) as tx:
        await turns.retry(tx, user.id, taken.turn_id, NOW, 0)
    async with database.user(user.id) as tx:
        await turns.settle(tx, user.id, taken.turn_id, NOW, 0)
        assert (await turns.get(tx, user.id, accepted.turn_id)).settled_at is None


async def test_what_a_turn_asked_for_is_void_when_it_is_tried_again(
    database: Database, user: User
) -> None:
    await accept(database, user, "send milk")
    fence = await activate(database, user)
    taken = await take(database, user, fence)
    assert isinstance(taken, TakenTurn)
    action_id = ids.new()
    call = ToolCall(turn_id=taken.turn_id, call_id="c1", name="send", arguments="{}")
    async with database.user(user.id) as tx:
        await effects.propose(tx, user.id, action_id, call, NOW)
    await close(database, user, fence, taken, TurnState.CANCELLED, "")
    async with database.user(user.id) as tx:
        await turns.retry(tx, user.id, taken.turn_id, NOW, 0)
        assert (await effects.get(tx, user.id, action_id)).state == "expired"


async def test_a_durable_message_that_nobody_can_read_holds_up_no_other(
    place: Place, database: Database, user: User, other: User
) -> None:
    await accept(database, user, "hello")
    async with database.user(other.id) as tx:
        await tx.execute(
            "insert into outbox (user_id, kind, address, lane, payload, due_at, created_at) values "
            "($1, 'continuum', $2, 'turns', '{\"type\": \"Gone\"}', 'epoch', 'epoch')",
            other.id, str(other.id),
        )  # fmt: skip
    async with running_core(database, says("Hello.")) as core:
        async with database.user(user.id) as tx:
            [turn] = await turns.page(tx, user.id, before=None, limit=10)
        with anyio.fail_after(20):
            assert isinstance((await core.events(user.id, turn.id))[-1], Completed)
    async with database.engine() as tx:
        assert await tx.value("select error from dead_letters") == "Unreadable"


async def test_a_database_that_takes_no_writes_is_unavailable_and_nothing_is_stored_by_halves(
    place: Place, user: User
) -> None:
    await as_owner(place, "alter database $db set default_transaction_read_only = on")
    opened = await Database.open(place.app, place.engine, size=2)
    try:
        with pytest.raises(DatabaseUnavailable):
            await accept(opened, user, "hello")
    finally:
        await opened.aclose()


async def test_a_server_that_was_replaced_is_unavailable_to_clients_and_no_conflict(
    database: Database, user: User
) -> None:
    async with running_core(database, says("Hello.")) as core:
        async with database.engine() as tx:
            await tx.execute("update house set generation = generation + 1")
        with pytest.raises(Unavailable):
            await core.say(user.id, "hello")


async def test_a_client_cannot_take_the_place_of_the_turn_that_answers_an_action(
    database: Database, user: User
) -> None:
    async with running_core(database, says("Hello.")) as core:
        with pytest.raises(ValidationFailed):
            await core.conversations.accept(user.id, request_id="action:1", content="hello")


async def test_calls_that_a_server_numbers_anew_in_each_answer_are_all_made(
    database: Database, user: User, tmp_path: Path
) -> None:
    def note(text: str) -> ToolUse:
        return ToolUse(call_id="call_0", name="note", arguments=json.dumps({"text": text}))

    script = [calls(note("milk")), calls(note("bread"), note("salt")), says("Noted.")]
    async with running_core(database, *script, tools=FileTools(tmp_path / "notes")) as core:
        with anyio.fail_after(20):
            assert isinstance(await core.ask(user.id, "note all this"), Completed)
    assert (tmp_path / "notes").read_text() == "note: milk\nnote: bread\nnote: salt\n"
    results = [
        block.text
        for message in core.model.requests[-1].messages
        for block in message.blocks
        if isinstance(block, ToolResult)
    ]
    assert results == ["note done: milk", "note done: bread", "note done: salt"]


@pytest.mark.parametrize(
    "arguments", ['{"text": ' + "[" * 5000 + "]" * 5000 + "}", '{"text": 1e300000}']
)
@pytest.mark.parametrize("tool", ["note", "send"])
async def test_arguments_beyond_what_can_be_stored_are_the_models_error_and_not_ours(
    database: Database, user: User, tmp_path: Path, tool: str, arguments: str
) -> None:
    use = ToolUse(call_id="c1", name=tool, arguments=arguments)
    script = [calls(use), says("Never mind.")]
    async with running_core(database, *script, tools=FileTools(tmp_path / "notes")) as core:
        with anyio.fail_after(20):
            ending = await core.ask(user.id, "note this")
    assert isinstance(ending, Completed)
    assert ending.reply == "Never mind."


async def test_a_turn_that_is_tried_again_may_ask_again_under_the_same_id(
    database: Database, user: User, tmp_path: Path
) -> None:
    def reached(stage: Stage, turn_id: UUID) -> None:
        if stage is Stage.COMPOSED:
            turn.append(turn_id)

    turn: list[UUID] = []
    asks = calls(_note(name="send"))
    async with running_core(
        database, asks, asks, reached=reached, tools=FileTools(tmp_path / "notes")
    ) as core:
        with anyio.fail_after(20):
            assert isinstance(await core.ask(user.id, "send milk"), Completed)
            async with database.user(user.id) as tx:
                await tx.execute("update turns set state = 'cancelled'")
            await core.conversations.retry(user.id, turn[0])
            assert isinstance((await core.events(user.id, turn[0]))[-1], Completed)
            standing = await core.conversations.standing(user.id)
    assert [action.tool for action in standing.confirmations] == ["send"]


async def test_a_clock_that_is_set_back_keeps_no_accepted_message_waiting(
    database: Database, user: User
) -> None:
    tomorrow = SystemClock().now() + timedelta(days=1)
    accepted = await accept(database, user, "hello", at=tomorrow)
    async with running_core(database, says("Hello.")) as core:
        with anyio.fail_after(20):
            events = await core.events(user.id, accepted.turn_id)
    assert isinstance(events[-1], Completed)
