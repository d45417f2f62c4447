"""The processes of the turn benchmark: the provider double and the real server, and its people."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import httpx2

from bench.provider_script import ASIDE
from mira.clock import SystemClock
from mira.ids import SystemIds
from mira.store import keys
from mira.store.database import Database
from mira.store.users import ensure_user

ROOT = Path(__file__).resolve().parent.parent
#: Seconds in which a server must be there, the first time with a database to be made.
_START_WITHIN = 120.0
_SERVE = """
import sys
from mira.app import serve
from mira.settings import load
sys.exit(serve(load()))
"""


class Double:
    """The provider double (bench.provider_double) as a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.provider_double", "--port", "0"],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout
        self.url: str = json.loads(self._process.stdout.readline())["url"]
        self._http = httpx2.Client(base_url=self.url, timeout=60)

    def script(self, **script: Any) -> None:
        """Say what it does from now on (see bench.provider_script)."""
        self._http.post("/_script", json=script).raise_for_status()

    def stamps(self) -> dict[str, dict[str, Any]]:
        """What was stamped since the last call, by marker; forgotten here."""
        found = self._http.get("/_stamps").json()
        self._http.delete("/_stamps").raise_for_status()
        return {stamp["marker"]: stamp for stamp in found}

    @property
    def pid(self) -> int:
        return self._process.pid

    def asides(self) -> list[tuple[str, float]]:
        """What was asked beside the conversation since the last `stamps`: marker and moment."""
        found = self._http.get("/_asides").json()
        return [(one["marker"], one["received"]) for one in found]

    def forget(self) -> None:
        """Forget what was stamped so far."""
        self._http.delete("/_stamps").raise_for_status()

    def close(self) -> None:
        self._http.close()
        _end(self._process)


class Server:
    """The real server on embedded Postgres and Valkey, in a temporary home."""

    def __init__(self, double: Double, provider: str) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="mira-bench-"))
        self._log = self.home.with_suffix(".log")
        self._double = double
        self._provider = provider
        self._process: subprocess.Popen[bytes] | None = None
        self._names = 0
        self.url = ""

    def start(self) -> float:
        """Start it and wait until it answers; return the seconds that this took.

        Raises RuntimeError with the end of its log if it does not.
        """
        word = self.home / "server.json"
        word.unlink(missing_ok=True)
        began = time.monotonic()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _SERVE], cwd=ROOT, env=self._environment(),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        while time.monotonic() - began < _START_WITHIN and self._process.poll() is None:
            if word.exists() and self._answers(word):
                return time.monotonic() - began
            time.sleep(0.005)
        raise RuntimeError(f"The server does not start:\n{self._log.read_text()[-4000:]}")

    def _answers(self, word: Path) -> bool:
        assert self._process
        told = json.loads(word.read_text())
        if told["pid"] != self._process.pid:
            return False
        self.url = told["url"]
        return httpx2.get(f"{self.url}/v1/health/ready", timeout=5).status_code == 200

    def until_loaded(self) -> None:
        """Wait until its models are there. Raises RuntimeError if they do not come."""
        began = time.monotonic()
        while time.monotonic() - began < _START_WITHIN:
            told = httpx2.get(f"{self.url}/v1/health/ready", timeout=5).json()["components"]
            one = next(one for one in told if one["name"] == "embedding")
            if one["status"] == "ok" and one["detail"] != "is being loaded":
                return
            time.sleep(0.1)
        raise RuntimeError("The embedding model of the server is not loaded.")

    def _environment(self) -> dict[str, str]:
        hidden = ("MIRA_", "ANTHROPIC_", "OPENAI_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        return {
            **kept,
            "MIRA_HOME": str(self.home),
            "MIRA_PORT": "0",
            "MIRA_MODEL": f"{self._provider}:double",
            "MIRA_MODEL_SUBCORTEX": f"{self._provider}:{ASIDE}",
            "ANTHROPIC_BASE_URL": self._double.url,
            "ANTHROPIC_API_KEY": "sk-bench-not-a-real-key",
            "OPENAI_BASE_URL": f"{self._double.url}/v1",
            "OPENAI_API_KEY": "sk-bench-not-a-real-key",
        }

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    def processes(self) -> list[int]:
        """It and all its children."""
        return _tree(self.pid)

    def connect(self, role: str) -> dict[str, Any]:
        """How to reach its database as postgres, mira_app or mira_engine."""
        return {"host": str(self.home / "run"), "port": 5432, "user": role, "database": "mira"}

    def people(self, count: int) -> list[str]:
        """Make so many new users with a key each, directly in the database; return the keys."""
        self._names += count
        names = [f"bench-{n}" for n in range(self._names - count, self._names)]
        return asyncio.run(_people(self.connect("mira_app"), self.connect("mira_engine"), names))

    def resident(self) -> dict[str, float]:
        """Megabytes now held by the server's own process, and by it with all its children.

        Pages that several processes share count once (proportional set size).
        """
        tree = _tree(self.pid)
        return {"server": _pss(self.pid), "all": sum(map(_pss, tree))}

    def cpu(self) -> dict[str, float]:
        """Seconds of processor time used so far by the server's own process, and by its children
        (the database, the cache)."""
        own = cpu_seconds(self.pid)
        return {"server": own, "services": sum(map(cpu_seconds, _tree(self.pid))) - own}

    def stop(self) -> None:
        if self._process is not None:
            _end(self._process)
            self._process = None

    def close(self) -> None:
        """Stop it and remove everything that it kept."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)
        self._log.unlink(missing_ok=True)


async def _people(app: Mapping[str, Any], engine: Mapping[str, Any], names: list[str]) -> list[str]:
    ids, now = SystemIds(), SystemClock().now()
    database = await Database.open(app, engine, size=16)

    async def make(name: str) -> str:
        user = await ensure_user(database, ids.new(), name, "UTC", now)
        async with database.engine() as tx:
            return (await keys.create(tx, ids, user.id, name="bench", scope="chat", now=now)).key

    try:
        made: list[str] = []
        for start in range(0, len(names), 16):
            made += await asyncio.gather(*map(make, names[start : start + 16]))
        return made
    finally:
        await database.aclose()


class Helper:
    """A process of the benchmark's own that is sent commands and answers them, line by line."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, **command: Any) -> Any:
        """Send one command and wait for what came of it."""
        _pipe(self._process.stdin).write(json.dumps(command).encode() + b"\n")
        _pipe(self._process.stdin).flush()
        return self.read()

    def read(self) -> Any:
        """The next line that it prints. Raises RuntimeError if it has died."""
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError("A process of the benchmark has died.")
        return json.loads(line)

    @property
    def pid(self) -> int:
        return self._process.pid

    def cpu(self) -> float:
        """Seconds of processor time used so far."""
        return cpu_seconds(self._process.pid)

    def close(self) -> None:
        _end(self._process)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _tree(pid: int) -> list[int]:
    """A process and all that descend from it."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(found for child in listed for found in _tree(int(child)))]


def cpu_seconds(pid: int) -> float:
    """Processor time of one process and of its children that have ended; 0.0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _pss(pid: int) -> float:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
