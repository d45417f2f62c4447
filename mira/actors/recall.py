"""What a turn recalls before the model is asked. No actor: the door calls it.

Two things start together: a search with the message as it stands, and the Subcortex. When that
answers in time its phrases replace the message; when it is late, fails or answers rubbish, what
was found first stands. Each part is isolated: one that fails is left out and named.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mira.actors.recalled import Recalled, Wanted
from mira.messages.subcortex import Considered, InContext

#: Asks the Subcortex, given the memories that may be retained. Does not raise a MiraError.
Consider = Callable[[tuple[InContext, ...]], Awaitable[Considered]]


class Recall:
    """Recalls for any turn of any user. Safe to use from many tasks at once."""

    async def for_turn(self, wanted: Wanted, consider: Consider | None = None) -> Recalled:
        """What the model is to be shown, within the deadline of `consider` and that of a search.

        Without `consider` the message itself is searched. Never raises a MiraError: what fails is
        left out and named in the result.
        """
        raise NotImplementedError
