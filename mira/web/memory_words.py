"""The account of a memory in sentences: what happened, and what undoing it would do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from uuid import UUID

from msgspec import UNSET

from mira.store.memories import Memory
from mira.store.memory_events import Counts, Fields, Link, LinkType, MemoryEvent, State

#: Characters quoted of a text, and of one that is only named.
_QUOTED, _NAMED = 160, 60

Names = Mapping[UUID, Memory]
"""The memories that sentences name, as far as they are there."""

#: How a memory stands to the one that a link of it leads to, and the other way round.
RELATIONS: Mapping[LinkType, tuple[str, str]] = {
    "conflicts": ("conflicts with", "conflicts with"),
    "supersedes": ("supersedes", "is superseded by"),
    "corroborates": ("corroborates", "is corroborated by"),
    "refines": ("refines", "is refined by"),
    "exemplifies": ("is an example of", "has as an example"),
    "precedes": ("comes before", "comes after"),
    "contextualizes": ("gives the context of", "has its context in"),
    "causes": ("causes", "is caused by"),
    "shares_entity": ("shares a name with", "shares a name with"),
    "other": ("has to do with", "has to do with"),
}


def summary(event: MemoryEvent, names: Names) -> str:
    """What happened, in a sentence."""
    if event.kind == "deleted":
        return "Deleted; its words are gone for good."
    if event.before is None and event.after is None:
        return f"{event.kind.capitalize()}; the words are gone."
    before, after = event.before or State(), event.after or State()
    told = "; ".join(_changes(event.memory_id, before, after, names)) or event.kind
    match event.kind:
        case "undone":
            return f"Undone: {told}."
        case "created" if after.record is not UNSET and after.record.source == "merge":
            return f"Merged from {len(after.record.source_memories)} memories: {told}."
        case "merged":
            return f"Merged into another: {told}."
        case "reinforced" | "touched" as kind:
            return f"{'Said again' if kind == 'reinforced' else 'Called important'}: {told}."
        case _:
            return f"{told[0].upper()}{told[1:]}."


def undoing(event: MemoryEvent, names: Names, others: int) -> str | None:
    """What undoing the event's step would do; None where it cannot be undone.

    `others`: how many more memories the step has changed.
    """
    if event.undone_by is not None or (event.before is None and event.after is None):
        return None
    before, after = event.before or State(), event.after or State()
    told = "; ".join(_changes(event.memory_id, after, before, names, "become"))
    if not told:
        return None
    more = ""
    if others:
        more = f" {others} other memor{'y' if others == 1 else 'ies'} of the same step" + (
            " goes back too." if others == 1 else " go back too."
        )
    return f"After undoing: {told}.{more}"


def spoken_of(event: MemoryEvent) -> Iterator[UUID]:
    """The memories that the sentences name."""
    for state in (event.before, event.after):
        if state is None:
            continue
        if state.link is not UNSET:
            yield state.link.from_id
            yield state.link.to_id
        if state.fields is not UNSET and isinstance(state.fields.superseded_by, UUID):
            yield state.fields.superseded_by


def _changes(
    own: UUID, before: State, after: State, names: Names, became: str = "became"
) -> Iterator[str]:
    """What differs between two states of a memory, from the one to the other."""
    if after.record is not UNSET:
        yield f"remembered {_quote(after.record.text)}"
    elif before.record is not UNSET:
        yield f"taken back {_quote(before.record.text)}"
    if after.link is not UNSET:
        yield f"linked: it {_link(after.link, own, names)}"
    elif before.link is not UNSET:
        yield f"no longer linked: it {_link(before.link, own, names)}"
    if after.annotation is not UNSET:
        yield f"noted {_quote(after.annotation.text)}"
    elif before.annotation is not UNSET:
        yield f"the note {_quote(before.annotation.text)} taken away"
    if after.counts is not UNSET and before.counts is not UNSET:
        yield _counts(before.counts, after.counts)
    if after.fields is not UNSET and before.fields is not UNSET:
        yield from _fields(before.fields, after.fields, names, became)
    if after.entities is not UNSET:
        yield "whom and what it is about changed"
    if after.evidence is not UNSET and after.evidence.text:
        yield f"in the words {_quote(after.evidence.text)}"


def _fields(before: Fields, after: Fields, names: Names, became: str) -> Iterator[str]:
    if after.text is not UNSET and before.text is not UNSET:
        yield f"the words {_quote(before.text)} {became} {_quote(after.text)}"
    if after.status is not UNSET:
        yield "archived" if after.status == "archived" else "active again"
    if after.superseded_by is not UNSET:
        by = after.superseded_by
        yield f"superseded by {_name(by, names)}" if by else "no longer superseded"
    for name, words in _DATES.items():
        at = getattr(after, name)
        if at is not UNSET:
            yield f"{words} {_moment(at)}" if at else f"{words} no set time"


_DATES = {
    "happens_at": "happens at",
    "expires_at": "expires at",
    "valid_from": "true from",
    "valid_to": "true until",
}


def _counts(before: Counts, after: Counts) -> str:
    times = after.mention_count
    return f"it counts as said {'once' if times == 1 else f'{times} times'}"


def _link(link: Link, own: UUID, names: Names) -> str:
    """A link as it looks from the memory that is spoken of."""
    reason = f" ({link.reason})" if link.reason else ""
    there, back = RELATIONS[link.type]
    if link.to_id == own:
        return f"{back} {_name(link.from_id, names)}{reason}"
    return f"{there} {_name(link.to_id, names)}{reason}"


def _name(memory_id: UUID, names: Names) -> str:
    named = names.get(memory_id)
    if named is None:
        return "a memory that is gone"
    return f"{_quote(named.text, _NAMED)} ({named.short_id})"


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


def _quote(text: str, most: int = _QUOTED) -> str:
    flat = " ".join(text.split())
    return f"“{flat if len(flat) <= most else f'{flat[: most - 1]}…'}”"
