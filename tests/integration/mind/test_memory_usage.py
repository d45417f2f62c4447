"""What counts as use of a memory: named or echoed in an answer, and never merely shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from uuid import UUID

import pytest

from mira.actors.memory_keeper_parts import USE
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.memory.model import Memory
from mira.memory.usage import Usage, cited, sentences
from mira.messages.content import Block, Text, ToolResult, ToolUse, encode_blocks
from mira.messages.memory import CountUse
from mira.store import traces
from mira.store.database import Database
from mira.store.traces import Trace
from mira.store.users import User
from tests.support.keeper import keeping
from tests.support.memory import Remembering

pytestmark = pytest.mark.anyio

SISTER = "Mara, the user's sister, lives in Graz"
TEA = "The user drinks green tea in the morning"


class Answers:
    """Turns with an answer, and memories that were shown for it."""

    def __init__(self, here: Remembering, user: UUID) -> None:
        self.here = here
        self.user = user
        self.usage = Usage(here.database, here.encoders, SystemClock())

    async def turn(self, *said: tuple[str, Block], shown: Sequence[Memory] = ()) -> UUID:
        """A turn of these messages, for which these memories were shown."""
        ids = SystemIds()
        turn_id = await self.here.turn(self.user)
        async with self.here.database.user(self.user) as tx:
            for position, (role, block) in enumerate(said):
                await tx.execute(
                    "insert into messages (id, user_id, turn_id, turn_seq, attempt, position, "
                    "role, content, created_at) select $1, $2, id, seq, attempt, $4, $5, "
                    "$6::jsonb, $7 from turns where id = $3",
                    ids.new(), self.user, turn_id, position, role, encode_blocks((block,)),
                    self.here.clock.now(),
                )  # fmt: skip
            trace = Trace(
                id=ids.new(), turn_id=turn_id, purpose="recall", at=self.here.clock.now(),
                query={}, results=[], surfaced=tuple(one.id for one in shown),
            )  # fmt: skip
            await traces.write(tx, self.user, trace)
        return turn_id

    async def counts(self, memory: Memory) -> tuple[int, int]:
        """How often a memory was used, and said."""
        now = await self.here.memories.get(self.user, memory.id)
        return now.access_count, now.mention_count

    async def noted(self, turn_id: UUID) -> tuple[UUID, ...]:
        async with self.here.database.user(self.user) as tx:
            [trace] = await traces.of_turn(tx, self.user, turn_id)
        return trace.used


def answered(text: str) -> tuple[str, Block]:
    return "assistant", Text(text=text)


@pytest.fixture
async def answers(here: Remembering, user: User) -> Answers:
    return Answers(here, user.id)


async def remember(answers: Answers, *facts: str) -> list[Memory]:
    return [(await answers.here.add(answers.user, fact)).memory for fact in facts]


async def test_a_memory_that_is_named_in_the_answer_is_used(answers: Answers) -> None:
    [sister, tea] = await remember(answers, SISTER, TEA)
    turn_id = await answers.turn(
        answered(f"As I noted ({sister.short_id}), you have family there."), shown=[sister, tea]
    )
    assert await answers.usage.count(answers.user, turn_id) == [sister.id]
    assert await answers.counts(sister) == (1, 0)
    assert await answers.noted(turn_id) == (sister.id,)


async def test_a_memory_that_a_sentence_of_the_answer_says_again_is_used(answers: Answers) -> None:
    [sister, tea] = await remember(answers, SISTER, TEA)
    turn_id = await answers.turn(
        answered("Good question! Your sister Mara lives in Graz. Shall I look for trains?"),
        shown=[sister, tea],
    )
    assert await answers.usage.count(answers.user, turn_id) == [sister.id]


async def test_a_memory_that_is_merely_shown_is_not_used(answers: Answers) -> None:
    [sister, tea] = await remember(answers, SISTER, TEA)
    turn_id = await answers.turn(
        answered("The capital of Slovenia is Ljubljana. It has a fine castle above the river."),
        shown=[sister, tea],
    )
    assert await answers.usage.count(answers.user, turn_id) == []
    assert await answers.counts(sister) == (0, 0)
    assert await answers.noted(turn_id) == ()


async def test_a_memory_that_a_tool_is_called_with_is_used_but_not_one_that_it_returns(
    answers: Answers,
) -> None:
    [sister, tea] = await remember(answers, SISTER, TEA)
    call = ToolUse(
        call_id="c", name="memory_tool", arguments=json.dumps({"id": sister.short_id, "note": "x"})
    )
    result = ToolResult(call_id="c", text=f"Noted. See also {tea.short_id}.")
    turn_id = await answers.turn(("assistant", call), ("tool", result), answered("Done."))
    assert await answers.usage.count(answers.user, turn_id) == [sister.id]


async def test_what_the_user_says_does_not_count_as_the_answer(answers: Answers) -> None:
    [sister] = await remember(answers, SISTER)
    turn_id = await answers.turn(
        ("user", Text(text=f"{SISTER}. What is {sister.short_id}?")), answered("Hm."),
        shown=[sister],
    )  # fmt: skip
    assert await answers.usage.count(answers.user, turn_id) == []


async def test_a_memory_is_used_once_a_turn_however_often_it_is_counted(answers: Answers) -> None:
    [sister] = await remember(answers, SISTER)
    words = answered(f"Your sister Mara lives in Graz ({sister.short_id}, {sister.short_id}).")
    first = await answers.turn(words, shown=[sister])
    second = await answers.turn(words, shown=[sister])
    for turn_id in (first, first, second, second, first):
        await answers.usage.count(answers.user, turn_id)
    assert await answers.counts(sister) == (2, 0)


async def test_a_memory_of_somebody_else_is_not_used(answers: Answers, other: User) -> None:
    foreign = (await answers.here.add(other.id, "Somebody else's secret is safe")).memory
    turn_id = await answers.turn(answered(f"See {foreign.short_id}: the secret is safe."))
    assert await answers.usage.count(answers.user, turn_id) == []
    assert (await answers.here.memories.get(other.id, foreign.id)).access_count == 0


async def test_the_keeper_counts_when_it_is_told_of_a_turn(
    answers: Answers, database: Database
) -> None:
    [sister] = await remember(answers, SISTER)
    turn_id = await answers.turn(answered(f"I know: {sister.short_id}."), shown=[sister])
    async with keeping(database, answers.here.encoders) as keeper:
        await keeper.tell(answers.user, CountUse(turn_id=turn_id), USE, str(turn_id))
        await keeper.settled()
    assert await answers.counts(sister) == (1, 0)


def test_short_ids_are_found_as_they_stand_and_nothing_like_them() -> None:
    said = ["(mem_0a1b2c3d), xmem_11111111 and mem_0a1b2c3d; mem_22222222.", "MEM_33333333 mem_4"]
    assert cited(said) == ("mem_0a1b2c3d", "mem_22222222")


def test_code_markup_and_short_phrases_are_no_sentences() -> None:
    answer = (
        "Sure!\n\n- **Mara** lives in the city of Graz.\n```\nprint('not a sentence at all')\n```\n"
        "1. She moved there in May. Fine."
    )
    assert sentences(answer) == ["Mara lives in the city of Graz.", "She moved there in May."]
