"""The port to where secrets are kept."""

from __future__ import annotations

import re
from typing import Protocol

from mira.errors import ValidationFailed

#: The longest secret, in bytes of UTF-8: room for a certificate with its chain.
MAX_BYTES = 64 * 1024

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,63}")


class Secrets(Protocol):
    """Named secrets, each a text. Safe to use from several tasks and several processes.

    Every method raises SecretsUnavailable, which says what is wrong and what to do, when the
    store cannot be reached, is sealed, refuses us or is damaged. No value ever stands in an
    error, a log line or a repr.
    """

    async def get(self, name: str) -> str | None:
        """Return the secret, None if there is none. A value that was set is seen at once."""
        ...

    async def set(self, name: str, value: str) -> None:
        """Keep `value`, replacing an earlier one; it is on disk when this returns.

        Raises ValidationFailed for a name or value that cannot be kept.
        """
        ...

    async def delete(self, name: str) -> bool:
        """Destroy the secret. Returns whether there was one."""
        ...

    async def names(self) -> tuple[str, ...]:
        """Return the names of all secrets, sorted."""
        ...

    async def tend(self) -> None:
        """Renew what runs out, until cancelled; returns when nothing ever will.

        A background task for the owner of the store. The store works without it, at the price
        of logging in again after a long silence. Never raises an error of the store.
        """
        ...

    async def aclose(self) -> None:
        """Release what is held. Idempotent."""
        ...


def check_name(name: str) -> str:
    """Return `name` if a secret may be called so: a lower-case letter, then up to 63 of a-z0-9_.-

    Raises ValidationFailed otherwise. The rule keeps names apart in every store: no slashes, no
    case to fold.
    """
    if _NAME.fullmatch(name) is None:
        raise ValidationFailed(
            "A secret's name begins with a letter and has at most 64 of a-z, 0-9, '_', '.', '-'.",
            (("name", "not a name"),),
        )
    return name


def check_value(value: str) -> str:
    """Return `value` if it can be kept: not empty, valid Unicode, at most MAX_BYTES.

    Raises ValidationFailed otherwise, without quoting it.
    """
    try:
        size = len(value.encode("utf-8"))
    except UnicodeEncodeError:
        # The error holds the whole value; it must not travel on as a cause.
        raise ValidationFailed(
            "The value is not valid Unicode.", (("value", "surrogates"),)
        ) from None
    if not 0 < size <= MAX_BYTES:
        raise ValidationFailed(
            f"The value must have 1 to {MAX_BYTES} bytes.", (("value", f"{size} bytes"),)
        )
    return value
