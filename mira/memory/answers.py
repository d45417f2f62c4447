"""What a model answered, as JSON read with care.

Models wrap their JSON in prose and fences, leave out commas, quotes and ends, give one object for a
list of one, and numbers as words. What can be understood is taken, and the reader is told what it
took to understand it; what cannot be is refused with a reason that the model can be told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import json_repair
import msgspec

from mira.errors import ProviderMalformed
from mira.messages.text import storable

#: An answer longer than this is not looked at.
LONGEST = 400_000
#: Levels to which an answer may be nested.
DEEPEST = 40
#: Places at which the beginning of the JSON is looked for.
_PLACES = 40

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCED = re.compile(r"```[A-Za-z0-9_-]*[ \t]*\r?\n?(.*?)```", re.DOTALL)
_OPENING = re.compile(r"[\[{]")
_WHITE = re.compile(r"\s+")


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """JSON of an answer: an object or a list. `damaged`: it had to be repaired. `cut`: its end is
    missing, and what was not whole has been left out."""

    value: Any
    damaged: bool = False
    cut: bool = False


def read(text: str) -> Answer:
    """The JSON in a model's answer. Raises ProviderMalformed with a reason meant for the model."""
    if len(text) > LONGEST:
        raise ProviderMalformed("The answer is far too long.")
    # What the database cannot hold is not let in here.
    text = _THOUGHT.sub("", storable(text)).strip().removeprefix("\ufeff")
    if not text:
        raise ProviderMalformed("The answer is empty.")
    inside = [block.strip() for block in _FENCED.findall(text)]
    for candidate in (*inside, text):
        value = _whole(candidate)
        if value is not None:
            return Answer(value=_taken(value))
    for candidate in (*inside, text):
        value = _among_words(candidate)
        if value is not None:
            return Answer(value=_taken(value))
    return _repaired(max(inside, key=len, default="") or text)


def _whole(text: str) -> Any:
    """The object or list that `text` is, and nothing else; None if it is not."""
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, str):
        # Encoded twice.
        return _whole(value) if len(value) < len(text) else None
    return value if isinstance(value, dict | list) else None


def _among_words(text: str) -> Any:
    """The JSON that stands somewhere in `text`: one value, or objects one after another."""
    decoder = json.JSONDecoder(strict=False)
    found: list[tuple[int, Any]] = []
    at = 0
    for _ in range(_PLACES):
        opening = _OPENING.search(text, at)
        if opening is None:
            break
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except RecursionError:
            return None
        except ValueError:
            if _looks_like_json(text, opening.start()):
                # What begins here is damaged: taking only what stands beside it would lose it.
                return None
            at = opening.start() + 1
            continue
        found.append((end - opening.start(), value))
        at = end
    objects = [value for _, value in found if isinstance(value, dict) and value]
    lists = [value for _, value in found if isinstance(value, list)]
    if len(objects) > 1 and not any(isinstance(v, list) for o in objects for v in o.values()):
        return objects
    if objects:
        return max(objects, key=lambda value: len(json.dumps(value)))
    # A list of objects, or an empty one; "[1]" in prose is a footnote.
    for value in lists:
        if not value or any(isinstance(item, dict) for item in value):
            return value
    return None


def _looks_like_json(text: str, at: int) -> bool:
    """Whether an object or a list of objects begins here, not a bracket in prose."""
    return re.match(r"\{\s*[\"'\w]+\s*\"?\s*:|\[\s*[\{\[]", text[at : at + 200]) is not None


def _repaired(text: str) -> Answer:
    opening = _OPENING.search(text)
    while opening is not None and not _looks_like_json(text, opening.start()):
        opening = _OPENING.search(text, opening.end())
    if opening is None:
        raise ProviderMalformed("The answer holds no JSON.")
    text = text[opening.start() :]
    last, open_at_end = _end_of_items(text)
    cut = open_at_end is not None
    if cut and last is not None:
        # Only whole items: half a fact is another fact.
        text = text[: last[0]] + "".join("}" if c == "{" else "]" for c in reversed(last[1]))
    elif cut and text.count("{") > (1 if text.startswith("{") else 0):
        # Not even the first item is whole.
        return Answer(value=[], damaged=True, cut=True)
    value = _whole(text)
    if value is None:
        try:
            value = json_repair.loads(text, skip_json_loads=True)
        except (ValueError, RecursionError):
            value = None
    if not isinstance(value, dict | list):
        raise ProviderMalformed("The answer holds no JSON object.")
    if cut and isinstance(value, dict) and any(isinstance(v, str) for v in value.values()):
        value = []  # one item in place of a list, and not whole
    return Answer(value=_taken(value), damaged=True, cut=cut)


def _end_of_items(text: str) -> tuple[tuple[int, str] | None, str | None]:
    """Where the last whole item of a list ends, with the brackets then open; and, if the text ends
    inside of something, the brackets open at the end."""
    stack: list[str] = []
    last: tuple[int, str] | None = None
    quoted = escaped = False
    for at, letter in enumerate(text):
        if quoted:
            if escaped:
                escaped = False
            elif letter == "\\":
                escaped = True
            elif letter == '"':
                quoted = False
        elif letter == '"':
            quoted = True
        elif letter in "{[":
            stack.append(letter)
        elif letter in "}]" and stack:
            stack.pop()
            if not stack:
                return last, None
            if letter == "}" and stack[-1] == "[" and stack.count("[") == 1:
                last = at + 1, "".join(stack)
    return last, "".join(stack) or None


def _taken(value: Any) -> Any:
    """`value` as it can be stored, unless it is nested deeper than anything that was asked for."""
    layer = [value]
    for _ in range(DEEPEST):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not layer:
            return decoded(value)
    raise ProviderMalformed("The answer is nested too deep.")


def decoded(value: Any) -> Any:
    """What was decoded from JSON as it can be stored: an escape can stand for a character that
    was not in the text itself."""
    match value:
        case str():
            return storable(value)
        case dict():
            return {storable(str(name)): decoded(inner) for name, inner in value.items()}
        case list():
            return [decoded(inner) for inner in value]
        case _:
            return value


# Parts of an answer.


def items(value: Any, name: str, mark: str) -> list[Any]:
    """The list `name` of an answer, in whichever shape it came.

    A list that is the answer itself, a list under another name if it is all there is, one item in
    place of a list (known by its field `mark`): all are meant. Raises ProviderMalformed where there
    is nothing of the kind.
    """
    if isinstance(value, dict):
        if mark in value:
            value = [value]
        elif name in value:
            value = value[name]
            if value in (None, "", {}):
                return []
            if isinstance(value, dict):
                value = [value] if mark in value else list(value.values())
        elif len(value) == 1 and isinstance(only := next(iter(value.values())), list | dict):
            return items(only, name, mark)
    if not isinstance(value, list):
        raise ProviderMalformed(f'The answer lacks the list "{name}".')
    return [one for outer in value for one in (outer if isinstance(outer, list) else [outer])]


def objects(value: Any, name: str, mark: str) -> Iterator[Mapping[str, Any]]:
    """Those of `items` that are objects."""
    return (item for item in items(value, name, mark) if isinstance(item, dict))


def words(value: Any, *, most: int) -> str:
    """A text in one line, at most so long; "" for what is no text."""
    if not isinstance(value, str):
        return ""
    text = _WHITE.sub(" ", value).strip()
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def whole_number(value: Any) -> int | None:
    """A whole number, also one written as text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        found = re.fullmatch(r"\D{0,12}(-?\d{1,9})\D{0,3}", value.strip())
        return int(found[1]) if found else None
    if isinstance(value, float):
        return int(value) if value == value and abs(value) < 1e9 else None
    return value if isinstance(value, int) and abs(value) < 10**9 else None


def share(value: Any, default: float) -> float:
    """A number from 0 to 1, also as text or per cent; `default` for anything else."""
    if isinstance(value, str):
        try:
            value = float(value.strip().removesuffix("%")) / (100 if "%" in value else 1)
        except ValueError:
            return default
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return default
    return min(1.0, max(0.0, float(value)))


def yes(value: Any) -> bool:
    """Whether something was affirmed, in so many words. Everything else is no."""
    if isinstance(value, str):
        return value.strip().lower() in ("true", "yes", "approve", "approved")
    return value is True


def many(value: Any) -> list[Any]:
    """A list; one value in place of a list of one; [] for nothing."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
