"""Speaking HTTP to the server as a program would."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2


def http(url: str, key: str | None = None, **headers: str) -> httpx2.Client:
    """A client of the server at `url`, with a key if one is given. Close it."""
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return httpx2.Client(base_url=url, headers=headers, timeout=30)


@dataclass(frozen=True)
class Event:
    """One server-sent event. `id` is what a client comes back with."""

    name: str
    id: str | None
    data: dict[str, Any]


def events(response: httpx2.Response) -> Iterator[Event]:
    """The server-sent events of a response, read as they come, comments left out."""
    name, number, data = "message", None, ""
    for line in response.iter_lines():
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line and data:
            yield Event(name, number, json.loads(data))
            name, number, data = "message", None, ""
        elif field == "event":
            name = value
        elif field == "id":
            number = value
        elif field == "data":
            data += value


def problem(response: httpx2.Response, status: int, code: str) -> dict[str, Any]:
    """Assert that a response is problem details as promised; return them."""
    assert response.status_code == status, (response.status_code, response.text)
    assert response.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = response.json()
    assert told["code"] == code
    assert told["status"] == status
    assert told["type"] == f"urn:mira:problem:{code}"
    assert told["title"]
    assert told["detail"]
    assert told["request_id"] == response.headers["x-request-id"]
    return told
