"""Slow work beside an actor, so that no mailbox waits for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from anyio import CancelScope

from mira.errors import ActorFailed, MiraError, RateLimited, SystemStopped
from mira.messages.base import Message

from .actor import Outcome
from .cell import current_cell
from .envelope import Envelope
from .observer import report
from .stats import JobStats

if TYPE_CHECKING:
    from .system import ActorSystem

T = TypeVar("T")


class RunningJob(Generic[T]):
    """A job that runs or waits for its turn."""

    __slots__ = ("_cancelled", "_scope", "done", "envelope", "kind", "takes_reply", "then", "work")

    def __init__(
        self,
        envelope: Envelope,
        kind: str,
        work: Callable[[], Awaitable[T]],
        then: Callable[[Outcome[T]], Message] | None,
        takes_reply: bool,
    ) -> None:
        self.envelope = envelope
        self.kind = kind
        self.work = work
        self.then = then
        self.takes_reply = takes_reply
        self.done = False
        self._scope = CancelScope()

    def cancel(self) -> None:
        self._scope.cancel()

    async def run(self, system: ActorSystem) -> Outcome[T]:
        if self._scope.cancel_called:
            return Outcome(cancelled=True)
        with self._scope:
            try:
                return Outcome(await self.work())
            except MiraError as error:
                return Outcome(error=error)
            except Exception as error:
                report(system.observer.job_failed, self.envelope.address, self.kind, error)
                return Outcome(error=ActorFailed(f"a {self.kind} job of {self.envelope.address}"))
        return Outcome(cancelled=True)


class Jobs:
    """Starts jobs in the order in which they come, at most so many of a kind at a time."""

    def __init__(self, system: ActorSystem) -> None:
        self._system = system
        self._settings = system.settings
        self._waiting: dict[str, deque[RunningJob[Any]]] = {}
        self._running: dict[str, set[RunningJob[Any]]] = {}
        self._closed = False
        self.stats: dict[str, JobStats] = {}

    def start(
        self,
        envelope: Envelope,
        kind: str,
        work: Callable[[], Awaitable[T]],
        then: Callable[[Outcome[T]], Message] | None,
        take_reply: bool,
    ) -> RunningJob[T]:
        """See Context.job."""
        if self._closed:
            raise SystemStopped("the engine is stopping")
        queue = self._waiting.setdefault(kind, deque())
        if len(queue) >= self._settings.jobs_waiting:
            raise RateLimited(f"too many {kind} jobs are waiting")
        job = RunningJob(envelope, kind, work, then, take_reply)
        if take_reply:
            envelope.hand_over(job)
        envelope.cell.jobs += 1
        queue.append(job)
        self._start_waiting(kind)
        return job

    def cancel_all(self) -> None:
        """Cancel what runs and what waits; no outcome is told any more."""
        self._closed = True
        for kind, queue in self._waiting.items():
            while queue:
                self._stopped(queue.popleft())
            for job in self._running.get(kind, ()):
                job.cancel()

    def _start_waiting(self, kind: str) -> None:
        queue = self._waiting[kind]
        running = self._running.setdefault(kind, set())
        limit = self._settings.jobs.get(kind, self._settings.jobs_default)
        stats = self.stats.setdefault(kind, JobStats())
        while queue and len(running) < limit:
            job = queue.popleft()
            running.add(job)
            self._system.workers.spawn(self._run, job)
        stats.running, stats.waiting = len(running), len(queue)

    async def _run(self, job: RunningJob[T]) -> None:
        current_cell.set(job.envelope.cell)
        self._system.carrier.set(job.envelope.carried)
        try:
            outcome = await job.run(self._system)
        finally:
            job.done = True
            self._running[job.kind].discard(job)
            job.envelope.cell.jobs -= 1
            self._start_waiting(job.kind)
        if self._closed:
            self._stopped(job)
            return
        stats = self.stats[job.kind]
        stats.ended += 1
        stats.failed += outcome.error is not None
        stats.cancelled += outcome.cancelled
        self._tell(job, outcome)

    def _tell(self, job: RunningJob[T], outcome: Outcome[T]) -> None:
        envelope = job.envelope
        if job.takes_reply:
            if outcome.ok:
                envelope.answer(outcome.value)
            else:
                envelope.fail(outcome.error or ActorFailed(f"a {job.kind} job was cancelled"))
        if job.then is not None:
            try:
                message = job.then(outcome)
            except Exception as error:
                report(self._system.observer.job_failed, envelope.address, job.kind, error)
                return
            # The limits of jobs bound these, and a result must not be lost to a full mailbox.
            envelope.cell.put_beyond(Envelope(envelope.cell, message, envelope.carried))

    def _stopped(self, job: RunningJob[Any]) -> None:
        if job.takes_reply:
            job.envelope.fail(SystemStopped("the engine has stopped"))
