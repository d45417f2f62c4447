"""The SDK's clients of one provider: made at first use, made anew when the key has changed.

There are several where many calls are under way at once, since a client looks through all its
network connections at the beginning and at the end of every call.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar

import anyio
import anyio.to_thread

from mira.errors import ProviderRejected

#: Sent where an endpoint wants no key. Given explicitly, since without any key the SDKs would
#: look for one in places of their own: other variables, profiles on disk.
NO_KEY = "none"

KeySource = Callable[[], Awaitable[str | None]]

_CLOSING = 5.0
#: Calls that one client carries before another is made, and how many clients there are at most.
_CALLS, _CLIENTS = 8, 64


class Closable(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


async def load_module(name: str) -> Any:
    """Import a slow module in a thread, so that the loop goes on meanwhile."""
    return sys.modules.get(name) or await anyio.to_thread.run_sync(importlib.import_module, name)


class _Line(Generic[C]):
    """A client and how many calls it carries."""

    __slots__ = ("calls", "client")

    def __init__(self, client: C) -> None:
        self.client = client
        self.calls = 0


class Connection(Generic[C]):
    """The clients of one provider, shared by its models.

    `make` builds a client from the SDK module, the key and the base address, `another` a second
    one like it, at little cost. A key is needed unless there is a base address. Retries of the
    SDK must be off: routing has the only retry layer.
    """

    def __init__(
        self,
        provider: str,
        module: str,
        make: Callable[[Any, str, str | None], C],
        another: Callable[[C], C],
        key: KeySource,
        base_url: str | None = None,
    ) -> None:
        self.provider = provider
        self.base_url = base_url
        self._module = module
        self._make = make
        self._another = another
        self._read_key = key
        self._key: str | None = None
        self._lines: list[_Line[C]] = []
        self._retired: list[_Line[C]] = []
        self._lock = anyio.Lock()

    async def client(self) -> C:
        """A client for a short call. Raises ProviderRejected where a key is needed and none is
        set."""
        return (await self._line()).client

    @asynccontextmanager
    async def call(self) -> AsyncIterator[C]:
        """A client for a call that lasts. Raises as `client`."""
        line = await self._line()
        line.calls += 1
        try:
            yield line.client
        finally:
            line.calls -= 1

    async def _line(self) -> _Line[C]:
        # The first that has room: few calls use few connections, and those stay warm.
        for line in self._lines:
            if line.calls < _CALLS:
                return line
        if not self._lines:
            return await self._first()
        if len(self._lines) == _CLIENTS:
            return min(self._lines, key=lambda line: line.calls)
        self._lines.append(_Line(self._another(self._lines[0].client)))
        return self._lines[-1]

    async def _first(self) -> _Line[C]:
        async with self._lock:
            if not self._lines:
                sdk = await load_module(self._module)
                self._key = await self._read_key()
                if self._key is None and self.base_url is None:
                    raise ProviderRejected(
                        f"No key for {self.provider} is set.",
                        provider=self.provider,
                        http_status=401,
                    )
                if self._key is not None and not re.fullmatch("[!-~]+", self._key):
                    # It would not fit into a header, and the fault would quote it.
                    raise ProviderRejected(
                        f"The key for {self.provider} contains letters that no key contains.",
                        provider=self.provider,
                        http_status=401,
                    )
                # Half a second, most of it certificates: not on the loop.
                made = await anyio.to_thread.run_sync(
                    self._make, sdk, self._key or NO_KEY, self.base_url
                )
                self._lines = [_Line(made)]
            return self._lines[0]

    @property
    def keyed(self) -> bool:
        """Whether the client has a key."""
        return self._key is not None

    async def refresh(self) -> bool:
        """Read the key again; clients with an old one are replaced. Return whether it changed.

        Streams that run on an old client are left to end: it is closed with the connection.
        """
        async with self._lock:
            if await self._read_key() == self._key:
                return False
            self._retired += self._lines
            self._lines = []
            return True

    async def aclose(self) -> None:
        """Close the clients. Idempotent."""
        lines = [*self._retired, *self._lines]
        self._retired, self._lines = [], []
        with anyio.move_on_after(_CLOSING, shield=True):
            for line in lines:
                await line.client.close()
