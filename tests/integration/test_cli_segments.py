"""`mira segments` and what `mira doctor` says of summaries, through a running server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mira.cli.main import run
from mira.ids import SystemIds
from tests.conftest import Server, uid
from tests.support.command import Done, mira
from tests.support.segments import PRECIS, SAID, SCRIPT, TITLE, TRACE, summarised
from tests.support.web import http


class Cli:
    """The command line of one server's owner, whose conversation other tests have used too."""

    def __init__(self, client: httpx2.Client, capsys: pytest.CaptureFixture[str]) -> None:
        self.client = client
        self.capsys = capsys

    def __call__(self, *arguments: str) -> Done:
        self.capsys.readouterr()
        code = run(list(arguments))
        told = self.capsys.readouterr()
        return Done(code, told.out, told.err)

    def json(self, *arguments: str) -> Any:
        done = self("segments", *arguments, "--json")
        assert done.code == 0, done
        return json.loads(done.out)

    def say(self, words: str = SAID) -> None:
        self.client.post("/v1/chat", json={"message": words}).raise_for_status()


@pytest.fixture
def cli(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cli]:
    """No segment is open when a test begins."""
    server.double.script(SCRIPT)
    monkeypatch.setenv("MIRA_HOME", str(server.home))
    with http(server.url, server.process.admin_token) as client:
        client.post("/v1/segments/active/collapse")
        yield Cli(client, capsys)


def test_a_segment_is_listed_ended_and_shown_with_its_summary(cli: Cli) -> None:
    cli.say()
    newest = cli.json("list", "--limit", "1")["segments"][0]
    assert newest["state"] == "active"
    done = cli("segments", "collapse")
    assert (done.code, "Ended." in done.out) == (0, True)
    summarised(cli.client, newest["id"])
    row = next(r for r in cli("segments", "list").out.splitlines() if r.startswith(newest["id"]))
    assert TITLE in row
    assert "%" in row
    for arguments in ((newest["id"],), ()):
        shown = cli("segments", "show", *arguments).out
        assert shown.startswith(f"{TITLE}\n")
        for words in (TRACE, PRECIS, "drift", "ended", "keeper"):
            assert words in shown
    assert cli.json("show")["summary"]["trace"] == TRACE


def test_a_pause_is_begun_and_ended(cli: Cli) -> None:
    cli.say()
    assert "no silence ends" in cli("segments", "pause").out
    assert cli.json("show")["state"] == "paused"
    assert "paused" in cli("segments", "list", "--limit", "1").out
    assert "silence counts from now" in cli("segments", "resume").out
    assert cli.json("show")["state"] == "active"
    assert cli.json("pause")["state"] == "paused"


@pytest.mark.parametrize("act", ["pause", "resume", "collapse"])
def test_where_none_is_open_that_is_said(cli: Cli, act: str) -> None:
    done = cli("segments", act)
    assert (done.code, done.out) == (1, "")
    assert "There is no open segment" in done.err


def test_as_many_are_listed_as_are_asked_for(cli: Cli) -> None:
    for n in range(3):
        cli.say(f"{SAID} {n}")
        cli("segments", "collapse")

    def listed(limit: str) -> list[str]:
        """By their ids: the summary of one may come between two lists."""
        return [one["id"] for one in cli.json("list", "--limit", limit)["segments"]]

    two = listed("2")
    assert len(two) == 2
    assert listed("500")[:2] == two


def test_what_is_no_segment_is_said_not_to_be(cli: Cli) -> None:
    for name in (str(uid(1)), "../keys"):
        done = cli("segments", "show", name)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("mira: There is no")


def test_a_title_cannot_command_the_terminal(server: Server, cli: Cli) -> None:
    cli.say()
    ended = cli.json("collapse")["id"]
    summarised(cli.client, ended)
    server.rows("update segments set title = $2 where id = $1", ended, "Clear \x1b[2J the screen")
    for command in ("list", "show"):
        told = cli("segments", command).out
        assert "the screen" in told
        assert "\x1b" not in told


def test_without_a_server_it_is_said_where_one_comes_from(tmp_path: Path) -> None:
    done = mira({"MIRA_HOME": str(tmp_path)}, "segments", "collapse")
    assert (done.code, "mira serve" in done.err) == (3, True)


def test_doctor_shows_drift_and_names_segments_that_wait_too_long_for_their_summary(
    server: Server, cli: Cli
) -> None:
    cli.say()
    ended = cli.json("collapse")["id"]
    summarised(cli.client, ended)
    server.rows("update summaries set drift = 1 where segment_id = $1", ended)
    report = json.loads(cli("doctor", "--json").out)
    assert report["summaries"]["worst"] == ended
    stuck = SystemIds().new()
    server.rows(
        "insert into segments (id, user_id, state, opened_at, last_message_at, collapsing_at) "
        "select $1, user_id, 'collapsing', opened_at - interval '2 days', "
        "opened_at - interval '2 days', now() - interval '26 hours' from segments where id = $2",
        stuck, ended,
    )  # fmt: skip
    try:
        done = cli("doctor")
    finally:
        server.rows("delete from segments where id = $1", stuck)
    assert done.code == 1
    assert f"worst 100% (mira segments show {ended})" in done.out
    (fault,) = [line for line in done.out.splitlines() if str(stuck) in line]
    assert "has no summary yet" in fault
    assert "mira dead-letters list" in done.out


def test_a_summary_that_failed_is_shown_to_have_and_is_tried_again(
    server: Server, cli: Cli
) -> None:
    cli.say()
    ended = cli.json("collapse")["id"]
    summarised(cli.client, ended)
    stuck = SystemIds().new()
    server.rows(
        "insert into segments (id, user_id, state, opened_at, last_message_at, collapsing_at) "
        "select $1, user_id, 'collapsing', opened_at - interval '2 days', "
        "opened_at - interval '2 days', now() - interval '2 hours' from segments where id = $2",
        stuck, ended,
    )  # fmt: skip
    server.rows(
        "insert into outbox (user_id, kind, address, lane, key, payload, due_at, created_at) "
        "select user_id, 'memory_keeper', user_id::text, 'summaries/' || id, id::text, "
        "jsonb_build_object('type', 'SummariseSegment', 'segment_id', id, 'failed', 3), "
        "now() + interval '20 hours', now() from segments where id = $1",
        stuck,
    )
    shown = cli("segments", "show", str(stuck)).out
    assert "a model failed at it 3 times" in shown
    assert f"mira segments retry {stuck}" in shown
    row = next(r for r in cli("segments", "list").out.splitlines() if r.startswith(str(stuck)))
    assert "summary failed" in row
    done = cli("segments", "retry", str(stuck))
    assert (done.code, f"mira segments show {stuck}" in done.out) == (0, True)
    assert summarised(cli.client, str(stuck))["summary"] is not None
    done = cli("segments", "retry", str(stuck))
    assert (done.code, done.err) == (1, "mira: The segment has its summary.\n")
