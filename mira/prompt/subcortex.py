"""What the Subcortex is given to read. Pure.

Two forms of one question: the long one explains itself and brings the schema of its answer; the
short one is for models that read slowly or little: it shows two examples and brings no schema, over
which the smallest servers stumble. What was said by anyone stands in it as data, bounded and free
of our marks.
"""

from __future__ import annotations

import json

import msgspec

from mira.messages.subcortex import Consider, Exchange, InContext
from mira.prompt.tags import neutral, quoted
from mira.prompt.templates import Templates

#: The exchanges that are read, and characters of each side of one.
EXCHANGES, OF_EACH = 3, 2_000
#: Words of a memory; and characters, for scripts that do not part them.
MEMORY_WORDS, MEMORY_CHARACTERS = 15, 160
#: Characters of the message; of a longer one its beginning, and a quarter from its end.
MESSAGE = 6_000

#: The same for the short form.
SHORT_EXCHANGES, SHORT_OF_EACH = 1, 160
SHORT_MESSAGE, SHORT_MEMORIES, SHORT_MEMORY = 400, 6, 50

_LIST = {"type": "array", "items": {"type": "string"}}
_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "phrases": _LIST,
            "entities": _LIST,
            "keep": _LIST,
            "complexity": {"type": "string", "enum": ["straightforward", "complex"]},
        },
        "required": ["phrases", "entities", "keep", "complexity"],
        "additionalProperties": False,
    }
)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the model. `schema` is that of its answer, as JSON text, where JSON is wanted.

    `tokens` is the longest answer that is worth waiting for, with what some models think first.
    """

    system: str
    data: str
    schema: str | None
    tokens: int


def question(
    templates: Templates, consider: Consider, *, pressure: str, most: int, short: bool = False
) -> Asked:
    """The question about a message.

    `pressure` ("none", "warning" or "critical") says how full the context is, and `most` how many
    of its memories can stay. The same arguments give the same question.
    """
    name = "subcortex_short" if short else "subcortex"
    data = templates.render(
        f"{name}_data",
        exchanges=_exchanges(consider.exchanges, short),
        memories=_memories(consider.memories, short),
        words=_message(consider.words, short),
        pressure=pressure,
        most=most,
    )
    return Asked(
        system=templates.render(name),
        data=data,
        schema=None if short else _SCHEMA,
        tokens=100 if short else 1024,
    )


class _Memory(msgspec.Struct, frozen=True):
    short_id: str
    importance: str
    text: str


def _exchanges(given: tuple[Exchange, ...], short: bool) -> tuple[Exchange, ...]:
    if short:
        return tuple(
            Exchange(
                user=quoted(e.user, SHORT_OF_EACH), assistant=quoted(e.assistant, SHORT_OF_EACH)
            )
            for e in given[-SHORT_EXCHANGES:]
        )
    return tuple(
        Exchange(user=_cut(e.user, OF_EACH), assistant=_cut(e.assistant, OF_EACH))
        for e in given[-EXCHANGES:]
    )


def _memories(given: tuple[InContext, ...], short: bool) -> tuple[_Memory, ...]:
    most = SHORT_MEMORY if short else MEMORY_CHARACTERS
    # Those that will stay if nothing is said of them are the ones worth a weak model's time.
    offered = sorted(given, key=lambda m: -m.importance)[:SHORT_MEMORIES] if short else given
    return tuple(
        _Memory(m.short_id, f"{m.importance:.2f}", quoted(_first_words(m.text), most))
        for m in offered
    )


def _first_words(text: str) -> str:
    words = text.split()
    return " ".join(words[:MEMORY_WORDS]) + ("…" if len(words) > MEMORY_WORDS else "")


def _message(words: str, short: bool) -> str:
    return quoted(words, SHORT_MESSAGE) if short else _cut(words, MESSAGE)


def _cut(text: str, most: int) -> str:
    """`text` in at most `most` characters: what it is about is said at its beginning, what is
    wanted often at its end."""
    text = text.strip()
    if len(text) > most:
        end = most // 4
        text = f"{text[: most - end - 5].rstrip()}\n[…]\n{text[-end:].lstrip()}"
    return neutral(text)
