"""The tools that are there, handed out to turns. All of them are in the menu."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from mira.actors.tool_run import ToolRun
from mira.clock import Clock
from mira.messages.tool import ToolCall, ToolDescription, ToolOutcome
from mira.toolkit import Memories, Tool

#: The memories of a user, as a turn's tools may use them.
MemoriesOf = Callable[[UUID, UUID], Memories]


@dataclass(frozen=True)
class CallContext:
    """What a call may use. See mira.toolkit.Context."""

    user_id: UUID
    turn_id: UUID
    clock: Clock
    given: Memories | None

    @property
    def memories(self) -> Memories:
        if self.given is None:
            raise LookupError("This tool does not declare the need `memory`.")
        return self.given


class ToolBox:
    """Hands out its tools. They are listed in the order of their names, so that the prompt that
    holds them stays the same."""

    def __init__(self, tools: Sequence[Tool], *, clock: Clock, memories: MemoriesOf) -> None:
        self._tools = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        self._menu = tuple(tool.description() for tool in self._tools.values())
        self._clock = clock
        self._memories = memories

    async def open(self, user_id: UUID, turn_id: UUID) -> ToolRun:
        """The tools of one turn."""
        return _Run(self._tools, self._menu, self._context(user_id, turn_id))

    def _context(self, user_id: UUID, turn_id: UUID) -> Callable[[Tool], CallContext]:
        def context(tool: Tool) -> CallContext:
            given = self._memories(user_id, turn_id) if "memory" in tool.needs else None
            return CallContext(user_id, turn_id, self._clock, given)

        return context


class _Run:
    def __init__(
        self,
        tools: Mapping[str, Tool],
        menu: tuple[ToolDescription, ...],
        context: Callable[[Tool], CallContext],
    ) -> None:
        self._tools = tools
        self._menu = menu
        self._context = context

    def menu(self) -> tuple[ToolDescription, ...]:
        return self._menu

    def needs_confirmation(self, call: ToolCall) -> bool:
        return False

    async def call(self, call: ToolCall) -> ToolOutcome:
        tool = self._tools.get(call.name)
        if tool is None:
            return ToolOutcome(text=f"There is no tool named {call.name}.", is_error=True)
        return await tool.call(self._context(tool), call)
