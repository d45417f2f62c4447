"""Content blocks: the one internal format of what is said, after Anthropic's conventions.

A message of a conversation is a role and a tuple of blocks. Stored as JSON with the block's
kind in `type`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal
from uuid import UUID

import msgspec


class Role(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class Text(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="text"):
    """Words."""

    text: str


class Thinking(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="thinking"):
    """A model's reasoning. `signature` goes back to its provider byte for byte, with its text."""

    text: str
    signature: str = ""
    #: `provider:model` that produced it: it is sent back to no other.
    source: str = ""


class RedactedThinking(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="redacted_thinking"
):
    """Reasoning that the provider keeps sealed; `data` goes back byte for byte."""

    data: str
    source: str = ""


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_use"):
    """A call that the model asks for. `arguments` is JSON text of an object, as parsed."""

    call_id: str
    name: str
    arguments: str = "{}"


class ToolResult(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="tool_result"):
    """What came of a call: exactly one for every ToolUse."""

    call_id: str
    text: str
    is_error: bool = False


class Attached(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """A file that a user gave with a message; bytes and words are kept apart under `file_id`."""

    file_id: UUID
    name: str
    kind: Literal["image", "document"]
    #: What the bytes are, such as `image/png` or `application/pdf`.
    media_type: str
    size: int


Block = Text | Thinking | RedactedThinking | ToolUse | ToolResult | Attached

#: Characters of one tool's result that a prompt shows at most, however many are stored.
RESULT_SHOWN = 32_000

#: Pixels of an image for one token, and tokens of a page that is shown as it is. As Anthropic
#: counts.
PIXELS_PER_TOKEN, TOKENS_PER_PAGE = 750, 2_000


class Image(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="image"):
    """A picture as a model is shown it. In requests only, never stored in a message."""

    name: str
    media_type: str
    content: bytes
    width: int
    height: int

    @property
    def tokens(self) -> int:
        """About how many tokens it costs."""
        return self.width * self.height // PIXELS_PER_TOKEN


class Document(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="document"):
    """A document as a model is shown it: `words`, bounded, or the file itself where the provider
    reads such files. In requests only, never stored in a message."""

    name: str
    media_type: str
    words: str
    #: The file itself; empty where only the words are to be shown.
    content: bytes = b""
    pages: int | None = None

    @property
    def page_tokens(self) -> int:
        """About how many tokens its pages cost as they are; 0 where the file is not shown."""
        return (self.pages or 1) * TOKENS_PER_PAGE if self.content else 0


#: What a message of a request may hold.
Shown = Block | Image | Document


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation as prompts see it."""

    role: Role
    blocks: tuple[Shown, ...]


def plain_text(blocks: Iterable[Shown]) -> str:
    """The words of `blocks`, without reasoning, tools and files, joined as they stand."""
    return "".join(b.text for b in blocks if isinstance(b, Text))


def stored(blocks: Iterable[Shown]) -> tuple[Block, ...]:
    """Those of `blocks` that are stored: all but the forms of files."""
    return tuple(b for b in blocks if not isinstance(b, Image | Document))


def attached_in(blocks: Iterable[Shown]) -> tuple[Attached, ...]:
    """The files that are named in `blocks`, in order."""
    return tuple(b for b in blocks if isinstance(b, Attached))


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(tuple[Block, ...])


def encode_blocks(blocks: tuple[Block, ...]) -> str:
    """JSON text of `blocks`, for a jsonb column."""
    return _encoder.encode(blocks).decode()


def decode_blocks(raw: str | bytes) -> tuple[Block, ...]:
    """Read what `encode_blocks` wrote. Raises msgspec.ValidationError on anything else."""
    return _decoder.decode(raw)
