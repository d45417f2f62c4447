"""Importing the large libraries, one thread at a time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()


@contextmanager
def importing(*, without: str = "") -> Iterator[None]:
    """Import large libraries inside: at most one thread at a time.

    A library named in `without` seems not to be installed meanwhile, unless it is loaded already:
    for optional parts that cost seconds and hundreds of megabytes and that nobody will use.
    """
    with _lock:
        hidden = without and without not in sys.modules
        if hidden:
            sys.modules[without] = None  # type: ignore[assignment]
        try:
            yield
        finally:
            if hidden:
                del sys.modules[without]
