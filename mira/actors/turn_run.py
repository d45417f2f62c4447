"""One attempt of one turn: recall, compose, stream, call tools, until there is an ending."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import anyio
from anyio.abc import TaskGroup

from mira.actors.booking import booked
from mira.actors.checkpoints import Checkpoints
from mira.actors.parts import Parts, Stage
from mira.actors.recall import Beside
from mira.actors.tool_round import Publish, ToolRounds
from mira.actors.transcript import Transcript
from mira.actors.turn_prompt import TurnPrompt
from mira.actors.voice import Voice
from mira.errors import (
    ContextOverflow,
    DatabaseUnavailable,
    MiraError,
    ProviderMalformed,
    StaleEpoch,
)
from mira.llm.base import (
    CallRecord,
    Dropped,
    Finished,
    Request,
    Retrying,
    StopReason,
    Switched,
    SystemBlock,
    TextDelta,
    ThinkingDelta,
    ToolCalling,
)
from mira.llm.routing import Routed
from mira.messages.stream import MemoriesUsed
from mira.messages.text import storable
from mira.messages.tool import ToolDescription
from mira.messages.turn import Timings, TurnState, Usage
from mira.prompt.bounds import bounded
from mira.store import turns
from mira.store.turns import Closing, Fence, TakenTurn
from mira.telemetry import logger

log = logger("turn")

#: Rounds of tool calls in one turn; after them the model must answer without.
MAX_ROUNDS = 20
CUT = "The answer reached the longest length that is allowed, and ends here."
OUR_FAULT = "Something went wrong on our side; the log says what."


@dataclass(frozen=True)
class Ending:
    """How an attempt ended: what is to be written, and what the next prompts will contain."""

    closing: Closing
    reply: str
    tools_used: tuple[str, ...]
    usage: Usage
    memories: MemoriesUsed
    error: MiraError | None = None
    #: Whether the turn may be tried again: nothing outside was changed.
    may_retry: bool = True
    #: What went wrong on our side, for the log.
    bug: Exception | None = None


class TurnRun:
    """Runs once. `cancel` may be called at any time, from the control lane."""

    def __init__(
        self,
        parts: Parts,
        user_id: UUID,
        fence: Fence,
        taken: TakenTurn,
        begun_at: float,
        told: set[str],
        prompting: TurnPrompt,
        publish: Publish,
    ) -> None:
        """`begun_at` is when the door took the turn (monotonic); `told` holds the notices that
        the user was given already; `publish` is the door's."""
        self._publish = publish
        self._told = told
        self._prompting = prompting
        self._parts = parts
        self._user_id = user_id
        self._fence = fence
        self._taken = taken
        self._begun_at = begun_at
        #: Milliseconds between the acceptance and the moment `begun_at`.
        self._waited = (
            max(0.0, (parts.clock.now() - taken.accepted_at).total_seconds() * 1000) - self._since()
        )
        self.turn_id = taken.turn_id
        self.voice = Voice(taken.turn_id, taken.attempt, partial(parts.feeds.append, user_id))
        self._transcript = Transcript()
        self._scope = anyio.CancelScope()
        self._calls: list[CallRecord] = []
        self._usage = Usage()
        self._answered_by: tuple[str, str] | None = None
        self._marks: dict[str, float] = {}
        self._checkpoints = Checkpoints(parts, user_id, self.turn_id)
        self._rounds: ToolRounds | None = None
        #: Set while nothing goes on beside the turn.
        self._alone = anyio.Event()
        self._alone.set()

    def cancel(self) -> None:
        """Stop at once; the ending is then CANCELLED, unless the answer was whole already."""
        self._scope.cancel()

    def mark(self, name: str) -> None:
        """Note when a stage was reached, once."""
        self._marks.setdefault(name, self._waited + self._since())

    def notice(self, kind: str, detail: str) -> None:
        """Tell the user something that need not be said again and again."""
        if detail not in self._told:
            self._told.add(detail)
            self.voice.notice(kind, detail)

    def timings(self) -> Timings:
        return Timings(**self._marks)

    def _since(self) -> float:
        return (self._parts.clock.monotonic() - self._begun_at) * 1000

    async def run(self) -> Ending:
        """Go through the turn. Never raises, but for a replaced activation or a lost database:
        failing, too, is an ending, if only so that the thread goes on."""
        error: Exception | None = None
        done = False
        with self._scope:
            async with anyio.create_task_group() as group:
                group.start_soon(self._checkpoints.run, self.voice, self._transcript)
                try:
                    await self._prepare(partial(self._begin_beside, group))
                    await self._converse()
                    done = True
                except Exception as raised:
                    # Let through the group it would come out wrapped.
                    error = raised
                await self._alone.wait()
                group.cancel_scope.cancel()
        if isinstance(error, StaleEpoch | DatabaseUnavailable):
            raise error
        self.mark("streamed_ms")
        if done:
            return self._ending(TurnState.COMPLETE)
        self._transcript.stop(self._rounds.begun if self._rounds else ())
        if error is None:
            return self._ending(TurnState.CANCELLED)
        return self._ending(TurnState.FAILED, error)

    def _begin_beside(self, group: TaskGroup, work: Callable[[], Awaitable[None]]) -> None:
        """Begin what only the end of the turn waits for."""
        alone = self._alone = anyio.Event()

        async def do() -> None:
            try:
                await work()
            finally:
                alone.set()

        group.start_soon(do)

    async def _prepare(self, beside: Beside) -> None:
        await self._prompting.gather(beside)
        self.mark("recalled_ms")
        await self._prompting.compose()
        self.mark("composed_ms")
        self._parts.reached(Stage.COMPOSED, self.turn_id)

    async def _converse(self) -> None:
        run = await self._parts.tools.open(self._user_id, self.turn_id)
        self._rounds = rounds = ToolRounds(
            self._parts, self._user_id, self.turn_id, self._fence, run, self.voice,
            self._transcript, self._publish,
        )  # fmt: skip
        for number in range(MAX_ROUNDS + 1):
            may_call = number < MAX_ROUNDS and not rounds.exhausted
            finished = await self._answer_that_fits(rounds.menu() if may_call else ())
            uses = self._transcript.answered(finished.blocks)
            if not uses:
                break
            if not may_call:
                raise ProviderMalformed("The model keeps calling tools instead of answering.")
            await rounds.make(uses)
            if rounds.waiting:
                return
        if not self._transcript.text.strip():
            raise ProviderMalformed("The model gave an empty answer.")

    async def _answer_that_fits(self, tools: tuple[ToolDescription, ...]) -> Finished:
        """One answer; a prompt that the model finds too long is cut deeper and sent again."""
        while True:
            try:
                return await self._answer(tools)
            except ContextOverflow as error:
                await self._prompting.smaller(error)
                log.info("prompt_cut", turn_id=str(self.turn_id))

    async def _answer(self, tools: tuple[ToolDescription, ...]) -> Finished:
        """One answer of the model, streamed to whoever follows the turn."""
        prompt = self._prompting.composed
        assert prompt is not None
        request = Request(
            system=tuple(SystemBlock(text=text, cache=cache) for text, cache in prompt.system),
            messages=prompt.messages + bounded(self._transcript.said, self._prompting.share),
            tools=tools,
            max_output_tokens=self._parts.max_output_tokens,
            effort=self._prompting.effort,
            thinking=True,
            cache_marks=prompt.cache_marks,
        )
        items: Routed | None = None
        try:
            async with self._parts.model.stream(request) as items:
                return await self._listen(items)
        finally:
            # Whatever came of it, every call that was made is booked.
            self._calls += items.calls if items is not None else ()

    async def _listen(self, items: Routed) -> Finished:
        spoken = False
        async for item in items:
            match item:
                case TextDelta(text=text):
                    if text := storable(text):
                        spoken = True
                        self._transcript.add(text)
                        self.voice.text(text)
                        self.mark("first_text_ms")
                        if self._first_event():
                            # Followers are told before the rest of what came with it is read.
                            await anyio.lowlevel.checkpoint()
                case ThinkingDelta(text=text):
                    if text := storable(text):
                        spoken = True
                        self.voice.thinking(text)
                        self._first_event()
                case ToolCalling(call_id=call_id, name=name):
                    spoken = True
                    self.voice.tool("called", call_id, name)
                    self._first_event()
                case Retrying() | Switched():
                    if spoken:
                        await self._start_over()
                    spoken = False
                    self._tell(item)
                case Dropped(what=what):
                    self.notice("dropped", what)
                case Finished():
                    self._usage += item.usage
                    self._answered_by = (item.provider, item.model)
                    if item.stop is StopReason.MAX_TOKENS:
                        self.voice.notice("cut", CUT)
                    return item
        raise ProviderMalformed("The model's answer has no end.")

    def _first_event(self) -> bool:
        """Note an event; whether it was the first."""
        if self._checkpoints.begun:
            return False
        self._checkpoints.begin()
        self._parts.reached(Stage.FIRST_EVENT, self.turn_id)
        return True

    def _tell(self, item: Retrying | Switched) -> None:
        match item:
            case Retrying(source=source, reason=reason):
                self.voice.notice("retry", f"{source}: {reason.rstrip('.')}. Trying again.")
            case Switched(source=source, target=target, reason=reason):
                why = reason.rstrip(".")
                self.voice.notice("provider_switch", f"{source}: {why}. {target} answers now.")

    async def _start_over(self) -> None:
        """What was streamed of this answer is void: clients are told by a new attempt."""
        self._transcript.void()
        attempt = self.voice.attempt + 1
        async with self._parts.database.user(self._user_id) as tx:
            await turns.next_attempt(
                tx, self._user_id, self.turn_id, self._fence, self.voice.attempt
            )
        self.voice.next_attempt(attempt, self._transcript.settled_text)

    def _ending(self, state: TurnState, raised: Exception | None = None) -> Ending:
        bug = None if raised is None or isinstance(raised, MiraError) else raised
        error = raised if isinstance(raised, MiraError) else MiraError(OUR_FAULT) if bug else None
        provider, model = self._answered_by or (None, None)
        text = self._transcript.text
        partial = {TurnState.CANCELLED: "cancelled", TurnState.FAILED: "interrupted"}
        return Ending(
            closing=Closing(
                turn_id=self.turn_id,
                attempt=self.voice.attempt,
                state=state,
                messages=self._transcript.to_store(self._parts.ids, partial.get(state, "complete")),
                calls=tuple(
                    booked(self._parts.ids.new(), call, "conversation") for call in self._calls
                ),
                provider=provider,
                model=model,
                usage=self._usage,
                timings=self.timings(),
                error_code=error.code if error else None,
                error_detail=error.detail if error else None,
                working=self._prompting.working.encode() if state is TurnState.COMPLETE else None,
                trace=self._prompting.trace(),
            ),
            reply=text,
            tools_used=self._transcript.tools_used,
            usage=self._usage,
            memories=self._prompting.memories_used(text, self._transcript.arguments),
            error=error,
            may_retry=not (self._rounds and self._rounds.journalled),
            bug=bug,
        )
