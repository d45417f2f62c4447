"""The same turns on the small local model: what its answers are like, in figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from bench.replay_words import content_words
from mira.messages.content import decode_blocks, plain_text
from mira.store.database import Tx

Row = dict[str, Any]

#: An answer turns in circles if so small a share of its runs of four words are different ones.
CIRCLES, RUN = 0.7, 4
#: An answer parrots if so large a share of its words that name something are the question's.
PARROTS = 0.8


async def answers(tx: Tx) -> Row:
    """What the answers of a chat are like; `weak` counts the kinds of weakness."""
    rows = await tx.fetch(
        "select u.content::text as asked, a.content::text as said from messages u "
        "join messages a on a.turn_id = u.turn_id and a.role = 'assistant' "
        "where u.role = 'user' order by u.turn_seq"
    )
    pairs = [(_words(row["asked"]), _words(row["said"])) for row in rows]
    weak = Counter(kind for asked, said in pairs for kind in weakness(asked, said))
    said = Counter(said for _, said in pairs)
    return {
        "words": sorted(len(text.split()) for _, text in pairs),
        "weak": dict(weak.most_common()),
        "said_before": sum(count - 1 for count in said.values()),
    }


def _words(content: str) -> str:
    return plain_text(decode_blocks(content))


def weakness(asked: str, said: str) -> list[str]:
    """What is weak about an answer, if anything."""
    words = said.split()
    runs = [tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)]
    named, wanted = content_words(said), set(content_words(asked))
    found = []
    if not words:
        found.append("empty")
    if runs and len(set(runs)) < CIRCLES * len(runs):
        found.append("turns in circles")
    if named and sum(word in wanted for word in named) >= PARROTS * len(named):
        found.append("says the question again")
    if named and not wanted.intersection(named):
        found.append("has no word of the question")
    if words and said.rstrip()[-1:].isalnum():
        found.append("ends in mid-sentence")
    return found


def told(row: Mapping[str, Any]) -> str:
    """The part of the report about the run on the local model."""
    given = row["answers"]
    words = given["words"] or [0]
    first = row["stages"]["first_text"]
    went = (
        "Nothing broke: every turn ended with an answer, every segment with a summary."
        if not row["wrong"]
        else "Not as it must be: " + "; ".join(row["wrong"]) + "."
    )
    rows = {
        "turns, segments, seconds": f"{row['turns']}, {row['segments']}, {row['seconds']:.0f}",
        "words of an answer: fewest, median, most":
            f"{words[0]}, {words[len(words) // 2]}, {words[-1]}",
        "weak answers, by kind; one may be weak in several ways": _counted(given["weak"]),
        "answers given before, word for word": given["said_before"],
        # Only of these there are vectors: the others are the user's words, under a plain heading.
        "summaries in the model's own words, since the talk bore them out":
            f"{row['encoded']} of {row['summaries']}",
        "drift of summaries": _counted(row["drift"]),
        "chunks for extraction, by state": _counted(row["chunks"]),
        "memories": sum(row["memories"].values()),
        "messages of the history shown": _spread(row["shown"]["passages"]),
        "tokens of a prompt, as estimated, before the model's own cut":
            _spread(row["estimated_tokens"]),
        "parts of recall left out for being late": _counted(row["late"]),
        "how often a prompt was made smaller": row["cuts"],
        "first text after, ms": _spread(first),
        "calls, and those that failed": "; ".join(
            f"{purpose} {one['calls']}, {one['errors']}" for purpose, one in row["calls"].items()
        ),
    }  # fmt: skip
    lines = "\n".join(f"| {name} | {figure} |" for name, figure in rows.items())
    return f"""## The first {row["turns"]} turns of chat {row["chat"]} on the local model

The same house without a key: the small model that ships with MIRA answers, is given what it can
read, and is asked neither to read messages before they are answered nor to extract memories. {went}

| | |
| --- | --- |
{lines}"""


def _counted(found: Mapping[str, int]) -> str:
    return "; ".join(f"{name}: {count}" for name, count in found.items()) or "none"


def _spread(found: Mapping[str, float]) -> str:
    if not found:
        return "–"
    return f"p50 {found['p50']:,.0f}, p95 {found['p95']:,.0f}, most {found['max']:,.0f}"
