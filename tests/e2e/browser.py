"""A real browser on the page, and the page as a person uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol
from urllib.request import Request, urlopen

import msgspec
from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
#: As root there is no sandbox; the rest keeps the browser from speaking to anybody by itself.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Double(Protocol):
    """The provider double behind the server."""

    @property
    def url(self) -> str: ...


class Server(Protocol):
    """A running server, as the fixture `server` gives it."""

    @property
    def url(self) -> str: ...

    @property
    def key(self) -> str: ...

    @property
    def double(self) -> Double: ...

    def signin_link(self) -> str: ...


@contextmanager
def chromium() -> Iterator[Browser]:
    """One headless Chromium of Debian."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, headless=True, args=list(FLAGS)
        )
        try:
            yield browser
        finally:
            browser.close()


def script(server: Server, *rules: dict[str, Any], default: dict[str, Any] | None = None) -> None:
    """Tell the double what to answer: rules by what a message contains, else `default`."""
    body = {"default": default or {"echo": True}, "rules": list(rules)}
    _post(f"{server.double.url}/_script", body)


def say_elsewhere(server: Server, content: str) -> None:
    """Send a message as another device of the same user does, and wait for its answer."""
    _post(f"{server.url}/v1/chat", {"message": content}, server.key)


def stored(server: Server, limit: int = 50) -> list[dict[str, Any]]:
    """The newest messages as the server has stored them, newest first."""
    request = Request(
        f"{server.url}/v1/messages?limit={limit}",
        headers={"authorization": f"Bearer {server.key}"},
    )
    with urlopen(request, timeout=30) as answer:
        messages: list[dict[str, Any]] = msgspec.json.decode(answer.read())["messages"]
        return messages


def _post(url: str, body: object, key: str = "") -> None:
    headers = {"content-type": "application/json"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    request = Request(url, msgspec.json.encode(body), headers)
    with urlopen(request, timeout=30) as answer:
        answer.read()


class Chat:
    """The conversation on a page. Turns are found by what the user said in them."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.field = page.get_by_label("Message to MIRA")
        self.health = page.locator("#health")

    def open(self, link: str) -> Chat:
        """Follow a sign-in link, or the address of a page that has a session."""
        self.page.goto(link)
        return self.connected()

    def connected(self) -> Chat:
        expect(self.health).to_have_attribute("data-state", "connected")
        return self

    def say(self, text: str) -> Turn:
        self.field.fill(text)
        self.field.press("Enter")
        return self.turn(text)

    def turn(self, said: str) -> Turn:
        bubble = self.page.locator(".bubble").filter(has_text=re.compile(f"^{re.escape(said)}$"))
        return Turn(self.page.locator(".turn").filter(has=bubble))


class Turn:
    """One turn on the page."""

    def __init__(self, element: Locator) -> None:
        self.element = element
        self.text = element.locator(".prose")

    def reaches(self, state: str) -> Turn:
        expect(self.element).to_have_attribute("data-state", state)
        return self

    def button(self, name: str) -> Locator:
        return self.element.get_by_role("button", name=name, exact=True)
