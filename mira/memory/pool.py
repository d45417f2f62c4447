"""The threads in which models compute: few, owned by one object, shared by embedding and entities.

Work waits in two lanes. Live work (somebody waits for an answer) goes first, and background work
never takes the last free thread where there are two or more: a live query waits for another live
query at most, never for a background batch. Work is begun in the order in which it came to its
lane, and is never broken off: pieces of background work are to be small.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import anyio

from mira.errors import SystemStopped
from mira.telemetry import logger

log = logger("cpu_pool")
T = TypeVar("T")

#: How far the threads stand back behind the rest of the process; Linux counts it by the thread. On
#: two busy cores it halves what the event loop is late, and queries are answered no later.
NICE = 5
#: How long closing waits for work that is under way, in seconds.
GRACE = 10.0


class CpuPool:
    """A bounded number of threads. Used from one event loop, in that loop's thread."""

    def __init__(self, threads: int = 2, *, room: int = 64) -> None:
        """`room` is how much work each lane holds; beyond it, who brings more waits."""
        self.threads = threads
        self._executor = ThreadPoolExecutor(
            threads, thread_name_prefix="mira-cpu", initializer=os.nice, initargs=(NICE,)
        )
        self._live: deque[_Work] = deque()
        self._background: deque[_Work] = deque()
        self._running = 0
        self._running_background = 0
        self._room = {True: asyncio.Semaphore(room), False: asyncio.Semaphore(room)}
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def background(self) -> int:
        """How much background work may run at once."""
        return max(1, self.threads - 1)

    async def run(self, work: Callable[[], T], *, live: bool = False) -> T:
        """Run `work` in a thread and return what it returns, or raise what it raises.

        Waits for room in its lane, in order. Whoever is cancelled while its work waits takes it
        back; work that has begun goes on to its end, and its result is dropped.
        Raises SystemStopped when the pool is closed before the work begins.
        """
        async with self._room[live]:
            return await self.submit(work, live=live)

    def submit(self, work: Callable[[], T], *, live: bool = False) -> asyncio.Future[T]:
        """As `run`, for callers that bound themselves: takes no heed of room.

        Cancelling the future takes back what has not begun.
        """
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        if self._closed:
            answer.set_exception(SystemStopped("The models are being put away."))
            return answer
        lane = self._live if live else self._background
        entry = _Work(work, live, answer)
        lane.append(entry)
        answer.add_done_callback(lambda _: None if entry.begun else _withdraw(entry, lane))
        self._fill()
        return answer

    async def aclose(self) -> None:
        """Begin nothing more, wait `GRACE` seconds at most for what runs. Idempotent. Of a pool in
        which nothing runs any more no thread is left.

        Work that has not begun is answered with SystemStopped.
        """
        self._closed = True
        for lane in (self._live, self._background):
            while lane:
                entry = lane.popleft()
                if not entry.answer.done():
                    entry.answer.set_exception(SystemStopped("The models are being put away."))
        self._executor.shutdown(wait=False)
        with anyio.move_on_after(GRACE, shield=True):
            await self._idle.wait()
        if self._running:
            log.warning("closed_while_busy", running=self._running)
        else:
            self._executor.shutdown()  # nothing runs: the threads are at their end

    def _fill(self) -> None:
        """Begin what may begin now."""
        while self._running < self.threads and not self._closed:
            if self._live:
                entry = self._live.popleft()
            elif self._background and self._running_background < self.background:
                entry = self._background.popleft()
                self._running_background += 1
            else:
                return
            entry.begun = True
            self._running += 1
            self._idle.clear()
            loop = asyncio.get_running_loop()
            ran = loop.run_in_executor(self._executor, entry.work)
            ran.add_done_callback(partial(self._ended, entry))

    def _ended(self, entry: _Work, ran: asyncio.Future[Any]) -> None:
        self._running -= 1
        if not entry.live:
            self._running_background -= 1
        if not self._running:
            self._idle.set()
        error = ran.exception()
        if entry.answer.done():  # whoever asked has gone
            if error is not None:
                log.warning("failed_unheard", error=type(error).__name__)
        elif error is not None:
            entry.answer.set_exception(error)
        else:
            entry.answer.set_result(ran.result())
        self._fill()


def _withdraw(entry: _Work, lane: deque[_Work]) -> None:
    if entry in lane:
        lane.remove(entry)


class _Work:
    __slots__ = ("answer", "begun", "live", "work")

    def __init__(self, work: Callable[[], Any], live: bool, answer: asyncio.Future[Any]) -> None:
        self.work = work
        self.live = live
        self.answer = answer
        self.begun = False
