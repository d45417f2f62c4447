"""A turn through the real server over HTTP."""

from __future__ import annotations

import httpx2

from tests.conftest import Server


def test_a_message_is_answered_and_stands_in_the_history(server: Server) -> None:
    with httpx2.Client(
        base_url=server.url, headers={"Authorization": f"Bearer {server.key}"}, timeout=30
    ) as http:
        answer = http.post("/v1/chat", json={"message": "good morning"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["reply"] == "good morning"
        history = http.get("/v1/messages").json()["messages"]
    assert [(m["role"], m["blocks"][0]["text"]) for m in history] == [
        ("assistant", "good morning"),
        ("user", "good morning"),
    ]
