"""A bounded queue whose senders wait in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .envelope import Envelope


class Mailbox:
    """First in, first out, for all senders together.

    A sender that finds no room parks its envelope; it moves up as room is made, before anybody
    who comes later. Queues exist only while there is something in them: an idle mailbox costs
    its slots.

    `awake` means that somebody looks after what is inside, or has been asked to by `wake`.
    """

    __slots__ = ("_parked", "_queue", "awake", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.awake = False
        self._queue: deque[Envelope] | None = None
        self._parked: deque[Envelope] | None = None

    def wake(self) -> None:
        """Have what is inside looked after. Called when something comes while not awake."""
        raise NotImplementedError

    def __len__(self) -> int:
        """How many wait inside, those parked before the door not counted."""
        return 0 if self._queue is None else len(self._queue)

    def __iter__(self) -> Iterator[Envelope]:
        return chain(self._queue or (), self._parked or ())

    def put(self, envelope: Envelope) -> bool:
        """Append; False if there is no room."""
        queue = self._queue
        if queue is None:
            self._queue = deque((envelope,))
        elif len(queue) < self.limit:
            queue.append(envelope)
        else:
            return False
        if not self.awake:
            self.wake()
        return True

    def put_beyond(self, envelope: Envelope) -> None:
        """Append whether or not there is room: for what is bounded elsewhere."""
        if self._queue is None:
            self._queue = deque()
        self._queue.append(envelope)
        if not self.awake:
            self.wake()

    def park(self, envelope: Envelope) -> None:
        """Queue before the door; `envelope.admitted()` is called when it has moved in."""
        if self._parked is None:
            self._parked = deque()
        self._parked.append(envelope)

    def remove(self, envelope: Envelope) -> bool:
        """Take one out of the middle, inside or parked. False if it is not there."""
        if self._parked is not None and envelope in self._parked:
            self._parked.remove(envelope)
            if not self._parked:
                self._parked = None
            return True
        if self._queue is None or envelope not in self._queue:
            return False
        self._queue.remove(envelope)
        if self._parked is not None:
            self.move_up()
        return True

    def move_up(self) -> None:
        """Let parked envelopes in as far as there is room."""
        queue, parked = self._queue, self._parked
        assert queue is not None
        while parked and len(queue) < self.limit:
            moved = parked.popleft()
            queue.append(moved)
            moved.admitted()
        if not parked:
            self._parked = None

    def tidy(self) -> None:
        """Give back the memory of a queue that is empty."""
        if not self._queue:
            self._queue = None
