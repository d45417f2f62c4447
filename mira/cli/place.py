"""Where the running server is, and how this machine's administrator proves to be one.

The server leaves two files in its home: `server.json` with its address and process, and
`admin-token`, which only the account that runs it can read.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from mira.errors import Unavailable
from mira.settings import Settings

SERVER_FILE = "server.json"
TOKEN_FILE = "admin-token"  # noqa: S105


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server that has announced itself."""

    url: str
    pid: int
    token: str

    @property
    def websocket(self) -> str:
        return "ws" + self.url.removeprefix("http") + "/v1/ws"

    def __repr__(self) -> str:
        return f"Server(url={self.url!r}, pid={self.pid})"


class _Announced(msgspec.Struct, frozen=True):
    url: str
    pid: int


def find(settings: Settings) -> Server | None:
    """The server of this home; None if none runs.

    A file that a killed server left behind does not count. Raises Unavailable when the files are
    there and cannot be read.
    """
    announced = _read(settings.home / SERVER_FILE)
    token = _read(settings.home / TOKEN_FILE)
    if announced is None or token is None:
        return None
    try:
        found = msgspec.json.decode(announced, type=_Announced)
    except msgspec.DecodeError:
        raise Unavailable(
            f"{settings.home / SERVER_FILE} cannot be understood. Restart the server."
        ) from None
    if not _alive(found.pid):
        return None
    return Server(url=found.url.rstrip("/"), pid=found.pid, token=token.decode("ascii").strip())


def need(settings: Settings) -> Server:
    """The server of this home. Raises Unavailable if none runs."""
    server = find(settings)
    if server is None:
        raise Unavailable(
            f"No server is running for {settings.home}. Start one with: mira serve\n"
            "(If it runs with another MIRA_HOME, set that here too.)"
        )
    return server


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be read: {error.strerror}. "
            "Run this command as the user who runs the server."
        ) from None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
