"""Schemas of answers, in the strict form that providers take: every field required, no others."""

from __future__ import annotations

from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
YES_OR_NO: dict[str, Any] = {"type": "boolean"}
TEXT_OR_NULL: dict[str, Any] = {"anyOf": [TEXT, {"type": "null"}]}


def choice(*names: str) -> dict[str, Any]:
    """One of these words."""
    return {"type": "string", "enum": list(names)}


def list_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def object_of(**properties: dict[str, Any]) -> dict[str, Any]:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
