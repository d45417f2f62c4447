"""A model that answers by rule: the chat's own answers, and the housework of memory without wit.

What is asked is known by how the question ends. Summaries and facts are clauses of what was said,
so that they are true; every eighth summary names a person and a number that nobody has, and every
tenth lacks its title, so that checking and asking again have something to do.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import msgspec

from bench.provider_script import Behaviour, Script
from bench.replay_facts import Body, considered, facts, links
from bench.replay_summaries import brief, corrected, doubts, length, notes, summary

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
CONVERSATION = "conversation"
#: Of so many summaries one is untrue in a sentence, and one lacks its title.
UNTRUE, UNTITLED = 8, 10


class Rules(Script):
    """A script whose answers are made for each request.

    `body` gives the request that is being answered; `said` is what is answered in conversation.
    """

    body: Callable[[], Body] = dict
    said: str = ""
    #: Every call by kind, in order; one that asks again ends in `_again`.
    calls: list[str] = msgspec.field(default_factory=list)
    #: The last request of the conversation.
    last: Body = msgspec.field(default_factory=dict)
    #: The data of all requests for a summary.
    told: list[str] = msgspec.field(default_factory=list)
    #: Sentences of summaries, those of them that are untrue, and those that a correction was asked
    #: for, by the reason.
    sentences: int = 0
    untrue: int = 0
    doubted: Counter[str] = msgspec.field(default_factory=Counter)

    def take(self, last_user_message: str, *, queued: bool = True) -> Behaviour:
        body = self.body()
        data = _text(body["messages"][0])
        kind = next((k for k, end in ENDS.items() if data.rstrip().endswith(end)), CONVERSATION)
        again = kind != CONVERSATION and len(body["messages"]) > 1
        self.calls.append(f"{kind}_again" if again else kind)
        if kind == CONVERSATION:
            self.last = body
            return Behaviour(text=self.said)
        return Behaviour(text=json.dumps(self._housework(kind, data, again)))

    def _housework(self, kind: str, data: str, again: bool) -> Body:
        match kind:
            case "subcortex":
                return considered(data)
            case "summary":
                return self._summary(data, again)
            case "summary_part":
                return {"notes": notes(data)}
            case "summary_correction":
                self.doubted += doubts(data)
                return corrected(data)
            case "brief":
                return brief(data)
            case "extraction":
                return {"memories": facts(data)}
            case "links":
                return {"links": links(data), "merges": []}
            case "approval":
                return {"verdicts": []}
            case "floor_review":
                return {"reviews": []}
        return {"merges": []}

    def _summary(self, data: str, again: bool) -> Body:
        number = self.calls.count("summary")
        untrue = number % UNTRUE == 0
        told = summary(data, untrue=untrue)
        if not again:
            self.told.append(data)
            self.sentences += length(told)
            self.untrue += untrue
            if number % UNTITLED == 0:
                del told["title"]
        return told


def _text(message: Body) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block.get("type") == "text")
