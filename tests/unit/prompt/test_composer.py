"""A prompt is composed whatever one of its sections does; the contract is part of it."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from mira.prompt.composer import Composer
from mira.prompt.contract import contract_sections
from mira.prompt.inputs import Inputs
from mira.prompt.layout import Placement
from mira.prompt.sections import SECTIONS
from mira.prompt.templates import Templates
from mira.prompt.trinket import Fill, Trinket
from tests.support.prompt import composer, hud, inputs, memory, section, turn, whole


def broken(inputs: Inputs, fill: Fill) -> str:
    raise KeyError("what the user said")


@pytest.mark.parametrize("placement", list(Placement))
def test_a_section_that_fails_is_left_out_and_named_and_the_others_stand(
    placement: Placement,
) -> None:
    failing = Trinket("Broken", placement, (), broken, tag="broken")
    given = inputs(memories=(memory("Tea."),), turns=(turn("Hi.", "Hello."),))
    with capture_logs() as logs:
        prompt = Composer(Templates(), (failing, *SECTIONS)).compose(given)
    (record,) = [one for one in prompt.rendered if one.name == "Broken"]
    assert (record.error, record.text, record.tokens) == ("KeyError", "", 0)
    assert whole(prompt) == whole(composer().compose(given))
    assert [(one["event"], one["section"]) for one in logs] == [("section_failed", "Broken")]


def test_a_zone_that_nobody_knows_costs_the_time_and_not_the_turn() -> None:
    prompt = composer().compose(inputs("Hello?", timezone="Mars/Olympus_Mons"))
    assert [(one.name, one.error) for one in prompt.rendered] == [
        ("BasePrompt", None),
        ("TimeManager", "ZoneInfoNotFoundError"),
    ]
    assert hud(prompt) == "Hello?"


def test_a_section_sees_the_inputs_it_names_and_no_others() -> None:
    def render(inputs: Inputs, fill: Fill) -> str:
        return f"{inputs.user}, {inputs.directives}"

    new = Trinket("New", Placement.HUD, ("user",), render, tag="new")
    prompt = Composer(Templates(), (new,)).compose(inputs(directives="Be brief."))
    assert hud(prompt) == "<mira:new>\nAda, None\n</mira:new>"


def test_one_users_sections_are_never_shown_to_another() -> None:
    shared = Composer(Templates())
    for user in ("Ada", "Bob", "Ada"):
        prompt = shared.compose(inputs(user=user, directives=f"{user}'s way.", portrait=None))
        other = "Bob" if user == "Ada" else "Ada"
        assert user in whole(prompt)
        assert other not in whole(prompt)


def test_what_was_rendered_is_reported_with_its_size() -> None:
    prompt = composer().compose(inputs(turns=(turn("Hi.", "Hello."),), directives="Be brief."))
    assert [(one.name, one.placement) for one in prompt.rendered] == [
        ("BasePrompt", Placement.SYSTEM),
        ("BehavioralDirectives", Placement.SYSTEM),
        ("TimeManager", Placement.HUD),
    ]
    assert all(one.tokens > 0 and one.text in whole(prompt) for one in prompt.rendered)
    assert prompt.tokens_estimated > sum(one.tokens for one in prompt.rendered)


def test_the_contract_has_sections_that_can_be_referred_to() -> None:
    sections = contract_sections()
    assert [one.id for one in sections] == [
        "honesty", "certainty", "directness", "listening", "questions", "commitments", "memory",
        "repair", "candour", "voice", "care", "continuity",
    ]  # fmt: skip
    base = section(composer().compose(inputs()), "BasePrompt")
    assert all(f"## {one.title}\n{one.text}\n" in base for one in sections)
    assert "{" not in base


def test_the_base_prompt_tells_what_every_tag_means() -> None:
    base = section(composer().compose(inputs()), "BasePrompt")
    explained = {one.tag for one in SECTIONS if one.tag} - {"examples"}
    assert all(f"- {tag}: " in base for tag in explained)


def test_a_small_model_gets_the_short_form_of_everything() -> None:
    given = inputs(
        "Hello?", memories=(memory("Tea. " * 200),) * 9, portrait="Ada codes.", compact=True
    )
    prompt = composer().compose(given)
    assert [one.name for one in prompt.rendered] == ["BasePrompt", "TimeManager", "ProactiveMemory"]
    assert hud(prompt).count("mem_1a2b3c4d") == 3
    assert "Ada" in prompt.system[0][0]
