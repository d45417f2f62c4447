"""`mira serve`."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from mira.cli.output import printable
from mira.settings import load, unknown_variables


def serve(
    *,
    host: str | None = None,
    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65535))] = None,
) -> int:
    """Start the server and stay with it until Ctrl-C or SIGTERM.

    Exit code 0 after an ordinary stop, 2 when the start was refused, 1 when something that the
    server stands on was lost.

    Parameters
    ----------
    host
        Interface to serve on, instead of MIRA_HOST. Any but this machine's own needs an API key.
    port
        Port to serve on, instead of MIRA_PORT. 0 takes a free one.
    """
    for name, meant in unknown_variables():
        # Before anything else: what was misspelt may be why the start is refused.
        asked = f" Did you mean {meant}?" if meant else ""
        told = f"Warning: there is no setting {printable(name)}; it has no effect.{asked}"
        print(told, file=sys.stderr)
    given = {"host": host, "port": port}
    changed = {name: value for name, value in given.items() if value is not None}
    settings = load().model_copy(update=changed)
    # The whole house is loaded here; no other command pays for it.
    from mira.app import serve as serve_house

    return serve_house(settings)
