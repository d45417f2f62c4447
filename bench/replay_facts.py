"""What a model makes of a message and of what the user said, by rule: from words alone."""

from __future__ import annotations

import re
from typing import Any

from bench.replay_lines import lines
from bench.replay_words import absolute, content_words, names, of_user, statements

Body = dict[str, Any]

_NEW = re.compile(r'<new id="(\w+)"[^>]*>(.*?)</new>', re.DOTALL)
_CANDIDATE = re.compile(r'<candidate id="(\w+)"[^>]*>(.*?)</candidate>', re.DOTALL)
_IN_CONTEXT = re.compile(r"^(mem_\w{8}) \([^)]*\) (.*)$", re.MULTILINE)
#: A message of more words that name something is taken for a complex one.
PLAIN = 12


def considered(data: str) -> Body:
    """The Subcortex: as phrases how the message begins, and its longest words; to keep are the
    memories that share two words with it."""
    message = data.rpartition("<mira:message>")[2].partition("</mira:message>")[0]
    words = list(dict.fromkeys(content_words(message)))
    long = sorted(words, key=len, reverse=True)[:6]
    phrases = [" ".join(words[:8]), " ".join(word for word in words if word in long)]
    context = data.partition("<mira:context>")[2].partition("</mira:context>")[0]
    shared = {
        found[1]: len(set(content_words(found[2])) & set(words))
        for found in _IN_CONTEXT.finditer(context)
    }
    return {
        "phrases": list(dict.fromkeys(p for p in phrases if p)) or [message[:200]],
        "entities": names(message)[:4],
        "keep": [name for name, count in shared.items() if count >= 2][:8],
        "complexity": "complex" if len(words) > PLAIN else "straightforward",
    }


def facts(data: str) -> list[Body]:
    """Of each line of the user at most two clauses that state something of the user."""
    found = []
    for line in lines(data):
        for clause in statements(line.text, 2) if line.by_user else ():
            days = absolute(clause)
            found.append(
                {
                    "lines": [line.number],
                    "text": of_user(clause) + ".",
                    "entities": [{"name": n, "type": "OTHER"} for n in names(clause)[:3]],
                    "happens_at": days[0] if days else None,
                    "expires_at": None, "related": [], "supersedes": [], "hints": [],
                }
            )  # fmt: skip
    return found


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
