"""What a person reads on the terminal when the server is up, and what other commands find."""

from __future__ import annotations

import json
import os
from pathlib import Path

from rich.console import Console

from mira.services.home import write_private

SERVER_FILE = "server.json"
TOKEN_FILE = "admin-token"  # noqa: S105


def announce(*, address: str, signin: str, key: str | None, notice: str | None) -> None:
    """Print address, sign-in link and, the first time, the key. On standard output."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"\n[bold]MIRA is listening on {address}[/bold]\n")
    console.print(f"  Open in a browser (works once, for 10 minutes):\n  {signin}\n")
    if key:
        console.print(f"  Your API key (shown this once, keep it):\n  {key}\n")
    if notice:
        console.print(f"  [yellow]{notice}[/yellow]\n")
    console.print("  Stop with Ctrl-C.\n")
    # Into a file or a pipe it would else be held back until much more was written.
    console.file.flush()


def leave_word(home: Path, address: str, admin_token: str) -> None:
    """Write where this server is, and the token that the command line proves itself with."""
    write_private(home / TOKEN_FILE, admin_token)
    write_private(home / SERVER_FILE, json.dumps({"url": address, "pid": os.getpid()}))


def take_word_back(home: Path) -> None:
    """The server is gone. Idempotent."""
    for name in (SERVER_FILE, TOKEN_FILE):
        (home / name).unlink(missing_ok=True)
