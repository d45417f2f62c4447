"""The provider double's answers in time: a behaviour and a request as steps on the wire.

Shapes follow the providers' published references; see bench.provider_anthropic and _openai.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Final

from bench import provider_anthropic, provider_openai
from bench.provider_answer import Answer, Asked, Protocol, answer
from bench.provider_script import Behaviour, Failure

#: Cut the connection without a word.
ABORT: Final = b"\x00abort"
#: Send nothing more, and leave the connection open.
HANG: Final = b"\x00hang"
#: Repeat the step before this one until the client leaves.
REPEAT: Final = b"\x00repeat"

#: Seconds to wait, what to write then, and whether it is a piece of the answer.
Step = tuple[float, bytes, bool]


class Speaker(typing.Protocol):
    """What a module that speaks one of the protocols offers."""

    @property
    def PING(self) -> bytes: ...

    def events(self, b: Behaviour, asked: Asked, said: Answer) -> Iterator[tuple[bytes, bool]]: ...

    def whole(self, behaviour: Behaviour, asked: Asked, said: Answer) -> bytes: ...

    def broken(self, kind: str) -> bytes: ...

    def failed(self, failure: Failure) -> bytes: ...


_SPEAKERS: dict[str, Speaker] = {"anthropic": provider_anthropic, "openai": provider_openai}


def plan(behaviour: Behaviour, asked: Asked) -> Iterator[Step]:
    """The steps of a streamed answer, with the cut where the behaviour wants one."""
    said = answer(behaviour, asked)
    speaker = _SPEAKERS[asked.protocol]
    events, ping = speaker.events(behaviour, asked, said), speaker.PING
    cut = behaviour.cut
    count = 0
    started = False
    for payload, is_piece in events:
        if is_piece:
            if cut is not None and count >= cut.after:
                break
            delay = (behaviour.token_ms if started else behaviour.first_token_ms) / 1000
            if not started:
                yield from _waiting(delay, behaviour.ping_ms / 1000, ping)
                delay = delay % (behaviour.ping_ms / 1000) if behaviour.ping_ms else delay
            started = True
            count += 1
            yield delay, payload, True
        elif cut is not None and count >= cut.after and started:
            break
        else:
            yield 0.0, payload, False
    if cut is None:
        return
    match cut.how:
        case "error":
            yield 0.0, speaker.broken(cut.type), False
        case "disconnect":
            yield 0.01, ABORT, False
        case "silence":
            yield 0.0, HANG, False
        case "pings":
            yield 0.1, ping, False
            yield 0.1, REPEAT, False
        case "end":
            return


def _waiting(delay: float, every: float, ping: bytes) -> Iterator[Step]:
    if every > 0:
        for _ in range(int(delay / every)):
            yield every, ping, False


def whole(behaviour: Behaviour, asked: Asked) -> bytes:
    """The answer as one JSON document."""
    return _SPEAKERS[asked.protocol].whole(behaviour, asked, answer(behaviour, asked))


def failed(failure: Failure, protocol: Protocol) -> bytes:
    """The body of an error answer."""
    return _SPEAKERS[protocol].failed(failure)
