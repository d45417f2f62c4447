"""What the page says of an account that has gaps: fallbacks, failures, things left out."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

RUN = """
async (account) => {
  const words = await import("/static/js/view/trace/words.js");
  const parts = await import("/static/js/view/trace/parts.js");
  return {
    reading: words.readingOf(account).join(" "),
    missing: parts.missing(account)?.textContent ?? "",
    prompt: parts.prompt(account).textContent,
    stages: words.stagesOf(account.timings),
  };
}
"""


def told(page: Page, **account: Any) -> dict[str, Any]:
    """The words on an account of which only this is known."""
    whole = {
        "effort": "high", "cuts": 0, "tokens_estimated": 1200, "speculative": False,
        "subcortex": None, "memories": [], "passages": [], "dropped": [], "failed": {},
        "recall_ms": {}, "sections": [], "missed": [], "timings": None,
    }  # fmt: skip
    result: dict[str, Any] = page.evaluate(RUN, whole | account)
    return result


@pytest.mark.parametrize(
    ("fallback", "said"),
    [("late", "was late"), ("failed", "failed"), ("unreadable", "nothing could be made of")],
)
def test_why_the_message_itself_was_searched_is_said(bare: Page, fallback: str, said: str) -> None:
    reading = {"complexity": "complex", "fallback": fallback, "phrases": [], "entities": []}
    words = told(bare, speculative=True, subcortex=reading)["reading"]
    assert words.startswith("The message itself was searched")
    assert said in words
    assert "complex" not in words
    assert "high effort" in words


def test_a_message_that_no_subcortex_has_read_is_said_not_to_have_been(bare: Page) -> None:
    assert "no Subcortex" in told(bare, speculative=True)["reading"]
    assert "Nothing was looked for." in told(bare)["reading"]


def test_what_was_found_and_not_shown_is_counted_by_its_reason(bare: Page) -> None:
    assert told(bare)["missing"] == ""
    why = ["ranked too low"] * 3 + ["in the prompt already"]
    words = told(bare, dropped=[{"id": str(n), "why": one} for n, one in enumerate(why)])["missing"]
    assert "4 more were found and not shown: 3 ranked too low, 1 stood in the prompt" in words
    one = told(bare, dropped=[{"id": "1", "why": "a reason of tomorrow"}])["missing"]
    assert "1 more was found and not shown: 1 a reason of tomorrow." in one


def test_a_part_of_recall_that_failed_is_named(bare: Page) -> None:
    failed = {"recall:history": "deadline_exceeded", "unknown:part": "bug"}
    words = told(bare, failed=failed)["missing"]
    assert "passages by the phrases took too long" in words
    assert "unknown:part failed (bug)" in words


def test_what_was_cut_left_out_or_not_in_the_cache_is_said_of_the_prompt(bare: Page) -> None:
    section = {"name": "TimeManager", "placement": "hud", "tokens": 0, "error": "no zone"}
    words = told(bare, cuts=2, missed=["Manifest", "continuity"], sections=[section])["prompt"]
    assert "1,200 tokens" in words
    assert "made smaller twice" in words
    assert "Manifest, the last turns of the segment before." in words
    assert "Time managerleft out: no zone" in words


def test_stages_take_what_lies_between_them_and_those_not_reached_are_left_out(bare: Page) -> None:
    timings = {"started_ms": 5, "recalled_ms": 105, "first_text_ms": 405, "streamed_ms": None}
    assert told(bare, timings=timings)["stages"] == [
        ["Waited for its turn", 5, 5],
        ["Recalled", 100, 105],
        ["Waited for the first word", 300, 405],
    ]


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (None, "not known"),
        (0, "cost nothing"),
        (0.00123, "about $0.0012 at list prices"),
        (1.5, "about $1.50 at list prices"),
    ],
)
def test_what_an_answer_cost_is_said_or_that_it_is_not_known(
    bare: Page, cost: float | None, words: str
) -> None:
    run = """async (cost) => (await import("/static/js/view/trace/words.js")).costOf(cost)"""
    assert words in bare.evaluate(run, cost)


def test_calls_of_tools_are_listed_with_what_came_of_them(bare: Page) -> None:
    run = """async (list) => {
      const { tools } = await import("/static/js/view/trace/parts.js");
      const rows = tools(list)?.querySelectorAll("tbody tr") ?? [];
      return Array.from(rows, (row) => Array.from(row.children, (cell) => cell.textContent));
    }"""
    call = {"call_id": "c", "name": "memory_tool", "message_id": "m", "is_error": False}
    calls = [
        {**call, "characters": 12_000},
        {**call, "is_error": True, "characters": 3},
        {**call, "message_id": None, "characters": None},
    ]
    assert bare.evaluate(run, calls) == [
        ["memory", "done", "12,000"], ["memory", "failed", "3"], ["memory", "broken off", ""],
    ]  # fmt: skip
    assert bare.evaluate(run, []) == []
