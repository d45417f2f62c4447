"""What begins with a slash: commands to the terminal, not words to MIRA."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from mira.cli.output import one_line

#: What can be done with the open segment.
Steering: TypeAlias = Literal["pause", "resume", "collapse"]


class Actions(Protocol):
    """What the commands do; see mira.cli.chat.talk.Talk."""

    @property
    def asked(self) -> bool:
        """Whether MIRA waits for a yes or no."""
        ...

    def say(self, text: str) -> None: ...

    async def show_status(self) -> None: ...

    async def show_models(self) -> None: ...

    async def cancel(self) -> None: ...

    async def retry(self) -> None: ...

    async def steer(self, act: Steering) -> None: ...

    async def decide(self, allow: bool) -> None: ...

    async def attach(self, path: str) -> None: ...

    def detach(self) -> None: ...

    def leave(self) -> None: ...


@dataclass(frozen=True)
class Slash:
    name: str
    summary: str
    #: What follows the name is given to it; nothing may follow that of one that takes nothing.
    run: Callable[[Actions, str], Awaitable[None]]
    takes: str = ""
    #: Listed and known only while MIRA waits for a decision.
    when_asked: bool = False


async def _help(actions: Actions, _: str) -> None:
    for slash in _known(actions):
        actions.say(f"/{slash.name:<8} {slash.summary}")
    actions.say("Alt-Enter makes a new line. // at the beginning says a slash.")


async def _quit(actions: Actions, _: str) -> None:
    actions.leave()


async def _attach(actions: Actions, path: str) -> None:
    if path:
        await actions.attach(path)
    else:
        actions.say("Which file? /attach PATH")


async def _detach(actions: Actions, _: str) -> None:
    actions.detach()


_ALL = (
    Slash("help", "these commands", _help),
    Slash("status", "the server, its parts and this conversation", lambda a, _: a.show_status()),
    Slash("model", "which models answer", lambda a, _: a.show_models()),
    Slash("cancel", "stop the running answer, as Ctrl-C does", lambda a, _: a.cancel()),
    Slash("retry", "try the last turn again, if it failed or was stopped", lambda a, _: a.retry()),
    Slash("attach", "PATH: a file that goes with your next message", _attach, takes="PATH"),
    Slash("detach", "let no file go with it", _detach),
    Slash(
        "pause", "let no silence end this segment until you speak", lambda a, _: a.steer("pause")
    ),
    Slash("resume", "end the pause; silence counts from now", lambda a, _: a.steer("resume")),
    Slash("collapse", "end this segment now; it is summed up", lambda a, _: a.steer("collapse")),
    Slash("allow", "let MIRA do what it asks for", lambda a, _: a.decide(True), when_asked=True),
    Slash("refuse", "do not let it", lambda a, _: a.decide(False), when_asked=True),
    Slash("quit", "leave; Ctrl-D does too. A running answer goes on", _quit),
)


def message_of(entered: str) -> str | None:
    """What is said to MIRA by what was entered; None if it is a command."""
    if entered.startswith("//"):
        return entered[1:]
    return None if entered.startswith("/") else entered


async def run(entered: str, actions: Actions) -> None:
    """Do the command."""
    name, _, rest = entered[1:].strip().partition(" ")
    for slash in _known(actions):
        if slash.name == name.lower() and (slash.takes or not rest):
            await slash.run(actions, rest.strip())
            return
    name = entered[1:].strip()
    actions.say(f"There is no command /{one_line(name, 40)}. /help lists those there are.")


def _known(actions: Actions) -> list[Slash]:
    return [slash for slash in _ALL if actions.asked or not slash.when_asked]
