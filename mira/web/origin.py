"""Where a browser's request comes from: the check behind cookies and WebSockets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}
#: What a reverse proxy adds: with one of these the peer's address says nothing of the client.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")


def is_ours(origin: str, host: str, allowed: Sequence[str] = ()) -> bool:
    """Whether `origin` is this server under the name of the Host header, or one of `allowed`.

    The scheme is not compared: behind a proxy that ends TLS the server cannot know its own.
    """
    if origin in allowed:
        return True
    try:
        theirs = urlsplit(origin)
        if theirs.scheme not in _PORTS or not theirs.hostname or theirs.path not in ("", "/"):
            return False
        ours = urlsplit(f"//{host}")
        port = _PORTS[theirs.scheme]
        return (theirs.hostname, theirs.port or port) == (ours.hostname, ours.port or port)
    except ValueError:
        return False


def made_here(headers: Mapping[str, str], allowed: Sequence[str] = ()) -> bool:
    """Whether a page of this server made the request, by what the browser says of it."""
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site") == "same-origin"
    return is_ours(origin, headers.get("host", ""), allowed)


def from_this_machine(peer: tuple[str, int] | None, headers: Mapping[str, str]) -> bool:
    """Whether the caller is on this machine and asked for it by such a name.

    The name is looked at because a page elsewhere can have its own name lead to 127.0.0.1.
    """
    if peer is None or any(name in headers for name in _FORWARDED):
        return False
    try:
        name = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        return ip_address(peer[0]).is_loopback and (
            name == "localhost" or ip_address(name).is_loopback
        )
    except ValueError:
        return False
