"""The local model with its real weights in its real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from mira.clock import SystemClock
from mira.llm.base import Dropped, Finished, Request, StopReason, SystemBlock, TextDelta
from mira.llm.local import LocalProvider
from mira.llm.local_server import LocalServer
from mira.messages.content import Role, Said, Text

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]


def asked(text: str, tokens: int = 12) -> Request:
    return Request(
        system=(SystemBlock(text="Be brief."),),
        messages=(Said(role=Role.USER, blocks=(Text(text=text),)),),
        max_output_tokens=tokens,
    )


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[LocalServer]:
    started = LocalServer()
    yield started
    await started.aclose()


@pytest.fixture
async def local(server: LocalServer) -> AsyncIterator[LocalProvider]:
    provider = LocalProvider(server, SystemClock(), prompt_tokens=100)
    yield provider
    if provider._inner is not None:
        await provider._inner.aclose()


async def reply(local: LocalProvider, request: Request) -> tuple[str, Finished, list[str]]:
    text, dropped = "", []
    async with local.stream(request) as items:
        async for item in items:
            match item:
                case TextDelta(text=piece):
                    text += piece
                case Dropped(what=what):
                    dropped.append(what)
                case Finished():
                    return text, item, dropped
    raise AssertionError("no end")


async def test_it_answers_in_words_and_counts_them(local: LocalProvider) -> None:
    text, finished, _ = await reply(local, asked("Say hello."))
    assert text.strip()
    assert finished.blocks == (Text(text=text),)
    assert finished.stop in (StopReason.END, StopReason.MAX_TOKENS)
    assert (finished.provider, finished.model) == ("local", "smollm2")
    assert finished.usage.reported
    assert 0 < finished.usage.output_tokens <= 12


async def test_a_message_that_is_too_long_is_answered_all_the_same(local: LocalProvider) -> None:
    text, finished, dropped = await reply(
        local, asked("I walked my dog in the park. " * 4000 + "What did I do?", 24)
    )
    assert text.strip()
    assert dropped == ["part of the message"]
    assert finished.usage.input_tokens < 200


async def test_leaving_the_stream_frees_it_for_the_next(local: LocalProvider) -> None:
    async with local.stream(asked("Count to a thousand.", 512)) as items:
        async for item in items:
            if isinstance(item, TextDelta):
                break
    with anyio.fail_after(60):
        text, _, _ = await reply(local, asked("Say hello."))
    assert text.strip()


async def test_a_server_that_died_is_started_again(
    server: LocalServer, local: LocalProvider
) -> None:
    await local.probe()
    first = server.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with anyio.fail_after(10):
        while server.pid is not None:
            await anyio.sleep(0.01)
    text, _, _ = await reply(local, asked("Say hello."))
    assert text.strip()
    assert server.pid not in (None, first)


async def test_closing_ends_the_process() -> None:
    server = LocalServer()
    await server.url()
    pid = server.pid
    assert pid is not None
    await server.aclose()
    await server.aclose()
    assert not Path(f"/proc/{pid}").exists()


PARENT = """
import anyio, json, sys
from mira.llm.local_server import LocalServer

async def main():
    server = LocalServer()
    await server.url()
    print(json.dumps({"pid": server.pid}), flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can tie a child to its parent")
async def test_it_dies_with_a_parent_that_was_killed() -> None:
    parent = await anyio.open_process(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    async with parent:
        assert parent.stdout is not None
        # The log goes to standard output as well; the pid is in the line that is an object of it.
        received = b""
        while b'"pid": ' not in received:
            received += await parent.stdout.receive()
        line = next(x for x in received.splitlines() if x.startswith(b'{"pid"'))
        child = json.loads(line)["pid"]
        assert Path(f"/proc/{child}").exists()
        parent.kill()
        await parent.wait()
        with anyio.fail_after(10):
            while _alive(child):
                await anyio.sleep(0.01)


def _alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for a parent to ask after it."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
