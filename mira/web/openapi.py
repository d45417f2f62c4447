"""The OpenAPI document, made from the endpoints and their models: it cannot say anything else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from mira.messages import stream, wire
from mira.web.endpoint import Endpoint
from mira.web.models import ChatAccepted
from mira.web.problems import MEDIA_TYPE, Problem

_PARAMETER = re.compile(r"{(\w+)}")
#: A memory has a short name too.
_MEMORY_ID = "^([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|mem_[0-9a-f]{8})$"
EVENT_STREAM = "text/event-stream"
_REF = "#/components/schemas/{name}"
#: Models that no endpoint names, but clients of the streams need: events and WebSocket frames.
_FRAMES: tuple[Any, ...] = (stream.AnyTurnEvent, wire.ClientFrame, wire.ServerFrame)


def document(endpoints: Sequence[Endpoint], version: str) -> bytes:
    """The document as JSON (OpenAPI 3.1)."""
    shown = [endpoint for endpoint in endpoints if not endpoint.hidden]
    models: list[Any] = [Problem, ChatAccepted, *_FRAMES]
    for endpoint in shown:
        models += [m for _, m in _successes(endpoint) if m is not None and not isinstance(m, str)]
        models += [m for m in (endpoint.body, endpoint.query) if m is not None]
    models = list(dict.fromkeys(models))
    schemas, components = msgspec.json.schema_components(models, ref_template=_REF)
    of = dict(zip(models, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in shown:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(
            endpoint, of, components
        )
    return msgspec.json.encode(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "MIRA",
                "version": version,
                "description": "One conversation that never ends, over HTTP. Live frames are at "
                "the WebSocket /v1/ws; their models are below as ClientFrame and ServerFrame.",
            },
            "paths": paths,
            "components": {
                "schemas": {
                    **components,
                    "TurnEvent": of[stream.AnyTurnEvent],
                    "ClientFrame": of[wire.ClientFrame],
                    "ServerFrame": of[wire.ServerFrame],
                    "ServerSentEvent": _event(of),
                },
                "securitySchemes": {
                    "key": {"type": "http", "scheme": "bearer", "bearerFormat": "mira_…"},
                    "session": {"type": "apiKey", "in": "cookie", "name": "mira_session"},
                },
            },
        }
    )


def _operation(
    endpoint: Endpoint, of: dict[Any, dict[str, Any]], components: dict[str, Any]
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.handler.__name__,
        "tags": [_tag(endpoint.path)],
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint, components)],
        "security": [{"key": []}, {"session": []}] if endpoint.scope else [],
        "responses": {},
    }
    if endpoint.scope:
        operation["description"] = f"Needs the scope `{endpoint.scope}`."
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": not endpoint.optional,
            "content": {"application/json": {"schema": of[endpoint.body]}},
        }
    if endpoint.raw is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/octet-stream": {"schema": {"type": "string"}}},
        }
    for status, model in _successes(endpoint):
        operation["responses"][str(status)] = _response(status, model, of)
    if endpoint.streams:
        content = operation["responses"][str(endpoint.status)]["content"]
        content[EVENT_STREAM] = {"schema": {"$ref": _REF.format(name="ServerSentEvent")}}
    for status in _problems(endpoint):
        if str(status) not in operation["responses"]:
            operation["responses"][str(status)] = {
                "description": HTTPStatus(status).phrase,
                "content": {MEDIA_TYPE: {"schema": of[Problem]}},
            }
    return operation


def _successes(endpoint: Endpoint) -> Iterator[tuple[int, Any]]:
    yield endpoint.status, endpoint.answer
    yield from (endpoint.also or {}).items()


def _problems(endpoint: Endpoint) -> list[int]:
    statuses = set(endpoint.problems)
    if endpoint.scope:
        statuses |= {401, 403, 429, 503}
    if endpoint.body is not None:
        statuses |= {400, 413, 422}
    if endpoint.raw is not None:
        statuses |= {400, 413, 422}
    if endpoint.query is not None:
        statuses.add(422)
    if _PARAMETER.search(endpoint.path):
        statuses |= {404, 422}
    return sorted(statuses)


def _response(status: int, model: Any, of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if model == EVENT_STREAM:
        found["content"] = {model: {"schema": {"$ref": _REF.format(name="ServerSentEvent")}}}
    elif isinstance(model, str):
        found["content"] = {model: {"schema": {"type": "string"}}}
    elif model is not None:
        found["content"] = {"application/json": {"schema": of[model]}}
    return found


def _event(of: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """One event of a stream: first `accepted` where a message was sent, then a turn's own."""
    told = [of[ChatAccepted], {"$ref": _REF.format(name="TurnEvent")}, of[Problem]]
    return {
        "type": "object",
        "description": "An event of a turn; `id` is its number, `event` the type of its data.",
        "properties": {
            "id": {"type": "string"},
            "event": {"type": "string"},
            "data": {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {"anyOf": told},
            },
        },
        "required": ["event", "data"],
    }


def _path_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    for name in _PARAMETER.findall(endpoint.path):
        schema: dict[str, Any] = {"type": "string"}
        if name == "letter_id":
            schema = {"type": "integer", "minimum": 1}
        elif name == "memory_id":
            schema = {"type": "string", "pattern": _MEMORY_ID}
        # Calls are named by whoever made the model.
        elif name.endswith("_id") and name != "call_id":
            schema = {"type": "string", "format": "uuid"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameters(endpoint: Endpoint, components: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if endpoint.query is None:
        return
    model = components[endpoint.query.__name__]
    for name, schema in model["properties"].items():
        yield {
            "name": name,
            "in": "query",
            "required": name in model.get("required", ()),
            "schema": schema,
        }


def _tag(path: str) -> str:
    parts = [part for part in path.split("/") if part and part != "v1"]
    return parts[0] if parts else "page"
