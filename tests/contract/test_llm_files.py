"""Files in what is sent: seen, read, or told of in words where a model does neither."""

from __future__ import annotations

import msgspec
import pytest

from mira.messages.content import Document, Image, Text
from tests.contract.llm_support import (
    Server,
    ask,
    claude,
    gpt,
    hear,
    recorded,
    refusal,
    to_claude,
    to_gpt,
    user,
)

pytestmark = pytest.mark.anyio

PICTURE = Image(name="roof.png", media_type="image/png", content=b"\x89PNG", width=9, height=6)
PLAN = Document(
    name="plan.pdf", media_type="application/pdf", words="Sow in March.", content=b"%PDF", pages=1
)
WORDS_ALONE = msgspec.structs.replace(PLAN, content=b"")


async def test_claude_sees_images_and_reads_documents_as_they_are() -> None:
    body = await to_claude(user(Text(text="Look"), PICTURE, PLAN, WORDS_ALONE))
    assert body["messages"][0]["content"][:4] == [
        {"type": "text", "text": "Look"},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
        },
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="},
            "title": "plan.pdf",
        },
        {"type": "text", "text": "Sow in March."},
    ]


async def test_gpt_sees_images_and_gets_the_words_of_documents() -> None:
    body = await to_gpt(user("Before."), user(Text(text="Look"), PICTURE, PLAN))
    assert body["messages"][-1] == {
        "role": "user",
        "content": [
            {"type": "text", "text": "Before."},
            {"type": "text", "text": "Look\n\nSow in March."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
        ],
    }


async def test_without_images_a_message_to_gpt_stays_one_string() -> None:
    body = await to_gpt(user(Text(text="Look"), PLAN))
    assert body["messages"][-1] == {"role": "user", "content": "Look\n\nSow in March."}


async def test_an_endpoint_that_sees_no_images_is_asked_once_more_in_words() -> None:
    error = {"error": {"message": "This model does not support image input.", "code": "invalid"}}
    server = Server(refusal(400, error), recorded("openai", "plain"), recorded("openai", "plain"))
    provider = gpt(server)
    heard = await hear(provider, ask(user(Text(text="Look"), PICTURE)))
    again = await hear(provider, ask(user(Text(text="Look"), PICTURE)))
    await provider.aclose()
    assert heard.dropped == again.dropped == ["images"]
    assert len(server.bodies) == 3
    words = server.bodies[1]["messages"][-1]["content"]
    assert words.startswith("Look\n\n[roof.png: an image that you cannot see.")
    assert server.bodies[2]["messages"] == server.bodies[1]["messages"]


async def test_one_image_that_is_refused_keeps_the_next_from_nobody() -> None:
    error = {"error": {"message": "Could not read the image; is it a valid one?", "code": "bad"}}
    server = Server(refusal(400, error), *(recorded("openai", "plain") for _ in "12"))
    provider = gpt(server)
    await hear(provider, ask(user("Look", PICTURE)))
    heard = await hear(provider, ask(user("Look", PICTURE)))
    await provider.aclose()
    assert heard.dropped == []
    assert server.bodies[2]["messages"][-1]["content"][1]["type"] == "image_url"


async def test_claude_is_asked_once_more_in_words_when_a_file_is_refused() -> None:
    error = {"type": "invalid_request_error", "message": "Could not process image"}
    server = Server(refusal(400, {"error": error}), recorded("anthropic", "plain"))
    provider = claude(server)
    heard = await hear(provider, ask(user(Text(text="Look"), PICTURE, PLAN)))
    await provider.aclose()
    assert heard.dropped == ["files"]
    words = [block["text"] for block in server.bodies[1]["messages"][0]["content"]]
    assert words[0] == "Look"
    assert words[1].startswith("[roof.png: an image")
    assert words[2] == "Sow in March."
