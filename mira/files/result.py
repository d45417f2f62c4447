"""When a file cannot be read."""

from __future__ import annotations

import struct

import msgspec


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """Why a file cannot be read: a sentence for whoever gave it."""

    detail: str


class Unreadable(Exception):
    """Raised while a file is read; the argument is the sentence of Refused."""


#: What a damaged file may lead its readers to, beside errors of their own: they let those of what
#: they stand on through.
DAMAGE = (SyntaxError, ValueError, TypeError, LookupError, AttributeError, OSError, EOFError,
          RuntimeError, AssertionError, ArithmeticError, struct.error)  # fmt: skip
