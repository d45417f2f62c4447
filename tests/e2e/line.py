"""The line between a browser and the server: it can be cut, mended, and made deaf.

A plain relay of bytes in a thread of its own. What stands behind it is real; only the network
misbehaves, as networks do.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Line:
    """Listens on loopback and passes everything on to the server."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        assert parts.hostname
        assert parts.port
        self._target = (parts.hostname, parts.port)
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._whole = True
        self._deaf = False
        self.url = ""

    def cut(self) -> None:
        """Break every connection, and refuse new ones until it is mended."""
        self._whole = False
        self._call(self._drop)

    def mend(self) -> None:
        """Let connections through again, in both directions."""
        self._whole = True
        self._deaf = False

    def deafen(self) -> None:
        """Lose what the server answers; what the browser sends still arrives."""
        self._deaf = True

    def serve(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._connected, "127.0.0.1", 0)
        )
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            self._drop()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _call(self, function: object) -> None:
        done = threading.Event()

        def run() -> None:
            assert callable(function)
            function()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(10)

    def _drop(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        there, away = await asyncio.open_connection(*self._target)
        self._open |= {writer, away}
        try:
            await asyncio.gather(
                self._pass(reader, away, answers=False), self._pass(there, writer, answers=True)
            )
        finally:
            self._open -= {writer, away}
            writer.transport.abort()
            away.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                if not (answers and self._deaf):
                    writer.write(data)
                    await writer.drain()
        writer.transport.abort()


@contextmanager
def line_to(target: str) -> Iterator[Line]:
    """A line to the server at `target`, for as long as the block lasts."""
    line = Line(target)
    ready = threading.Event()
    thread = threading.Thread(target=line.serve, args=(ready,), name="line")
    thread.start()
    assert ready.wait(10)
    try:
        yield line
    finally:
        line.stop()
        thread.join(10)
