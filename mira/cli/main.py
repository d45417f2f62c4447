"""From arguments to an exit code: the table of commands, their dispatch, the end of every error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import TextIOWrapper

from mira import __version__
from mira.errors import MiraError, StartupRefused, Unavailable

FAILED, USAGE, UNREACHABLE, INTERRUPTED = 1, 2, 3, 130


@dataclass(frozen=True)
class Command:
    """A command: its name, a line on it, and where it is defined."""

    name: str
    summary: str
    target: str


COMMANDS = (
    Command("serve", "Start the server and stay with it", "mira.cli.serve:serve"),
    Command("chat", "Talk to MIRA in the terminal", "mira.cli.chat.command:chat"),
    Command("memory", "Look at what is remembered, change it, and undo changes",
            "mira.cli.memory:app"),
    Command("segments", "Look at the conversation's segments; pause or end the open one",
            "mira.cli.segments:app"),
    Command("signin", "Make a link that signs a browser in, once", "mira.cli.signin:signin"),
    Command("key", "Make, list and revoke API keys", "mira.cli.key:app"),
    Command("secret", "Keep, list and destroy secrets, such as keys of providers",
            "mira.cli.secret:app"),
    Command("dead-letters", "Look at work that was given up, and try it again",
            "mira.cli.dead_letters:app"),
    Command("doctor", "Look at every part and say what is wrong", "mira.cli.doctor:doctor"),
    Command("bench", "Run a benchmark: mira bench NAME …", "mira.cli.bench:bench"),
    Command("version", "Print the version", "mira.cli.main:version"),
)  # fmt: skip


def run(arguments: Sequence[str]) -> int:
    """Run one command; return the exit code. Raises nothing."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that knows no Unicode shows question marks; nothing fails for it.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        exit_code = _dispatch(list(arguments))
        sys.stdout.flush()
        return exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; Python would complain once more while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        return _told(_sole(error))


def overview() -> str:
    """What `mira --help` prints."""
    # Written here and not by the parser, whose import alone takes longer than this may.
    width = max(len(command.name) for command in COMMANDS)
    lines = (f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS)
    return "\n".join(
        (
            "Usage: mira COMMAND …",
            "",
            "A self-hosted assistant with one conversation that never ends.",
            "",
            *lines,
            "",
            "mira COMMAND --help tells more. Settings are variables named MIRA_…, such as",
            "MIRA_HOME, where everything is kept. Exit codes: 0 done, 1 failed or refused,",
            "2 wrong usage or start refused, 3 server out of reach, 130 interrupted.",
        )
    )


def version() -> int:
    """Print the version."""
    print(f"mira {__version__}")
    return 0


def _dispatch(arguments: list[str]) -> int:
    match arguments:
        case [] | ["-h" | "--help" | "help"]:
            print(overview())
            return 0
        case ["--version" | "version"]:
            return version()
        case ["bench", *rest]:
            # A benchmark reads its own arguments, --help included.
            from mira.cli.bench import bench

            return bench(rest)
    for command in COMMANDS:
        if command.name == arguments[0]:
            if not all(_is_text(word) for word in arguments):
                print("mira: What was typed is not UTF-8.", file=sys.stderr)
                return USAGE
            return _parse(command, arguments)
    from difflib import get_close_matches

    close = get_close_matches(arguments[0], [command.name for command in COMMANDS], n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    print(f"mira: There is no command {arguments[0]!r}.{meant}\nSee: mira --help", file=sys.stderr)
    return USAGE


def _is_text(word: str) -> bool:
    """Python keeps bytes of the command line that are no text as lone surrogates."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parse(command: Command, arguments: list[str]) -> int:
    from cyclopts import App, CycloptsError

    root = App(name="mira", help_format="plaintext")
    # Alone, so that only its own module is imported.
    root.command(command.target, name=command.name, help=command.summary)
    try:
        result = root(
            arguments, print_error=False, exit_on_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        print(f"mira: {error}\nSee: mira {command.name} --help", file=sys.stderr)
        return USAGE
    return result if isinstance(result, int) else 0


def _sole(error: Exception) -> Exception:
    """The error in a group, if the group holds one alone."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _told(error: Exception) -> int:
    """Say what went wrong in one sentence and what to do; the exit code for it."""
    if _debugging():
        import traceback

        traceback.print_exception(error)
    if not isinstance(error, MiraError):
        print(
            f"mira: Something went wrong inside MIRA ({type(error).__name__}); this is a fault of "
            "the program.\nMIRA_LOG_LEVEL=debug shows where.",
            file=sys.stderr,
        )
        return FAILED
    print(f"mira: {error.detail}", file=sys.stderr)
    for name, text in getattr(error, "fields", ()):
        if f"{name}: {text}" not in error.detail:
            print(f"  {name}: {text}", file=sys.stderr)
    if isinstance(error, StartupRefused):
        print(error.remedy, file=sys.stderr)
        return USAGE
    return UNREACHABLE if isinstance(error, Unavailable) else FAILED


def _debugging() -> bool:
    from mira.settings import load

    try:
        return load().log_level == "debug"
    except StartupRefused:
        return False
