"""What a tool is made of. A file `tools/NAME_tool.py` imports this and nothing else of MIRA.

A tool is a class with a name, a line that says what it is for, and operations: async methods, each
with a msgspec struct of parameters. What the model is told (one JSON schema for the whole tool) is
derived from those structs; what it answers is held to them before a method is called.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_type_hints
from uuid import UUID

import msgspec

from mira.clock import Clock
from mira.errors import MiraError, ValidationFailed
from mira.messages.tool import ToolCall, ToolDescription, ToolOutcome

__all__ = [
    "Context", "Memories", "MemoryView", "MiraError", "Parameters", "Tool", "ValidationFailed",
    "operation",
]  # fmt: skip

#: Characters of a result that are kept; what is more is cut off, with a word that says so. A prompt
#: shows less of a long one; the rest stays readable.
MOST_RESULT = 200_000


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of an operation. Fields carry their description in `msgspec.Meta`."""


class MemoryView(msgspec.Struct, frozen=True, kw_only=True):
    """A memory as a tool sees it. `id` is the short id; `linked` are lines about linked ones."""

    id: str
    text: str
    importance: float
    status: str
    created_at: datetime
    happens_at: datetime | None = None
    superseded: bool = False
    linked: tuple[str, ...] = ()


class Memories(Protocol):
    """The user's memories, for a tool that declares the need `memory`. Ids are short ids.

    Every change is noted with the turn that made it, and can be undone. All raise NotFound for an
    id that is not there, and ValidationFailed for what cannot be stored.
    """

    async def search(self, text: str, limit: int) -> tuple[MemoryView, ...]: ...

    async def create(
        self, text: str, *, happens_at: datetime | None, expires_at: datetime | None
    ) -> tuple[MemoryView, str]:
        """The memory, and what came of it: created, reinforced or superseding."""
        ...

    async def link(self, from_id: str, to_id: str, kind: str, reason: str) -> None: ...

    async def annotate(self, memory_id: str, text: str) -> None: ...

    async def touch(self, memory_id: str) -> None: ...

    async def archive(self, memory_id: str) -> None: ...

    async def restore(self, memory_id: str) -> None: ...

    async def merge(self, ids: tuple[str, ...], text: str) -> MemoryView: ...


class Context(Protocol):
    """What a call may use: limited to what its tool declares in `needs`."""

    @property
    def user_id(self) -> UUID: ...

    @property
    def turn_id(self) -> UUID: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def memories(self) -> Memories:
        """Raises LookupError unless the tool declares the need `memory`."""
        ...


P = TypeVar("P", bound=Parameters)
Method = Callable[[Any, Context, Any], Awaitable[str]]


class Operation(Generic[P]):
    """One thing that a tool can do."""

    def __init__(self, name: str, description: str, parameters: type[P], method: Method) -> None:
        self.name = name
        self.description = description
        self.parameters = parameters
        self.method = method


def operation(method: Method) -> Method:
    """Mark an async method `(self, ctx, parameters) -> str` as an operation of its tool.

    Its docstring tells the model what it does.
    """
    method.__is_operation__ = True  # type: ignore[attr-defined]
    return method


class Tool:
    """Base of all tools. A subclass names itself and marks its operations."""

    #: What the model calls it by; ends in `_tool`.
    name: ClassVar[str]
    #: One line for the catalogue.
    line: ClassVar[str]
    #: What it must be given: `memory`.
    needs: ClassVar[frozenset[str]] = frozenset()
    #: Calls of one reply may run at the same time.
    parallel_safe: ClassVar[bool] = False
    #: Changes the world outside: journalled, never repeated after a crash.
    effect: ClassVar[bool] = False

    operations: ClassVar[Mapping[str, Operation[Any]]] = {}

    def __init_subclass__(cls) -> None:
        found: dict[str, Operation[Any]] = {}
        for name, method in vars(cls).items():
            if getattr(method, "__is_operation__", False):
                found[name] = Operation(
                    name, inspect.getdoc(method) or "", _parameters(cls, method), method
                )
        if not found:
            raise TypeError(f"{cls.__name__} marks no operation")
        cls.operations = found

    @classmethod
    def description(cls) -> ToolDescription:
        """What the model is told."""
        lines = [cls.line, *(_operation_line(o) for o in cls.operations.values())]
        return ToolDescription(
            name=cls.name,
            description="\n".join(lines),
            parameters=msgspec.json.encode(_schema(cls.operations)).decode(),
            parallel_safe=cls.parallel_safe,
            effect=cls.effect,
        )

    async def call(self, ctx: Context, call: ToolCall) -> ToolOutcome:
        """Make a call. What is wrong with its arguments, and what an operation refuses, is told
        to the model as an error that says what to do; a bug raises."""
        try:
            chosen, parameters = self._read(call.arguments)
            text = await chosen.method(self, ctx, parameters)
        except MiraError as error:
            return ToolOutcome(text=error.detail, is_error=True)
        if len(text) > MOST_RESULT:
            text = f"{text[:MOST_RESULT]}\n[cut: {len(text) - MOST_RESULT} characters more]"
        return ToolOutcome(text=text)

    def _read(self, arguments: str) -> tuple[Operation[Any], Parameters]:
        try:
            given = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError):
            raise ValidationFailed("The arguments are not a JSON object.") from None
        # A model may fill in what it does not use.
        given = {name: value for name, value in given.items() if value is not None}
        name = given.pop("operation", None)
        if name is None and len(self.operations) == 1:
            name = next(iter(self.operations))
        chosen = self.operations.get(name) if isinstance(name, str) else None
        if chosen is None:
            known = ", ".join(self.operations)
            raise ValidationFailed(f"`operation` must be one of: {known}.")
        own = set(chosen.parameters.__struct_fields__)
        of_others = {f for o in self.operations.values() for f in o.parameters.__struct_fields__}
        # What belongs to another operation is left out; what nobody knows is an error.
        given = {k: v for k, v in given.items() if k in own or k not in of_others}
        try:
            return chosen, msgspec.convert(given, chosen.parameters, strict=False)
        except msgspec.ValidationError as error:
            raise ValidationFailed(f"{name}: {error}.") from None


def _parameters(cls: type, method: Callable[..., object]) -> type[Parameters]:
    names = list(inspect.signature(method).parameters)
    hints = get_type_hints(method)
    if len(names) != 3 or not issubclass(hints.get(names[2], object), Parameters):
        raise TypeError(f"{cls.__name__}.{method.__name__} must take (self, ctx, parameters)")
    parameters: type[Parameters] = hints[names[2]]
    return parameters


def _operation_line(one: Operation[Any]) -> str:
    fields = msgspec.structs.fields(one.parameters)
    names = ", ".join(f.encode_name if f.required else f"{f.encode_name}?" for f in fields)
    return f"- {one.name}({names}): {one.description}"


def _schema(operations: Mapping[str, Operation[Any]]) -> dict[str, Any]:
    """One object for all operations: providers take no choice of objects at the top."""
    properties: dict[str, Any] = {"operation": {"type": "string", "enum": list(operations)}}
    required: set[str] | None = None
    for one in operations.values():
        (schema,), parts = msgspec.json.schema_components(
            [one.parameters], ref_template="#/$defs/{name}"
        )
        own = parts[one.parameters.__name__] if "$ref" in schema else schema
        for name, value in own["properties"].items():
            value = {k: v for k, v in value.items() if k != "default"}
            known = properties.setdefault(name, value)
            if known != value:
                choices = known.get("anyOf", [known])
                properties[name] = {"anyOf": [*choices, *([] if value in choices else [value])]}
        needed = set(own.get("required", ()))
        required = needed if required is None else required & needed
    return {
        "type": "object",
        "properties": properties,
        "required": ["operation", *sorted(required or ())],
        "additionalProperties": False,
    }
