"""Reading a file without trusting it: a process of its own for each, with limits."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec

from mira.errors import ValidationFailed
from mira.files.limits import DEADLINE
from mira.files.result import Refused
from mira.messages.files import ReadFile

_CODE = Path(__file__).parents[2]
_decode = msgspec.msgpack.Decoder(ReadFile | Refused).decode


async def read_file(name: str, content: bytes, *, deadline: float = DEADLINE) -> ReadFile:
    """What a file holds: an image in two sizes, or the words of a document.

    Nothing of the file is opened in this process. Raises ValidationFailed, with a sentence for
    whoever gave the file, if it is empty, of no kind that can be read, damaged, protected, or
    takes more memory or time than a file may. A cancelled caller leaves no process.
    """
    if not content:
        raise ValidationFailed("This file is empty.")
    try:
        with anyio.fail_after(deadline):
            answer = await _ask(msgspec.msgpack.encode((name, content)))
    except TimeoutError:
        raise ValidationFailed("Reading this file takes too long.") from None
    try:
        result: ReadFile | Refused = _decode(answer)
    except msgspec.DecodeError:
        # It was killed, by its limits or by somebody: the file is what it died of.
        raise ValidationFailed("This file takes too much time or memory to be read.") from None
    if isinstance(result, Refused):
        raise ValidationFailed(result.detail)
    return result


async def _ask(question: bytes) -> bytes:
    """What a child answers; nothing if it died. It is gone when this returns or is cancelled."""
    with anyio.CancelScope(shield=True):  # a start that is broken off would leave a child behind
        child = await anyio.open_process(
            [sys.executable, "-m", "mira.files.child"],
            stderr=subprocess.DEVNULL, cwd=_CODE, env={}, start_new_session=True,
        )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await child.stdin.send(question)
        await child.stdin.aclose()
        answer = b"".join([piece async for piece in child.stdout])
        await child.wait()
        return answer
    finally:
        with anyio.CancelScope(shield=True), suppress(ProcessLookupError):
            if child.returncode is None:
                child.kill()
            await child.aclose()
