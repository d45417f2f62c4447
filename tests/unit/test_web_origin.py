"""Where a request comes from."""

from __future__ import annotations

import pytest

from mira.web.origin import from_this_machine, is_ours, made_here


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:1993", "127.0.0.1:1993"),
        ("http://localhost:1993", "localhost:1993"),
        ("http://[::1]:1993", "[::1]:1993"),
        ("https://mira.example", "mira.example"),
        ("https://mira.example", "mira.example:443"),
        ("https://mira.example:443", "mira.example"),
        ("http://mira.example", "mira.example:80"),
        ("https://MIRA.example", "mira.example"),
    ],
)
def test_a_page_of_this_server_is_ours(origin: str, host: str) -> None:
    assert is_ours(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("null", "127.0.0.1:1993"),
        ("", "127.0.0.1:1993"),
        ("http://127.0.0.1", "127.0.0.1:1993"),
        ("http://127.0.0.1:1994", "127.0.0.1:1993"),
        ("http://localhost:1993", "127.0.0.1:1993"),
        ("http://evil.example", "mira.example"),
        ("http://mira.example.evil.example", "mira.example"),
        ("http://mira.example@evil.example", "mira.example"),
        ("ftp://mira.example", "mira.example"),
        ("http://mira.example/path", "mira.example"),
        ("http://mira.example", ""),
        ("http://[::1", "[::1"),
        ("http://mira.example:99999999", "mira.example:99999999"),
    ],
)
def test_a_page_of_anywhere_else_is_not(origin: str, host: str) -> None:
    assert not is_ours(origin, host)


def test_an_allowed_origin_is_ours_as_it_is_written() -> None:
    allowed = ("https://front.example",)
    assert is_ours("https://front.example", "mira.example", allowed)
    assert not is_ours("http://front.example", "mira.example", allowed)
    assert not is_ours("https://front.example.evil.example", "mira.example", allowed)


def test_without_an_origin_the_browser_must_say_that_it_is_the_same() -> None:
    assert made_here({"sec-fetch-site": "same-origin", "host": "a"})
    assert not made_here({"sec-fetch-site": "none", "host": "a"})
    assert not made_here({"host": "a"})
    assert not made_here({"sec-fetch-site": "same-origin", "origin": "http://b", "host": "a"})


@pytest.mark.parametrize("host", ["127.0.0.1:1993", "localhost", "[::1]:1993", "127.1.2.3"])
def test_a_caller_on_this_machine_is_known_by_address_and_name(host: str) -> None:
    assert from_this_machine(("127.0.0.1", 5), {"host": host})
    assert from_this_machine(("::1", 5), {"host": host})
    assert not from_this_machine(("10.0.0.1", 5), {"host": host})
    assert not from_this_machine(None, {"host": host})
    assert not from_this_machine(("127.0.0.1", 5), {"host": host, "x-forwarded-for": "127.0.0.1"})


@pytest.mark.parametrize("host", ["evil.example", "", "127.0.0.1.evil.example", "[::1"])
def test_a_name_that_leads_here_from_elsewhere_is_not_trusted(host: str) -> None:
    assert not from_this_machine(("127.0.0.1", 5), {"host": host})
