"""The view of memories as a person uses it."""

from __future__ import annotations

import re
from typing import Any

import httpx2
from playwright.sync_api import Locator, Page, expect

from tests.conftest import Server
from tests.support.web import http

BEES = "Ada keeps two hives of bees on the roof of the library"
CELLO = "Bob plays the cello in a string quartet"
QUARTET = "The quartet rehearses on Thursdays in the old mill"
#: So unlike each other that a sentence about one is never taken for a sentence about another.
THINGS = re.findall(
    r"\S+",
    "harbour museum garden theatre castle market bridge tower bakery lighthouse orchard railway "
    "volcano piano library hospital glacier vineyard submarine cathedral windmill aquarium "
    "telescope prison sawmill carousel desert monastery stadium quarry greenhouse waterfall "
    "airport brewery kindergarten cemetery observatory beehive circus laboratory parliament "
    "swimming-pool potato chess-club dentist elephant accordion earthquake wedding tax-office "
    "bicycle thunderstorm novel tractor mushroom passport violin dragon satellite pharmacy",
)


def sentence(thing: str) -> str:
    return f"Last week the {thing} was what everyone talked about"


class Store:
    """The same memories over HTTP, as another device of the same user sees them."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def ask(self, method: str, path: str, body: object = None) -> Any:
        with http(self.server.url, self.server.key) as client:
            answer: httpx2.Response = client.request(method, f"/v1/memories{path}", json=body)
            assert answer.status_code < 300, answer.text
            return answer.json() if answer.content else None

    def add(self, text: str, *about: str) -> dict[str, Any]:
        entities = [{"name": name, "type": "PERSON"} for name in about]
        memory: dict[str, Any] = self.ask("POST", "", {"text": text, "entities": entities})[
            "memory"
        ]
        return memory

    def link(self, one: dict[str, Any], two: dict[str, Any], kind: str, reason: str = "") -> None:
        body = {"to": two["id"], "type": kind, "reason": reason}
        self.ask("POST", f"/{one['id']}/links", body)

    def get(self, memory: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/{memory['id']}")
        return found


class View:
    """The view on a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.search = page.get_by_role("searchbox", name="Search memories")
        self.list = page.get_by_role("list", name="Memories")
        self.rows = self.list.get_by_role("link")
        self.count = page.locator("#memory-count")
        self.detail = page.locator("#memory-detail")
        self.heading = self.detail.get_by_role("heading", level=2)
        self.events = self.detail.locator(".event")
        self.dialog = page.get_by_role("dialog")
        self.problem = page.locator("#memory-problem")

    def open(self, memory: dict[str, Any]) -> View:
        self.page.evaluate("name => { location.hash = `#memories/${name}` }", memory["short_id"])
        expect(self.heading).to_have_text(memory["text"])
        return self

    def row(self, text: str) -> Locator:
        return self.rows.filter(has_text=text)

    def button(self, name: str) -> Locator:
        return self.detail.get_by_role("button", name=name, exact=True)

    def answer(self, name: str) -> None:
        """Answer the question that is asked."""
        self.dialog.get_by_role("button", name=name, exact=True).click()
        expect(self.dialog).to_be_hidden()
