"""Summaries by rule, of sentences that are true, for a model that has no wit.

Every so often one is not: it names a person and a number that nobody has. So the check of
summaries has something to find, and what else it finds is counted against it.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import cycle
from typing import Any

from bench.replay_lines import about_what, answered, lines, told
from mira.memory.lived.sentences import sentences

Body = dict[str, Any]

UNTRUE = "I then agreed with Quillon on 7731 pieces for the harbour."
_PLAIN = (
    "I answered what I was asked.", "I gave my advice.", "We talked about it.",
    "I explained what I could.", "I said what I thought of it.", "We went on with it.",
)  # fmt: skip
_NOTES = re.compile(r"<earlier>\n(.*?)</earlier>", re.DOTALL)
_DOUBTED = re.compile(r"^Not covered: (.*)\nWhy: (.*)$", re.MULTILINE)
_REASONS = {"nothing like it": "support", "an earlier conversation": "elsewhere"}


def summary(data: str, *, untrue: bool) -> Body:
    """Three or four sentences: what was heard first and last, and what was answered; two as the
    essence. `untrue`: the last one of the trace is."""
    here, before = lines(data), _NOTES.search(data)
    heard = list(dict.fromkeys([*(sentences(before[1]) if before else []), *told(here)]))
    chosen = [*heard[:2], *heard[2:][-1:]]
    if len(chosen) < 2:
        chosen.append("I listened to all of it.")
    chosen.append(UNTRUE if untrue else answered(here))
    about = about_what(" ".join(line.text for line in here if line.by_user))
    asked = f"I was asked about {about}." if about else "I was asked little."
    return {
        "trace": " ".join(chosen),
        "precis": f"{asked} {answered(here)}",
        "title": about.capitalize() or "A short talk",
        "complexity": 2,
    }


def notes(data: str) -> str:
    """What was heard in a part, or in the notes that are to become one."""
    here, before = lines(data), _NOTES.search(data)
    heard = told(here) or (sentences(before[1]) if before else [])
    return " ".join(heard[-3:]) or answered(here)


def brief(data: str) -> Body:
    """The note in place of a long talk: what was heard last, or answered if nothing was."""
    here = lines(data)
    state = told(here)[-8:] or [answered(here)]
    return {"state": state, "preferences": [], "decisions": [], "references": [], "open": []}


def corrected(data: str) -> Body:
    """Trace and precis with something plain in place of each sentence that is doubted."""
    trace = data.partition("Trace: ")[2].partition("\nPrecis: ")[0]
    precis = data.partition("\nPrecis: ")[2].partition("\n</summary>")[0]
    # A summary that says the same twice would not be taken.
    for (sentence, _), plain in zip(_DOUBTED.findall(data), cycle(_PLAIN)):
        trace, precis = trace.replace(sentence, plain), precis.replace(sentence, plain)
    return {"trace": trace, "precis": precis}


def doubts(data: str) -> Counter[str]:
    """What a request for a correction doubts: `untrue` what is, the rest by the reason given."""
    found: Counter[str] = Counter()
    for sentence, why in _DOUBTED.findall(data):
        found["untrue" if sentence == UNTRUE else _kind(why)] += 1
    return found


def _kind(why: str) -> str:
    known = (kind for words, kind in _REASONS.items() if words in why)
    return next(known, "names, numbers, dates")


def length(told: Body) -> int:
    """How many sentences a summary has, in its trace and its precis."""
    return len(sentences(told["trace"])) + len(sentences(told["precis"]))
