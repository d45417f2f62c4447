"""What refuses the start, and the remedy it names."""

from __future__ import annotations

import dataclasses
import errno
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from mira.errors import StartupRefused
from mira.services import preflight
from mira.services.listeners import listener
from mira.services.preflight import Facts, gather, refusals
from mira.settings import Settings

GOOD = Facts(
    python=(3, 11),
    system="Linux",
    home=Path("/var/lib/mira"),
    first_start=True,
    free_bytes=10 * 10**9,
    not_writable=None,
    host="127.0.0.1",
    port=1993,
    port_error=0,
    port_holder=None,
    embedded=True,
    setpriv=True,
)


def only(**changed: Any) -> StartupRefused:
    (refusal,) = refusals(dataclasses.replace(GOOD, **changed))
    return refusal


def test_a_machine_that_has_everything_is_accepted() -> None:
    assert refusals(GOOD) == ()


def test_an_old_python_is_refused_and_the_needed_one_named() -> None:
    refusal = only(python=(3, 10))
    assert "3.10" in refusal.detail
    assert "3.11" in refusal.remedy


@pytest.mark.parametrize(
    ("first_start", "free", "refused"),
    [
        (True, 10 * 10**9, False),
        (True, 10 * 10**9 - 1, True),
        (False, 2 * 10**9, False),
        (False, 2 * 10**9 - 1, True),
    ],
)
def test_the_first_start_needs_ten_gigabytes_and_later_ones_two(
    first_start: bool, free: int, refused: bool
) -> None:
    found = refusals(dataclasses.replace(GOOD, first_start=first_start, free_bytes=free))
    assert bool(found) == refused
    if refused:
        assert "GB are free" in found[0].detail
        assert "/var/lib/mira" in found[0].detail
        assert "MIRA_HOME" in found[0].remedy


def test_a_taken_port_is_refused_with_its_holder_and_another_port() -> None:
    refusal = only(port_error=errno.EADDRINUSE, port_holder="nginx (process 12)")
    assert refusal.detail == "Port 1993 is in use by nginx (process 12)."
    assert "MIRA_PORT=1994" in refusal.remedy
    assert only(port_error=errno.EADDRINUSE).detail == "Port 1993 is in use."
    assert "MIRA_PORT=65534" in only(port_error=errno.EADDRINUSE, port=65535).remedy


def test_a_privileged_port_and_a_foreign_address_have_remedies_of_their_own() -> None:
    assert "1024" in only(port_error=errno.EACCES, port=80).remedy
    assert "MIRA_HOST" in only(port_error=errno.EADDRNOTAVAIL, host="8.8.8.8").remedy


def test_a_home_that_cannot_be_written_is_refused_by_the_directory_that_is_closed() -> None:
    refusal = only(not_writable=Path("/var/lib"))
    assert refusal.detail.startswith("/var/lib cannot be written")
    assert "MIRA_HOME" in refusal.remedy


def test_only_servers_of_our_own_need_linux_and_setpriv() -> None:
    assert "MIRA_DATABASE_URL" in only(system="Darwin").remedy
    assert "util-linux" in only(setpriv=False).remedy
    elsewhere = dataclasses.replace(GOOD, embedded=False, system="Darwin", setpriv=False)
    assert refusals(elsewhere) == ()


def test_every_reason_is_told_the_gravest_first() -> None:
    found = refusals(
        dataclasses.replace(GOOD, python=(3, 9), free_bytes=0, port_error=errno.EADDRINUSE)
    )
    assert [word in refusal.detail for word, refusal in zip(
        ("Python", "free", "Port"), found, strict=True
    )] == [True] * 3  # fmt: skip


def test_a_real_listener_is_found_out_by_name_and_process(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = Settings(home=tmp_path / "home", port=port)
        facts = gather(settings)
        assert facts.port_error == errno.EADDRINUSE
        assert facts.port_holder is not None
        assert f"(process {os.getpid()})" in facts.port_holder
        with pytest.raises(StartupRefused, match=f"Port {port} is in use by"):
            preflight.check(settings)
    assert gather(settings).port_error == 0
    assert listener(port) is None


def test_a_port_taken_over_ipv6_is_found_out_too(tmp_path: Path) -> None:
    try:
        taken = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with taken:
        port = taken.getsockname()[1]
        facts = gather(Settings(home=tmp_path, host="::1", port=port))
        assert facts.port_error == errno.EADDRINUSE
        assert f"(process {os.getpid()})" in (facts.port_holder or "")


def test_an_address_of_no_machine_is_told_from_a_taken_port(tmp_path: Path) -> None:
    for host in ("192.0.2.1", "not a host"):
        facts = gather(Settings(home=tmp_path, host=host, port=0))
        assert facts.port_error == errno.EADDRNOTAVAIL


def test_looking_changes_nothing_and_a_home_that_was_locked_once_is_no_first_start(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path / "a" / "b", port=0)
    facts = gather(settings)
    assert facts.first_start
    assert facts.free_bytes > 0
    assert facts.not_writable is None
    assert list(tmp_path.iterdir()) == []
    settings.home.mkdir(parents=True)
    (settings.home / "lock").touch()
    assert not gather(settings).first_start
