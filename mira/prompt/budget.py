"""How much fits: an estimate of tokens, and which turns of the history are kept."""

from __future__ import annotations

from collections.abc import Sequence

from mira.messages.content import (
    PIXELS_PER_TOKEN,
    Attached,
    Document,
    Image,
    RedactedThinking,
    Said,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)

#: Characters of English prose per token, on the careful side; a message costs a few more.
_CHARACTERS = 3.6
_PER_MESSAGE = 6
#: Characters of the documents of one message that later turns are shown, and the tokens of a small
#: image.
EARLIER_WORDS = 8_000
_SMALL_IMAGE = 512 * 512 // PIXELS_PER_TOKEN


def estimate(text: str) -> int:
    """About how many tokens `text` costs. Text outside ASCII counts for more."""
    # Counted by the codec: a long history is estimated in every turn.
    ascii_count = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return int(ascii_count / _CHARACTERS + (len(text) - ascii_count) * 0.8) + 1


def estimate_said(said: Said) -> int:
    """About how many tokens one message costs."""
    total = _PER_MESSAGE
    for block in said.blocks:
        match block:
            case Text(text=text) | Thinking(text=text) | ToolResult(text=text):
                total += estimate(text)
            case ToolUse(name=name, arguments=arguments):
                total += estimate(name) + estimate(arguments)
            case RedactedThinking(data=data):
                total += estimate(data)
            case Image():
                total += block.tokens
            case Document():
                total += max(estimate(block.words), block.page_tokens)
            case Attached(kind="image"):
                total += _SMALL_IMAGE
            case Attached(size=size):
                total += int(min(size, EARLIER_WORDS) / _CHARACTERS)
    return total


def first_kept(sizes: Sequence[int], limit: int, keep: float = 0.6) -> int:
    """The index of the first turn to keep, given each turn's tokens, oldest first.

    While all fit into `limit` nothing is cut; once they do not, so much is cut at once that the
    rest takes at most `keep` of it. So the beginning of the prompt stays the same, and cached,
    over many turns. The newest turn is always kept.
    """
    if sum(sizes) <= limit:
        return 0
    room = limit * keep
    index = len(sizes)
    total = 0
    while index > 0 and total + sizes[index - 1] <= room:
        index -= 1
        total += sizes[index]
    return min(index, len(sizes) - 1)
