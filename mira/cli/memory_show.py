"""Memories as people read them on a terminal. What was said by others cannot command it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mira.cli.output import local_time, one_line, print_table, printable
from mira.web.memory_models import (
    Entity,
    Memory,
    MemoryDetail,
    MemoryEventView,
    MemoryExplanation,
    MemoryLinks,
    StoredMemory,
)
from mira.web.recall_models import SearchAnswer, SearchHit

_OUTCOMES = {
    "created": "Remembered",
    "reinforced": "This was known already, and counts for more now",
    "superseding": "Remembered; it takes the place of an older one",
}


def line(text: str) -> str:
    """`text` as one line, whole."""
    return one_line(text, len(text))


def memories(found: Sequence[Memory]) -> None:
    """A table of memories."""
    print_table(
        ("ID", "IMPORTANCE", "WRITTEN", "STATE", "TEXT"),
        (
            (
                one.short_id,
                f"{one.importance:.2f}",
                local_time(one.created_at),
                state(one),
                one.text,
            )
            for one in found
        ),
    )


def state(memory: Memory) -> str:
    """In a few words what is out of the ordinary about a memory."""
    words = ["archived"] if memory.status == "archived" else []
    if memory.superseded_by is not None:
        words.append("superseded")
    elif memory.valid_to is not None:
        words.append(f"until {memory.valid_to:%Y-%m-%d}")
    if memory.shared:
        words.append("shared")
    return ", ".join(words) or "active"


def stored(answer: StoredMemory) -> None:
    """What became of a new memory."""
    memory = answer.memory
    print(line(f"{_OUTCOMES[answer.outcome]}: {memory.short_id} {memory.text}"))


def hits(answer: SearchAnswer) -> None:
    """A table of what was found, with how each lane scored it."""
    print_table(("SCORE", "FOUND BY", "ID", "TEXT"), (_hit(one) for one in answer.hits))


def _hit(hit: SearchHit) -> tuple[str, str, str, str]:
    lanes = ", ".join(f"{name} {score:.2f}" for name, score in sorted(hit.lanes.items()))
    if hit.memory is not None:
        how = state(hit.memory)
        mark = "" if how == "active" else f" ({how})"
        return f"{hit.score:.3f}", lanes, hit.memory.short_id, f"{hit.memory.text}{mark}"
    assert hit.message is not None
    said = hit.message
    return f"{hit.score:.3f}", lanes, f"{said.role} {local_time(said.said_at)}", said.text


def detail(memory: MemoryDetail, linked: MemoryLinks) -> None:
    """A memory whole."""
    print(printable(memory.text))
    print()
    for name, value in _facts(memory):
        print(f"{name:<14} {line(value)}")
    _part("Evidence", _evidence(memory))
    _part(
        "Annotations",
        (f"{local_time(one.at)} {one.author}: {one.text}" for one in memory.annotations),
    )
    _part("Links", _links(linked))


def _facts(memory: MemoryDetail) -> Iterable[tuple[str, str]]:
    yield "id", f"{memory.short_id} ({memory.id})"
    yield "importance", f"{memory.importance:.3f}"
    yield "state", state(memory)
    yield "true", f"{local_time(memory.valid_from)} to {_until(memory)}"
    if memory.successor is not None:
        yield "superseded by", f"{memory.successor.short_id} {memory.successor.text}"
    if memory.happens_at is not None:
        yield "happens", local_time(memory.happens_at)
    if memory.expires_at is not None:
        yield "expires", local_time(memory.expires_at)
    yield "written", local_time(memory.created_at)
    yield "used, said", f"{memory.access_count}, {memory.mention_count} times"
    if memory.entities:
        yield "about", ", ".join(f"{one.name} ({one.type})" for one in memory.entities)


def _until(memory: Memory) -> str:
    return local_time(memory.valid_to) if memory.valid_to else "now"


def _evidence(memory: MemoryDetail) -> Iterable[str]:
    yield f"source: {memory.source}"
    evidence = memory.evidence
    if evidence.segment is not None:
        title = f" {evidence.segment.title}" if evidence.segment.title else ""
        yield f"segment of {local_time(evidence.segment.opened_at)}{title} ({evidence.segment.id})"
    if evidence.turn_id is not None:
        yield f"turn {evidence.turn_id}"
    for said in evidence.messages:
        yield f"{local_time(said.created_at)} {said.role}: {said.text}"
    for source in evidence.memories:
        yield f"{source.short_id} {source.text}"


def links(linked: MemoryLinks) -> None:
    """Links, one a line."""
    for one in _links(linked):
        print(line(one))


def _links(linked: MemoryLinks) -> Iterable[str]:
    for one in linked.links:
        reason = f" ({one.reason})" if one.reason else ""
        yield f"it {one.words} {one.memory.short_id} {one.memory.text}{reason}"


def _part(name: str, lines: Iterable[str]) -> None:
    lines = list(lines)
    if lines:
        print(f"\n{name}")
        for one in lines:
            print(f"  {line(one)}")


def events(found: Sequence[MemoryEventView]) -> None:
    """A table of what happened."""
    print_table(
        ("WHEN", "BY", "WHAT", "UNDO", "EVENT"),
        (
            (local_time(one.at), one.actor, one.summary, _undo(one), str(one.id))
            for one in found
        ),
    )  # fmt: skip


def _undo(event: MemoryEventView) -> str:
    if event.undone_by is not None:
        return "undone"
    return "possible" if event.undo else "-"


def explanation(found: MemoryExplanation) -> None:
    """The score term by term: value, the formula in words, the numbers put in."""
    print(f"{found.short_id}: importance {found.score:.3f} on use-day {found.use_days}\n")
    print_table(
        ("TERM", "VALUE", "FORMULA", "WITH"),
        (
            (
                one.name,
                f"{one.value:.4f}",
                one.formula,
                ", ".join(f"{name} = {number:g}" for name, number in one.numbers.items()),
            )
            for one in found.terms
        ),
    )


def entities(found: Sequence[Entity]) -> None:
    """A table of whom and what memories are about."""
    print_table(
        ("NAME", "TYPE", "MEMORIES", "SINCE", "ID"),
        (
            (one.name, one.type, str(one.memories), local_time(one.created_at), str(one.id))
            for one in found
        ),
    )
