"""For whoever runs the house: dead letters, secrets, status, metrics."""

from __future__ import annotations

import platform
from typing import Any
from uuid import UUID

from starlette.responses import Response

import mira
from mira.errors import Forbidden, NotFound
from mira.store import operation, outbox
from mira.web import metrics, summary_health
from mira.web.endpoint import Call, Endpoint
from mira.web.models import (
    Letter,
    LetterPage,
    ModelView,
    Paging,
    SecretList,
    SecretValue,
    Status,
)
from mira.web.origin import from_this_machine
from mira.web.reading import BigInt, cut, read_cursor, write_cursor

#: Secrets that the program keeps for itself: the passwords of the database's roles.
_OWN = "postgres."


def _whose(call: Call[Any, Any]) -> UUID | None:
    """Whose letters a caller may see: the house's operator all, anyone else their own."""
    return None if _operates(call) else call.user_id


def _operates(call: Call[Any, Any]) -> bool:
    return call.user_id == call.services.owner


def _need_operator(call: Call[Any, Any]) -> None:
    # The key store belongs to the house, not to one of its users.
    if not _operates(call):
        raise Forbidden("Only the operator of this house may do this.")


def _secret_name(call: Call[Any, Any]) -> str:
    name: str = call.request.path_params["name"]
    if name.startswith(_OWN):
        raise Forbidden("This secret is the program's own.")
    return name


async def list_letters(call: Call[Paging, None]) -> LetterPage:
    cursor = read_cursor(call.query.cursor, tuple[BigInt])
    async with call.services.database.engine() as tx:
        records = await operation.dead_letters(
            tx,
            user_id=_whose(call),
            before=cursor[0] if cursor else None,
            limit=call.query.limit + 1,
        )
    records, more = cut(records, call.query.limit)
    return LetterPage(
        dead_letters=tuple(Letter.of(record) for record in records),
        next_cursor=write_cursor(records[-1].id) if more else None,
    )


async def replay_letter(call: Call[None, None]) -> Letter:
    text = call.request.path_params["letter_id"]
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise NotFound("There is no such dead letter.")
    letter_id, now = int(text), call.services.clock.now()
    async with call.services.database.engine() as tx:
        await operation.dead_letter(tx, letter_id, user_id=_whose(call))
        if await outbox.replay(tx, letter_id, now):
            tx.after_commit(call.services.work_added)
        return Letter.of(await operation.dead_letter(tx, letter_id, user_id=_whose(call)))


async def list_secrets(call: Call[None, None]) -> SecretList:
    _need_operator(call)
    names = await call.services.secrets.names()
    return SecretList(secrets=tuple(name for name in names if not name.startswith(_OWN)))


async def put_secret(call: Call[None, SecretValue]) -> None:
    _need_operator(call)
    await call.services.secrets.set(_secret_name(call), call.body.value)


async def delete_secret(call: Call[None, None]) -> None:
    _need_operator(call)
    if not await call.services.secrets.delete(_secret_name(call)):
        raise NotFound("There is no such secret.")


async def status(call: Call[None, None]) -> Status:
    services, context = call.services, call.context
    ready = await context.health.ready()
    async with services.database.engine() as tx:
        work = await operation.work(tx, services.clock.now())
    summaries = await summary_health.of_user(services.database, call.user_id, services.clock.now())
    return Status(
        status=ready.status,
        version=mira.__version__,
        python=platform.python_version(),
        uptime_seconds=round(services.clock.monotonic() - context.began, 3),
        components=ready.components,
        models=tuple(
            ModelView(purpose=m.purpose, model=m.model, note=m.note) for m in services.models()
        ),
        engine=dict(services.engine()),
        connections=len(context.connections),
        work_pending=work.pending,
        work_due=work.due,
        dead_letters=work.dead,
        summaries=summaries,
    )


async def prometheus(call: Call[None, None]) -> Response:
    """For an admin key, or for a scraper on this machine."""
    request = call.request
    peer = request.scope.get("client")
    if "authorization" in request.headers or not from_this_machine(peer, request.headers):
        asking = await call.context.auth.of_headers(request.headers)
        asking.need("admin")
    return Response(call.context.metrics.text(), headers={"content-type": metrics.MEDIA_TYPE})


ENDPOINTS = (
    Endpoint("GET", "/v1/dead-letters", list_letters, "Durable messages that were given up",
             scope="admin", query=Paging, answer=LetterPage),
    Endpoint("POST", "/v1/dead-letters/{letter_id}/replay", replay_letter,
             "Try a dead letter again; one that was replayed before stays as it is",
             scope="admin", answer=Letter),
    Endpoint("GET", "/v1/secrets", list_secrets, "Names of the secrets in the key store",
             scope="admin", answer=SecretList),
    Endpoint("PUT", "/v1/secrets/{name}", put_secret, "Keep a secret, replacing an earlier one",
             scope="admin", body=SecretValue, answer=None, status=204),
    Endpoint("DELETE", "/v1/secrets/{name}", delete_secret, "Destroy a secret",
             scope="admin", answer=None, status=204),
    Endpoint("GET", "/v1/status", status, "Versions, components, models, engine and undone work",
             scope="admin", answer=Status),
    Endpoint("GET", "/metrics", prometheus, "Numbers for Prometheus",
             scope=None, answer="text/plain", problems=(401, 403)),
)  # fmt: skip
