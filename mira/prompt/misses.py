"""Why a prompt does not extend the one before it: what in its cached part has changed."""

from __future__ import annotations

from mira.prompt.layout import Prompt

#: The live turns were cut, or put into a brief.
TURNS = "turns"
#: The turns of the segment before were replaced, by its summary or because it is another one.
CONTINUITY = "continuity"


def misses(before: Prompt, after: Prompt) -> tuple[str, ...]:
    """The names of what has changed before the last mark of `before`; () if `after` extends it.

    A change in the system blocks lets nothing be read from the cache, one further down lets the
    marks above it stand.
    """
    old, new = _cached(before), _cached(after)
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if not changed and before.cache_marks:
        boundary, last = before.boundary, before.cache_marks[-1]
        if before.messages[:boundary] != after.messages[:boundary]:
            changed.append(CONTINUITY)
        elif before.messages[:last] != after.messages[:last]:
            changed.append(TURNS)
    return tuple(changed)


def _cached(prompt: Prompt) -> dict[str, str]:
    return {one.name: one.text for one in prompt.rendered if one.placement.cached}
