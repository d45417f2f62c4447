"""Anthropic's Message Batches as the provider double speaks them, and how they go wrong.

Items are answered by the double's script, as calls are. `batches` in a script says the rest:

    polls     how often a batch is seen in progress, by itself or in the list, before it has
              ended (0)
    outcomes  what becomes of the next items, in order: succeeded, errored, expired, canceled;
              those after the last are succeeded, or errored where their behaviour is an error
    faults    what goes wrong next: [{"at": create | retrieve | list | results | cancel,
              "how": error (an error answer, `status`, nothing done), lost (done, but the
              connection breaks before the answer), cut (results: `after` lines, half of the next,
              and the connection breaks), short (results: `after` lines and a clean end),
              "times": how often}]
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from bench import provider_anthropic, provider_wire
from bench.provider_answer import Asked
from bench.provider_script import BatchFault, Failure

if TYPE_CHECKING:
    from bench.provider_double import ProviderDouble

_encode = msgspec.json.encode
Outcome = Literal["succeeded", "errored", "expired", "canceled"]

#: Where the batches are.
PATH = "/v1/messages/batches"

#: Reads what a request asks; raises as the double's own reading of a request does.
Reader = Callable[[dict[str, Any]], Asked]


class Reply(msgspec.Struct):
    """An answer; `broken`: it is cut off by the end of the connection, whatever its length says."""

    status: int
    body: bytes
    broken: bool = False


class Held(msgspec.Struct):
    """A batch that the double holds."""

    id: str
    created_at: datetime
    names: list[str]
    lines: list[bytes]
    outcomes: list[Outcome]
    polls: int
    cancelled: bool = False

    @property
    def ended(self) -> bool:
        return self.polls <= 0 or self.cancelled


class BatchDesk:
    """All batches of one double, newest last."""

    def __init__(self, double: ProviderDouble) -> None:
        self._double = double
        self.held: dict[str, Held] = {}

    def answer(self, method: str, path: str, body: bytes, read: Reader, address: str) -> Reply:
        """Answer one request below PATH; `address` is where this double is reached."""
        match method, path.removeprefix(PATH).strip("/").split("/"):
            case "POST", [""]:
                return self._create(body, read, address)
            case "GET", [""]:
                return self._list(address)
            case "GET", [name]:
                return self._retrieve(name, address)
            case "GET", [name, "results"]:
                return self._results(name)
            case "POST", [name, "cancel"]:
                return self._cancel(name, address)
        return _refused(404, "not_found_error")

    def _fault(self, at: str) -> BatchFault | None:
        faults = self._double.script.batches.faults
        for fault in faults:
            if fault.at == at:
                fault.times -= 1
                if fault.times <= 0:
                    faults.remove(fault)
                return fault
        return None

    def _create(self, body: bytes, read: Reader, address: str) -> Reply:
        fault = self._fault("create")
        if fault is not None and fault.how == "error":
            return _refused(fault.status, fault.type)
        try:
            items = msgspec.json.decode(body, type=dict[str, list[dict[str, Any]]])["requests"]
            asked = [
                (str(item["custom_id"]), item["params"], read(item["params"])) for item in items
            ]
        except (msgspec.MsgspecError, AttributeError, TypeError, KeyError):
            return _refused(400, "invalid_request_error")
        names = [name for name, _, _ in asked]
        if not names or len(set(names)) != len(names):
            return _refused(400, "invalid_request_error")
        held = Held(
            id=f"msgbatch_double{len(self.held):06d}",
            created_at=datetime.now(UTC),
            names=names,
            lines=[],
            outcomes=[],
            polls=self._double.script.batches.polls,
        )
        for name, params, one in asked:
            self._double.requests.append({"protocol": "batch", "headers": {}, "body": params})
            outcome, result = self._result(one)
            held.outcomes.append(outcome)
            held.lines.append(_encode({"custom_id": name, "result": result}) + b"\n")
        self.held[held.id] = held
        return Reply(200, _shown(held, address), broken=fault is not None)

    def _result(self, asked: Asked) -> tuple[Outcome, dict[str, Any]]:
        script = self._double.script
        behaviour = script.take(asked.last_user_message)
        outcome: Outcome = "succeeded"
        if script.batches.outcomes:
            outcome = script.batches.outcomes.pop(0)
        elif behaviour.error is not None:
            outcome = "errored"
        match outcome:
            case "succeeded":
                message = msgspec.Raw(provider_wire.whole(behaviour, asked))
                return outcome, {"type": "succeeded", "message": message}
            case "errored":
                failure = behaviour.error or Failure(status=500)
                error = msgspec.Raw(provider_anthropic.failed(failure))
                return outcome, {"type": "errored", "error": error}
            case _:
                return outcome, {"type": outcome}

    def _list(self, address: str) -> Reply:
        if (fault := self._fault("list")) is not None:
            return _refused(fault.status, fault.type)
        data = [msgspec.Raw(_shown(held, address)) for held in reversed(self.held.values())]
        for held in self.held.values():
            held.polls -= 1
        return Reply(
            200, _encode({"data": data, "has_more": False, "first_id": None, "last_id": None})
        )

    def _retrieve(self, name: str, address: str) -> Reply:
        if (fault := self._fault("retrieve")) is not None:
            return _refused(fault.status, fault.type)
        if (held := self.held.get(name)) is None:
            return _refused(404, "not_found_error")
        shown = _shown(held, address)
        held.polls -= 1
        return Reply(200, shown)

    def _results(self, name: str) -> Reply:
        held = self.held.get(name)
        if held is None or not held.ended:
            return _refused(404, "not_found_error")
        fault = self._fault("results")
        lines = held.lines
        if fault is None:
            return Reply(200, b"".join(lines))
        if fault.how == "error":
            return _refused(fault.status, fault.type)
        sent = b"".join(lines[: fault.after])
        if fault.how == "short":
            return Reply(200, sent)
        rest = b"".join(lines[fault.after : fault.after + 1])
        return Reply(200, sent + rest[: len(rest) // 2], broken=True)

    def _cancel(self, name: str, address: str) -> Reply:
        if (fault := self._fault("cancel")) is not None:
            return _refused(fault.status, fault.type)
        if (held := self.held.get(name)) is None:
            return _refused(404, "not_found_error")
        if not held.ended:
            held.cancelled = True
            held.outcomes = ["canceled"] * len(held.names)
            held.lines = [
                _encode({"custom_id": n, "result": {"type": "canceled"}}) + b"\n"
                for n in held.names
            ]
        return Reply(200, _shown(held, address))


def _shown(held: Held, address: str) -> bytes:
    counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
    for outcome in held.outcomes:
        counts[outcome if held.ended else "processing"] += 1
    created = held.created_at.isoformat()
    return _encode(
        {
            "id": held.id,
            "type": "message_batch",
            "processing_status": "ended" if held.ended else "in_progress",
            "request_counts": counts,
            "created_at": created,
            "expires_at": (held.created_at + timedelta(hours=24)).isoformat(),
            "ended_at": created if held.ended else None,
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": f"{address}{PATH}/{held.id}/results" if held.ended else None,
        }
    )


def _refused(status: int, kind: str) -> Reply:
    return Reply(status, provider_anthropic.failed(Failure(status=status, type=kind)))
