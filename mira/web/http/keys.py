"""API keys: made, listed, revoked."""

from __future__ import annotations

import msgspec

from mira.store import keys
from mira.web.endpoint import Call, Endpoint
from mira.web.models import CreatedKey, Key, KeyList, KeyRequest


async def list_keys(call: Call[None, None]) -> KeyList:
    async with call.services.database.engine() as tx:
        records = await keys.listed(tx, call.user_id)
    return KeyList(keys=tuple(Key.of(record) for record in records))


async def create_key(call: Call[None, KeyRequest]) -> CreatedKey:
    services = call.services
    async with services.database.engine() as tx:
        new = await keys.create(
            tx, services.ids, call.user_id,
            name=call.body.name, scope=call.body.scope, now=services.clock.now(),
        )  # fmt: skip
    return CreatedKey(**msgspec.structs.asdict(new))


async def revoke_key(call: Call[None, None]) -> None:
    key_id = call.id("key_id")
    async with call.services.database.engine() as tx:
        await keys.revoke(tx, call.user_id, key_id, call.services.clock.now())
    call.context.auth.key_revoked(key_id)


ENDPOINTS = (
    Endpoint("GET", "/v1/keys", list_keys, "Your keys, without the keys themselves",
             scope="admin", answer=KeyList),
    Endpoint("POST", "/v1/keys", create_key, "Make a key; it is shown this once",
             scope="admin", body=KeyRequest, answer=CreatedKey, status=201, problems=(409,)),
    Endpoint("DELETE", "/v1/keys/{key_id}", revoke_key,
             "Revoke a key: it, its sessions and its connections end at once",
             scope="admin", answer=None, status=204),
)  # fmt: skip
