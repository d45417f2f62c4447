"""A client that does not read: it slows nobody, and is let go with a hint where to resume."""

from __future__ import annotations

import re
import socket
import time
from urllib.parse import urlsplit

from tests.conftest import Server
from tests.support.client import CLOSING, Client, spoken


def handshake(server: Server) -> socket.socket:
    """A WebSocket that takes next to nothing in, and that nobody reads."""
    address = urlsplit(server.url)
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(60)
    plain.connect((address.hostname, address.port))
    plain.sendall(
        f"GET /v1/ws HTTP/1.1\r\nHost: {address.netloc}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nAuthorization: Bearer {server.read_key}\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    got = b""
    while b'"ready"' not in got:
        got += plain.recv(4096)
    return plain


def test_a_client_that_does_not_read_slows_nobody_and_is_let_go_with_a_hint(
    strict: Server,
) -> None:
    # More than the buffers of two kernels hold.
    text = " ".join(f"{n:03d}" + "x" * 20_000 for n in range(400))
    strict.double.script({"default": {"echo": True}, "queue": [{"text": text}]})
    with handshake(strict) as deaf, Client(strict.ws_url, strict.key, wait=60) as client:
        turn_id = client.say("much", "r1")["turn_id"]
        told = client.until(*CLOSING)
        assert told[-1]["type"] == "complete"
        assert spoken(told) == told[-1]["reply"]
        assert client.ask("next", "r2") == "next"
        # It reads only when the server has given it up.
        until = time.monotonic() + 30
        while "slow_client_dropped" not in strict.process.output():
            assert time.monotonic() < until, "the deaf client is not let go"
            time.sleep(0.05)
        rest = bytearray()
        while chunk := deaf.recv(1 << 20):
            rest += chunk
    # The last frame is a close (0x88) with its code, 1013, and a reason.
    reason = re.search(rb"\x88.\x03\xf5(too slow: resume (\S+) after \d+)$", bytes(rest[-200:]))
    assert reason, bytes(rest[-200:])
    assert reason[2].decode() == turn_id
