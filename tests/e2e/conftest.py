"""Fixtures of the page's tests: a browser for each module, a clean profile for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.conftest import Place
from tests.e2e.browser import Chat, Server, chromium, script
from tests.support.processes import ServerProcess

expect.set_options(timeout=30_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not for the whole session: while it lives an event loop runs in this thread, and tests of
    other modules bring their own."""
    with chromium() as started:
        yield started


@pytest.fixture
def profile(browser: Browser) -> Iterator[BrowserContext]:
    """A browser that has never been here, with a desktop's width and the light theme."""
    context = browser.new_context(
        viewport={"width": 1100, "height": 800}, color_scheme="light", locale="en-GB"
    )
    context.set_default_timeout(30_000)
    yield context
    context.close()


@pytest.fixture
def page(profile: BrowserContext) -> Page:
    return profile.new_page()


@pytest.fixture
def chat(page: Page, server: Server) -> Chat:
    """The page, signed in and connected; the model repeats what it is told."""
    script(server)
    return Chat(page).open(server.signin_link())


@pytest.fixture
def bare(page: Page, server_process: tuple[ServerProcess, Place]) -> Page:
    """The page's modules without a session, for tests of their logic alone."""
    page.goto(server_process[0].url)
    return page
