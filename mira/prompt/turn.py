"""A turn as prompts show it: made fit once, when it has ended, and the same ever after."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from mira.messages.content import RedactedThinking, Said, Thinking
from mira.prompt.bounds import bounded
from mira.prompt.budget import estimate_said


class Turn(msgspec.Struct, frozen=True):
    """The messages of a turn, bounded and free of our tags, and about how many tokens they are."""

    said: tuple[Said, ...]
    tokens: int

    @staticmethod
    def of(messages: Iterable[Said], share: float = 1.0) -> Turn:
        """Make stored messages of one turn fit for prompts: the same messages, the same turn.

        Reasoning is left out: it is of use only while its turn lasts. `share` is that of `bounded`.
        """
        spoken = (
            Said(role=said.role, blocks=blocks)
            for said in messages
            if (
                blocks := tuple(
                    b for b in said.blocks if not isinstance(b, Thinking | RedactedThinking)
                )
            )
        )
        said = bounded(tuple(spoken), share)
        return Turn(said, sum(map(estimate_said, said)))
