"""Signing in to the page and out of it."""

from __future__ import annotations

import re

from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.browser import Chat, Server


def test_the_sign_in_link_opens_the_conversation(page: Page, server: Server) -> None:
    Chat(page).open(server.signin_link())
    expect(page).to_have_url(f"{server.url}/")
    expect(page.get_by_label("Message to MIRA")).to_be_focused()


def test_without_a_session_the_page_asks_to_sign_in(page: Page, server: Server) -> None:
    page.goto(server.url)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_label("Message to MIRA")).to_be_hidden()


def test_a_pasted_key_signs_in_and_is_kept_nowhere(
    page: Page, profile: BrowserContext, server: Server
) -> None:
    page.goto(server.url)
    page.get_by_label("Key").fill(server.key)
    page.get_by_role("button", name="Sign in").click()
    Chat(page).connected()
    kept = page.evaluate(
        "() => JSON.stringify({...localStorage, ...sessionStorage}) + document.cookie +"
        " document.documentElement.outerHTML +"
        " [...document.querySelectorAll('input, textarea')].map((f) => f.value).join()"
    )
    assert server.key not in kept
    cookies = profile.cookies()
    assert [(c["httpOnly"], c["sameSite"]) for c in cookies] == [(True, "Strict")]
    assert server.key not in str(cookies)


def test_a_wrong_key_is_refused_with_a_reason(page: Page, server: Server) -> None:
    page.goto(server.url)
    page.get_by_label("Key").fill("mira_" + "x" * 43)
    page.get_by_label("Key").press("Enter")
    expect(page.get_by_role("alert")).to_have_text(re.compile("not known"))
    expect(page.get_by_label("Message to MIRA")).to_be_hidden()


def test_signing_out_leaves_nothing_behind(chat: Chat, server: Server) -> None:
    chat.say("what I said before I left").reaches("complete")
    chat.field.fill("a draft")
    chat.page.get_by_role("button", name="Sign out").click()
    expect(chat.page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert chat.page.evaluate("() => sessionStorage.length") == 0
    assert "what I said" not in chat.page.content()
    chat.page.goto(server.url)
    expect(chat.page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_session_that_ends_elsewhere_leads_back_to_sign_in_and_keeps_the_draft(
    chat: Chat, server: Server
) -> None:
    chat.field.fill("half a thought")
    # The same cookie, used outside of the page: another tab signs out.
    answer = chat.page.request.post(
        f"{server.url}/v1/session/logout", headers={"origin": server.url}
    )
    assert answer.ok
    expect(chat.page.get_by_role("heading", name="Sign in")).to_be_visible()
    chat.page.get_by_label("Key").fill(server.key)
    chat.page.get_by_label("Key").press("Enter")
    chat.connected()
    expect(chat.field).to_have_value("half a thought")
