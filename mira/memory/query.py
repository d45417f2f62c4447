"""What is looked for, alike for memories and for the history."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from mira.memory.terms import clean

#: How long a phrase may be, and how many there may be.
LONGEST_PHRASE, MOST_PHRASES = 2000, 8

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

    def kept_phrases(self) -> list[str]:
        """The phrases as they are searched: clean, each once, none empty, within the bounds."""
        cleaned = (clean(phrase).strip()[:LONGEST_PHRASE] for phrase in self.phrases)
        return list(dict.fromkeys(phrase for phrase in cleaned if phrase))[:MOST_PHRASES]
