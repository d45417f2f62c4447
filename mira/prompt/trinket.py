"""A trinket: what contributes one section of the prompt."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement


class Fill(Protocol):
    """Fills in a template, as Templates.render does."""

    def __call__(self, name: str, **values: Hashable) -> str: ...


@dataclass(frozen=True)
class Trinket:
    """One section: its name, its place, and how its text comes about.

    `needs` are the inputs it is made of, by name; it sees the others empty. `render` is pure: the
    same of these, the same text, so that it need not be rendered again. "" is no section. It
    bounds what it shows.

    The composer puts the text between tags of this name and takes out of it whatever looks like a
    tag of ours, so no trinket has to. Without a `tag` the text stands as it is: then it must be
    our own, and what it holds of others must be made neutral by the trinket.
    """

    name: str
    placement: Placement
    needs: tuple[str, ...]
    render: Callable[[Inputs, Fill], str]
    tag: str | None
