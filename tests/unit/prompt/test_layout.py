"""The order of a prompt, and where it can be cached."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mira.messages.content import Role, Text, ToolResult, ToolUse
from mira.prompt.composer import Composer
from mira.prompt.inputs import Inputs
from mira.prompt.layout import OPENING, Placement
from mira.prompt.sections import SECTIONS
from mira.prompt.templates import Templates
from mira.prompt.trinket import Fill, Trinket
from mira.prompt.turn import Turn
from tests.support.prompt import (
    NOW,
    body,
    composer,
    hud,
    inputs,
    memory,
    row,
    said,
    summary,
    turn,
    whole,
)  # fmt: skip


def everything() -> Inputs:
    return inputs(
        "What the user says.",
        last_message_at=NOW - timedelta(hours=3),
        turns=(turn("Live one.", "Live one's answer."), turn("Live two.", "Live two's answer.")),
        outcome="What came of it.",
        earlier=(summary(1), summary(2)),
        continuity=(turn("The segment before.", "Its answer."),),
        boundary_end=NOW - timedelta(days=1),
        manifest=(row(0, ended_at=None, title=None), row(1)),
        brief="What I noted.",
        memories=(memory("What I remember."),),
        directives="How to work.",
        portrait="Who Ada is.",
        primer=True,
    )


def test_the_order_is_what_changes_least_first_and_what_is_said_now_last() -> None:
    marks = [
        "You are MIRA", "How to work.", "Who Ada is.", "<mira:manifest>", "I lived day 2",
        "I lived day 1", "<mira:examples>", "The segment before.", "Its answer.",
        "<mira:boundary>", "What I noted.", "Live one.", "Live one's answer.", "Live two.",
        "Live two's answer.", "<mira:now>", "What I remember.", "What the user says.",
        "What came of it.",
    ]  # fmt: skip
    text = whole(composer().compose(everything()))
    places = [text.rindex(mark) for mark in marks]
    assert places == sorted(places)


def test_the_hud_is_the_first_block_of_the_last_message_and_of_no_other() -> None:
    prompt = composer().compose(everything())
    assert hud(prompt).startswith("<mira:now>")
    assert [b.text for b in prompt.messages[-1].blocks[1:] if isinstance(b, Text)] == [
        "What the user says.",
        "What came of it.",
    ]
    assert whole(prompt).count("<mira:now>") == 1


def test_marks_stand_after_the_system_the_boundary_and_the_last_whole_turn() -> None:
    prompt = composer().compose(everything())
    assert [cached for _, cached in prompt.system] == [False, False, False, True]
    ends = [prompt.messages[mark - 1].blocks[-1] for mark in prompt.cache_marks]
    assert isinstance(ends[0], Text)
    assert ends[0].text.startswith("<mira:boundary>")
    assert ends[1:] == [Text(text="Live two's answer.")]
    assert prompt.boundary == prompt.cache_marks[0]


def test_a_first_message_has_no_mark_but_that_of_the_system() -> None:
    prompt = composer().compose(inputs())
    assert prompt.cache_marks == ()
    assert [one.role for one in prompt.messages] == [Role.USER]


def test_a_long_turn_does_not_hide_from_the_provider_where_the_last_mark_stood() -> None:
    calls = [
        part
        for n in range(12)
        for part in (
            said(Role.ASSISTANT, ToolUse(call_id=str(n), name="t")),
            said(Role.TOOL, ToolResult(call_id=str(n), text="Done.")),
        )
    ]
    long = Turn.of([said(Role.USER, "Do it."), *calls, said(Role.ASSISTANT, "Done.")])
    first = turn("Hi.", "Hello.")
    before = composer().compose(inputs(turns=(first,)))
    after = composer().compose(inputs(turns=(first, long)))
    assert before.cache_marks == (2,)
    assert after.cache_marks == (2, 28)


def test_documents_have_a_mark_of_their_own_and_there_are_never_more_than_four() -> None:
    document = Trinket(
        "Document", Placement.DOCUMENTS, (), lambda i, fill: "A document.", tag="doc"
    )
    with_documents = Composer(Templates(), (*SECTIONS, document))
    many = Turn.of([said(Role.USER, *["Words."] * 25), said(Role.ASSISTANT, "Yes.")])
    given = inputs(turns=(turn("Hi.", "Hello."), many), boundary_end=NOW, earlier=(summary(1),))
    shorter = inputs(turns=(turn("Hi.", "Hello."),), boundary_end=NOW, earlier=(summary(1),))
    assert with_documents.compose(shorter).cache_marks == (1, 3, 5)
    for one in (given, shorter):
        assert str(body(with_documents.compose(one))).count("cache_control") == 4


def test_the_mark_that_lives_an_hour_stands_before_those_that_live_minutes() -> None:
    sent = body(composer().compose(everything()))
    assert [b.get("cache_control") for b in sent["system"]][-1] == {
        "type": "ephemeral",
        "ttl": "1h",
    }
    marked = [b for m in sent["messages"] for b in m["content"] if "cache_control" in b]
    assert [b["cache_control"] for b in marked] == [{"type": "ephemeral"}] * 2


def test_a_conversation_whose_first_word_is_the_assistants_still_begins_with_the_user() -> None:
    own = Turn.of([said(Role.ASSISTANT, "It is done.")])
    prompt = composer().compose(inputs(turns=(own,)))
    assert prompt.messages[0] == said(Role.USER, OPENING)
    assert prompt.messages[prompt.cache_marks[-1] - 1] == own.said[-1]


@pytest.mark.parametrize("placement", list(Placement))
def test_a_new_section_is_one_entry_in_the_list(placement: Placement) -> None:
    def render(inputs: Inputs, fill: Fill) -> str:
        return f"Seen by {inputs.user}."

    new = Trinket("New", placement, ("user",), render, tag="new")
    prompt = Composer(Templates(), (*SECTIONS, new)).compose(everything())
    text = whole(prompt)
    section = "<mira:new>\nSeen by Ada.\n</mira:new>"
    assert text.count(section) == 1
    assert (text.index(section) > text.index("Live two's answer.")) == (placement is Placement.HUD)
    assert [one.placement for one in prompt.rendered if one.name == "New"] == [placement]
    assert [one.placement for one in prompt.rendered] == sorted(
        (one.placement for one in prompt.rendered), key=list(Placement).index
    )
