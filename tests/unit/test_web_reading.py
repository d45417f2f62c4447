"""How input that cannot be taken is told to whoever sent it."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest

from mira.errors import ValidationFailed
from mira.web.reading import json_body


class Form(msgspec.Struct):
    text: Annotated[str, msgspec.Meta(min_length=10, max_length=12)] = "long enough"
    ids: Annotated[tuple[int, ...], msgspec.Meta(min_length=2)] = (1, 2)
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        (b'{"text": "short"}', "text", "It takes at least 10 characters"),
        (b'{"text": "much too long"}', "text", "It takes at most 12 characters"),
        (b'{"ids": [1]}', "ids", "It takes at least 2 entries"),
        (b'{"limit": 0}', "limit", "It takes at least 1"),
        (b'{"limit": 101}', "limit", "It takes at most 100"),
        (b'{"text": 5}', "text", "Expected `str`, got `int`"),
        (b"[]", "body", "Expected `object`, got `array`"),
    ],
)
def test_a_bound_is_told_in_words(body: bytes, field: str, told: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        json_body(body, "application/json", Form)
    assert refused.value.fields == ((field, told),)
    assert refused.value.detail == f"{field}: {told}."
