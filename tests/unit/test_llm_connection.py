"""Clients of a provider: how many there are, and which one a call gets."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import pytest

from mira.llm.connection import Connection

pytestmark = pytest.mark.anyio


class Client:
    """Stands for an SDK's client: all that a Connection does with one is to close it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = False

    async def close(self) -> None:
        self.closed = True


class Clients:
    """Makes clients, numbered as they are made."""

    def __init__(self) -> None:
        self.made: list[Client] = []
        self.key = "one"

    def make(self, _sdk: Any, _key: str, _base: str | None) -> Client:
        return self.another(None)

    def another(self, _client: Client | None) -> Client:
        self.made.append(Client(len(self.made)))
        return self.made[-1]

    async def read_key(self) -> str:
        return self.key

    def connection(self) -> Connection[Client]:
        return Connection("somebody", "json", self.make, self.another, self.read_key)


async def test_few_calls_share_one_client_and_many_are_spread_over_more() -> None:
    clients = Clients()
    connection = clients.connection()
    async with AsyncExitStack() as stack:
        used = [(await stack.enter_async_context(connection.call())).number for _ in range(20)]
    assert used == [0] * 8 + [1] * 8 + [2] * 4
    async with connection.call() as client:
        assert client.number == 0


async def test_there_is_an_end_to_the_clients_and_calls_beyond_it_are_spread_evenly() -> None:
    clients = Clients()
    connection = clients.connection()
    async with AsyncExitStack() as stack:
        used = [(await stack.enter_async_context(connection.call())).number for _ in range(64 * 9)]
    assert len(clients.made) == 64
    assert {used.count(number) for number in range(64)} == {9}


async def test_after_a_change_of_key_calls_get_a_new_client_and_all_are_closed_at_the_end() -> None:
    clients = Clients()
    connection = clients.connection()
    async with connection.call() as before:
        assert not await connection.refresh()
        clients.key = "two"
        assert await connection.refresh()
        async with connection.call() as after:
            assert after is not before
        assert not before.closed
    await connection.aclose()
    assert all(client.closed for client in clients.made)
