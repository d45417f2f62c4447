"""The web page, the documentation page, and their files: held in memory, nothing else is served."""

from __future__ import annotations

import hashlib
import mimetypes
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

_HERE = Path(__file__).parent
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


@dataclass(frozen=True)
class _File:
    """One file as it is served. The tag lets a browser keep it until it changes."""

    body: bytes
    media_type: str
    tag: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {
            "content-security-policy": _POLICY,
            "cache-control": "no-cache",
            "etag": self.tag,
            "cross-origin-opener-policy": "same-origin",
            "permissions-policy": "camera=(), microphone=(), geolocation=()",
            "content-type": self.media_type,
        }
        asked = dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1")
        if self.tag in (tag.strip().removeprefix("W/") for tag in asked.split(",")):
            response = Response(status_code=304, headers=headers)
        else:
            response = Response(self.body, headers=headers)
        await response(scope, receive, send)


def routes() -> list[Route]:
    """`/`, `/docs`, and every file below them. Read from disk once, here."""
    return [
        *_tree(_HERE / "static", "/static", at="/"),
        *_tree(_HERE / "docs", "/docs", at="/docs"),
    ]


def _tree(folder: Path, prefix: str, *, at: str) -> list[Route]:
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = path.relative_to(folder).as_posix()
        file: ASGIApp = _read(path)
        found.append(Route(f"{prefix}/{name}", file, methods=["GET"], name=f"{prefix}/{name}"))
        if name == "index.html":
            found.append(Route(at, file, methods=["GET"], name=at))
    return found


def _read(path: Path) -> _File:
    body = path.read_bytes()
    kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
    return _File(
        body, kind or "application/octet-stream", f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    )
