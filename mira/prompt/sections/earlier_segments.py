"""Earlier segments: the assistant's own summaries, newest ones in full, those before in short."""

from __future__ import annotations

from collections.abc import Sequence

from mira.prompt.inputs import SUMMARIES_CEILING, Inputs, SummaryView
from mira.prompt.layout import Placement
from mira.prompt.tags import quoted
from mira.prompt.times import span
from mira.prompt.trinket import Fill, Trinket

#: The complexity that full summaries may add up to.
COMPLEXITY = 4.5
#: Summaries shown in short, beyond those in full; in a compact prompt these alone.
IN_SHORT = 4
_COMPACT = 3
_TITLE, _TRACE, _PRECIS, _COMPACT_PRECIS = 120, 2_000, 600, 240


def choose(
    earlier: Sequence[SummaryView], most: int
) -> tuple[Sequence[SummaryView], Sequence[SummaryView]]:
    """Which summaries are shown in full and which in short, of `earlier`, newest first.

    In full: from the newest on, while their complexity adds up to at most COMPLEXITY; never more
    than `most` or the ceiling, and always the newest. In short: the next ones.
    """
    full = 0
    total = 0.0
    for summary in earlier[: max(1, min(most, SUMMARIES_CEILING))]:
        total += summary.complexity
        if full and total > COMPLEXITY:
            break
        full += 1
    return earlier[:full], earlier[full : full + IN_SHORT]


def render(inputs: Inputs, fill: Fill) -> str:
    if not inputs.earlier:
        return ""
    zone = inputs.timezone
    full, short = choose(inputs.earlier, inputs.max_summaries)
    precis = _PRECIS
    if inputs.compact:
        full, short, precis = (), inputs.earlier[:_COMPACT], _COMPACT_PRECIS
    return fill(
        "earlier_segments",
        short=tuple((*_head(s, zone), quoted(s.precis, precis)) for s in reversed(short)),
        full=tuple((*_head(s, zone), quoted(s.trace, _TRACE)) for s in reversed(full)),
    )


def _head(summary: SummaryView, zone: str) -> tuple[str, str]:
    return span(summary.started_at, summary.ended_at, zone), quoted(summary.title, _TITLE)


EARLIER_SEGMENTS = Trinket(
    name="EarlierSegments",
    placement=Placement.EARLIER,
    needs=("earlier", "max_summaries", "timezone", "compact"),
    render=render,
    tag="earlier_segments",
)
