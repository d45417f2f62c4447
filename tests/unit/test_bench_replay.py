"""The parts of the replay: when turns are due, what is asked, and what counts as wrong."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.replay_checks import broken_chain, calls_of_turns, dear, late, too_long
from bench.replay_clock import ReplayClock
from bench.replay_lines import answered, lines, told
from bench.replay_local import weakness
from bench.replay_run import Turn
from bench.replay_summaries import UNTRUE, corrected, doubts, summary
from mira.memory.lived.sentences import sentences
from mira.store.turn_account import TurnAccount
from tests.support.beam import write_chat

NOON = datetime(2025, 3, 1, 12, 0, tzinfo=UTC)


def turns(count: int, begin: int) -> list[tuple[str, str]]:
    return [(f"I planted tree {n} of the alley", "Good.") for n in range(begin, begin + count)]


def moments(tmp_path: Path, *batches: tuple[str, int]) -> list[datetime]:
    [chat] = write_chat(tmp_path, [(day, turns(count, 0)) for day, count in batches], {})
    return [one.at for one in chat.exchanges]


def test_turns_stand_eight_a_day_with_a_gap_of_hours_after_every_fourth(tmp_path: Path) -> None:
    at = moments(tmp_path, ("March-01-2025", 20))
    gaps = [later - earlier for earlier, later in pairwise(at)]
    assert [number for number, gap in enumerate(gaps, 1) if gap > timedelta(hours=2)] == [
        4, 8, 12, 16,
    ]  # fmt: skip
    assert max(Counter(moment.date() for moment in at).values()) == 8
    assert all(timedelta() < gap for gap in gaps)


def test_turns_of_a_batch_are_spread_evenly_over_the_days_until_the_next(tmp_path: Path) -> None:
    at = moments(tmp_path, ("March-01-2025", 24), ("March-31-2025", 1))
    days = list(dict.fromkeys(moment.day for moment in at))
    assert days == [1, 11, 21, 31]


def test_a_batch_with_more_turns_than_its_days_hold_goes_on_and_time_never_turns_back(
    tmp_path: Path,
) -> None:
    at = moments(tmp_path, ("March-01-2025", 24), ("March-02-2025", 8))
    assert at == sorted(at)
    assert max(Counter(moment.date() for moment in at).values()) == 8


def test_a_question_becomes_a_fragment_of_the_words_that_say_most(tmp_path: Path) -> None:
    said = [("I met Hedwig at the lake, and she sold me a red kayak for 300 euros.", "Lovely.")]
    question = "Can you tell me how much I paid Hedwig for the red kayak at the lake?"
    [chat] = write_chat(
        tmp_path, [("March-01-2025", said)], {"x": [{"question": question, "source_chat_ids": [0]}]}
    )
    [probe] = chat.probes
    assert 3 <= len(probe.words.split()) <= 6
    assert {"hedwig", "kayak"} <= set(probe.words.split())
    assert probe.evidence == ("0",)


def test_the_clock_goes_forward_only_and_seconds_pass_as_usual() -> None:
    clock = ReplayClock()
    clock.start(NOON)
    clock.go_to(NOON + timedelta(days=3))
    clock.go_to(NOON)
    assert NOON + timedelta(days=3) <= clock.now() < NOON + timedelta(days=3, minutes=1)
    before = clock.monotonic()
    clock.go_to(NOON + timedelta(days=30))
    assert clock.monotonic() - before < 60


# The model by rule.


def data(*said: tuple[str, str]) -> str:
    return "\n".join(
        f'<line from="{who}" at="Saturday 2025-03-01 12:00">{text}</line>' for who, text in said
    )


TALK = data(
    ("user", "I want to plant an alley of lime trees this week. Can you help?"),
    ("you", "Certainly! Lime trees need deep soil and eight metres between them."),
    ("user", "I bought forty trees from the nursery in Wels"),
)


def test_summaries_by_rule_say_what_was_said_and_nothing_that_fades() -> None:
    found = summary(TALK, untrue=False)
    assert len(sentences(found["trace"])) in (3, 4)
    assert len(sentences(found["precis"])) == 2
    assert "On 1 March 2025 I was asked about want plant alley lime trees" in found["trace"]
    assert "the user bought forty trees from the nursery in Wels" in found["trace"]
    assert "this week" not in found["trace"]
    assert answered(lines(TALK)) in found["trace"]
    assert len(told(lines(TALK))) == 2


def test_an_untrue_summary_is_known_as_such_when_it_is_doubted_and_corrected() -> None:
    untrue = summary(TALK, untrue=True)
    assert UNTRUE in untrue["trace"]
    asked = (
        f"<summary>\nTrace: {untrue['trace']}\nPrecis: {untrue['precis']}\n</summary>\n\n"
        f"Not covered: {UNTRUE}\nWhy: the conversation has no Quillon\n\n"
        f"Not covered: {sentences(untrue['precis'])[0]}\nWhy: nothing like it was said\n"
    )
    assert doubts(asked) == {"untrue": 1, "support": 1}
    assert UNTRUE not in corrected(asked)["trace"]


# What counts as wrong.


def test_a_summary_told_without_the_five_before_it_in_order_is_noticed() -> None:
    told_ = [f"Title {n}. I did {n}." for n in range(7)]

    def asked(*shown: str) -> str:
        return "<known>\n" + "".join(f"Saturday: {one}\n" for one in shown) + "</known>\n"

    good = ["", *(asked(*told_[max(0, n - 5) : n]) for n in range(1, 7))]
    assert broken_chain(good, told_) == []
    assert broken_chain([*good[:6], asked(*told_[2:6])], told_) != []
    assert broken_chain([*good[:6], asked(*reversed(told_[1:6]))], told_) != []
    assert broken_chain(["", *good[2:], ""], told_) != []
    assert broken_chain(good[:6], told_) != []


@pytest.mark.parametrize(
    "calls",
    [
        ("conversation",),
        ("subcortex", "subcortex", "conversation"),
        ("conversation", "subcortex"),
        ("subcortex", "conversation", "subcortex"),
        (),
    ],
)
def test_a_turn_that_calls_otherwise_than_once_before_the_answer_is_noticed(
    calls: tuple[str, ...],
) -> None:
    good = ("subcortex", "conversation", "consolidation")
    assert calls_of_turns([Turn(good, 10, None)]) == []
    assert len(calls_of_turns([Turn(good, 10, None), Turn(calls, 10, None)])) == 1


def test_a_collapse_may_cost_three_calls_one_for_each_more_part_or_chunk_and_three_repairs() -> (
    None
):
    usual = {"summary": 1, "extraction": 1, "links": 1}
    assert dear(usual) == ""
    assert dear(usual | {"extraction": 2, "summary_part": 2}) == ""
    assert dear(usual | {"links": 2}) != ""
    assert dear(usual | {"links": 2}, 9) == ""
    assert dear(usual | {"links": 2}, 8) != ""
    assert dear(usual | {"summary": 2}) != ""
    assert dear(usual | {"summary_again": 2, "summary_correction": 1}) == ""
    assert dear(usual | {"summary_again": 3, "summary_correction": 1}) != ""


def test_a_prompt_beyond_what_may_be_live_and_beside_it_is_noticed() -> None:
    assert too_long([9_000, 1_000 + 8_300], 1_000) == []
    assert too_long([9_000, 1_000 + 8_301], 1_000) == ["a prompt of 9301 tokens"]


def test_a_part_of_recall_that_was_late_is_counted() -> None:
    account = TurnAccount(effort="high", cuts=0, tokens_estimated=10, speculative=False)
    of_late = Turn((), 10, replace(account, failed={"replies": "unavailable", "names": "bug"}))
    assert late([Turn((), 10, account), of_late, of_late]) == {"replies": 2}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("", "empty"),
        ("it is so it is so it is so it is so it is so.", "turns in circles"),
        ("Where can I buy lime trees?", "says the question again"),
        ("Rivers carry sand towards the ocean.", "has no word of the question"),
        ("Lime trees are sold by the nursery of", "ends in mid-sentence"),
    ],
)
def test_weak_answers_are_told_apart_by_kind(said: str, kind: str) -> None:
    asked = "Where can I buy lime trees?"
    assert kind in weakness(asked, said)
    assert weakness(asked, "Lime trees are sold by nurseries, in pots or with bare roots.") == []
