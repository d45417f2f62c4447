"""The documentation of the interface, as a person sees it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.conftest import Server


def test_the_documentation_shows_every_endpoint_and_nothing_is_blocked(
    page: Page, server: Server
) -> None:
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{server.url}/docs")
    chat = page.locator("details").filter(has=page.get_by_text("/v1/chat", exact=True))
    chat.locator("summary").click()
    expect(chat.get_by_text("Body: ChatRequest")).to_be_visible()
    expect(chat.get_by_text("include_thinking")).to_be_visible()
    expect(page.get_by_text("/v1/dead-letters/{letter_id}/replay")).to_be_visible()
    expect(page.locator("#endpoints")).not_to_have_attribute("aria-busy", "true")
    assert complaints == []
