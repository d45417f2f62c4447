"""A segment cut into chunks that can each be asked for at once: whole messages, in order.

A chunk brings along the end of the one before it, to be read but not to be remembered again. Of
the messages only words count: what tools gave back, what a model thought and what was put into its
prompt is no part of a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from mira.messages.content import RESULT_SHOWN, Role, ToolResult, attached_in, plain_text
from mira.store.history import HistoryMessage

#: Characters of a chunk, and of what stands before it.
MOST, BEFORE = 12_000, 1_500
#: Characters of an answer of the assistant: it is context.
ASSISTANT = 1_500


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One message's words. `recalled`: the memories (short ids) that the assistant had before it
    as it wrote."""

    message_id: UUID
    turn_id: UUID
    role: Role
    text: str
    said_at: datetime
    recalled: tuple[str, ...] = ()

    @property
    def by_user(self) -> bool:
        return self.role is Role.USER


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """Lines to be asked for, and those before them that help to understand them."""

    lines: tuple[Line, ...]
    before: tuple[Line, ...] = ()

    @property
    def message_ids(self) -> tuple[UUID, ...]:
        return tuple(line.message_id for line in self.lines)


def lines_of(
    messages: Sequence[HistoryMessage], recalled: dict[UUID, tuple[str, ...]]
) -> list[Line]:
    """The words of a segment's messages, in order; `recalled` by turn."""
    lines = []
    for message in messages:
        # Of a file its name alone: what stands in it was said by nobody here.
        named = (f"[Attached: {one.name}, {one.media_type}]" for one in attached_in(message.blocks))
        text = "\n".join((plain_text(message.blocks), *named)).strip()
        if not text or message.role not in (Role.USER, Role.ASSISTANT):
            continue
        by_user = message.role is Role.USER
        lines.append(
            Line(
                message_id=message.id,
                turn_id=message.turn_id,
                role=message.role,
                text=text if by_user else shortened(text, ASSISTANT),
                said_at=message.created_at,
                recalled=() if by_user else recalled.get(message.turn_id, ()),
            )
        )
    return lines


def results_in(messages: Sequence[HistoryMessage]) -> tuple[str, ...]:
    """What tools answered there, as much of each as the assistant was shown at most."""
    return tuple(
        block.text[:RESULT_SHOWN]
        for message in messages
        for block in message.blocks
        if isinstance(block, ToolResult)
    )


def cut(lines: Sequence[Line], *, most: int = MOST, before: int = BEFORE) -> list[Chunk]:
    """Chunks of at most `most` characters; a longer message is a chunk of its own.

    Every line of the user is in exactly one chunk. Those in which the user says nothing are left
    out: nothing is to be learned from them.
    """
    groups: list[list[Line]] = []
    size = 0
    for line in lines:
        if not groups or size + len(line.text) > most:
            groups.append([])
            size = 0
        groups[-1].append(line)
        size += len(line.text)
    chunks = []
    earlier: list[Line] = []
    for group in groups:
        if any(line.by_user for line in group):
            chunks.append(Chunk(lines=tuple(group), before=_end_of(earlier, before)))
        earlier += group
    return chunks


def again(lines: Sequence[Line], message_ids: Sequence[UUID], *, before: int = BEFORE) -> Chunk:
    """The chunk of these messages, as it was cut before."""
    wanted = set(message_ids)
    first = next((i for i, line in enumerate(lines) if line.message_id in wanted), len(lines))
    return Chunk(
        lines=tuple(line for line in lines if line.message_id in wanted),
        before=_end_of(lines[:first], before),
    )


def shortened(text: str, most: int) -> str:
    """`text` with its middle left out where it is longer than `most`."""
    if len(text) <= most:
        return text
    half = (most - 5) // 2
    return f"{text[:half].rstrip()} […] {text[-half:].lstrip()}"


def _end_of(lines: Sequence[Line], most: int) -> tuple[Line, ...]:
    """The last lines, two messages at most, of together at most `most` characters."""
    kept: list[Line] = []
    for line in reversed(lines[-2:]):
        if sum(len(one.text) for one in kept) + len(line.text) > most:
            break
        kept.insert(0, line)
    return tuple(kept)
