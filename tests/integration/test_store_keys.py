"""Keys, sign-in links and sessions, in the database."""

from __future__ import annotations

from datetime import timedelta

import anyio
import pytest

from mira.errors import Conflict, NotFound, Unauthorized, ValidationFailed
from mira.ids import SystemIds
from mira.store import keys
from mira.store.database import Database
from mira.store.keys import Holder
from mira.store.users import User
from tests.conftest import EPOCH

pytestmark = pytest.mark.anyio
IDS = SystemIds()


async def test_a_key_opens_for_its_user_with_its_scope(database: Database, user: User) -> None:
    async with database.engine() as tx:
        new = await keys.create(tx, IDS, user.id, name="laptop", scope="chat", now=EPOCH)
    async with database.engine() as tx:
        holder = await keys.authenticate(tx, new.key, EPOCH)
    assert holder == Holder(user_id=user.id, scope="chat", key_id=new.id)
    assert new.key.startswith("mira_")
    assert len(new.key) >= len("mira_") + 43


async def test_the_database_holds_no_key_link_or_session_in_the_clear(
    database: Database, user: User
) -> None:
    async with database.engine() as tx:
        new = await keys.create(tx, IDS, user.id, name="laptop", scope="chat", now=EPOCH)
        link = await keys.create_link(tx, IDS, user.id, EPOCH)
        holder = Holder(user_id=user.id, scope="chat", key_id=new.id)
        session, _ = await keys.open_session(tx, IDS, holder, EPOCH)
        stored = [
            str(dict(row))
            for table in ("api_keys", "signin_links", "sessions")
            for row in await tx.fetch(f"select * from {table}")  # noqa: S608
        ]
    assert len(stored) == 3
    for secret in (new.key, new.key.removeprefix("mira_"), link, session):
        assert all(secret not in row for row in stored)


async def test_an_unknown_key_is_refused(database: Database, user: User) -> None:
    async with database.engine() as tx:
        await keys.create(tx, IDS, user.id, name="laptop", scope="chat", now=EPOCH)
    async with database.engine() as tx:
        with pytest.raises(Unauthorized):
            await keys.authenticate(tx, "mira_" + IDS.token(), EPOCH)


async def test_a_revoked_key_is_refused_and_so_are_its_sessions(
    database: Database, user: User
) -> None:
    async with database.engine() as tx:
        new = await keys.create(tx, IDS, user.id, name="laptop", scope="chat", now=EPOCH)
        holder = await keys.authenticate(tx, new.key, EPOCH)
        token, _ = await keys.open_session(tx, IDS, holder, EPOCH)
        assert (await keys.session(tx, token, EPOCH)).key_id == new.id
        await keys.revoke(tx, user.id, new.id, EPOCH)
        await keys.revoke(tx, user.id, new.id, EPOCH)
    async with database.engine() as tx:
        with pytest.raises(Unauthorized):
            await keys.authenticate(tx, new.key, EPOCH)
        with pytest.raises(Unauthorized):
            await keys.session(tx, token, EPOCH)
        assert [key.revoked_at for key in await keys.listed(tx, user.id)] == [EPOCH]


async def test_one_user_neither_sees_nor_revokes_the_keys_of_another(
    database: Database, user: User, other: User
) -> None:
    async with database.engine() as tx:
        new = await keys.create(tx, IDS, user.id, name="laptop", scope="chat", now=EPOCH)
        with pytest.raises(NotFound):
            await keys.revoke(tx, other.id, new.id, EPOCH)
        assert await keys.listed(tx, other.id) == []
        assert (await keys.authenticate(tx, new.key, EPOCH)).user_id == user.id


async def test_a_name_can_be_given_again_only_after_its_key_was_revoked(
    database: Database, user: User, other: User
) -> None:
    async with database.engine() as tx:
        first = await keys.create(tx, IDS, user.id, name="laptop", scope="chat", now=EPOCH)
        await keys.create(tx, IDS, other.id, name="laptop", scope="chat", now=EPOCH)
    with pytest.raises(Conflict, match="laptop"):
        async with database.engine() as tx:
            await keys.create(tx, IDS, user.id, name="laptop", scope="read", now=EPOCH)
    async with database.engine() as tx:
        await keys.revoke(tx, user.id, first.id, EPOCH)
        await keys.create(tx, IDS, user.id, name="laptop", scope="read", now=EPOCH)


@pytest.mark.parametrize("name", ["", "   ", "a" * 101, "line\nbreak", "nul\x00", "\ud800"])
async def test_a_key_needs_a_printable_name(database: Database, user: User, name: str) -> None:
    with pytest.raises(ValidationFailed):
        async with database.engine() as tx:
            await keys.create(tx, IDS, user.id, name=name, scope="chat", now=EPOCH)


async def test_the_last_use_of_a_key_is_noted_but_not_at_every_use(
    database: Database, user: User
) -> None:
    async with database.engine() as tx:
        new = await keys.create(tx, IDS, user.id, name="laptop", scope="chat", now=EPOCH)

        async def used(minutes: int) -> object:
            await keys.authenticate(tx, new.key, EPOCH + timedelta(minutes=minutes))
            return (await keys.listed(tx, user.id))[0].last_used_at

        assert await used(1) == EPOCH + timedelta(minutes=1)
        assert await used(3) == EPOCH + timedelta(minutes=1)
        assert await used(7) == EPOCH + timedelta(minutes=7)


async def test_a_sign_in_link_works_once(database: Database, user: User) -> None:
    async with database.engine() as tx:
        token = await keys.create_link(tx, IDS, user.id, EPOCH)
    async with database.engine() as tx:
        assert await keys.redeem_link(tx, token, EPOCH + timedelta(minutes=9)) == user.id
    async with database.engine() as tx:
        with pytest.raises(Unauthorized):
            await keys.redeem_link(tx, token, EPOCH + timedelta(minutes=9))


async def test_a_sign_in_link_is_over_after_ten_minutes(database: Database, user: User) -> None:
    async with database.engine() as tx:
        token = await keys.create_link(tx, IDS, user.id, EPOCH)
        with pytest.raises(Unauthorized):
            await keys.redeem_link(tx, token, EPOCH + timedelta(minutes=10))


async def test_of_many_who_race_for_a_link_one_gets_in(database: Database, user: User) -> None:
    async with database.engine() as tx:
        token = await keys.create_link(tx, IDS, user.id, EPOCH)
    outcomes: list[bool] = []

    async def race() -> None:
        try:
            async with database.engine() as tx:
                await keys.redeem_link(tx, token, EPOCH)
            outcomes.append(True)
        except Unauthorized:
            outcomes.append(False)

    async with anyio.create_task_group() as tasks:
        for _ in range(12):
            tasks.start_soon(race)
    assert sorted(outcomes) == [False] * 11 + [True]


async def test_a_session_lasts_thirty_days_and_ends_when_closed(
    database: Database, user: User
) -> None:
    async with database.engine() as tx:
        holder = Holder(user_id=user.id, scope="admin", key_id=None)
        token, ends = await keys.open_session(tx, IDS, holder, EPOCH)
        assert ends == EPOCH + timedelta(days=30)
        alive = await keys.session(tx, token, ends - timedelta(seconds=1))
        assert (alive.user_id, alive.scope, alive.expires_at) == (user.id, "admin", ends)
        with pytest.raises(Unauthorized):
            await keys.session(tx, token, ends)
        await keys.close_session(tx, token)
        with pytest.raises(Unauthorized):
            await keys.session(tx, token, EPOCH)
