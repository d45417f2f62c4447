"""Segments that end on a running server: what its models say to that, and waiting for it."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx2

TRACE = (
    "I was asked to remember that Rex turns three on 7 March 2026. I noted it and repeated it. "
    "Nothing is open."
)
PRECIS = "I noted the birthday of Rex. Nothing is open."
TITLE = "Rex turns three"
SAID = "Rex turns three on 7 March 2026."

#: How the questions of a summary and of an extraction end, and what is answered to them.
RULES: tuple[dict[str, Any], ...] = (
    {
        "contains": "Write down how this conversation was, as JSON.",
        "text": json.dumps({"trace": TRACE, "precis": PRECIS, "title": TITLE, "complexity": 2}),
    },
    {
        "contains": "Write trace and precis once more, as JSON.",
        "text": json.dumps({"trace": TRACE, "precis": PRECIS}),
    },
    {
        "contains": "Write down what the user said in these lines",
        "text": json.dumps({"memories": []}),
    },
)
SCRIPT: dict[str, Any] = {"default": {"echo": True}, "rules": list(RULES)}


def summarised(client: httpx2.Client, segment_id: str) -> dict[str, Any]:
    """The segment, once it has collapsed. Raises AssertionError if it does not."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        segment: dict[str, Any] = client.get(f"/v1/segments/{segment_id}").json()
        if segment["state"] == "collapsed":
            return segment
        time.sleep(0.05)
    raise AssertionError(f"it has not collapsed: {segment}")
