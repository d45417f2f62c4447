"""What the local model is given of a request, and that its weights are the ones that were tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from mira.errors import ProviderRejected
from mira.llm.base import Effort, Request, SystemBlock
from mira.llm.local import SYSTEM, fit
from mira.llm.local_server import verify, weights
from mira.messages.content import Role, Said, Text, ToolResult, ToolUse, plain_text
from mira.messages.tool import ToolDescription

ROOM = 1000


def said(role: Role, text: str) -> Said:
    return Said(role=role, blocks=(Text(text=text),))


def request(*messages: Said, system: str = "Be kind.", **fields: object) -> Request:
    return Request(system=(SystemBlock(text=system),), messages=messages, **fields)  # type: ignore[arg-type]


def texts(fitted: Request) -> list[str]:
    return [plain_text(m.blocks) for m in fitted.messages]


def test_a_short_request_is_passed_on_whole() -> None:
    asked = request(
        said(Role.USER, "Hi."), said(Role.ASSISTANT, "Hello."), said(Role.USER, "Well?")
    )
    fitted, dropped = fit(asked, ROOM)
    assert texts(fitted) == ["Hi.", "Hello.", "Well?"]
    assert fitted.system[0].text == "Be kind."
    assert dropped == []


def test_the_oldest_messages_go_first_and_the_user_begins() -> None:
    long = "word " * 150
    turns = [said(r, long) for _ in range(5) for r in (Role.USER, Role.ASSISTANT)]
    fitted, dropped = fit(request(*turns, said(Role.USER, "And now?")), ROOM)
    assert texts(fitted)[-1] == "And now?"
    assert 1 < len(fitted.messages) < 8
    assert fitted.messages[0].role is Role.USER
    assert dropped == ["earlier messages"]


def test_the_newest_message_stays_if_only_its_end() -> None:
    fitted, dropped = fit(request(said(Role.USER, "word " * 5000 + "the end?")), ROOM)
    [text] = texts(fitted)
    assert text.endswith("the end?")
    assert 1000 < len(text) < 4000
    assert dropped == ["part of the message"]


@pytest.mark.parametrize("sign", ["世", "\N{PARTY POPPER}", "é", "ש"])
def test_text_that_costs_more_tokens_is_cut_shorter(sign: str) -> None:
    plain, _ = fit(request(said(Role.USER, "a" * 9000)), ROOM)
    other, _ = fit(request(said(Role.USER, sign * 9000)), ROOM)
    assert 0 < len(texts(other)[0]) < len(texts(plain)[0])
    assert set(texts(other)[0]) == {sign}


def test_a_long_system_prompt_is_replaced_by_a_short_one() -> None:
    fitted, dropped = fit(request(said(Role.USER, "Hi."), system="rule " * 900), ROOM)
    assert fitted.system == (SystemBlock(text=SYSTEM),)
    assert dropped == ["most of the system prompt"]


def test_what_it_cannot_do_is_left_out_and_said() -> None:
    weather = ToolDescription(name="weather", description="", parameters="{}")
    asked = request(
        said(Role.USER, "Weather?"),
        Said(role=Role.ASSISTANT, blocks=(ToolUse(call_id="1", name="weather"),)),
        Said(role=Role.TOOL, blocks=(ToolResult(call_id="1", text="Rain."),)),
        tools=(weather,),
        effort=Effort.HIGH,
        thinking=True,
        max_output_tokens=8192,
    )
    fitted, dropped = fit(asked, ROOM)
    assert dropped == ["tools", "tool results"]
    assert (fitted.tools, fitted.effort, fitted.thinking) == ((), None, False)
    assert fitted.max_output_tokens <= 512
    assert texts(fitted) == ["Weather?"]


def test_other_weights_than_the_ones_tried_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "model.gguf"
    other.write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(ProviderRejected, match="not the ones expected"):
        verify(other)


def test_the_installed_weights_are_the_ones_tried() -> None:
    verify(weights())
