"""New memories beside older ones that look related: what is asked, what is understood.

One question for several new memories and all their candidates. It answers two things: how they
are linked, and which of the new ones say nothing new. It can invent neither memories nor words.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec

from mira.memory.answers import objects, read, share, words
from mira.memory.forms import TEXT, choice, list_of, object_of
from mira.memory.quoting import quoted
from mira.store.memory_events import LinkType

#: New memories in one question, and candidates of each.
MOST_NEW, MOST_CANDIDATES = 8, 20
#: Links taken for one new memory.
MOST_LINKS = 12
REASON = 120

TYPES: tuple[LinkType, ...] = get_args(LinkType)


class Shown(msgspec.Struct, frozen=True):
    """A memory as it is shown: `since` says from when on it is true, as far as is known."""

    short_id: str
    since: str
    text: str

    def quoted(self) -> Shown:
        return Shown(self.short_id, self.since, quoted(" ".join(self.text.split())))


class Newcomer(msgspec.Struct, frozen=True):
    """A new memory with the older ones that it may belong to, the likeliest first."""

    memory: Shown
    candidates: tuple[Shown, ...]


class ShownNewcomer(msgspec.Struct, frozen=True, kw_only=True):
    """As the template shows it."""

    short_id: str
    since: str
    text: str
    candidates: tuple[Shown, ...]


class FoundLink(msgspec.Struct, frozen=True, kw_only=True):
    """`from_ref` and `to_ref` are short ids; one is new, the other its candidate."""

    from_ref: str
    to_ref: str
    type: LinkType
    reason: str
    confidence: float


class FoundMerge(msgspec.Struct, frozen=True, kw_only=True):
    """Two memories that say the same; `keep` is the one whose words remain."""

    new: str
    into: str
    keep: str


class LinksReview(msgspec.Struct, frozen=True, kw_only=True):
    links: tuple[FoundLink, ...] = ()
    merges: tuple[FoundMerge, ...] = ()
    #: Parts of the answer that were not understood, or spoke of what was not shown.
    refused: int = 0
    damaged: bool = False


def shown(news: Sequence[Newcomer]) -> tuple[ShownNewcomer, ...]:
    """The newcomers for the template."""
    made = []
    for one in news:
        memory = one.memory.quoted()
        made.append(
            ShownNewcomer(
                short_id=memory.short_id,
                since=memory.since,
                text=memory.text,
                candidates=tuple(c.quoted() for c in one.candidates[:MOST_CANDIDATES]),
            )
        )
    return tuple(made)


def parse(text: str, news: Sequence[Newcomer]) -> LinksReview:
    """Read a model's answer. Raises ProviderMalformed if nothing can be made of it."""
    answer = read(text)
    value = answer.value
    if isinstance(value, Mapping) and "links" not in value and "merges" in value:
        value = {**value, "links": []}
    pairs = {one.memory.short_id: {c.short_id for c in one.candidates} for one in news}
    links: dict[tuple[str, str, str], FoundLink] = {}
    refused = 0
    for item in objects(value, "links", "type"):
        link = _link(item, pairs)
        if link is None:
            # "None" is an answer, too.
            refused += str(item.get("type")).lower() != "none"
        else:
            links.setdefault((link.from_ref, link.to_ref, link.type), link)
    merges: dict[str, FoundMerge] = {}
    found = value.get("merges") if isinstance(value, Mapping) else None
    for item in objects({"merges": found}, "merges", "new"):
        merge = _merge(item, pairs)
        if merge is None or merge.new in merges or merge.into in merges:
            refused += 1
        else:
            merges[merge.new] = merge
    return LinksReview(
        links=_bounded(links.values(), pairs, merges),
        merges=tuple(merges.values()),
        refused=refused,
        damaged=answer.damaged,
    )


def _link(item: Mapping[str, Any], pairs: Mapping[str, set[str]]) -> FoundLink | None:
    start, end = _id(item.get("from")), _id(item.get("to"))
    kind = words(item.get("type"), most=40).lower().replace(" ", "_").replace("-", "_")
    if kind not in TYPES or start == end:
        return None
    if end not in pairs.get(start, ()) and start not in pairs.get(end, ()):
        return None
    return FoundLink(
        from_ref=start,
        to_ref=end,
        type=kind,
        reason=words(item.get("reason"), most=REASON),
        confidence=share(item.get("confidence"), 0.7),
    )


def _merge(item: Mapping[str, Any], pairs: Mapping[str, set[str]]) -> FoundMerge | None:
    new, into, keep = (_id(item.get(name)) for name in ("new", "into", "keep"))
    if into not in pairs.get(new, ()):
        return None
    return FoundMerge(new=new, into=into, keep=keep if keep in (new, into) else into)


def _bounded(
    links: Any, pairs: Mapping[str, set[str]], merges: Mapping[str, FoundMerge]
) -> tuple[FoundLink, ...]:
    """The surest links of each new memory; none between two that become one."""
    one = {frozenset((m.new, m.into)) for m in merges.values()}
    count = dict.fromkeys(pairs, 0)
    kept = []
    for link in sorted(links, key=lambda link: -link.confidence):
        new = link.from_ref if link.from_ref in pairs else link.to_ref
        if frozenset((link.from_ref, link.to_ref)) in one or count[new] >= MOST_LINKS:
            continue
        count[new] += 1
        kept.append(link)
    return tuple(kept)


def _id(value: Any) -> str:
    return value.strip().lower() if isinstance(value, str) else ""


SCHEMA = json.dumps(
    object_of(
        links=list_of(
            object_of(
                **{
                    "from": TEXT,
                    "to": TEXT,
                    "type": choice(*TYPES),
                    "reason": TEXT,
                    "confidence": {"type": "number"},
                }
            )
        ),
        merges=list_of(object_of(new=TEXT, into=TEXT, keep=TEXT)),
    )
)
