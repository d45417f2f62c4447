"""Logs say what happened and where, and never what somebody wrote."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog

from mira.errors import ActorFailed, NotFound
from mira.telemetry import bound, configure, logger


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    configure("info", json=True)
    yield stream
    structlog.reset_defaults()
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)


def test_fields_that_carry_words_or_secrets_are_withheld(stderr: io.StringIO) -> None:
    logger("test").info("something", text="dear diary", key="mira_secret", turn=3)
    line = json.loads(stderr.getvalue())
    assert line["text"] == line["key"] == "[withheld]"
    assert (line["event"], line["turn"], line["part"]) == ("something", 3, "test")


def test_a_logged_failure_tells_its_place_and_kind_but_not_its_words(
    stderr: io.StringIO,
) -> None:
    try:
        try:
            raise ValueError("dear diary")
        except ValueError as error:
            raise ActorFailed("The handler failed.") from error
    except ActorFailed as error:
        logger("test").error("failed", exc_info=error)
    line = stderr.getvalue()
    assert "dear diary" not in line
    assert "ValueError" in line
    assert "ActorFailed: The handler failed." in json.loads(line)["exception"]
    assert "test_telemetry.py" in line


def test_what_libraries_log_of_their_errors_has_no_words_either(stderr: io.StringIO) -> None:
    try:
        raise RuntimeError("dear diary")
    except RuntimeError:
        logging.getLogger("asyncio").exception("Task exception was never retrieved")
    assert "dear diary" not in stderr.getvalue()
    assert "RuntimeError" in stderr.getvalue()


def test_groups_of_failures_are_told_one_by_one(stderr: io.StringIO) -> None:
    group = ExceptionGroup("dear diary", [KeyError("dear diary"), NotFound("No such turn.")])
    logger("test").error("failed", exc_info=group)
    told = json.loads(stderr.getvalue())["exception"]
    assert "dear diary" not in told
    assert "KeyError" in told
    assert "NotFound: No such turn." in told


def test_what_is_bound_stands_in_every_line_of_the_block_and_nowhere_else(
    stderr: io.StringIO,
) -> None:
    log = logger("test")
    with bound(request_id="r1"):
        with bound(turn_id="t1"):
            log.info("inside")
        log.info("between")
    log.info("outside")
    inside, between, outside = map(json.loads, stderr.getvalue().splitlines())
    assert (inside["request_id"], inside["turn_id"]) == ("r1", "t1")
    assert (between["request_id"], "turn_id" in between) == ("r1", False)
    assert "request_id" not in outside
