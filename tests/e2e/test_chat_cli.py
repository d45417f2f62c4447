"""`mira chat` as a person and a program use it: the real command against the real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Place, Server
from tests.support.client import Client
from tests.support.processes import ROOT, Residents, ServerProcess
from tests.support.terminal import Terminal
from tests.support.web import http

SLOW = {"default": {"text": "One two three. " * 40, "token_ms": 50}}
REFUSED = {"error": {"status": 400, "type": "invalid_request_error", "message": "no"}}
BLOCKS = "# Heading\n\nSome **bold** words.\n\n```python\na = 1\n\nb = 2\n```\n\n- item\n"


@pytest.fixture
def environment(server: Server) -> dict[str, str]:
    return server.process.environment()


def chat(
    environment: Mapping[str, str], *arguments: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "mira", "chat", *arguments],
        cwd=ROOT, env=environment, input=stdin, capture_output=True, timeout=60, check=False,
    )  # fmt: skip


def sit_down(environment: Mapping[str, str], *arguments: str, width: int = 80) -> Terminal:
    """An interactive chat that shows nothing of earlier tests."""
    command = [sys.executable, "-m", "mira", "chat", "--history", "0", *arguments]
    return Terminal(command, environment, width=width, directory=ROOT)


# One message.


def test_one_message_prints_its_answer_and_nothing_else(environment: dict[str, str]) -> None:
    done = chat(environment, "--once", "Echo this, **please**.")
    assert (done.returncode, done.stdout) == (0, b"Echo this, **please**.\n"), done.stderr


def test_files_go_with_the_message_and_one_that_cannot_be_read_is_named(
    environment: dict[str, str], server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "keys.txt"
    path.write_text("The cellar key hangs there.")
    done = chat(environment, "--once", "Where is it?", "--attach", str(path))
    assert done.returncode == 0, done.stderr
    assert "The cellar key hangs there." in json.dumps(server.double.requests()[-1])
    alone = chat(environment, "--once", "", "--attach", str(path))
    assert alone.returncode == 0, alone.stderr
    assert chat(environment, "--once", "").returncode == 1
    missing = chat(environment, "--once", "x", "--attach", str(tmp_path / "none.txt"))
    assert missing.returncode == 1
    assert b"none.txt: No such file or directory." in missing.stderr


def test_the_answer_as_json_is_one_object_like_that_of_the_http_api(
    environment: dict[str, str],
) -> None:
    done = chat(environment, "--once", "Grüße", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0
    assert answer["reply"] == "Grüße"
    assert answer["usage"]["output_tokens"] > 0
    assert answer["timings"]["committed_ms"] > 0
    assert {"turn_id", "request_id", "memories", "tools_used"} <= answer.keys()
    assert "error" not in answer


@pytest.mark.parametrize("arguments", [(), ("--once", "-")])
def test_a_pipe_is_one_message_with_all_its_lines(
    environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    done = chat(environment, *arguments, stdin="zwei\n\nZeilen – und mehr\n".encode())
    assert (done.returncode, done.stdout.decode()) == (0, "zwei\n\nZeilen – und mehr\n")


def test_a_message_that_was_given_does_not_wait_for_standard_input(
    environment: dict[str, str],
) -> None:
    left_open, never_written = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "mira", "chat", "--once", "hello"],
            cwd=ROOT, env=environment, stdin=left_open, capture_output=True, timeout=60,
            check=False,
        )  # fmt: skip
    finally:
        os.close(left_open)
        os.close(never_written)
    assert done.stdout == b"hello\n"


@pytest.mark.parametrize(
    ("stdin", "why"), [(b"\xff\xfe", b"UTF-8"), (b" \n", b"empty"), (b"x" * 400_001, b"too long")]
)
def test_what_is_no_message_is_refused_before_it_is_sent(
    environment: dict[str, str], stdin: bytes, why: bytes
) -> None:
    done = chat(environment, stdin=stdin)
    assert done.returncode == 1
    assert why in done.stderr
    assert done.stdout == b""


def test_what_the_server_refuses_is_told_with_its_code(environment: dict[str, str]) -> None:
    done = chat(environment, "--json", stdin=b"a\x00b")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["code"] == "validation_error"


def test_a_failed_turn_ends_with_1_and_says_why(
    server: Server, environment: dict[str, str]
) -> None:
    server.double.script({"default": REFUSED})
    done = chat(environment, "--once", "hello")
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"(provider_error)" in done.stderr
    assert b"Traceback" not in done.stderr
    as_json = json.loads(chat(environment, "--once", "hello", "--json").stdout)
    assert as_json["error"]["code"] == "provider_error"


def test_ctrl_c_stops_the_turn_and_prints_what_was_said(
    server: Server, environment: dict[str, str]
) -> None:
    server.double.script(SLOW)
    command = [sys.executable, "-m", "mira", "chat", "--once", "Tell me"]
    with Terminal(command, environment, directory=ROOT) as terminal:
        terminal.wait_for("One two three.")
        terminal.type("\x03")
        assert terminal.wait_end() == 130
        assert "Stopping" in terminal.text
    (newest,) = server.rows("select state from turns order by accepted_at desc limit 1")
    assert newest["state"] == "cancelled"


def test_without_a_server_one_sentence_says_how_to_start_one(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = chat({**environment, "MIRA_HOME": str(tmp_path)}, "--once", "hello")
    assert done.returncode == 3
    assert b"mira serve" in done.stderr
    assert b"Traceback" not in done.stderr


# Sitting at the terminal.


def test_an_answer_grows_and_stays_as_it_was_laid_out(
    server: Server, environment: dict[str, str]
) -> None:
    server.double.script({"default": {"text": BLOCKS, "token_ms": 20}})
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("Show me\r")
        terminal.wait_for("› Show me", "answering", "Some bold words")
        seen = terminal.wait_for("• item", gone="answering")
        assert [line.strip() for line in seen.splitlines() if line.strip()] == [
            "› Show me", "Heading", "Some bold words.", "a = 1", "b = 2", "• item", "›",
        ]  # fmt: skip
        terminal.type("\x04")
        assert terminal.wait_end() == 0
        assert terminal.mode == terminal.mode_before


def test_ctrl_c_stops_the_answer_and_a_second_one_leaves(
    server: Server, environment: dict[str, str]
) -> None:
    server.double.script(SLOW)
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("Count\r")
        terminal.wait_for("One two three.")
        terminal.type("\x03")
        seen = terminal.wait_for("(stopped)", gone="stopping")
        assert "One two three." in seen
        terminal.type("\x03")
        assert terminal.wait_end() == 130
        assert terminal.mode == terminal.mode_before
        # The cursor is shown and pasting is as it was.
        assert terminal.raw.rindex("\x1b[?25h") > terminal.raw.rindex("\x1b[?25l")
        assert terminal.raw.rindex("\x1b[?2004l") > terminal.raw.rindex("\x1b[?2004h")
        assert "Warning" not in terminal.raw


def test_ctrl_c_twice_leaves_though_the_server_does_not_answer(
    fresh_server: ServerProcess,
) -> None:
    fresh_server.start()
    fresh_server.double.script(SLOW)
    with sit_down(fresh_server.environment()) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("Count\r")
        terminal.wait_for("One two three.")
        fresh_server.signal(signal.SIGSTOP)
        try:
            terminal.type("\x03")
            terminal.wait_for("stopping")
            terminal.type("\x03")
            assert terminal.wait_end() == 130
        finally:
            fresh_server.signal(signal.SIGCONT)


def test_ctrl_z_gives_the_terminal_back_until_the_chat_goes_on(environment: dict[str, str]) -> None:
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("\x1a")
        status = Path(f"/proc/{terminal.process.pid}/stat")
        deadline = time.monotonic() + 20
        while status.read_text().rsplit(")", 1)[1].split()[0] != "T":
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert terminal.mode == terminal.mode_before
        terminal.process.send_signal(signal.SIGCONT)
        terminal.type("still there\r")
        terminal.wait_for("› still there\n\nstill there", gone="answering")


def test_the_line_can_be_edited_and_recalled(environment: dict[str, str]) -> None:
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("Wordl\x7f\x7fld\x01Hello \x05!\r")
        terminal.wait_for("› Hello World!", gone="answering")
        terminal.type("\x1b[A?\r")
        terminal.wait_for("› Hello World!?", gone="answering")
        terminal.type("unsent\x03")
        terminal.wait_for("›", gone="unsent")


def test_a_paste_with_line_breaks_is_one_message(environment: dict[str, str]) -> None:
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("\x1b[200~first line\n/second line\x1b[201~")
        terminal.wait_for("first line\n  /second line")
        terminal.type("\r")
        seen = terminal.wait_for("first line", gone="answering")
        assert "There is no command" not in seen


def test_slash_commands_do_what_they_say(server: Server, environment: dict[str, str]) -> None:
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("/help\r")
        seen = terminal.wait_for("/quit")
        listed = [word for word in seen.split() if word.startswith("/") and len(word) > 2]
        assert listed == [
            "/help", "/status", "/model", "/cancel", "/retry", "/attach", "/detach", "/pause",
            "/resume", "/collapse", "/quit",
        ]  # fmt: skip
        terminal.type("/status\r")
        terminal.wait_for(server.url, "PostgreSQL")
        terminal.type("/model\r")
        terminal.wait_for("anthropic:double: conversation")
        terminal.type("/cancel\r")
        terminal.wait_for("Nothing is running.")
        terminal.type("/nonsense\r")
        terminal.wait_for("There is no command /nonsense.")
        terminal.type("//slash\r")
        terminal.wait_for("› /slash", gone="answering")
        terminal.type("/quit\r")
        assert terminal.wait_end() == 0


def test_files_are_attached_to_the_next_message_from_the_terminal(
    environment: dict[str, str], server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "the keys.txt"
    path.write_text("The cellar key hangs there.")
    server.double.script({"default": {"text": "In the cellar."}})

    def sent() -> str:
        return json.dumps(server.double.requests()[-1]["messages"][-1])

    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("/attach\r")
        terminal.wait_for("Which file?")
        # A short name, so that what is said stands on one line.
        terminal.type("/attach /none.txt\r")
        terminal.wait_for("/none.txt: No such file or directory.")
        terminal.type(f"/attach {path}\r")
        terminal.wait_for("the keys.txt goes with your next message.")
        terminal.type("/detach\r")
        terminal.wait_for("No file goes with your next message.")
        # What is said at once waits for the file.
        terminal.type(f"/attach {path}\rWhere?\r")
        terminal.wait_for("still on its way", "› Where?")
        while terminal.text.count("the keys.txt goes with your next message.") < 2:
            terminal.wait_for("the keys.txt goes")
        terminal.type("\r")
        terminal.wait_for("[the keys.txt]", "In the cellar.", gone="answering")
        assert "The cellar key hangs there." in sent()
        server.double.script({"default": {"text": "Still there."}})
        terminal.type("And now?\r")
        terminal.wait_for("Still there.", gone="answering")
        assert "The cellar key hangs there." not in sent()


def test_the_open_segment_is_paused_resumed_and_ended_from_the_terminal(
    environment: dict[str, str], server: Server
) -> None:
    server.double.script({"default": {"text": "The kettle is on."}})
    with http(server.url, server.process.admin_token) as client:
        client.post("/v1/segments/active/collapse")
        with sit_down(environment) as terminal:
            terminal.wait_for("›", gone="Connecting")
            terminal.type("/pause\r")
            terminal.wait_for("There is no open segment")
            terminal.type("Good morning\r")
            terminal.wait_for("The kettle is on.", gone="answering")
            for act, told, state in (
                ("pause", "Paused: no silence ends", "paused"),
                ("resume", "Resumed: silence counts", "active"),
                ("collapse", "Its summary and memories follow", "collapsing"),
            ):
                terminal.type(f"/{act}\r")
                terminal.wait_for(told)
                (segment,) = client.get("/v1/segments?limit=1").json()["segments"]
                assert segment["state"] == state or act == "collapse"
            terminal.type("\x04")
            assert terminal.wait_end() == 0


def test_a_turn_that_failed_is_told_and_can_be_tried_again(
    server: Server, environment: dict[str, str]
) -> None:
    server.double.script({"queue": [REFUSED], "default": {"text": "Now it works."}})
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("Try\r")
        terminal.wait_for("(provider_error)", "/retry", gone="answering")
        terminal.type("/retry\r")
        terminal.wait_for("Now it works.", gone="answering")


def test_a_message_typed_during_an_answer_waits_for_its_turn(
    server: Server, environment: dict[str, str]
) -> None:
    slow = {"text": "Slow answer to the first. " * 3, "token_ms": 60}
    server.double.script({"queue": [slow], "default": {"text": "Quick answer to the second."}})
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("first question\r")
        terminal.wait_for("Slow answer")
        terminal.type("second question\r")
        terminal.wait_for("waiting: second question")
        seen = terminal.wait_for("Quick answer", gone="answering")
        places = [
            seen.index(words)
            for words in ("› first question", "Slow", "› second question", "Quick")
        ]
        assert places == sorted(places)
        assert "waiting:" not in seen


def test_what_another_device_says_is_seen_with_its_answer(
    server: Server, environment: dict[str, str]
) -> None:
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("/status\r")
        terminal.wait_for("newest")
        with Client(server.ws_url, server.process.admin_token) as other:
            other.ask("said elsewhere", "elsewhere-1")
        seen = terminal.wait_for("› said elsewhere  (from another device)", gone="answering")
        assert seen.count("said elsewhere") == 2


def test_a_model_cannot_command_the_terminal(server: Server, environment: dict[str, str]) -> None:
    server.double.script({"default": {"text": "\x1b]0;owned\x07 and \x1b[2J cleared \u009b31m"}})
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("Attack\r")
        terminal.wait_for("cleared", gone="answering")
        assert not any(bad in terminal.raw for bad in ("\x1b]0", "\x1b[2J", "\u009b"))


def test_a_call_that_needs_a_yes_can_be_allowed(
    server: Server, environment: dict[str, str]
) -> None:
    call = {"name": "send", "arguments": {"text": "allowed from the terminal"}}
    server.double.script({"queue": [{"tools": [call]}], "default": {"text": "Done then."}})
    with sit_down(environment) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("Write it down\r")
        terminal.wait_for("? send", "/allow", gone="answering")
        terminal.type("/allow\r")
        deadline = time.monotonic() + 20
        effects = Path(server.process.extra["MIRA_TEST_EFFECTS"])
        while not (effects.exists() and "allowed from the terminal" in effects.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.05)


# The connection breaks.


@pytest.fixture
def killed(fresh_server: ServerProcess) -> ServerProcess:
    """A server that its test will kill."""
    return fresh_server.start()


def test_a_killed_server_is_waited_for_and_the_answer_taken_up(
    killed: ServerProcess, place: Place
) -> None:
    def noted() -> bool:
        """Whether the server would know after its death that something was seen of the answer."""
        begun = "select from turns where checkpoint_text <> ''"
        return bool(Residents(place.app, place.engine).rows(place.owner, begun))

    killed.double.script(SLOW)
    with sit_down(killed.environment()) as terminal:
        terminal.wait_for("›", gone="Connecting")
        terminal.type("Count\r")
        terminal.wait_for("One two three.")
        deadline = time.monotonic() + 30
        while not noted():
            assert time.monotonic() < deadline
        killed.kill()
        terminal.wait_for("Trying again")
        terminal.type("typed while it was away\r")
        terminal.wait_for("waiting: typed while it was away")
        killed.double.reset()
        killed.start()
        seen = terminal.wait_for(
            "(interrupted", "› typed while it was away", gone="answering"
        )  # fmt: skip
        assert seen.count("› typed while it was away") == 1
        # What the server had noted of the answer is kept, which may be less than was seen.
        assert "› Count\n\nOne" in seen
        terminal.type("\x04")
        assert terminal.wait_end() == 0


def test_one_message_survives_a_restart_of_the_server(killed: ServerProcess) -> None:
    killed.double.script({"default": {"text": "Late but whole.", "first_token_ms": 3000}})
    command = [sys.executable, "-m", "mira", "chat", "--once", "Patience", "--json"]
    process = subprocess.Popen(
        command, cwd=ROOT, env=killed.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        deadline = time.monotonic() + 30
        while not killed.double.requests():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        killed.kill()
        killed.double.script({"default": {"text": "Late but whole."}})
        killed.start()
        answer: dict[str, Any] = json.loads(process.communicate(timeout=40)[0])
    finally:
        process.kill()
        process.wait(10)
        process.stdout.close()
    assert process.returncode == 0
    assert answer["reply"] == "Late but whole."
