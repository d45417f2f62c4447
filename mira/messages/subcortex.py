"""What the Subcortex is asked before an answer, and what it replies."""

from __future__ import annotations

from enum import StrEnum
from uuid import UUID

from mira.messages.base import Message, Value
from mira.messages.turn import Usage


class Complexity(StrEnum):
    """How much thought a message asks for.

    Straightforward: it can be answered in one step, from the message, memory and general
    knowledge. Complex: everything else, and whatever is in doubt.
    """

    STRAIGHTFORWARD = "straightforward"
    COMPLEX = "complex"


class Fallback(StrEnum):
    """Why nothing came of the Subcortex: its deadline passed, its model failed, or nothing of its
    answer could be used."""

    LATE = "late"
    FAILED = "failed"
    UNREADABLE = "unreadable"


class Exchange(Value, frozen=True, kw_only=True):
    """What the user said, and what was answered."""

    user: str
    assistant: str


class InContext(Value, frozen=True, kw_only=True):
    """A memory that was shown in the last turn."""

    id: UUID
    short_id: str
    importance: float
    text: str


class Consider(Message, frozen=True, kw_only=True):
    """Say what a message is about. An ask; whoever asks sets the deadline.

    `exchanges` are the last ones, oldest first, and `memories` those that may be kept in context;
    the Subcortex itself takes no more of either, and of `words`, than its model can hold.
    """

    turn_id: UUID
    words: str
    exchanges: tuple[Exchange, ...] = ()
    memories: tuple[InContext, ...] = ()


class Considered(Value, frozen=True, kw_only=True):
    """What a message is about.

    With a `fallback` there is nothing but the account of what happened: no phrases, no entities,
    nothing to retain, and the complexity is complex.
    """

    #: What to search for, pronouns and fragments resolved; the first is the topic. At most four.
    phrases: tuple[str, ...] = ()
    #: Names in the message.
    entities: tuple[str, ...] = ()
    #: Memories to keep in context: only such as were offered, in the order of the answer.
    retain: tuple[UUID, ...] = ()
    complexity: Complexity = Complexity.COMPLEX
    fallback: Fallback | None = None
    #: From the question to the reply.
    latency_ms: float = 0.0
    #: What the model was given as data and what it said, for the trace; empty if it was not asked
    #: or did not get to the end of its answer.
    asked: str = ""
    answer: str = ""
    #: What it cost; the Subcortex itself books it, and calls that were cut off, with the turn.
    usage: Usage = Usage()
