"""Files on their way to the server, before the message that they go with."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import anyio
import msgspec

from mira.cli.http import Http
from mira.errors import TooLarge, ValidationFailed


class Given(msgspec.Struct, frozen=True):
    """A file that the server has read and keeps for a message."""

    id: UUID
    name: str


async def give(http: Http, path: Path) -> Given:
    """Send a file. Raises ValidationFailed, naming it, if it cannot be read here or there."""
    try:
        content = await (await anyio.Path(path).expanduser()).read_bytes()
        return await http.give("/v1/files", Given, content, name=path.name)
    except OSError as error:
        why = error.strerror or "it cannot be read"
        raise ValidationFailed(f"{path}: {why}.") from None
    except (ValidationFailed, TooLarge) as error:
        raise ValidationFailed(f"{path}: {error.detail}") from None
