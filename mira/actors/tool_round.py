"""The calls of one round: confirmed, journalled, made, answered."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

import anyio
import msgspec

from mira.actors.parts import Parts, Stage
from mira.actors.tool_run import ToolRun
from mira.actors.transcript import Transcript
from mira.actors.voice import Voice
from mira.errors import DatabaseUnavailable, MiraError, StaleEpoch
from mira.messages.base import Event
from mira.messages.content import ToolResult, ToolUse
from mira.messages.tool import ToolCall, ToolDescription, ToolOutcome
from mira.messages.turn import ToolCalled
from mira.messages.wire import AskConfirm
from mira.store import effects
from mira.store.turns import Fence
from mira.telemetry import logger

log = logger("tools")

#: Announces an event, and returns when its handlers have ended.
Publish = Callable[[Event], Awaitable[object]]

#: Seconds for writing down what came of an effect.
WRITING_TIMEOUT = 5.0
#: Seconds that a call may take.
CALL_TIMEOUT = 120.0
TOO_LONG = "It took too long and was given up; whether it has done anything is not known."
#: What the model is told when a call waits for the user.
WAITING = "Waiting for the user, who has been asked whether this may be done."


class ToolRounds:
    """Makes the calls of a turn, round after round, and knows when to stop.

    A call that changes the world outside is journalled in transactions of its own, before and
    after, and never made twice.
    """

    def __init__(
        self,
        parts: Parts,
        user_id: UUID,
        turn_id: UUID,
        fence: Fence,
        run: ToolRun,
        voice: Voice,
        transcript: Transcript,
        publish: Publish,
    ) -> None:
        self._publish = publish
        #: Calls that were made, by their ids, and of which nothing is told yet.
        self._made: dict[str, ToolCalled] = {}
        self._parts = parts
        self._user_id = user_id
        self._turn_id = turn_id
        self._fence = fence
        self._run = run
        self._voice = voice
        self._transcript = transcript
        self._seen: dict[tuple[str, str], str] = {}
        self._failures: dict[str, int] = {}
        #: Calls that were begun and have not ended.
        self.begun: set[str] = set()
        #: Whether a call was journalled: the turn must not be run again.
        self.journalled = False
        #: Whether a call waits for the user: the turn then ends with this round.
        self.waiting = False
        #: Whether further calls would only go round in circles.
        self.exhausted = False

    def menu(self) -> tuple[ToolDescription, ...]:
        return self._run.menu()

    async def make(self, uses: Sequence[ToolUse]) -> None:
        """Make all calls of one round; those that are parallel-safe overlap, others keep order."""
        known = {tool.name: tool for tool in self._run.menu()}
        together = [
            u for u in uses if (t := known.get(u.name)) and t.parallel_safe and not t.effect
        ]
        try:
            async with anyio.create_task_group() as group:
                for use in together:
                    group.start_soon(self._make, use, known.get(use.name))
        except ExceptionGroup as failed:
            raise _gravest(failed) from failed
        # One after another, in the order of the calls: events of a conversation never overlap.
        for use in together:
            await self._tell(use)
        for use in uses:
            if use not in together:
                await self._make(use, known.get(use.name))
                await self._tell(use)
        self._transcript.results_done()

    async def _tell(self, use: ToolUse) -> None:
        if (made := self._made.pop(use.call_id, None)) is not None:
            await self._publish(made)

    async def _make(self, use: ToolUse, tool: ToolDescription | None) -> None:
        call = ToolCall(
            turn_id=self._turn_id, call_id=use.call_id, name=use.name, arguments=use.arguments
        )
        self._voice.tool("running", use.call_id, use.name)
        try:
            outcome = await self._outcome(call, tool)
        except (StaleEpoch, DatabaseUnavailable):
            raise
        except MiraError as error:
            outcome = ToolOutcome(text=error.detail, is_error=True)
        self._transcript.result(
            ToolResult(call_id=use.call_id, text=outcome.text, is_error=outcome.is_error)
        )
        phase = "waiting" if outcome.pending else "failed" if outcome.is_error else "done"
        self._voice.tool(phase, use.call_id, use.name)
        self._judge(call, outcome)

    async def _outcome(self, call: ToolCall, tool: ToolDescription | None) -> ToolOutcome:
        if tool is None:
            names = ", ".join(t.name for t in self._run.menu()) or "none"
            return ToolOutcome(
                text=f"There is no tool named {call.name}. Tools: {names}.", is_error=True
            )
        if not _is_object(call.arguments):
            return ToolOutcome(
                text="The arguments must be one JSON object. Schema: " + tool.parameters,
                is_error=True,
            )
        if self._run.needs_confirmation(call):
            await self._propose(call)
            return ToolOutcome(text=WAITING, pending=True)
        if not tool.effect:
            self.begun.add(call.call_id)
            outcome = await self._attempt(call)
            self.begun.discard(call.call_id)
            return outcome
        return await self.effect(call)

    async def _attempt(self, call: ToolCall) -> ToolOutcome:
        outcome = await attempt(self._run, call)
        self._made[call.call_id] = called(self._user_id, call, outcome)
        return outcome

    async def effect(self, call: ToolCall) -> ToolOutcome:
        """Make a call that changes the world outside, journalled. Conflict: it was made."""
        parts = self._parts
        async with parts.database.user(self._user_id) as tx:
            await effects.start(tx, self._user_id, self._fence, call, parts.clock.now())
        self.journalled = True
        self.begun.add(call.call_id)
        parts.reached(Stage.EFFECT_STARTED, self._turn_id)
        outcome = await self._attempt(call)
        await written_down(parts, self._user_id, call, outcome)
        self.begun.discard(call.call_id)
        parts.reached(Stage.EFFECT_DONE, self._turn_id)
        return outcome

    async def _propose(self, call: ToolCall) -> None:
        parts = self._parts
        async with parts.database.user(self._user_id) as tx:
            action = await effects.propose(
                tx, self._user_id, parts.ids.new(), call, parts.clock.now()
            )
        self.waiting = True
        parts.feeds.of(self._user_id).append(
            AskConfirm(
                action_id=action.action_id,
                tool=action.tool,
                call=action.call,
                expires=action.expires,
            )
        )

    def _judge(self, call: ToolCall, outcome: ToolOutcome) -> None:
        asked = (call.name, call.arguments)
        if self._seen.get(asked) == outcome.text:
            self.exhausted = True
        self._seen[asked] = outcome.text
        failures = self._failures.get(call.name, 0) + 1 if outcome.is_error else 0
        self._failures[call.name] = failures
        # One corrective retry is granted; a tool that fails again after it is left alone.
        if failures > 2:
            self.exhausted = True
        if self.exhausted:
            log.info("tool_rounds_stopped", tool=call.name)


async def attempt(run: ToolRun, call: ToolCall) -> ToolOutcome:
    """Make a call; what a tool refuses with is an outcome too, and so is taking too long.

    The time is bounded since a call stands in the way of everything else in its conversation.
    """
    try:
        with anyio.move_on_after(CALL_TIMEOUT):
            return await run.call(call)
    except MiraError as error:
        return ToolOutcome(text=error.detail, is_error=True)
    return ToolOutcome(text=TOO_LONG, is_error=True)


def called(user_id: UUID, call: ToolCall, outcome: ToolOutcome) -> ToolCalled:
    """The event that says that a call was made."""
    return ToolCalled(
        user_id=user_id, turn_id=call.turn_id, call_id=call.call_id, tool=call.name,
        ok=not outcome.is_error,
    )  # fmt: skip


async def written_down(parts: Parts, user_id: UUID, call: ToolCall, outcome: ToolOutcome) -> None:
    """Put what came of an effect into the journal, even while its turn is being cancelled.

    If that cannot be done the turn goes on: what came of it is also in what the turn will store.
    """
    try:
        with anyio.CancelScope(shield=True), anyio.fail_after(WRITING_TIMEOUT):
            async with parts.database.user(user_id) as tx:
                await effects.finish(tx, user_id, call, outcome, parts.clock.now())
    except (DatabaseUnavailable, TimeoutError) as error:
        log.warning("effect_not_written_down", error=type(error).__name__)


def _gravest(failed: ExceptionGroup[Exception]) -> Exception:
    """One error for all: first of all that the turn can no longer be written."""
    errors = failed.exceptions
    for error in errors:
        if isinstance(error, StaleEpoch | DatabaseUnavailable):
            return error
    return errors[0]


def _is_object(arguments: str) -> bool:
    # An escaped NUL is valid JSON, but no database can hold it.
    if "\\u0000" in arguments:
        return False
    try:
        return isinstance(msgspec.json.decode(arguments), dict)
    except (msgspec.DecodeError, RecursionError):
        return False
