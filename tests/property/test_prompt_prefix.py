"""Each prompt of a day extends the one before it, byte for byte up to its last mark, whatever is
said, remembered and done; but for the changes that are named here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mira.llm.base import Request, SystemBlock
from mira.llm.openai_request import messages as to_openai
from mira.messages.content import Role, Said, Text, Thinking, ToolResult, ToolUse
from mira.prompt.inputs import Inputs, SurfacedPassage
from mira.prompt.layout import Prompt
from mira.prompt.misses import misses
from mira.prompt.turn import Turn
from tests.support.prompt import NOW, body, composer, inputs, memory, row, said, summary

#: What may break the prefix, and the sections and turns that it changes.
ALLOWED = {
    "directives learned": {"BehavioralDirectives"},
    "portrait drawn": {"UserPortrait"},
    "segment collapsed": {"Manifest", "Boundary", "ContinuationBrief"},
    "summary came late": {"EarlierSegments"},
    "older turns put into a brief": {"ContinuationBrief"},
    "oldest turns cut": {"turns"},
}
#: What is still read from the cache when something has changed; all of it, if it is none of these.
NOTHING, SYSTEM, BOUNDARY, ALL = range(4)
LEFT = {
    **dict.fromkeys(("BehavioralDirectives", "UserPortrait", "Manifest"), NOTHING),
    **dict.fromkeys(("EarlierSegments", "Boundary"), SYSTEM),
    **dict.fromkeys(("ContinuationBrief", "turns"), BOUNDARY),
}

words = st.one_of(st.text(max_size=40), st.sampled_from(["</mira:now>", "x" * 33_000, "\ud800 ok"]))


@dataclass(frozen=True)
class Spoken:
    """A turn, and what changes with every turn."""

    words: tuple[str, ...]
    answer: str
    calls: tuple[str, ...]
    shape: str
    memories: tuple[str, ...]
    passages: tuple[str, ...]
    outcome: str | None
    minutes: int

    def messages(self) -> list[Said]:
        rounds = [
            one
            for n, result in enumerate(self.calls)
            for one in (
                said(
                    Role.ASSISTANT,
                    Thinking(text="Hm.", signature="c2ln", source="anthropic:claude-sonnet-5-5"),
                    ToolUse(call_id=f"c{n}", name="look"),
                ),
                said(Role.TOOL, ToolResult(call_id=f"c{n}", text=result)),
            )
        ]
        asked = [] if self.shape == "begun by the server" else [said(Role.USER, *self.words)]
        answered = [] if self.shape == "unanswered" else [said(Role.ASSISTANT, self.answer)]
        return [*asked, *rounds, *answered]


spoken = st.builds(
    Spoken,
    words=st.lists(words, min_size=1, max_size=3).map(tuple),
    answer=words,
    calls=st.lists(words, max_size=12).map(tuple),
    shape=st.sampled_from(["plain", "plain", "plain", "unanswered", "begun by the server"]),
    memories=st.lists(words, max_size=9).map(tuple),
    passages=st.lists(words, max_size=3).map(tuple),
    outcome=st.none() | words,
    minutes=st.integers(-30, 3000),
)
days = st.lists(spoken | st.sampled_from(sorted(ALLOWED)), min_size=2, max_size=10)


def changed(given: Inputs, change: str, number: int) -> Inputs:
    """What is gathered after a change; every change is another one than before."""
    turns = given.turns
    every: dict[str, dict[str, Any]] = {
        "directives learned": {"directives": f"Version {number}."},
        "portrait drawn": {"portrait": f"Version {number}."},
        "segment collapsed": {
            "manifest": (*given.manifest, row(-number)),
            "continuity": turns[-2:],
            "turns": (),
            "brief": None,
            "boundary_end": given.now,
        },
        "summary came late": {"earlier": (summary(number + 10), *given.earlier)},
        "older turns put into a brief": {"turns": turns[1:], "brief": f"Version {number}."},
        "oldest turns cut": {"turns": turns[1:]},
    }
    return msgspec.structs.replace(given, **every[change])


def spoken_into(given: Inputs, one: Spoken) -> Inputs:
    """What is gathered for a turn."""
    return msgspec.structs.replace(
        given,
        now=given.now + timedelta(minutes=one.minutes),
        last_message_at=given.now,
        words=() if one.shape == "begun by the server" else tuple(Text(text=w) for w in one.words),
        outcome=one.outcome,
        memories=tuple(memory(text) for text in one.memories),
        passages=tuple(
            SurfacedPassage(who=Role.USER, said_at=NOW, text=text) for text in one.passages
        ),
    )


@given(days)
def test_a_prompt_extends_the_one_before_it_unless_something_named_has_changed(
    day: list[Spoken | str],
) -> None:
    state = inputs(manifest=(row(0, ended_at=None), row(1)), earlier=(summary(1),))
    before: Prompt | None = None
    since: set[str] = set()
    for number, one in enumerate(day):
        if isinstance(one, str):
            state = changed(state, one, number)
            since.add(one)
            continue
        state = spoken_into(state, one)
        after = composer().compose(state)
        sent = body(after)
        assert not [part.name for part in after.rendered if part.error]
        fit_to_be_sent(sent)
        if before is not None:
            found = misses(before, after)
            assert set(found) <= {name for change in since for name in ALLOWED[change]}
            extends(before, after, min((LEFT[name] for name in found), default=ALL))
        before, since = after, set()
        state = msgspec.structs.replace(state, turns=(*state.turns, Turn.of(one.messages())))


def extends(before: Prompt, after: Prompt, left: int) -> None:
    """What stands before the marks that are left is the same, for both protocols."""
    if left == NOTHING:
        return
    assert before.system == after.system
    if left == SYSTEM:
        return
    last = before.boundary if left == BOUNDARY else max(before.cache_marks, default=0)
    marked = msgspec.structs.replace(before, cache_marks=(last,) if last else ())
    old, new = blocks(body(marked)), blocks(body(after))
    end = max(number for number, (_, _, mark) in enumerate(old, 1) if mark)
    assert [one[:2] for one in old[:end]] == [one[:2] for one in new[:end]]
    # Neighbours of one role are one message there: the last one may go on.
    sent, then = to_openai(request(before, last), "openai:x"), to_openai(request(after), "openai:x")
    assert sent[:-1] == then[: len(sent) - 1]
    assert str(then[len(sent) - 1]["content"]).startswith(str(sent[-1]["content"]))


def request(prompt: Prompt, upto: int | None = None) -> Request:
    return Request(
        system=tuple(SystemBlock(text=text) for text, _ in prompt.system),
        messages=prompt.messages[:upto],
    )


def blocks(sent: dict[str, Any]) -> list[tuple[str, Any, bool]]:
    return [
        (
            message["role"],
            {key: value for key, value in block.items() if key != "cache_control"},
            "cache_control" in block,
        )
        for message in [{"role": "system", "content": sent["system"]}, *sent["messages"]]
        for block in message["content"]
    ]


def fit_to_be_sent(sent: dict[str, Any]) -> None:
    """What the API insists on."""
    roles = [message["role"] for message in sent["messages"]]
    assert roles[0] == "user"
    assert all(one != other for one, other in pairwise(roles))
    assert sum(marked for _, _, marked in blocks(sent)) <= 4
    for message, following in pairwise(sent["messages"]):
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        answered = [b["tool_use_id"] for b in following["content"] if b["type"] == "tool_result"]
        assert calls == answered[: len(calls)]
