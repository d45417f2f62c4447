"""A WebSocket client that costs next to nothing, so that it is never what is measured.

It speaks as much of RFC 6455 as a client of MIRA needs: the handshake, masked text frames out,
whole frames in, ping and close. Everything happens in callbacks of the loop, with no task.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
import time
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

OnText = Callable[[bytes, float], None]
OnEnd = Callable[[str], None]

_TEXT, _CLOSE, _PING, _PONG = 0x1, 0x8, 0x9, 0xA


class Socket(asyncio.Protocol):
    """One connection. `on_text` gets each frame and when it was read, on the monotonic clock."""

    def __init__(self, on_text: OnText, on_end: OnEnd) -> None:
        self._on_text = on_text
        self._on_end = on_end
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._open = False
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._why = "connection lost"

    @classmethod
    async def connect(
        cls,
        url: str,
        on_text: OnText,
        on_end: OnEnd,
        *,
        key: str = "",
        path: str = "/v1/ws",
    ) -> Socket:
        """Connect and shake hands. Raises ConnectionError when the server refuses."""
        where = urlsplit(url)
        socket = cls(on_text, on_end)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: socket, where.hostname or "", where.port or 80)
        nonce = base64.b64encode(os.urandom(16)).decode()
        signed = f"Authorization: Bearer {key}\r\n" if key else ""
        socket._write(
            f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: Upgrade\r\n"
            f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {nonce}\r\n"
            f"{signed}\r\n".encode()
        )
        await socket._opened
        return socket

    def send(self, text: bytes) -> float:
        """Write one text frame; return when, on the monotonic clock."""
        now = time.monotonic()
        self._send(_TEXT, text)
        return now

    def close(self) -> None:
        """Say goodbye and leave."""
        if self._transport is not None:
            self._send(_CLOSE, struct.pack(">H", 1000))
            self._transport.close()

    # The transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self._opened.done():
            self._opened.set_exception(ConnectionError(self._why))
        elif self._open:
            self._on_end(self._why)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self._buffer += data
        if not self._open and not self._shake():
            return
        buffer, start, end = self._buffer, 0, len(self._buffer)
        while end - start >= 2:
            length, head = buffer[start + 1] & 0x7F, 2
            if length == 126:
                head = 4
                if end - start < head:
                    break
                length = int.from_bytes(buffer[start + 2 : start + 4], "big")
            elif length == 127:
                head = 10
                if end - start < head:
                    break
                length = int.from_bytes(buffer[start + 2 : start + 10], "big")
            whole = start + head + length
            if whole > end:
                break
            kind = buffer[start] & 0xF
            if kind == _TEXT:
                self._on_text(bytes(buffer[start + head : whole]), now)
            elif kind == _PING:
                self._send(_PONG, bytes(buffer[start + head : whole]))
            elif kind == _CLOSE:
                said = bytes(buffer[start + head : whole])
                self._why = f"closed: {int.from_bytes(said[:2], 'big')} {said[2:].decode()}"
            start = whole
        if start:
            del buffer[:start]

    def _shake(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        status = bytes(self._buffer[: self._buffer.find(b"\r\n")]).decode("latin-1")
        if " 101" not in status:
            self._why = f"refused: {status} {bytes(self._buffer[end + 4 :])[:300]!r}"
            if self._transport is not None:
                self._transport.abort()
            return False
        del self._buffer[: end + 4]
        self._open = True
        self._opened.set_result(None)
        return True

    def _send(self, kind: int, payload: bytes) -> None:
        length = len(payload)
        if length < 126:
            head = struct.pack(">BB", 0x80 | kind, 0x80 | length)
        elif length < 65536:
            head = struct.pack(">BBH", 0x80 | kind, 0x80 | 126, length)
        else:
            head = struct.pack(">BBQ", 0x80 | kind, 0x80 | 127, length)
        mask = os.urandom(4)
        repeated = (mask * (length // 4 + 1))[:length]
        masked = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
        self._write(head + mask + masked.to_bytes(length, "big"))

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
