"""What was said in one attempt of a turn, in the form in which it is stored."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mira.ids import Ids
from mira.messages.content import (
    Block,
    RedactedThinking,
    Role,
    Said,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    plain_text,
    stored,
)
from mira.messages.text import is_storable, storable
from mira.store.turns import NewMessage

#: The answer to a call of which nobody knows what came of it.
UNKNOWN = "Outcome unknown: this was interrupted, and is not repeated."
#: The answer to a call that was never made.
NOT_MADE = "Not made: the turn was stopped before."


class Transcript:
    """The rounds of one attempt: answers of the model, and the results of the calls in them.

    Every call gets exactly one result, however the attempt ends. No two calls have the same id:
    some servers number the calls of each answer anew, and would have one taken for another.
    """

    def __init__(self) -> None:
        self._said: list[Said] = []
        self._open: list[str] = []
        self._answers: dict[str, ToolResult] = {}
        self._unanswered: list[ToolUse] = []
        self._call_ids: set[str] = set()

    @property
    def said(self) -> tuple[Said, ...]:
        """The whole rounds so far, as the model is sent them again."""
        return tuple(self._said)

    @property
    def text(self) -> str:
        """All words so far, those of an unfinished answer included."""
        return self.settled_text + "".join(self._open)

    @property
    def settled_text(self) -> str:
        """The words of the whole rounds."""
        return "".join(plain_text(s.blocks) for s in self._said if s.role is Role.ASSISTANT)

    @property
    def tools_used(self) -> tuple[str, ...]:
        """The names of the tools called, each once, in order."""
        names = (b.name for s in self._said for b in s.blocks if isinstance(b, ToolUse))
        return tuple(dict.fromkeys(names))

    @property
    def arguments(self) -> tuple[str, ...]:
        """What the tools were called with, as JSON text."""
        uses = (b for s in self._said for b in s.blocks if isinstance(b, ToolUse))
        return tuple(use.arguments for use in uses)

    def add(self, text: str) -> None:
        """Words of the answer that is being given."""
        self._open.append(text)

    def void(self) -> None:
        """The answer being given is taken back; it will be given anew."""
        self._open.clear()

    def answered(self, blocks: tuple[Block, ...]) -> tuple[ToolUse, ...]:
        """The model's answer is whole. Returns the calls in it."""
        self._open.clear()
        blocks = tuple(self._told_apart(block) for block in _storable(blocks))
        if blocks:
            self._said.append(Said(role=Role.ASSISTANT, blocks=blocks))
        calls = tuple(b for b in blocks if isinstance(b, ToolUse))
        self._unanswered = list(calls)
        return calls

    def _told_apart(self, block: Block) -> Block:
        if not isinstance(block, ToolUse):
            return block
        call_id, number = block.call_id, 2
        while call_id in self._call_ids:
            call_id, number = f"{block.call_id}-{number}", number + 1
        self._call_ids.add(call_id)
        return msgspec.structs.replace(block, call_id=call_id)

    def result(self, result: ToolResult) -> None:
        """What came of one call."""
        self._answers[result.call_id] = msgspec.structs.replace(result, text=storable(result.text))

    def results_done(self) -> None:
        """All calls of the round have their results."""
        self._answer_the_rest(())

    def stop(self, begun: Iterable[str]) -> None:
        """Nothing more comes: keep the words of the unfinished answer, answer every open call.

        `begun` names the calls that were begun, and of which nobody knows the outcome.
        """
        self._answer_the_rest(begun)
        text = "".join(self._open)
        self._open.clear()
        if text:
            self._said.append(Said(role=Role.ASSISTANT, blocks=(Text(text=text),)))

    def _answer_the_rest(self, begun: Iterable[str]) -> None:
        if not self._unanswered:
            return
        known = set(begun)
        results = tuple(
            self._answers.get(call.call_id)
            or ToolResult(
                call_id=call.call_id,
                text=UNKNOWN if call.call_id in known else NOT_MADE,
                is_error=True,
            )
            for call in self._unanswered
        )
        self._said.append(Said(role=Role.TOOL, blocks=results))
        self._unanswered = []

    def to_store(self, ids: Ids, state: str) -> tuple[NewMessage, ...]:
        """The messages to store, after the user's at position 0. The last answer bears `state`."""
        last = max((i for i, s in enumerate(self._said) if s.role is Role.ASSISTANT), default=-1)
        return tuple(
            NewMessage(
                id=ids.new(),
                position=index + 1,
                role=said.role,
                blocks=stored(said.blocks),
                state=state if index == last else "complete",
            )
            for index, said in enumerate(self._said)
        )


def _storable(blocks: tuple[Block, ...]) -> Iterable[Block]:
    for block in blocks:
        match block:
            case Text(text=text):
                if text:
                    yield Text(text=storable(text))
            case Thinking() | RedactedThinking():
                # Reasoning goes back byte for byte or not at all.
                if is_storable(block.text if isinstance(block, Thinking) else block.data):
                    yield block
            case ToolUse(arguments=arguments):
                yield msgspec.structs.replace(block, arguments=storable(arguments))
            case ToolResult():
                yield block
