"""The law of messages: immutable, of plain fields, and written down and read back without loss."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import types
from datetime import UTC, date, datetime
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mira.messages
from mira.messages import base, content, stream, turn, wire

MODULES = [
    importlib.import_module(f"mira.messages.{found.name}")
    for found in pkgutil.iter_modules(mira.messages.__path__)
]
STRUCTS: list[type[msgspec.Struct]] = [
    value
    for module in MODULES
    for _, value in inspect.getmembers(module, inspect.isclass)
    if issubclass(value, msgspec.Struct) and value.__module__ == module.__name__
]
PLAIN = (str, int, float, bool, bytes, datetime, date, UUID, type(None))
#: What a durable message may hold: ids, numbers, times and choices. Never a text of anyone's.
IDS = (int, float, bool, datetime, date, UUID, type(None))

every_struct = pytest.mark.parametrize("struct", STRUCTS, ids=lambda s: s.__name__)


def parts(hint: Any) -> tuple[Any, ...]:
    """The types out of which an annotation is put together, unions and tuples taken apart."""
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(part for each in get_args(hint) for part in parts(each))
    if get_origin(hint) is tuple:
        return tuple(part for each in get_args(hint) if each is not ... for part in parts(each))
    return (hint,)


def members(union: Any) -> set[type]:
    return set(parts(union))


def is_plain(kind: Any, plain: tuple[type, ...] = PLAIN) -> bool:
    if get_origin(kind) is Literal:
        return True
    return isinstance(kind, type) and (
        kind in plain or issubclass(kind, enum.Enum) or issubclass(kind, msgspec.Struct)
    )


@every_struct
def test_a_message_cannot_be_changed_and_its_fields_are_named(
    struct: type[msgspec.Struct],
) -> None:
    assert struct.__struct_config__.frozen
    if struct is not base.Address:  # an address is read as a pair, everywhere
        assert struct.__match_args__ == ()


@every_struct
def test_a_message_holds_plain_values_only(struct: type[msgspec.Struct]) -> None:
    for name, hint in get_type_hints(struct).items():
        if name not in struct.__struct_fields__:
            continue
        for kind in parts(hint):
            # A frame may carry what a later version of a client sends, unread.
            raw = kind is msgspec.Raw and struct.__module__ == wire.__name__
            assert raw or is_plain(kind), f"{name}: {hint}"


def test_a_durable_message_holds_ids_and_never_text() -> None:
    for kind in members(wire.Durable):
        assert issubclass(kind, base.Message)
        hints = get_type_hints(kind)
        for name in kind.__struct_fields__:
            for part in parts(hints[name]):
                assert is_plain(part, IDS), f"{kind.__name__}.{name}: {hints[name]}"
                assert not issubclass(part, msgspec.Struct), f"{kind.__name__}.{name}"


def test_every_turn_event_and_every_frame_belongs_to_a_union_of_the_wire() -> None:
    events = {s for s in STRUCTS if issubclass(s, stream.TurnEvent)} - {stream.TurnEvent}
    assert events == members(stream.AnyTurnEvent)
    assert set(stream.CLOSING) <= events
    frames = {s for s in STRUCTS if issubclass(s, wire._Frame)} - {wire._Frame}
    assert frames == members(wire.ClientFrame) | members(wire.ServerFrame)


def test_no_two_messages_have_the_same_name() -> None:
    """The name is the tag in the database, so two would be read as one another."""
    names = [s.__name__ for s in STRUCTS if issubclass(s, base.Message)]
    assert len(names) == len(set(names))


# Round trips, with values drawn from the annotations.

_strategies: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=20),
    int: st.integers(min_value=-(2**53), max_value=2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=20),
    datetime: st.datetimes(timezones=st.just(UTC)),
    date: st.dates(),
    UUID: st.uuids(),
    type(None): st.none(),
    msgspec.Raw: st.just(msgspec.Raw(b'{"later":[1]}')),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    if get_origin(hint) in (Union, types.UnionType):
        return st.one_of(*map(values, get_args(hint)))
    if get_origin(hint) is tuple:
        inner = get_args(hint)
        if inner[-1] is ...:
            return st.lists(values(inner[0]), max_size=3).map(tuple)
        return st.tuples(*map(values, inner))
    if hint in _strategies:
        return _strategies[hint]
    if get_origin(hint) is Literal:
        return st.sampled_from(get_args(hint))
    if issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    hints = get_type_hints(hint)
    return st.builds(hint, **{name: values(hints[name]) for name in hint.__struct_fields__})


@every_struct
@settings(max_examples=20)
@given(data=st.data())
def test_what_is_written_down_is_read_back_the_same(
    struct: type[msgspec.Struct], data: st.DataObject
) -> None:
    value = data.draw(values(struct))
    read = msgspec.json.decode(msgspec.json.encode(value), type=struct)
    assert read == value
    assert type(read) is struct


@settings(max_examples=100)
@given(value=values(wire.Durable))
def test_a_durable_message_comes_back_from_the_database_as_itself(value: base.Message) -> None:
    assert wire.decode_durable(wire.encode_durable(value)) == value


@settings(max_examples=200)
@given(value=values(stream.AnyTurnEvent))
def test_a_turn_event_comes_back_from_its_copy_as_itself(value: stream.AnyTurnEvent) -> None:
    assert wire.decode_event(wire.encode(value)) == value


@settings(max_examples=200)
@given(value=values(wire.ClientFrame))
def test_a_client_frame_is_read_as_what_it_was_sent_as(value: wire.ClientFrame) -> None:
    assert wire.decode_frame(msgspec.json.encode(value)) == value


@settings(max_examples=200)
@given(value=values(wire.ServerFrame))
def test_a_server_frame_can_be_read_by_a_client(value: wire.ServerFrame) -> None:
    assert msgspec.json.decode(wire.encode(value), type=wire.ServerFrame) == value


@settings(max_examples=200)
@given(blocks=values(tuple[content.Block, ...]))
def test_content_blocks_come_back_from_the_history_as_they_were(
    blocks: tuple[content.Block, ...],
) -> None:
    assert content.decode_blocks(content.encode_blocks(blocks)) == blocks


def test_a_message_that_is_not_listed_as_durable_is_refused() -> None:
    with pytest.raises(TypeError, match="CancelTurn"):
        wire.encode_durable(turn.CancelTurn(turn_id=UUID(int=1)))
