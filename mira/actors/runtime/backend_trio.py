"""Tasks and waiters on trio. Imported only where trio runs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context as Variables
from typing import Any, Generic, TypeVar, TypeVarTuple

import outcome
import trio

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class TrioWaiter(Generic[T]):
    """One answer for one waiting task."""

    __slots__ = ("_done", "_result", "_task")

    def __init__(self) -> None:
        self._done = False
        self._result: outcome.Outcome[T] | None = None
        self._task: trio.lowlevel.Task | None = None

    def done(self) -> bool:
        return self._done

    def set_result(self, result: T, /) -> None:
        self._set(outcome.Value(result))

    def set_exception(self, exception: Exception, /) -> None:
        self._set(outcome.Error(exception))

    def _set(self, result: outcome.Outcome[T]) -> None:
        if self._done:
            raise RuntimeError("the waiter is done")
        self._done = True
        self._result = result
        if self._task is not None:
            trio.lowlevel.reschedule(self._task)

    def __await__(self) -> Generator[Any, Any, T]:
        if self._result is None:
            self._task = trio.lowlevel.current_task()
            waiting = trio.lowlevel.wait_task_rescheduled(self._abort)  # noqa: ASYNC105
            yield from waiting.__await__()
            self._task = None
        assert self._result is not None
        return self._result.unwrap()

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._done = True
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class TrioBackend:
    """System tasks: like the tasks of asyncio they are nobody's children."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self.waiter: Callable[[], TrioWaiter[Any]] = TrioWaiter

    def spawn(
        self,
        work: Callable[[*Ts], Coroutine[Any, Any, None]],
        *args: *Ts,
    ) -> None:
        trio.lowlevel.spawn_system_task(work, *args, context=self._variables.copy())
