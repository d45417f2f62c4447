"""`mira memory edit`, `annotate` and `merge-entities` through a running server."""

from __future__ import annotations

import pytest

from tests.integration.test_cli_memory import Cli, cli

__all__ = ["cli"]  # the fixture


def test_words_and_dates_are_changed_and_the_change_is_undone(cli: Cli) -> None:
    name = cli.add("Ada keeps bees", "--expires-at", "2027-01-01T00:00:00Z")
    done = cli("edit", name, "--text", f"Ada keeps goats {cli.word}", "--clear", "expires-at")
    assert (done.code, f"Changed {name}: Ada keeps goats" in done.out) == (0, True)
    moved = cli.json("edit", name, "--happens-at", "2026-12-24T18:00:00+01:00")
    assert moved["happens_at"] == "2026-12-24T17:00:00Z"
    assert (moved["expires_at"], moved["text"]) == (None, f"Ada keeps goats {cli.word}")
    assert cli("undo", name).code == 0
    assert cli.json("show", name)["memory"]["happens_at"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Say what is to change"),
        (("--happens-at", "2026-12-24", "--clear", "happens-at"), "both given and cleared"),
    ],
)
def test_a_change_that_says_nothing_or_two_things_is_refused(
    cli: Cli, arguments: tuple[str, ...], words: str
) -> None:
    name = cli.add("Ada keeps bees")
    done = cli("edit", name, *arguments)
    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert cli.json("show", name)["memory"]["version"] == 1


def test_a_remark_stands_beside_a_memory(cli: Cli) -> None:
    name = cli.add("Ada keeps bees")
    assert cli("annotate", name, "Two hives only.").code == 0
    assert "Two hives only." in cli("show", name).out
    assert "There is no" in cli("annotate", "mem_00000000", "Nothing.").err


def test_one_entity_stands_for_another(cli: Cli) -> None:
    names = (f"Ada {cli.word}", f"Adele {cli.word}")
    for one in names:
        cli.add(f"{one} keeps bees", "--about", f"{one}:PERSON")
    found = {one["name"]: one["id"] for one in cli.json("entities", cli.word)["entities"]}
    done = cli("merge-entities", found[names[0]], found[names[1]])
    assert (done.code, "now stands for 1 more" in done.out) == (0, True)
    (left,) = cli.json("entities", cli.word)["entities"]
    assert (left["id"], left["memories"]) == (found[names[0]], 2)
    assert "at least one other" in cli("merge-entities", found[names[0]]).err
