"""One SDK client per provider: made at first use, made anew when its key has changed."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

import anyio
import anyio.to_thread

from mira.errors import ProviderRejected

#: Sent where an endpoint wants no key. Given explicitly, since without any key the SDKs would
#: look for one in places of their own: other variables, profiles on disk.
NO_KEY = "none"

KeySource = Callable[[], Awaitable[str | None]]

_CLOSING = 5.0


class Closable(Protocol):
    async def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


async def load_module(name: str) -> Any:
    """Import a slow module in a thread, so that the loop goes on meanwhile."""
    return sys.modules.get(name) or await anyio.to_thread.run_sync(importlib.import_module, name)


class Connection(Generic[C]):
    """The client of one provider, shared by its models.

    `make` builds a client from the SDK module, the key and the base address. A key is needed
    unless there is a base address. Retries of the SDK must be off: routing has the only retry
    layer.
    """

    def __init__(
        self,
        provider: str,
        module: str,
        make: Callable[[Any, str, str | None], C],
        key: KeySource,
        base_url: str | None = None,
    ) -> None:
        self.provider = provider
        self.base_url = base_url
        self._module = module
        self._make = make
        self._read_key = key
        self._key: str | None = None
        self._client: C | None = None
        self._retired: list[C] = []
        self._lock = anyio.Lock()

    async def client(self) -> C:
        """The client. Raises ProviderRejected where a key is needed and none is set."""
        if self._client is not None:
            return self._client
        async with self._lock:
            if self._client is None:
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
                self._client = await anyio.to_thread.run_sync(
                    self._make, sdk, self._key or NO_KEY, self.base_url
                )
            return self._client

    @property
    def keyed(self) -> bool:
        """Whether the client has a key."""
        return self._key is not None

    async def refresh(self) -> bool:
        """Read the key again; a client with an old one is replaced. Return whether it changed.

        Streams that run on the old client are left to end: it is closed with the connection.
        """
        async with self._lock:
            if await self._read_key() == self._key:
                return False
            if self._client is not None:
                self._retired.append(self._client)
            self._client = None
            return True

    async def aclose(self) -> None:
        """Close the client. Idempotent."""
        clients, self._retired = [*self._retired, self._client], []
        self._client = None
        for client in clients:
            if client is not None:
                with anyio.move_on_after(_CLOSING, shield=True):
                    await client.close()
