"""What is looked for, alike for memories and for the history."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

#: recall: what was said about this; explore: what has to do with it; exact: these very words;
#: general: nothing is known of the purpose.
Intent = Literal["recall", "explore", "exact", "general"]


class RecallQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One search. Several phrases ask for several things: what answers one of them is found."""

    phrases: tuple[str, ...]
    #: Names that the question is about; where there are none, known names in the phrases count.
    entities: tuple[str, ...] = ()
    intent: Intent = "recall"
    limit: int = 20
    #: Ids of memories or messages that are not wanted (those that the prompt holds already).
    exclude: frozenset[UUID] = frozenset()
    #: What was true then; None: what is true, and what was, marked as superseded.
    as_of: datetime | None = None
