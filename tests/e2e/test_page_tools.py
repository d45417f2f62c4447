"""Tools on the page: what they are doing, and what they may do only with the user's word."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, expect

from tests.e2e.browser import Chat, Server, script


def call(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "arguments": {"text": text}}


def question(chat: Chat) -> Locator:
    return chat.page.get_by_role("region", name="Confirm send")


def ask_to_send(chat: Chat, server: Server) -> None:
    """Have the model want to use `send`, which waits for a confirmation."""
    script(server, {"contains": "send it", "text": "Asking.", "tools": [call("send", "to Ada")]})
    chat.say("send it, please")
    expect(question(chat)).to_contain_text('"text": "to Ada"')


def test_the_tools_of_a_reply_are_shown_with_what_came_of_them(chat: Chat, server: Server) -> None:
    script(server, {"contains": "write down", "text": "Done.", "tools": [call("note", "milk")]})
    turn = chat.say("write down milk").reaches("complete")
    expect(turn.element.locator(".tool")).to_contain_text("note")
    expect(turn.element.locator(".tool")).to_contain_text("done")
    chat.page.reload()
    expect(turn.element.locator(".tool")).to_contain_text("note")


def test_an_action_that_needs_the_users_word_waits_for_it(chat: Chat, server: Server) -> None:
    ask_to_send(chat, server)
    script(server, default={"text": "It is sent."})
    question(chat).get_by_role("button", name="Allow").click()
    expect(question(chat)).to_have_count(0)
    expect(chat.page.locator(".turn").last.locator(".prose")).to_have_text("It is sent.")


def test_an_action_can_be_refused(chat: Chat, server: Server) -> None:
    ask_to_send(chat, server)
    script(server, default={"text": "Then I leave it."})
    question(chat).get_by_role("button", name="Refuse").click()
    expect(question(chat)).to_have_count(0)
    expect(chat.page.locator(".turn").last.locator(".prose")).to_have_text("Then I leave it.")


def test_a_question_that_is_open_is_there_again_after_a_reload(chat: Chat, server: Server) -> None:
    ask_to_send(chat, server)
    chat.page.reload()
    expect(question(chat)).to_contain_text('"text": "to Ada"')
