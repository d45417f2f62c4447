"""Processes that tests start: the server itself, and the provider double beside it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import httpx2

from bench.provider_script import ASIDE, KEEPER
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.store import keys
from mira.store.database import Database
from mira.store.users import ensure_user
from tests.support.models import lend_to

ROOT = Path(__file__).resolve().parents[2]
T = TypeVar("T")


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop of its own in a thread, whether or not one runs here."""
    result: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            result.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


class DoubleProcess:
    """The provider double as a process of its own; see bench.provider_script for its scripts."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.provider_double", "--port", "0"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout
        self.url: str = json.loads(self._process.stdout.readline())["url"]
        self._http = httpx2.Client(base_url=self.url, timeout=10)

    def script(self, script: Mapping[str, Any]) -> None:
        """Replace what the double does."""
        self._http.post("/_script", json=dict(script)).raise_for_status()

    def reset(self) -> None:
        """Echo the user's words, and forget what was received."""
        self.script({"default": {"echo": True}})
        self._http.delete("/_stamps").raise_for_status()

    def until_idle(self, within: float = 3.0) -> None:
        """Wait until nothing is being answered, but not for what is never to be answered."""
        end = time.monotonic() + within
        while self.state()["open"] and time.monotonic() < end:
            time.sleep(0.01)

    def requests(self) -> list[dict[str, Any]]:
        """The bodies received since the last reset, oldest first."""
        return [r["body"] for r in self._http.get("/_requests").json()]

    def stamps(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._http.get("/_stamps").json()
        return found

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = self._http.get("/_state").json()
        return found

    def close(self) -> None:
        self._http.close()
        self._process.terminate()
        self._process.wait(10)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            pipe.close()


@dataclass
class Person:
    """A user of the server, with a key of each scope."""

    id: UUID
    name: str
    key: str
    read_key: str
    admin_key: str


@dataclass
class ServerProcess:
    """The real server as a process, in a home of its own, on the given database and cache; empty
    URLs mean that it brings its own."""

    database_url: str
    valkey_url: str
    double: DoubleProcess
    extra: dict[str, str] = field(default_factory=dict)
    home: Path = field(
        default_factory=lambda: Path(tempfile.mkdtemp(prefix="mira-server-", dir="/tmp"))
    )
    url: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.home.with_suffix(".log")

    def environment(self, **extra: str) -> dict[str, str]:
        """What the process is told."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith("MIRA_")}
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
            kept.pop(name, None)
        if self.database_url:
            kept["MIRA_DATABASE_URL"] = self.database_url
            # Over its socket the tests' server asks for no passwords.
            for role in ("app", "engine"):
                its_url = self.database_url.replace("//postgres@", f"//mira_{role}@")
                kept[f"MIRA_DATABASE_URL_{role.upper()}"] = its_url
        if self.valkey_url:
            kept["MIRA_VALKEY_URL"] = self.valkey_url
        return {
            **kept,
            "MIRA_HOME": str(self.home),
            "MIRA_PORT": "0",
            "ANTHROPIC_BASE_URL": self.double.url,
            "ANTHROPIC_API_KEY": "sk-test-not-a-real-key",
            "MIRA_MODEL": "anthropic:double",
            "MIRA_MODEL_SUBCORTEX": f"anthropic:{ASIDE}",
            "MIRA_MODEL_SUMMARY": f"anthropic:{KEEPER}",
            "MIRA_MODEL_EXTRACTION": f"anthropic:{KEEPER}",
            # A machine that is slow must not change what is recalled.
            "MIRA_SUBCORTEX_DEADLINE": "20",
            "PYTHONWARNINGS": "default",
            **self.extra,
            **extra,
        }

    def launch(self, **extra: str) -> ServerProcess:
        """Start without waiting."""
        if self.home.exists():
            lend_to(self.home)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.server_main"],
                cwd=ROOT, env=self.environment(**extra), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )  # fmt: skip
        return self

    def start(self, **extra: str) -> ServerProcess:
        """Start and wait until it serves. Raises AssertionError with its log if it does not."""
        (self.home / "server.json").unlink(missing_ok=True)
        self.launch(**extra)
        return self.wait_ready()

    def wait_ready(self) -> ServerProcess:
        assert self.process
        word = self.home / "server.json"
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if word.exists():
                told = json.loads(word.read_text())
                if told["pid"] == self.process.pid:
                    self.url = told["url"]
                    return self
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"the server does not start:\n{self.output()[-4000:]}")

    def output(self) -> str:
        """Everything that it has printed and logged."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait(self, seconds: float = 40) -> int:
        """Wait for its end; return its exit code (negative: the signal that killed it)."""
        assert self.process
        return self.process.wait(seconds)

    def kill(self) -> None:
        """SIGKILL, and wait."""
        assert self.process
        self.process.kill()
        self.process.wait(10)

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def stop(self) -> int:
        """Ask it to stop, as an operator would; returns its exit code."""
        if self.process is None or self.process.poll() is not None:
            return self.process.returncode if self.process else 0
        self.process.terminate()
        return self.process.wait(60)

    def close(self) -> None:
        """Stop it and remove its home."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        shutil.rmtree(self.home, ignore_errors=True)
        self.log.unlink(missing_ok=True)

    @property
    def admin_token(self) -> str:
        """The token of the command line on this machine."""
        return (self.home / "admin-token").read_text()


class Residents:
    """Makes users and their keys directly in a database."""

    def __init__(self, app: dict[str, Any], engine: dict[str, Any]) -> None:
        self._app = app
        self._engine = engine

    def add(self, name: str, timezone: str = "UTC") -> Person:
        """A user with a key of each scope."""
        return self.add_all([name], timezone)[0]

    def add_all(self, names: Sequence[str], timezone: str = "UTC") -> list[Person]:
        """Several users at once."""
        return run_apart(self._add_all(names, timezone))

    async def _add_all(self, names: Sequence[str], timezone: str) -> list[Person]:
        database = await Database.open(self._app, self._engine, size=2)
        try:
            return [await self._add(database, name, timezone) for name in names]
        finally:
            await database.aclose()

    async def _add(self, database: Database, name: str, timezone: str) -> Person:
        ids, now = SystemIds(), SystemClock().now()
        user = await ensure_user(database, ids.new(), name, timezone, now)
        made = {}
        async with database.engine() as tx:
            for scope in keys.SCOPES:
                made[scope] = (
                    await keys.create(tx, ids, user.id, name=scope, scope=scope, now=now)
                ).key
        return Person(user.id, name, made["chat"], made["read"], made["admin"])

    def signin_token(self, user_id: UUID) -> str:
        """A fresh one-time sign-in token."""

        async def make() -> str:
            database = await Database.open(self._app, self._engine, size=2)
            try:
                async with database.engine() as tx:
                    return await keys.create_link(tx, SystemIds(), user_id, SystemClock().now())
            finally:
                await database.aclose()

        return run_apart(make())

    def rows(self, owner: dict[str, Any], sql: str, *values: object) -> list[dict[str, Any]]:
        """Look into the database as its owner."""

        async def look() -> list[dict[str, Any]]:
            connection = await asyncpg.connect(**owner)
            try:
                return [dict(row) for row in await connection.fetch(sql, *values)]
            finally:
                await connection.close()

        return run_apart(look())
