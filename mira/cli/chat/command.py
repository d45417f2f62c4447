"""The arguments of `mira chat`, and which kind of conversation they ask for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated
from uuid import UUID

import anyio
import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from mira.cli.asking import ask
from mira.cli.chat.line import Line
from mira.cli.chat.once import INTERRUPTED, Aloud, Answer, Once, Quiet
from mira.cli.http import Http
from mira.cli.output import Json, print_json_line
from mira.cli.place import Server, need
from mira.clock import SystemClock
from mira.errors import TooLarge, ValidationFailed
from mira.ids import SystemIds
from mira.settings import Settings

#: The longest message is 100,000 characters of at most four bytes.
_MOST_BYTES = 400_000


def chat(
    *,
    once: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    attach: tuple[Path, ...] = (),
    json: Json = False,
    history: Annotated[int, Parameter(validator=Number(gte=0, lte=200))] = 4,
) -> int:
    """Talk to MIRA. There is one conversation, the same on every surface.

    In a terminal it is interactive: Ctrl-C stops the running answer, a second one leaves, /help
    lists commands. Standard input that is no terminal is one message, and its answer the output.
    A lost connection is taken up again where it broke.

    Exit codes: 0 answered, or left; 1 the message was refused or its turn failed; 3 the server is
    out of reach; 130 stopped with Ctrl-C.

    Parameters
    ----------
    once
        Say this one message, print the answer and leave. A dash reads it from standard input.
    attach
        A file that goes with the message of --once: an image or a document. May be repeated.
    json
        Print the answer as one line of JSON, with turn_id, reply, usage and timings; or with
        error, which has code and detail. For --once and pipes.
    history
        How many earlier messages to show at the beginning.
    """
    if once == "-" or (once is None and not sys.stdin.isatty()):
        once = _piped()
    if once is not None:
        return _once(_worth_saying(once, attach), attach, json)
    if attach:
        raise ValidationFailed("--attach goes with --once, or with a message from a pipe.")
    if json:
        raise ValidationFailed("--json goes with --once, or with a message from a pipe.")
    if not sys.stdout.isatty():
        raise ValidationFailed("This is no terminal to talk in. Use: mira chat --once 'a message'")
    return ask(lambda settings: _talk(settings, history))


async def _talk(settings: Settings, history: int) -> int:
    from rich.console import Console

    from mira.cli.chat import past, reports
    from mira.cli.chat.editor import Editor
    from mira.cli.chat.screen import Below, Screen
    from mira.cli.chat.talk import Talk
    from mira.cli.chat.thread import Thread

    console = Console(highlight=False)
    if console.is_dumb_terminal:
        raise ValidationFailed(
            "This terminal cannot move its cursor (TERM). Use: mira chat --once 'a message'"
        )
    async with Http(need(settings)) as http:
        earlier = await past.newest(http, history)
        notes = await reports.model_notes(http)
        screen = Screen(console, Below(Editor()))
        clock = SystemClock()
        thread = Thread(screen, earlier, notes)
        with Line(lambda: need(settings), clock, SystemIds()) as line:
            return await Talk(line, thread, screen, http, clock).run()


def _once(message: str, attach: tuple[Path, ...], json: bool) -> int:
    audience = Aloud() if sys.stdout.isatty() and not json else Quiet()

    async def put(settings: Settings) -> Answer | None:
        files = await _given(need(settings), attach)
        with Line(lambda: need(settings), SystemClock(), SystemIds()) as line:
            return await Once(line, audience).ask(message, files)

    answer = ask(put)
    if answer is None:
        return INTERRUPTED
    if json:
        print_json_line(answer)
    else:
        audience.end(answer)
    return answer.exit_code


class _File(msgspec.Struct, frozen=True):
    id: UUID


async def _given(server: Server, paths: tuple[Path, ...]) -> tuple[UUID, ...]:
    """Files sent to the server; their ids. Raises ValidationFailed, naming the file."""
    found = []
    async with Http(server) as http:
        for path in paths:
            try:
                content = await anyio.Path(path).read_bytes()
                found.append(await http.give("/v1/files", _File, content, name=path.name))
            except OSError as error:
                why = error.strerror or "it cannot be read"
                raise ValidationFailed(f"{path}: {why}.") from None
            except (ValidationFailed, TooLarge) as error:
                raise ValidationFailed(f"{path}: {error.detail}") from None
    return tuple(one.id for one in found)


def _piped() -> str:
    raw = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(raw) > _MOST_BYTES:
        raise ValidationFailed("The message on standard input is too long.")
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValidationFailed("The message on standard input is not UTF-8.") from None


def _worth_saying(message: str, attach: tuple[Path, ...]) -> str:
    try:
        message.encode()
    except UnicodeEncodeError:
        # What the shell passed was no UTF-8.
        raise ValidationFailed("The message is not UTF-8.") from None
    # A file may go without words.
    if not message.strip() and not attach:
        raise ValidationFailed("The message is empty.")
    return message
