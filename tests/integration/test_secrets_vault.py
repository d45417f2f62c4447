"""The key store in Vault, on a real OpenBao server."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import anyio
import pytest
from pydantic import SecretStr

from mira.clock import Clock, ManualClock, SystemClock
from mira.errors import SecretsUnavailable, StartupRefused, ValidationFailed
from mira.secrets import open_secrets
from mira.secrets.local import LocalSecrets
from mira.secrets.vault import VaultSecrets
from mira.settings import Settings
from tests.openbao import OpenBao, running_openbao

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

LIFE = 3600
#: Longer than any token of LIFE needs to be renewed, shorter than it lives.
DUE = LIFE * 0.7


@pytest.fixture(scope="module")
def bao() -> Iterator[OpenBao]:
    with running_openbao() as server:
        yield server


@asynccontextmanager
async def opened(
    bao: OpenBao,
    role_id: str,
    secret_id: str,
    *,
    clock: Clock | None = None,
    address: str | None = None,
    mount: str = "secret",
    ca: Path | None = None,
    timeout: tuple[float, float] = (3.0, 8.0),
) -> AsyncIterator[VaultSecrets]:
    store = VaultSecrets(
        address or bao.address,
        role_id=SecretStr(role_id),
        secret_id=SecretStr(secret_id),
        mount=mount,
        ca=ca,
        clock=clock or SystemClock(),
        timeout=timeout,
    )
    try:
        yield store
    finally:
        await store.aclose()


async def refusal(store: VaultSecrets, *words: str) -> str:
    """Reading fails; the message has `words` and none of the credentials."""
    with pytest.raises(SecretsUnavailable) as failure:
        await store.get("token")
    assert failure.value.__cause__ is None
    for word in words:
        assert word in failure.value.detail
    return failure.value.detail


async def test_what_was_set_is_read_listed_replaced_and_destroyed(bao: OpenBao) -> None:
    async with opened(bao, *bao.role("everyday")) as store:
        assert await store.get("token") is None
        assert await store.names() == ()
        assert await store.delete("token") is False
        await store.set("token", "sk-\x00 ü \U0001f600")
        await store.set("other.key", "x")
        assert await store.get("token") == "sk-\x00 ü \U0001f600"
        await store.set("token", "second")
        assert await store.get("token") == "second"
        assert await store.names() == ("other.key", "token")
        assert await store.delete("token") is True
        assert await store.get("token") is None
        assert await store.names() == ("other.key",)
        assert await store.delete("other.key") is True
    # Destroyed, not hidden: no earlier version can be brought back.
    kept = bao.admin.read("secret/metadata/mira/token")
    assert kept is None


async def test_a_name_outside_the_rule_never_reaches_the_server(bao: OpenBao) -> None:
    async with opened(bao, "no role", "no secret") as store:
        for call in (store.get("../../sys/seal"), store.delete("a/b"), store.set("A", "x")):
            with pytest.raises(ValidationFailed):
                await call


async def test_a_secret_that_was_deleted_by_hand_is_absent_and_can_be_set_again(
    bao: OpenBao,
) -> None:
    async with opened(bao, *bao.role("hand")) as store:
        await store.set("token", "x")
        bao.admin.secrets.kv.v2.delete_latest_version_of_secret("mira/token")
        assert await store.get("token") is None
        await store.set("token", "y")
        assert await store.get("token") == "y"
        await store.delete("token")


async def test_a_secret_of_another_shape_is_refused_and_not_shown(bao: OpenBao) -> None:
    async with opened(bao, *bao.role("shape")) as store:
        for data in ({"password": "sk-shown"}, {"value": {"deep": "sk-shown"}}):
            bao.admin.secrets.kv.v2.create_or_update_secret("mira/token", data)
            detail = await refusal(store, "secret/mira/token", "Set it again")
            assert "sk-shown" not in detail
        await store.set("token", "x")
        assert await store.get("token") == "x"
        await store.delete("token")


async def test_a_sealed_server_is_said_to_be_sealed_and_works_once_unsealed(bao: OpenBao) -> None:
    async with (
        opened(bao, *bao.role("sealed")) as before,
        opened(bao, *bao.role("sealed2")) as fresh,
    ):
        assert await before.get("token") is None
        bao.seal()
        try:
            await refusal(before, "sealed", "unseal")
            await refusal(fresh, "sealed", "unseal")
        finally:
            bao.unseal()
        assert await before.get("token") is None
        assert await fresh.get("token") is None


async def test_a_wrong_secret_id_is_refused_without_repeating_it(bao: OpenBao) -> None:
    role_id, secret_id = bao.role("wrong")
    for pair in ((role_id, "sk-wrong-one"), ("sk-wrong-two", secret_id)):
        async with opened(bao, *pair) as store:
            detail = await refusal(store, "refuses the login", "MIRA_VAULT_SECRET_ID")
            assert "sk-wrong" not in f"{detail} {store!r}"
            assert secret_id not in f"{detail} {store!r}"


async def test_a_policy_that_allows_too_little_is_said_to_deny(bao: OpenBao) -> None:
    async with opened(bao, *bao.role("denied", token_policies=["default"])) as store:
        await refusal(store, "denies access", "policy")
        # One login for one answer: a denial is no reason to log in again and again.
        assert len(bao.tokens("denied")) == 1


async def test_a_mount_that_is_not_there_is_told_from_a_secret_that_is_not_there(
    bao: OpenBao,
) -> None:
    bao.admin.sys.create_or_update_policy("all", 'path "*" { capabilities = ["read", "list"] }')
    async with opened(bao, *bao.role("all", token_policies=["all"]), mount="nowhere") as store:
        await refusal(store, "no such place", "MIRA_VAULT_MOUNT")


async def test_one_login_serves_many_calls_and_is_given_back_at_the_end(bao: OpenBao) -> None:
    async with opened(bao, *bao.role("once")) as store:
        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(store.get, f"n{number}")
        assert len(bao.tokens("once")) == 1
    assert bao.tokens("once") == []


async def test_a_token_is_renewed_on_use_before_it_runs_out(bao: OpenBao) -> None:
    clock = ManualClock()
    role = bao.role("renewed", token_ttl=LIFE, token_max_ttl=10 * LIFE)
    async with opened(bao, *role, clock=clock) as store:
        await store.get("token")
        clock.advance(LIFE / 2)
        await store.get("token")
        (token,) = bao.tokens("renewed")
        assert token.get("last_renewal_time") is None
        clock.advance(DUE - LIFE / 2)
        await store.get("token")
        (token,) = bao.tokens("renewed")
        assert token["last_renewal_time"] >= token["creation_time"]


async def test_a_token_at_the_end_of_its_longest_life_is_replaced_by_a_new_login(
    bao: OpenBao,
) -> None:
    clock = ManualClock()
    role_id, secret_id = bao.role("oldest", token_ttl=LIFE, token_max_ttl=LIFE)
    async with opened(bao, role_id, secret_id, clock=clock) as store:
        await store.get("token")
        (first,) = bao.tokens("oldest")
        # From now on a renewal gives at most ten seconds, as for a token close to its end.
        bao.admin.auth.approle.create_or_update_approle("oldest", token_ttl=5, token_max_ttl=10)
        clock.advance(DUE)
        await store.get("token")
        assert {token["accessor"] for token in bao.tokens("oldest")} > {first["accessor"]}


async def test_a_token_that_ran_out_unnoticed_costs_a_login_and_nothing_else(
    bao: OpenBao,
) -> None:
    # The store's clock stands still: it believes in the token while the server forgets it.
    role = bao.role("short", token_ttl=1, token_max_ttl=1)
    async with opened(bao, *role, clock=ManualClock()) as store:
        await store.set("token", "kept")
        wait_until(lambda: bao.tokens("short") == [])
        assert await store.get("token") == "kept"
        await store.delete("token")


async def test_a_token_that_cannot_be_renewed_is_replaced_when_it_is_due(bao: OpenBao) -> None:
    clock = ManualClock()
    role = bao.role("batch", token_ttl=LIFE, token_type="batch")
    async with opened(bao, *role, clock=clock) as store:
        await store.set("token", "kept")
        for _ in range(3):
            clock.advance(DUE)
            assert await store.get("token") == "kept"
        await store.delete("token")


async def test_a_revoked_token_is_replaced_unless_the_secret_id_is_used_up(bao: OpenBao) -> None:
    async with (
        opened(bao, *bao.role("revoked")) as store,
        opened(bao, *bao.role("used", secret_id_num_uses=1)) as limited,
    ):
        for either in (store, limited):
            assert await either.get("token") is None
        for role in ("revoked", "used"):
            for token in bao.tokens(role):
                bao.admin.auth.token.revoke_accessor(token["accessor"])
        assert await store.get("token") is None
        await refusal(limited, "refuses the login", "used up")


async def test_tending_renews_without_use_and_outlasts_a_server_that_is_away(
    bao: OpenBao,
) -> None:
    clock = ManualClock()
    role = bao.role("tended", token_ttl=LIFE, token_max_ttl=10 * LIFE, secret_id_num_uses=1)
    async with opened(bao, *role, clock=clock) as store, anyio.create_task_group() as group:
        group.start_soon(store.tend)
        await until_asleep(clock)
        (token,) = bao.tokens("tended")
        assert token.get("last_renewal_time") is None

        bao.seal()
        clock.advance(DUE)
        await until_asleep(clock)
        bao.unseal()
        clock.advance(20)
        await until_asleep(clock)
        (token,) = bao.tokens("tended")
        assert token["last_renewal_time"] is not None
        assert await store.get("token") is None
        group.cancel_scope.cancel()


async def test_a_server_that_went_away_and_came_back_is_used_again(bao: OpenBao) -> None:
    async with opened(bao, *bao.role("away")) as store:
        await store.set("token", "kept")
        bao.end()
        try:
            await refusal(store, "cannot be reached", "MIRA_VAULT_ADDR")
        finally:
            bao.start()
        await refusal(store, "sealed")
        bao.unseal()
        assert await store.get("token") == "kept"
        await store.delete("token")


async def test_a_server_that_never_answers_is_given_up_in_bounded_time(bao: OpenBao) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with opened(bao, "role", "secret", address=address, timeout=(0.2, 0.2)) as store:
            await refusal(store, "does not answer in time")


@pytest.mark.parametrize("status", [200, 404, 302, 500])
async def test_a_server_that_is_not_vault_is_told_apart(bao: OpenBao, status: int) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", "6")
            self.end_headers()
            self.wfile.write(b"<html>")

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}"
            async with opened(bao, "role", "secret", address=address) as store:
                await refusal(store, "Vault at")
        finally:
            server.shutdown()
            thread.join()


async def test_a_certificate_is_checked_against_the_authority_that_was_named(
    bao: OpenBao, tmp_path: Path
) -> None:
    role = bao.role("tls")
    async with opened(bao, *role, address=bao.tls_address, ca=bao.ca) as store:
        assert await store.get("token") is None
    async with opened(bao, *role, address=bao.tls_address) as store:
        await refusal(store, "not trusted", "MIRA_VAULT_CA")
    async with opened(bao, *role, address=bao.tls_address, ca=tmp_path / "no.pem") as store:
        await refusal(store, "MIRA_VAULT_CA")


@pytest.mark.parametrize("address", ["", "vault", "ftp://x", "http://", "http://[::1"])
async def test_an_address_that_is_none_is_refused_with_a_reason(bao: OpenBao, address: str) -> None:
    async with opened(bao, "role", "secret", address=address or " ") as store:
        await refusal(store, "MIRA_VAULT_ADDR")


async def test_the_environment_of_the_vault_tools_is_not_read(
    bao: OpenBao, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_TOKEN", bao.admin.token)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with opened(bao, *bao.role("environment")) as store:
        assert await store.get("token") is None
        assert len(bao.tokens("environment")) == 1


async def test_the_settings_choose_the_store(bao: OpenBao, tmp_path: Path) -> None:
    role_id, secret_id = bao.role("settings")
    local = open_secrets(Settings(home=tmp_path / "home"), SystemClock())
    assert isinstance(local, LocalSecrets)
    await local.set("token", "x")
    assert (tmp_path / "home" / "keys").stat().st_mode & 0o777 == 0o700
    chosen = open_secrets(
        Settings(
            home=tmp_path / "home",
            vault_addr=bao.address,
            vault_role_id=SecretStr(role_id),
            vault_secret_id=SecretStr(secret_id),
        ),
        SystemClock(),
    )
    assert await chosen.get("token") is None
    await chosen.aclose()
    for secret in (None, SecretStr("")):
        half = Settings(
            home=tmp_path,
            vault_addr=bao.address,
            vault_role_id=SecretStr(role_id),
            vault_secret_id=secret,
        )
        with pytest.raises(StartupRefused) as refused:
            open_secrets(half, SystemClock())
        assert "MIRA_VAULT_SECRET_ID" in refused.value.remedy


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for something in another process; the test's time-out bounds it."""
    while not condition():
        time.sleep(0.05)


async def until_asleep(clock: ManualClock) -> None:
    """Wait for a task whose work is in a thread to go back to sleep on `clock`."""
    while not clock.sleeping:
        await anyio.sleep(0.005)
