"""Manifest: the segments of the conversation by local date, so that the model knows what there
is to be looked up."""

from __future__ import annotations

from itertools import groupby

from mira.prompt.inputs import Inputs, ManifestRow
from mira.prompt.layout import Placement
from mira.prompt.tags import quoted
from mira.prompt.times import local, span
from mira.prompt.trinket import Fill, Trinket

ROWS = 30
_TITLE = 80


def render(inputs: Inputs, fill: Fill) -> str:
    if inputs.compact or not inputs.manifest:
        return ""
    rows = sorted(inputs.manifest, key=lambda row: row.started_at)[-ROWS:]
    zone = inputs.timezone
    days = groupby(rows, key=lambda row: local(row.started_at, zone).strftime("%Y-%m-%d, %A"))
    tree = tuple((day, tuple(_row(row, zone) for row in group)) for day, group in days)
    return fill("manifest", days=tree)


def _row(row: ManifestRow, zone: str) -> str:
    title = quoted(row.title or "", _TITLE) or "(no title yet)"
    return f"[{span(row.started_at, row.ended_at, zone, dated=False)}] {title}"


MANIFEST = Trinket(
    name="Manifest",
    placement=Placement.SYSTEM,
    needs=("manifest", "timezone", "compact"),
    render=render,
    tag="manifest",
)
