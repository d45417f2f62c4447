"""Prompt caching as Anthropic documents it, for the provider double: by prefix, at the marks."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import msgspec

#: How far before a mark the API looks for an older entry, in blocks.
_LOOK_BACK = 20
_BYTES_PER_TOKEN = 4
_CAPACITY = 50_000

_encode = msgspec.json.Encoder().encode


class PrefixCache:
    """Remembers the prefixes that were marked, and says what a request reads and writes."""

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, None] = OrderedDict()

    def account(self, body: dict[str, Any]) -> tuple[int, int, int]:
        """Tokens read from the cache, written to it, and left over, in this order."""
        digest = hashlib.blake2b(digest_size=16)
        boundaries: list[tuple[bytes, int]] = []
        marks: list[int] = []
        length = 0
        for raw, marked in _blocks(body):
            digest.update(raw)
            length += len(raw)
            if marked:
                marks.append(len(boundaries))
            boundaries.append((digest.digest(), length))
        read = written = 0
        for mark in reversed(marks):
            for key, size in reversed(boundaries[max(0, mark - _LOOK_BACK) : mark + 1]):
                if key in self._entries:
                    read = max(read, size)
                    self._entries.move_to_end(key)
                    break
            if read:
                break
        if marks:
            written = max(0, boundaries[marks[-1]][1] - read)
        for mark in marks:
            self._entries[boundaries[mark][0]] = None
        while len(self._entries) > _CAPACITY:
            self._entries.popitem(last=False)
        rest = length - read - written
        return read // _BYTES_PER_TOKEN, written // _BYTES_PER_TOKEN, -(-rest // _BYTES_PER_TOKEN)


def _blocks(body: dict[str, Any]) -> Iterator[tuple[bytes, bool]]:
    """The blocks in the order in which they are cached: tools, system, messages."""
    for tool in body.get("tools") or ():
        yield _bare("tool", tool)
    system = body.get("system") or ()
    for block in [{"type": "text", "text": system}] if isinstance(system, str) else system:
        yield _bare("system", block)
    for message in body.get("messages") or ():
        content = message.get("content") or ()
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            yield _bare(message.get("role", ""), block)


def _bare(place: str, block: Any) -> tuple[bytes, bool]:
    if not isinstance(block, dict):
        return _encode([place, block]), False
    marked = "cache_control" in block
    if marked:
        block = {key: value for key, value in block.items() if key != "cache_control"}
    return _encode([place, block]), marked
