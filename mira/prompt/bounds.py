"""Nothing is too long for a prompt: how much of each block of a turn the model is shown.

The whole stays where it is stored; what is left out is said in its place. Lengths are in
characters. A pure function of the messages, so that a turn looks the same in every later prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from mira.messages.content import RESULT_SHOWN, Said, Shown, Text, ToolResult, ToolUse
from mira.prompt.tags import neutral

#: The longest result of a tool, and all results of one turn together.
RESULT = RESULT_SHOWN
RESULTS = 96_000
#: The longest text of a message, and all texts of one turn together.
TEXT = 100_000
TEXTS = 160_000
#: The longest arguments of a call.
ARGUMENTS = 32_000
#: Of what is too long its beginning is kept, and so much of its end.
_END = 0.25


def bounded(messages: Sequence[Said], share: float = 1.0) -> tuple[Said, ...]:
    """The messages of one turn, each block within its bounds and free of our tags.

    `share` of each bound is used: less than 1 for a prompt that proved too long all the same.
    Reasoning is left as it is: it goes back to its model byte for byte or not at all.
    """
    blocks = [block for said in messages for block in said.blocks]
    result = _level(
        (len(b.text) for b in blocks if isinstance(b, ToolResult)), RESULT * share, RESULTS * share
    )
    text = _level((len(b.text) for b in blocks if isinstance(b, Text)), TEXT * share, TEXTS * share)
    return tuple(
        msgspec.structs.replace(
            said, blocks=tuple(_block(b, result, text, int(ARGUMENTS * share)) for b in said.blocks)
        )
        for said in messages
    )


def shortened(text: str, most: int, what: str) -> str:
    """`text` in at most `most` characters: its beginning and its end, and between them how much is
    missing. `what` names it."""
    if len(text) <= most:
        return text
    room = max(0, most - len(_note(len(text), what)))
    end = int(room * _END)
    return text[: room - end] + _note(len(text) - room, what) + text[len(text) - end :]


def _note(left_out: int, what: str) -> str:
    missing = f"{left_out:,} characters left out here"
    return f"\n[{missing}; the whole {what} is kept and can be looked up]\n"


def _level(lengths: Iterable[int], most: float, together: float) -> int:
    """The length to which each is cut, so that none exceeds `most` and all fit `together`: short
    ones stay whole, the long ones share what is left."""
    ordered = sorted(min(length, most) for length in lengths)
    left = together
    for index, length in enumerate(ordered):
        share = left / (len(ordered) - index)
        if length > share:
            return int(share)
        left -= length
    return int(most)


def _block(block: Shown, result: int, text: int, arguments: int) -> Shown:
    match block:
        case ToolResult():
            return _with_text(block, shortened(block.text, result, "result"))
        case Text():
            return _with_text(block, shortened(block.text, text, "message"))
        case ToolUse() if len(block.arguments) > arguments:
            left_out = f'{{"left_out": "{len(block.arguments):,} characters of arguments"}}'
            return msgspec.structs.replace(block, arguments=left_out)
        case ToolUse():
            return msgspec.structs.replace(block, arguments=neutral(block.arguments))
        case _:
            return block


def _with_text(block: Text | ToolResult, text: str) -> Text | ToolResult:
    text = neutral(text)
    return block if text is block.text else msgspec.structs.replace(block, text=text)
