"""The local key store keeps what it is given, and says clearly when it cannot give it back."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mira.clock import ManualClock, SystemClock
from mira.errors import MiraError, SecretsUnavailable, ValidationFailed
from mira.secrets.base import MAX_BYTES
from mira.secrets.local import LocalSecrets
from mira.secrets.master_key import KeyringKeys

pytestmark = pytest.mark.anyio

NAMES = st.from_regex(r"[a-z][a-z0-9_.-]{0,20}", fullmatch=True)
VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)


def open_store(directory: Path) -> LocalSecrets:
    """A store as another process would open it; no keyring, whatever this machine has."""
    return LocalSecrets(directory, clock=SystemClock(), keyring=lambda: None)


def edit(directory: Path, change: Callable[[dict[str, object]], None]) -> None:
    path = directory / "secrets.json"
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


@given(secrets=st.dictionaries(NAMES, VALUES, max_size=5), gone=st.sets(NAMES, max_size=2))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_what_was_set_is_read_back_by_another_process_and_what_was_deleted_is_not(
    tmp_path_factory: pytest.TempPathFactory, secrets: dict[str, str], gone: set[str]
) -> None:
    directory = tmp_path_factory.mktemp("keys")
    store = open_store(directory)
    for name, value in secrets.items():
        await store.set(name, value)
    for name in gone:
        assert await store.delete(name) == (name in secrets)
    left = {name: value for name, value in secrets.items() if name not in gone}
    again = open_store(directory)
    assert await again.names() == tuple(sorted(left))
    assert {name: await again.get(name) for name in {*secrets, *gone}} == {
        name: left.get(name) for name in {*secrets, *gone}
    }


async def test_an_empty_store_has_no_names_and_writes_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert await store.get("anthropic_api_key") is None
    assert await store.names() == ()
    assert os.listdir(tmp_path) == []


async def test_a_second_value_replaces_the_first_in_an_open_store_too(tmp_path: Path) -> None:
    reader, writer = open_store(tmp_path), open_store(tmp_path)
    await writer.set("token", "first")
    assert await reader.get("token") == "first"
    await writer.set("token", "second")
    assert await reader.get("token") == "second"


async def test_files_are_readable_by_their_owner_only_and_hold_no_value_in_clear(
    tmp_path: Path,
) -> None:
    await open_store(tmp_path).set("token", "sk-plainly-visible")
    for file in tmp_path.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        assert b"plainly" not in file.read_bytes()
        assert base64.b64encode(b"sk-plainly-visible")[:12] not in file.read_bytes()


async def test_the_same_value_is_sealed_differently_every_time(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    sealed = set()
    for name in ("a", "b", "a", "b"):
        await store.set(name, "same")
        sealed.add(json.loads((tmp_path / "secrets.json").read_bytes())["entries"][name])
    assert len(sealed) == 4


@pytest.mark.parametrize("name", ["", "A", "1a", "a/b", "../a", "a b", "a\n", "ä", "a" * 65])
async def test_a_name_outside_the_rule_is_refused_by_every_call(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path)
    with pytest.raises(ValidationFailed):
        await store.get(name)
    with pytest.raises(ValidationFailed):
        await store.set(name, "x")
    with pytest.raises(ValidationFailed):
        await store.delete(name)


@pytest.mark.parametrize("value", ["", "x" * (MAX_BYTES + 1), "sk-secret\ud800"])
async def test_a_value_that_cannot_be_kept_is_refused_and_not_quoted(
    tmp_path: Path, value: str
) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        await open_store(tmp_path).set("token", value)
    shown = f"{refusal.value!r} {refusal.value.fields} {refusal.value.__cause__!r}"
    assert "sk-secret" not in shown
    assert refusal.value.__suppress_context__ or refusal.value.__context__ is None
    assert not (tmp_path / "secrets.json").exists()


async def expect_unavailable(directory: Path, *words: str, name: str = "token") -> None:
    """Reading fails, the message has `words`, and neither it nor the store shows the value."""
    store = open_store(directory)
    with pytest.raises(SecretsUnavailable) as failure:
        await store.get(name)
    for word in words:
        assert word in failure.value.detail
    assert "sk-secret" not in f"{failure.value!r} {store!r}"


async def test_a_damaged_entry_is_named_and_spoils_no_other(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    await store.set("token", "sk-secret")
    await store.set("other", "fine")

    def flip(content: dict[str, object]) -> None:
        entries = content["entries"]
        assert isinstance(entries, dict)
        raw = bytearray(base64.b64decode(entries["token"]))
        raw[-1] ^= 1
        entries["token"] = base64.b64encode(raw).decode()

    edit(tmp_path, flip)
    await expect_unavailable(tmp_path, "token", "damaged", "mira secret set token")
    assert await store.get("other") == "fine"
    await store.set("token", "sk-new")
    assert await store.get("token") == "sk-new"


@pytest.mark.parametrize("sealed", ["", "AAAA", "not base64!", "é"])
async def test_an_entry_that_was_never_sealed_is_damaged_not_a_crash(
    tmp_path: Path, sealed: str
) -> None:
    await open_store(tmp_path).set("token", "sk-secret")
    edit(tmp_path, lambda content: content.update(entries={"token": sealed}))
    await expect_unavailable(tmp_path, "token", "damaged")


async def test_an_entry_moved_to_another_name_is_refused(tmp_path: Path) -> None:
    await open_store(tmp_path).set("token", "sk-secret")

    def rename(content: dict[str, object]) -> None:
        entries = content["entries"]
        assert isinstance(entries, dict)
        entries["admin"] = entries.pop("token")

    edit(tmp_path, rename)
    await expect_unavailable(tmp_path, "damaged", name="admin")


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 1}'])
async def test_a_file_that_is_no_store_is_said_to_be_damaged_and_is_not_overwritten(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "secrets.json").write_bytes(content)
    await expect_unavailable(tmp_path, "damaged", "backup")
    with pytest.raises(SecretsUnavailable):
        await open_store(tmp_path).set("token", "sk-secret")
    assert (tmp_path / "secrets.json").read_bytes() == content


async def test_a_file_of_a_newer_format_asks_for_a_newer_program(tmp_path: Path) -> None:
    await open_store(tmp_path).set("token", "sk-secret")
    edit(tmp_path, lambda content: content.update(format=2))
    await expect_unavailable(tmp_path, "newer")


async def test_a_wrong_master_key_is_told_from_damage_and_stops_writing_too(
    tmp_path: Path,
) -> None:
    await open_store(tmp_path).set("token", "sk-secret")
    (tmp_path / "master.key").write_bytes(base64.b64encode(bytes(32)))
    await expect_unavailable(tmp_path, "master key", "not the one")
    with pytest.raises(SecretsUnavailable):
        await open_store(tmp_path).set("other", "x")


async def test_a_missing_master_key_is_said_to_be_missing(tmp_path: Path) -> None:
    await open_store(tmp_path).set("token", "sk-secret")
    (tmp_path / "master.key").unlink()
    await expect_unavailable(tmp_path, "missing", "master.key")


@pytest.mark.parametrize("text", [b"", b"short", b"A" * 200, b"\x00\xff"])
async def test_a_master_key_that_is_no_key_is_said_to_be_damaged(
    tmp_path: Path, text: bytes
) -> None:
    await open_store(tmp_path).set("token", "sk-secret")
    (tmp_path / "master.key").write_bytes(text)
    await expect_unavailable(tmp_path, "master key", "damaged")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
async def test_a_master_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    await open_store(tmp_path).set("token", "sk-secret")
    (tmp_path / "master.key").chmod(mode)
    await expect_unavailable(tmp_path, "Others may read", "chmod 600")


async def test_a_master_key_outlives_a_store_that_was_moved_away(tmp_path: Path) -> None:
    await open_store(tmp_path).set("token", "old")
    moved = (tmp_path / "secrets.json").rename(tmp_path / "moved.json")
    await open_store(tmp_path).set("token", "new")
    moved.replace(tmp_path / "secrets.json")
    assert await open_store(tmp_path).get("token") == "old"


async def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    script = """
import sys, anyio
from pathlib import Path
from mira.clock import SystemClock
from mira.secrets.local import LocalSecrets
async def main():
    store = LocalSecrets(Path(sys.argv[1]), clock=SystemClock(), keyring=lambda: None)
    for n in range(8):
        await store.set(f"{sys.argv[2]}{n}", sys.argv[2] * 10)
anyio.run(main)
"""
    async with anyio.create_task_group() as group:
        for writer in ("a", "b"):
            group.start_soon(
                anyio.run_process, [sys.executable, "-c", script, str(tmp_path), writer]
            )
    store = open_store(tmp_path)
    assert len(await store.names()) == 16
    assert await store.get("a7") == "a" * 10
    assert await store.get("b6") == "b" * 10


async def test_tasks_of_one_process_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(store.set, f"n{number}", str(number))
    assert len(await store.names()) == 20


@pytest.mark.parametrize("step", ["replace", "fsync"])
async def test_a_crash_before_the_rename_leaves_the_earlier_store_whole(
    tmp_path: Path, step: str
) -> None:
    await open_store(tmp_path).set("token", "before")
    script = """
import os, pathlib, signal, sys, anyio
from mira.clock import SystemClock
from mira.secrets.local import LocalSecrets
def crash(*args):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "replace":
    pathlib.Path.replace = crash
else:
    os.fsync = crash
store = LocalSecrets(pathlib.Path(sys.argv[1]), clock=SystemClock(), keyring=lambda: None)
anyio.run(store.set, "token", "after")
"""
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path), step], check=False)
    assert ended.returncode == -9
    assert (tmp_path / "secrets.json.new").exists()
    store = open_store(tmp_path)
    assert await store.get("token") == "before"
    await store.set("token", "again")
    assert await store.get("token") == "again"
    assert not (tmp_path / "secrets.json.new").exists()


async def test_a_lock_that_is_never_given_back_is_reported_in_bounded_time(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    store = LocalSecrets(tmp_path, clock=clock, keyring=lambda: None)
    with (tmp_path / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        failures: list[MiraError] = []

        async def write() -> None:
            try:
                await store.set("token", "sk-secret")
            except MiraError as error:
                failures.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            while not failures:
                await anyio.wait_all_tasks_blocked()
                clock.advance(5)
    assert isinstance(failures[0], SecretsUnavailable)
    assert "locked" in failures[0].detail


class Keyring:
    """A keyring as the operating system has one: it keeps text, may be locked, may be gone."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise RuntimeError("the collection is locked")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise RuntimeError("the collection is locked")
        self.kept[service, username] = password


async def test_the_master_key_is_in_the_keyring_where_there_is_one(tmp_path: Path) -> None:
    keyring = Keyring()

    def reopen() -> LocalSecrets:
        return LocalSecrets(tmp_path, clock=SystemClock(), keyring=lambda: KeyringKeys(keyring))

    await reopen().set("token", "sk-secret")
    assert not (tmp_path / "master.key").exists()
    assert len(keyring.kept) == 1
    assert await reopen().get("token") == "sk-secret"

    keyring.locked = True
    with pytest.raises(SecretsUnavailable, match="Unlock it"):
        await reopen().get("token")
    keyring.locked = False
    # Without its keyring the store does not fall back to a new key in a file.
    with pytest.raises(SecretsUnavailable, match="in the system's keyring"):
        await open_store(tmp_path).set("other", "x")
    keyring.kept.clear()
    with pytest.raises(SecretsUnavailable, match="missing"):
        await reopen().get("token")


async def test_a_store_with_its_key_in_a_file_stays_with_it_when_a_keyring_appears(
    tmp_path: Path,
) -> None:
    await open_store(tmp_path).set("token", "sk-secret")
    keyring = Keyring()
    store = LocalSecrets(tmp_path, clock=SystemClock(), keyring=lambda: KeyringKeys(keyring))
    assert await store.get("token") == "sk-secret"
    await store.set("other", "x")
    assert keyring.kept == {}
