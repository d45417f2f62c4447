"""`mira signin`."""

from __future__ import annotations

from mira.cli.asking import ask
from mira.cli.http import Http
from mira.cli.output import Json, local_time, print_json
from mira.cli.place import need
from mira.settings import Settings
from mira.web.models import SigninLink


def signin(*, json: Json = False) -> int:
    """Make a link that signs a browser in, once, within ten minutes. Needs a running server."""
    link = ask(_make)
    if json:
        print_json(link)
    else:
        print(link.url)
        print(f"Works once, until {local_time(link.expires_at)}.")
    return 0


async def _make(settings: Settings) -> SigninLink:
    async with Http(need(settings)) as http:
        return await http.post("/v1/signin", SigninLink)
