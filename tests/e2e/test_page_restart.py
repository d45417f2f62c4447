"""The page while the server stops, dies and comes back at the same address."""

from __future__ import annotations

import signal
import socket
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from tests.conftest import Place
from tests.e2e.browser import Chat, script
from tests.support.processes import DoubleProcess, Residents, ServerProcess

ENDLESS = {"text": " ".join(f"word{n}" for n in range(5000)), "token_ms": 40}


@dataclass
class Restartable:
    """A server of the test's own, with one user."""

    process: ServerProcess
    residents: Residents
    place: Place
    port: str
    key: str
    token: str

    @property
    def url(self) -> str:
        return self.process.url

    @property
    def double(self) -> DoubleProcess:
        return self.process.double

    def signin_link(self) -> str:
        return f"{self.url}/signin/{self.token}"

    def written_down(self) -> str:
        """What would be left of the running reply if the server died now."""
        rows = self.residents.rows(self.place.owner, "select checkpoint_text from turns")
        return "".join(row["checkpoint_text"] for row in rows)

    def start(self) -> None:
        self.process.start(MIRA_PORT=self.port)


@pytest.fixture
def server(fresh_server: ServerProcess, place: Place) -> Restartable:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    fresh_server.start(MIRA_PORT=port)
    residents = Residents(place.app, place.engine)
    person = residents.add("ada")
    token = residents.signin_token(person.id)
    return Restartable(fresh_server, residents, place, port, person.key, token)


def test_the_page_says_that_the_server_stops_and_comes_back_with_it(
    chat: Chat, server: Restartable
) -> None:
    chat.say("before").reaches("complete")
    server.process.signal(signal.SIGTERM)
    expect(chat.health).to_have_text("Server stopping")
    server.process.wait()
    waiting = chat.say("meanwhile")
    server.start()
    waiting.reaches("complete")
    chat.connected()
    expect(chat.page.locator(".bubble")).to_have_text(["before", "meanwhile"])


def test_a_reply_cut_off_by_a_dying_server_is_kept_and_marked(
    page: Page, chat: Chat, server: Restartable
) -> None:
    script(server, {"contains": "talk on", **ENDLESS})
    turn = chat.say("talk on and on")
    expect(turn.text).to_contain_text("word10 ")
    while "word10 " not in server.written_down():
        page.wait_for_timeout(50)
    server.process.kill()
    server.start()
    turn.reaches("interrupted")
    expect(turn.element).to_contain_text("Cut off when the server stopped")
    kept = turn.text.inner_text()
    assert str(ENDLESS["text"]).startswith(kept.strip())
    assert "word10 " in kept
    chat.connected()
    expect(turn.button("Try again")).to_be_visible()
