"""Server-sent events as providers stream them, read from bytes in whatever pieces they come.

The SDKs can do this too, at the price of several passes over each line and a model object for
each event; at a few thousand events a second that is most of what a server does.
"""

from __future__ import annotations

from mira.errors import ProviderMalformed

#: An event may have so many bytes; what is longer is no event of any protocol here.
LIMIT = 16 * 1024 * 1024


class Events:
    """Puts events together. `feed` gives what each piece of the stream completes."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._rest = b""
        self._name = b""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[tuple[bytes, bytes]]:
        """The events that end in this piece, as (name, data). Comments and other fields are left
        out, and so are events without data. Raises ProviderMalformed if one does not end."""
        rest = self._rest + piece
        held = b""
        if b"\r" in rest:
            # A line may end in CR, LF or both; a CR at the very end may be half of both.
            if rest.endswith(b"\r"):
                rest, held = rest[:-1], b"\r"
            rest = rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = rest.split(b"\n")
        self._rest = lines.pop() + held
        found = []
        for line in lines:
            if line.startswith(b"data:"):
                value = line[6:] if line.startswith(b"data: ") else line[5:]
                self._data.append(value)
                self._size += len(value)
            elif line.startswith(b"event:"):
                self._name = line[6:].strip()
            elif not line:
                if self._data:
                    found.append((self._name, b"\n".join(self._data)))
                self._name, self._data, self._size = b"", [], 0
        if len(self._rest) + self._size > LIMIT:
            raise ProviderMalformed(
                f"{self._provider} sent an event without an end.", provider=self._provider
            )
        return found
