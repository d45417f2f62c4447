"""Whatever a small model answers, and whatever stands in the working state: the turn goes on."""

from __future__ import annotations

import pytest

from mira.llm.scripted import says
from mira.messages.stream import Completed
from mira.store.database import Database
from mira.store.users import User
from tests.support.core import running_core

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("escape", [r"\u0000", r"\ud800"])
async def test_a_turn_is_answered_whatever_characters_its_subcortex_looks_for(
    database: Database, user: User, escape: str
) -> None:
    said = f'{{"phrases": ["a bike{escape}"], "entities": ["No{escape}ra"]}}'
    async with running_core(database, says("Good."), subcortex=(says(said),)) as core:
        assert isinstance(await core.ask(user.id, "How heavy is my bike?"), Completed)
        async with database.user(user.id) as tx:
            phrases = await tx.value("select trace #>> '{subcortex,phrases,0}' from turn_traces")
        assert phrases == "a bike\ufffd"
    assert core.bugs == []


@pytest.mark.parametrize("state", ["[]", "null", '{"surfaced": "none"}', '{"surfaced": [1]}'])
async def test_a_working_state_that_cannot_be_read_is_begun_anew(
    database: Database, user: User, state: str
) -> None:
    async with database.user(user.id) as tx:
        await tx.execute("update conversations set working_state = $1::jsonb", state)
    async with running_core(database, says("Good.")) as core:
        assert isinstance(await core.ask(user.id, "Good morning."), Completed)
    assert core.bugs == []
