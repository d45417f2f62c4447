"""What commands print: JSON for programs, lines and small tables for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec
from cyclopts import Parameter

#: The option `--json` of every command whose answer programs read.
Json: TypeAlias = Annotated[bool, Parameter(negative="", help="Print JSON, for programs.")]

#: Control characters would let what was said by others command the terminal.
_CONTROLS = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in (*range(0x20), *range(0x7F, 0xA0))
    if chr(code) not in "\n\t"
}


def printable(text: str) -> str:
    """`text` fit for a terminal: control characters but line break and tab are made harmless."""
    return text.translate(_CONTROLS)


def one_line(text: str, most: int = 200) -> str:
    """`text` as one line of at most `most` characters, fit for a terminal."""
    flat = " ".join(printable(text).split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def print_json(answer: object) -> None:
    """One JSON document, indented, on standard output."""
    print(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def print_json_line(answer: object) -> None:
    """One JSON document on a line of its own."""
    print(msgspec.json.encode(answer).decode(), flush=True)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Aligned columns; on a terminal they fold into its width, elsewhere nothing is cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    console = Console(highlight=False) if sys.stdout.isatty() else Console(width=2000)
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        print(line.rstrip())


def note(text: str) -> None:
    """A word for a person beside the answer: on standard error, and only on a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def local_time(at: datetime | None) -> str:
    """A moment as the person at this machine reads it; a dash for none."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M") if at else "-"
