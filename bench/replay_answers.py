"""A model that answers by rule: the chat's own answers, and the housework of memory without wit.

What is asked is known by how the question ends. Summaries and facts are clauses of what was said,
so that they are true; every eighth summary names a person and a number that nobody has, and every
tenth lacks its title, so that checking and asking again have something to do.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from bench.provider_script import Behaviour, Script
from bench.replay_words import (
    MONTHS,
    absolute,
    content_words,
    first_words,
    names,
    statements,
)
from mira.memory.lived.sentences import sentences

#: How the data of each question end.
ENDS = {
    "subcortex": "Say what the message is about, as JSON.",
    "summary": "Write down how this conversation was, as JSON.",
    "summary_part": "Write your notes on this part, as JSON.",
    "summary_correction": "Write trace and precis once more, as JSON.",
    "brief": "Write the note, as JSON.",
    "extraction": "Write down what the user said in these lines that should be kept, as JSON.",
    "links": "Say how the new memories and their candidates belong together, as JSON.",
    "consolidation": "Propose merges, as JSON.",
    "approval": "Give your verdicts, as JSON.",
    "floor_review": "Review each memory, as JSON.",
    "entity_merge": "Say which are the same, as JSON.",
}
#: Of so many summaries one is untrue in a sentence, and one lacks its title.
UNTRUE, UNTITLED = 8, 10
_INVENTED = "Quillon"

_LINE = re.compile(
    r'<line (?:n="(\d+)" )?from="(\w+)" at="\w+ ([\d-]+) [\d:]+"[^>]*>(.*?)</line>', re.DOTALL
)
_NOTES = re.compile(r"<earlier>\n(.*?)</earlier>", re.DOTALL)
_NEW = re.compile(r'<new id="(\w+)"[^>]*>(.*?)</new>', re.DOTALL)
_CANDIDATE = re.compile(r'<candidate id="(\w+)"[^>]*>(.*?)</candidate>', re.DOTALL)

Body = dict[str, Any]


class Rules(Script):
    """A script whose answers are made for each request.

    `body` gives the request that is being answered. `said` is what is answered in conversation,
    and `words` what must have been asked; `asked` counts by kind, `strange` what was asked of the
    conversation's model that is not that.
    """

    body: Callable[[], Body] = dict
    words: str = ""
    said: str = ""
    asked: Counter[str] = msgspec.field(default_factory=Counter)
    strange: int = 0
    #: The last request of the conversation.
    last: Body = msgspec.field(default_factory=dict)

    def take(self, last_user_message: str, *, queued: bool = True) -> Behaviour:
        body = self.body()
        first = _text(body["messages"][0])
        kind = next((k for k, end in ENDS.items() if first.rstrip().endswith(end)), "conversation")
        again = kind != "conversation" and len(body["messages"]) > 1
        self.asked[f"{kind}_again" if again else kind] += 1
        if kind == "conversation":
            self.last = body
            self.strange += self.words not in last_user_message
            return Behaviour(text=self.said)
        return Behaviour(text=self._housework(kind, first, again))

    def _housework(self, kind: str, data: str, again: bool) -> str:
        match kind:
            case "subcortex":
                return json.dumps(considered(data))
            case "summary":
                number = self.asked["summary"]
                told = summary(data, untrue=number % UNTRUE == 0 and not again)
                if number % UNTITLED == 0 and not again:
                    del told["title"]
                return json.dumps(told)
            case "summary_part":
                return json.dumps({"notes": notes(data)})
            case "summary_correction":
                return json.dumps(corrected(data))
            case "brief":
                told_ = [sentence for _, sentence in _told(_lines(data))]
                return json.dumps({"state": told_[-8:], "open": []})
            case "extraction":
                return json.dumps({"memories": facts(data)})
            case "links":
                return json.dumps({"links": links(data), "merges": []})
            case "approval":
                return '{"verdicts": []}'
            case "floor_review":
                return '{"reviews": []}'
        return '{"merges": []}'


def _text(message: Body) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block.get("type") == "text")


# The Subcortex.


def considered(data: str) -> Body:
    """Phrases: how the message begins, and the words that name something; of its memories those
    that share two words with it."""
    message = data.rpartition("<mira:message>")[2].partition("</mira:message>")[0]
    words = list(dict.fromkeys(content_words(message)))
    long = sorted(words, key=len, reverse=True)[:6]
    phrases = [" ".join(words[:8]), " ".join(word for word in words if word in long)]
    context = data.partition("<mira:context>")[2].partition("</mira:context>")[0]
    kept = [
        one[1]
        for one in re.finditer(r"^(mem_\w{8}) \([^)]*\) (.*)$", context, re.MULTILINE)
        if len(set(content_words(one[2])) & set(words)) >= 2
    ]
    return {
        "phrases": list(dict.fromkeys(p for p in phrases if p)) or [message[:200]],
        "entities": names(message)[:4],
        "keep": kept[:8],
        "complexity": "complex" if len(words) > 12 else "straightforward",
    }


# Summaries.


class _Said(NamedTuple):
    """A line of the conversation; its day in words."""

    number: int
    by_user: bool
    day: str
    text: str


def _lines(data: str) -> list[_Said]:
    found = []
    for n, who, day, text in _LINE.findall(data):
        year, month, date = map(int, day.split("-"))
        found.append(_Said(int(n or 0), who == "user", f"{date} {MONTHS[month - 1]} {year}", text))
    return found


def _told(lines: Sequence[_Said]) -> list[tuple[str, str]]:
    """For each line of the user a sentence in the first person, with the day in full."""
    found: dict[str, str] = {}
    for line in lines:
        words = first_words(line.text, 22)
        if line.by_user and words:
            found.setdefault(words, f'On {line.day} I was told "{words}", and I answered that.')
    return list(found.items())


def summary(data: str, *, untrue: bool) -> Body:
    """Three or four sentences, and two of them as the essence."""
    earlier = _NOTES.search(data)
    here = _told(_lines(data))
    told = sentences(earlier[1]) if earlier else []
    told = list(dict.fromkeys([*told, *(sentence for _, sentence in here)]))
    topic = " ".join(content_words(" ".join(words for words, _ in here[:1]))[:6])
    chosen = [*told[:2], *told[2:][-2:]]
    more = ["I gave my advice on all of it.", "I left nothing of that unanswered."]
    chosen += more[: max(0, 3 - len(chosen))]
    if untrue:
        chosen[-1] = f"I then agreed with {_INVENTED} on 7731 pieces for the harbour."
    return {
        "trace": " ".join(chosen),
        "precis": f"{chosen[0]} I gave my advice on it.",
        "title": topic.capitalize() or "A short talk",
        "complexity": 2,
    }


def notes(data: str) -> str:
    told = [sentence for _, sentence in _told(_lines(data))]
    return " ".join(told[-4:]) or "I went on with my answer, which was long."


def corrected(data: str) -> Body:
    """Trace and precis without what was named, and with something plain in its place."""
    trace = data.partition("Trace: ")[2].partition("\nPrecis: ")[0]
    precis = data.partition("\nPrecis: ")[2].partition("\n</summary>")[0]
    plain = "I answered what I was asked."
    for sentence in re.findall(r"^Not covered: (.*)$", data, re.MULTILINE):
        trace = trace.replace(sentence, plain if plain not in trace else "I gave my advice.")
        precis = precis.replace(sentence, plain if plain not in precis else "I gave my advice.")
    return {"trace": trace, "precis": precis}


# Memories.


def facts(data: str) -> list[Body]:
    """Of each line of the user at most two clauses that state something of the user."""
    found = []
    for number, by_user, _, text in _lines(data):
        for clause in statements(text, 2) if by_user else ():
            days = absolute(clause)
            found.append(
                {
                    "lines": [number],
                    "text": _of_user(clause) + ".",
                    "entities": [{"name": n, "type": "OTHER"} for n in names(clause)[:3]],
                    "happens_at": days[0] if days else None,
                    "expires_at": None, "related": [], "supersedes": [], "hints": [],
                }
            )  # fmt: skip
    return found


def _of_user(clause: str) -> str:
    for pattern, instead in (
        (r"\bI['’]m\b|\bI am\b", "the user is"), (r"\bI['’]ve\b|\bI have\b", "the user has"),
        (r"\bI['’]d\b", "the user would"), (r"\bI['’]ll\b", "the user will"),
        (r"\bmy\b", "the user's"), (r"\bme\b", "the user"), (r"\bI\b", "the user"),
    ):  # fmt: skip
        clause = re.sub(pattern, instead, clause)
    return clause[:1].upper() + clause[1:]


def links(data: str) -> list[Body]:
    """Each new memory with the candidate that shares most words with it, if that is two."""
    found = []
    for new, block in _NEW.findall(data):
        words = set(content_words(block.partition("<candidate")[0])) - {"user", "user's"}
        best: tuple[int, str] = (1, "")
        for candidate, text in _CANDIDATE.findall(block):
            best = max(best, (len(words & set(content_words(text))), candidate))
        if best[1]:
            kind = "refines" if best[0] >= 4 else "shares_entity"
            found.append(
                {"from": new, "to": best[1], "type": kind, "reason": "They share words.",
                 "confidence": 0.7}
            )  # fmt: skip
    return found
