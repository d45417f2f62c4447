"""The few primitives that asyncio and trio do differently.

A native one-shot waiter and a native task cost a fraction of what an event and a task group
would; an ask is little more than these two. Everything else, cancel scopes included, is anyio's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context as Variables
from typing import Any, Protocol, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Waiter(Protocol[T]):
    """One answer for one waiting task, in the manner of asyncio.Future.

    Setting a waiter that is done is an error, so ask first. When the waiting task is cancelled,
    the waiter is done.
    """

    def done(self) -> bool: ...

    def set_result(self, result: T, /) -> None: ...

    def set_exception(self, exception: Exception, /) -> None: ...

    def __await__(self) -> Generator[Any, Any, T]: ...


class Backend(Protocol):
    """Tasks and waiters of the running event loop."""

    def waiter(self) -> Waiter[Any]: ...

    def spawn(
        self,
        work: Callable[[*Ts], Coroutine[Any, Any, None]],
        *args: *Ts,
    ) -> None:
        """Start a task that belongs to no task group, in a copy of the engine's own context.

        `work` lets no Exception escape.
        """
        ...


class AsyncioBackend:
    """Futures and tasks of the running asyncio (or uvloop) loop."""

    def __init__(self, variables: Variables) -> None:
        self._loop = asyncio.get_running_loop()
        self._variables = variables
        # The loop itself holds tasks weakly.
        self._tasks: set[asyncio.Task[None]] = set()
        self.waiter: Callable[[], Waiter[Any]] = self._loop.create_future

    def spawn(
        self,
        work: Callable[[*Ts], Coroutine[Any, Any, None]],
        *args: *Ts,
    ) -> None:
        task = self._loop.create_task(work(*args), context=self._variables.copy())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def current_backend(variables: Variables) -> Backend:
    """The backend of the running event loop; `variables` is the context its tasks start from."""
    try:
        return AsyncioBackend(variables)
    except RuntimeError:
        from .backend_trio import TrioBackend

        return TrioBackend(variables)


class Bell:
    """Wakes one task; ringing it any number of times before that task looks wakes it once."""

    __slots__ = ("_backend", "_rung", "_waiter")

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._waiter: Waiter[None] | None = None
        self._rung = False

    def ring(self) -> None:
        self._rung = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def wait(self) -> None:
        """Wait until it has rung since the last time this returned."""
        while not self._rung:
            self._waiter = self._backend.waiter()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._rung = False
