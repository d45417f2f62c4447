"""The double of the port: a model that answers from a script. For tests of what stands above.

    model = ScriptedProvider([says("Good morning."), ProviderOutage("down"), ...], clock=clock)

Each call takes the next answer of the script; after the last one the last is given again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import msgspec

from mira.clock import Clock
from mira.errors import MiraError
from mira.llm.base import (
    Finished,
    ProviderItem,
    Request,
    StopReason,
    TextDelta,
    ThinkingDelta,
    ToolCalling,
)
from mira.messages.content import Block, Text, Thinking, ToolUse
from mira.messages.turn import Usage


class Wait(msgspec.Struct, frozen=True):
    """Let `seconds` pass by the clock before the next item."""

    seconds: float


class Raise(msgspec.Struct, frozen=True):
    """Fail here, after what came before has been streamed."""

    error: MiraError


Step = ProviderItem | Wait | Raise
#: One answer: steps in order, or an error raised before anything streams.
Answer = Sequence[Step] | MiraError


def says(text: str, *, thinking: str = "", pieces: int = 3, wait: float = 0.0) -> tuple[Step, ...]:
    """An answer of words, in at most `pieces` deltas, with `wait` seconds before each."""
    steps: list[Step] = []
    blocks: list[Block] = []
    if thinking:
        steps.append(ThinkingDelta(thinking))
        blocks.append(
            Thinking(text=thinking, signature="scripted-signature", source="scripted:script")
        )
    size = max(1, -(-len(text) // max(1, pieces)))
    for start in range(0, len(text), size):
        if wait:
            steps.append(Wait(wait))
        steps.append(TextDelta(text[start : start + size]))
    blocks.append(Text(text=text))
    return (*steps, _finished(tuple(blocks), StopReason.END, len(text)))


def calls(*uses: ToolUse, text: str = "") -> tuple[Step, ...]:
    """An answer that asks for tools, after `text` if there is any."""
    said: tuple[Block, ...] = (Text(text=text),) if text else ()
    steps: list[Step] = [TextDelta(text)] if text else []
    steps += [ToolCalling(use.call_id, use.name) for use in uses]
    return (*steps, _finished((*said, *uses), StopReason.TOOL_USE, len(text) + 10))


def _finished(blocks: tuple[Block, ...], stop: StopReason, characters: int) -> Finished:
    usage = Usage(input_tokens=10, output_tokens=max(1, characters // 4), calls=1)
    return Finished(blocks=blocks, stop=stop, usage=usage, provider="scripted", model="script")


class ScriptedProvider:
    """A Provider without a network. `requests` are those received, in order.

    `open` is the number of streams that are neither finished nor left.
    """

    def __init__(
        self,
        script: Iterable[Answer],
        *,
        clock: Clock,
        name: str = "scripted:script",
        window: int = 200_000,
    ) -> None:
        self._script = list(script)
        self._clock = clock
        self._name = name
        self._window = window
        self.requests: list[Request] = []
        self.open = 0
        self.probes = 0
        #: Raised by the next probes while it is set.
        self.down: MiraError | None = None
        self.closed = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def window(self) -> int:
        return self._window

    def then(self, *answers: Answer) -> None:
        """Append answers to the script."""
        self._script.extend(answers)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[ProviderItem]]:
        index = min(len(self.requests), len(self._script) - 1)
        self.requests.append(request)
        answer = self._script[index]
        self.open += 1
        items = self._play(answer)
        try:
            yield items
        finally:
            self.open -= 1
            await items.aclose()

    async def _play(self, answer: Answer) -> AsyncGenerator[ProviderItem, None]:
        await self._clock.sleep(0)
        if isinstance(answer, MiraError):
            raise answer
        for step in answer:
            match step:
                case Wait(seconds=seconds):
                    await self._clock.sleep(seconds)
                case Raise(error=error):
                    raise error
                case Finished():
                    provider, _, model = self._name.partition(":")
                    yield msgspec.structs.replace(step, provider=provider, model=model)
                case _:
                    yield step

    async def warm(self) -> None:
        """Nothing to load."""

    async def probe(self) -> None:
        self.probes += 1
        if self.down is not None:
            raise self.down

    async def refresh(self) -> bool:
        return False

    async def aclose(self) -> None:
        self.closed = True
