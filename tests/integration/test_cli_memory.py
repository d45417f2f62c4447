"""`mira memory` through a running server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from mira.cli.main import run
from mira.ids import SystemIds
from tests.conftest import Server
from tests.support.command import Done, mira
from tests.support.web import http


class Cli:
    """The command line of one server's owner. Memories of tests differ by a word of their own."""

    def __init__(self, client: httpx2.Client, capsys: pytest.CaptureFixture[str]) -> None:
        self.client = client
        self.capsys = capsys
        self.word = f"w{SystemIds().new().hex[-10:]}"

    def __call__(self, *arguments: str) -> Done:
        """Run it in this process: starting one for each command would take most of the time."""
        self.capsys.readouterr()
        code = run(["memory", *arguments])
        told = self.capsys.readouterr()
        return Done(code, told.out, told.err)

    def json(self, *arguments: str) -> Any:
        done = self(*arguments, "--json")
        assert done.code == 0, done
        return json.loads(done.out)

    def add(self, text: str, *arguments: str) -> str:
        """Remember something; its short id."""
        made = self.json("add", f"{text} {self.word}", *arguments)
        name: str = made["memory"]["short_id"]
        return name


@pytest.fixture
def cli(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cli]:
    monkeypatch.setenv("MIRA_HOME", str(server.home))
    with http(server.url, server.process.admin_token) as client:
        yield Cli(client, capsys)
        for status in ("active", "archived"):
            found = client.get("/v1/memories", params={"status": status, "limit": 100}).json()
            for memory in found["memories"]:
                client.delete(f"/v1/memories/{memory['id']}")


def test_a_fact_is_remembered_listed_shown_and_found(cli: Cli) -> None:
    name = cli.add("Ada keeps bees", "--about", "Ada:PERSON", "--happens-at", "2026-12-24T18:00:00")
    table = cli("list", "--order", "importance").out
    (row,) = [line for line in table.splitlines() if line.startswith(name)]
    assert cli.word in row
    shown = cli("show", name).out
    assert shown.startswith(f"Ada keeps bees {cli.word}\n")
    for words in ("importance", "true", "happens", "Ada (PERSON)", "source: user"):
        assert words in shown
    found = cli("search", cli.word).out
    assert name in found
    assert "lexical" in found
    again = cli("add", f"Ada keeps bees {cli.word}")
    assert "known already" in again.out
    assert "Ada" in cli("entities", "ada").out


def test_a_moment_without_an_offset_is_meant_on_this_machine_s_clock(server: Server) -> None:
    environment = {**server.process.environment(), "TZ": "Etc/GMT-3"}
    text = ("The train leaves from platform five", "--happens-at", "2026-12-24T18:00:00")
    done = mira(environment, "memory", "add", *text, "--json")
    memory = json.loads(done.out)["memory"]
    assert memory["happens_at"] == "2026-12-24T15:00:00Z"
    assert "2026-12-24 18:00" in mira(environment, "memory", "show", memory["short_id"]).out
    assert mira(environment, "memory", "delete", memory["short_id"], "--yes").code == 0


def test_a_change_is_read_in_the_history_and_undone(cli: Cli) -> None:
    name = cli.add("Ada keeps bees")
    before = cli.json("show", name)["memory"]["importance"]
    assert cli.json("confirm", name)["importance"] > before
    assert cli.json("archive", name)["status"] == "archived"
    assert name in cli("list", "--archived").out
    account = cli("history", name).out
    assert "Archived." in account
    undone = cli("undo", name)
    assert undone.code == 0
    assert "active again" in undone.out
    assert cli.json("show", name)["memory"]["status"] == "active"
    event = cli.json("history", name)["events"][-1]
    cli("undo", name, event["id"])
    assert cli.json("restore", name)["status"] == "active"


def test_memories_are_linked_and_merged(cli: Cli) -> None:
    one, two = cli.add("Ada keeps bees"), cli.add("The library has a flat roof")
    linked = cli("link", one, "contextualizes", two, "--reason", "same place")
    assert f"gives the context of {two}" in linked.out
    assert f"has its context in {one}" in cli("show", two).out
    merged = cli.json("merge", one, two, "--text", f"Bees live on the library's roof {cli.word}")
    assert merged["short_id"] in cli("show", one).out
    gone = cli("undo", one)
    assert gone.code == 0
    assert cli.json("show", one)["memory"]["status"] == "active"


def test_what_was_superseded_is_marked_in_a_search(cli: Cli) -> None:
    old, new = cli.add("Grace lives in Vienna"), cli.add("Grace moved house to Graz last spring")
    cli("link", new, "supersedes", old)
    found = {line.split()[-1] for line in cli("search", "Grace in Vienna").out.splitlines()}
    assert "(superseded)" in found
    assert "superseded" in cli("show", old).out


def test_the_importance_is_explained_term_by_term(cli: Cli) -> None:
    name = cli.add("Ada keeps bees")
    cli("add", f"Ada keeps bees {cli.word}")
    found = cli.json("explain", name)
    terms = {term["name"]: term for term in found["terms"]}
    assert terms["mentions"]["numbers"] == {"mentions": 1.0}
    assert terms["mentions"]["value"] == pytest.approx(0.08)
    parts = ("use", "links", "names", "mentions", "newness")
    assert terms["sum"]["value"] == pytest.approx(sum(terms[part]["value"] for part in parts))
    factors = terms["recency"]["value"] * terms["date"]["value"] * terms["expiry"]["value"]
    assert terms["weight"]["value"] == pytest.approx(terms["sum"]["value"] * factors)
    assert terms["importance"]["value"] == found["score"]
    table = cli("explain", name).out
    assert f"importance {found['score']:.3f}" in table
    for term in found["terms"]:
        assert f"{term['value']:.4f}" in table
    assert "mentions = 1" in table


def test_deleting_asks_for_a_word_more(cli: Cli) -> None:
    name = cli.add("Ada keeps bees")
    refused = cli("delete", name)
    assert (refused.code, "--yes" in refused.err) == (1, True)
    assert cli("delete", name, "--yes").code == 0
    assert cli("show", name).code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "mem_00000000"), "no such memory"),
        (("explain", "../keys"), "nothing at this address"),
        (("explain", "keys"), "no such memory"),
        (("undo", "mem_00000000"), "no such memory"),
        (("add", "short"), "text"),
        (("add", "a fact about a queen", "--about", "Ada:QUEEN"), "--about"),
        (("merge", "mem_00000000", "--text", "something or other"), "ids"),
        (("add", "a fact of the first year", "--happens-at", "0001-01-01"), "happens_at"),
        (("add", "a fact of the last year", "--expires-at", "9999-12-31T23:59:59"), "expires_at"),
        (("search", "the first year", "--as-of", "0001-01-01"), "as_of"),
    ],
)
def test_what_cannot_be_done_is_said(cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    done = cli(*arguments)
    assert done.code == 1
    assert said in done.err.lower()
    assert done.out == ""


@pytest.mark.parametrize("arguments", [("add", "no text \udcff here"), ("search", "\udcff")])
def test_what_is_typed_in_another_encoding_is_refused(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments)
    assert (done.code, "UTF-8" in done.err) == (2, True)


def test_what_others_have_written_cannot_command_the_terminal(cli: Cli) -> None:
    name = cli.add("Clear \x1b[2J the screen")
    for command in (("list",), ("show", name), ("history", name), ("search", cli.word)):
        assert "\x1b" not in cli(*command).out


def test_without_a_server_it_is_said_where_one_comes_from(tmp_path: Any) -> None:
    done = mira({"MIRA_HOME": str(tmp_path)}, "memory", "list")
    assert (done.code, "mira serve" in done.err) == (3, True)
