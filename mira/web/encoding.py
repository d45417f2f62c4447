"""Events as text on the wire, written once for all clients that get the same one."""

from __future__ import annotations

import msgspec

from mira.messages.stream import AnyTurnEvent, ThinkingAdded
from mira.messages.wire import ServerFrame

_encode = msgspec.json.Encoder().encode
#: Events kept; beyond it all are forgotten, since none is of use for long.
_MOST = 1024


class Encoded:
    """The JSON of recent events, by identity: readers of one log are handed the same objects."""

    def __init__(self) -> None:
        # The event is kept beside its text, so that its id is not given to another meanwhile.
        self._texts: dict[int, tuple[object, str]] = {}

    def text(self, item: AnyTurnEvent | ServerFrame) -> str:
        """JSON text of one frame."""
        known = self._texts.get(id(item))
        if known is not None and known[0] is item:
            return known[1]
        text = _encode(item).decode()
        if len(self._texts) >= _MOST:
            self._texts.clear()
        self._texts[id(item)] = (item, text)
        return text

    def sse(self, event: AnyTurnEvent) -> bytes:
        """The same as a server-sent event."""
        kind = type(event).__struct_config__.tag
        return f"id: {event.seq}\nevent: {kind}\ndata: {self.text(event)}\n\n".encode()


def shows(event: object, thinking: bool) -> bool:
    """Whether a client that asked for thinking, or did not, gets this event."""
    return thinking or not isinstance(event, ThinkingAdded)
