"""Micro-batching: texts that wait together are encoded together.

A batch costs the model about as much as its tokens, so batches are bounded in tokens, and texts
of like length share one, since the short are padded to the longest. The oldest text waiting is in
every batch that is made, and the rest of the batch are those nearest to it in length: nothing can
starve. A batch is made when a thread is free for it, not before; so under load it gathers what
has come in the meantime, and when idle a live text goes at once and a background text after the
few milliseconds in which others may join it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from mira.clock import AlarmClock
from mira.memory.embedding.base import Kind, Vectors

#: Beyond 64 tokens a batch gains nothing more (0.37 ms a token on one core), and half as much
#: again is lost at thousands; a full text of 256 is a batch by itself.
TOKENS = 256
TEXTS = 32
#: How long a background text waits for others, in seconds, while nothing is under way.
LINGER = 0.003
#: Among how many of the longest waiting the companions of a batch are sought.
SOUGHT = 256

#: Encodes one batch somewhere else: (texts, kind) -> vectors in the same order.
Encode = Callable[[Sequence[str], Kind], "asyncio.Future[Vectors]"]


class Request:
    """Texts of one caller, all of one kind; `vectors` is resolved when each has its vector."""

    def __init__(self, texts: Sequence[str], kind: Kind) -> None:
        self.texts = texts
        self.kind = kind
        self.vectors: asyncio.Future[Vectors] = asyncio.get_running_loop().create_future()
        #: Set when a batch of several requests failed: then each is tried apart from the others.
        self.alone = False
        self._rows: Vectors | None = None
        self._missing = len(texts)

    def fill(self, row: int, vector: Vectors) -> None:
        if self._rows is None:
            self._rows = np.empty((len(self.texts), len(vector)), np.float32)
        self._rows[row] = vector
        self._missing -= 1
        if not self._missing and not self.vectors.done():
            self.vectors.set_result(self._rows)


class _Item:
    __slots__ = ("request", "row", "weight")

    def __init__(self, request: Request, row: int, weight: int) -> None:
        self.request = request
        self.row = row
        self.weight = weight


class Batcher:
    """One lane of texts that wait; at most `at_once` of its batches are under way."""

    def __init__(
        self,
        encode: Encode,
        weigh: Callable[[str], int],
        clock: AlarmClock,
        *,
        at_once: int,
        linger: float,
    ) -> None:
        self._encode = encode
        self._weigh = weigh
        self._clock = clock
        self._at_once = at_once
        self._linger = linger
        self._waiting: list[_Item] = []
        self._under_way = 0
        self._alarm: Callable[[], None] | None = None

    def add(self, request: Request) -> None:
        """Take the request in. What its future says is all that comes back."""
        self._waiting += [
            _Item(request, row, self._weigh(text)) for row, text in enumerate(request.texts)
        ]
        if self._under_way < self._at_once and self._alarm is None:
            # With others under way already, a batch has waited for company long enough.
            linger = 0.0 if self._under_way else self._linger
            self._alarm = self._clock.later(linger, self._due)

    def forget(self, request: Request) -> None:
        """Drop what of a request still waits."""
        self._waiting = [item for item in self._waiting if item.request is not request]

    def close(self, error: Exception) -> None:
        """Answer everything that waits with `error`."""
        for item in self._waiting:
            if not item.request.vectors.done():
                item.request.vectors.set_exception(error)
        self._waiting = []

    def _due(self) -> None:
        self._alarm = None
        self._fill()

    def _fill(self) -> None:
        while self._waiting and self._under_way < self._at_once:
            batch = self._next()
            kind = batch[0].request.kind
            self._under_way += 1
            running = self._encode([i.request.texts[i.row] for i in batch], kind)
            running.add_done_callback(partial(self._ended, batch))

    def _next(self) -> list[_Item]:
        """Take the oldest out, and with it what is nearest to it in length, within the bounds."""
        oldest = self._waiting[0]
        sought = sorted(
            (item for item in self._waiting[:SOUGHT] if _may_share(oldest.request, item.request)),
            key=lambda item: (item is not oldest, abs(item.weight - oldest.weight)),
        )
        batch: list[_Item] = []
        longest = 0
        for item in sought[:TEXTS]:
            longest = max(longest, item.weight)
            if batch and longest * (len(batch) + 1) > TOKENS:
                break
            batch.append(item)
        taken = set(map(id, batch))
        self._waiting = [item for item in self._waiting if id(item) not in taken]
        return batch

    def _ended(self, batch: list[_Item], done: asyncio.Future[Vectors]) -> None:
        self._under_way -= 1
        error = None if done.cancelled() else done.exception()
        requests = {id(item.request): item.request for item in batch}.values()
        if done.cancelled():
            for request in requests:
                request.vectors.cancel()
                self.forget(request)
        elif error is None:
            for item, vector in zip(batch, done.result(), strict=True):
                item.request.fill(item.row, vector)
        elif len(requests) == 1:
            request = batch[0].request
            self.forget(request)
            if not request.vectors.done():
                request.vectors.set_exception(error)
        else:
            for request in requests:
                request.alone = True
            self._waiting = [item for item in batch if not item.request.vectors.done()] + (
                self._waiting
            )
        self._fill()


def _may_share(one: Request, other: Request) -> bool:
    return one is other or (one.kind == other.kind and not one.alone and not other.alone)
