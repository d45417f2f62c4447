"""What a provider double does: the script that is posted to it, as values.

A script is JSON: `{"default": B, "queue": [B, …], "rules": [B, …], "aside": B, "batches": …}`,
every part optional (for the last see bench.provider_batches), where a behaviour B is an object
with any of these fields:

    text            the reply; without it, `tokens` made-up words
    texts           replies that are given in rotation
    echo            true: the reply is the last text block of the last user message
    tokens          how many words to make up (20)
    first_token_ms  from the request to the first piece of the answer (0)
    token_ms        between pieces; a piece is a word with the white space after it (0)
    thinking        reasoning before the reply; `signature` goes with it, byte for byte
    redacted        data of a redacted_thinking block before the reply (Anthropic only)
    reasoning_field `reasoning_content` or `reasoning`, where OpenAI's imitators put thinking
    tools           calls: [{"name", "arguments": object or text, "mode", "id"}]; `mode` is
                    `fragments` (a few letters at a time), `whole` (in one piece), `start`
                    (Anthropic: in the block's own start) or `empty` (no arguments at all).
                    Not asked for again when the request ends in tool results, unless
                    `tools_again` is true
    stop            the stop or finish reason to give, whatever happened
    usage           false: say nothing of tokens
    empty_blocks    true: empty text blocks (Anthropic) or empty deltas (OpenAI) around the reply
    ping_ms         a ping or comment this often while waiting for the first piece
    error           answer with an error instead: {"status", "type", "message", "code", "param",
                    "retry_after"}
    cut             go wrong in mid-stream: {"after": pieces, "how", "type"}; `how` is `error` (an
                    error event of `type`), `disconnect`, `end` (the stream ends as if complete),
                    `silence`, or `pings` (nothing but pings, ten times a second)
    times           how many requests this entry serves (queue: 1, rules: no limit)
    contains        rules only: serves requests whose last user message contains this

A request is served by the first rule that fits, else by the head of the queue, else by default.
Requests to the model KEEPER, whose work begins when it likes, use up nothing of the queue.
Requests to the model ASIDE, which is asked beside the conversation, are served by `aside` alone
and kept apart: they use up nothing and stand among neither stamps nor requests.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

#: The model of work that nobody waits for: the queue is not there for it.
KEEPER = "keeper"
#: The model that is asked beside the conversation, and what it says: what a message is about.
ASIDE = "aside"
ASIDE_ANSWER = (
    '{"phrases": ["what was said"], "entities": [], "retain": [], "complexity": "complex"}'
)

SIGNATURE = "RG91YmxlU2lnbmF0dXJl+/=="


class Call(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | str = {}
    mode: Literal["fragments", "whole", "start", "empty"] = "fragments"
    id: str | None = None

    def text(self) -> str:
        """The arguments as they are written on the wire."""
        if isinstance(self.arguments, str):
            return self.arguments
        return msgspec.json.encode(self.arguments).decode()


class Failure(msgspec.Struct, forbid_unknown_fields=True):
    status: int
    type: str = "api_error"
    message: str = "The double was told to fail."
    code: str | None = None
    param: str | None = None
    retry_after: float | str | None = None


class Cut(msgspec.Struct, forbid_unknown_fields=True):
    how: Literal["error", "disconnect", "end", "silence", "pings"]
    after: int = 0
    type: str = "overloaded_error"


class Behaviour(msgspec.Struct, forbid_unknown_fields=True):
    text: str | None = None
    texts: tuple[str, ...] = ()
    echo: bool = False
    tokens: int = 20
    first_token_ms: float = 0.0
    token_ms: float = 0.0
    thinking: str = ""
    signature: str = SIGNATURE
    redacted: str = ""
    reasoning_field: Literal["reasoning_content", "reasoning"] = "reasoning_content"
    tools: tuple[Call, ...] = ()
    tools_again: bool = False
    stop: str | None = None
    usage: bool = True
    empty_blocks: bool = False
    ping_ms: float = 0.0
    error: Failure | None = None
    cut: Cut | None = None
    times: int | None = None
    contains: str = ""


class BatchFault(msgspec.Struct, forbid_unknown_fields=True):
    at: Literal["create", "retrieve", "list", "results", "cancel"]
    how: Literal["error", "lost", "cut", "short"] = "error"
    status: int = 500
    type: str = "api_error"
    after: int = 0
    times: int = 1


class BatchScript(msgspec.Struct, forbid_unknown_fields=True):
    polls: int = 0
    outcomes: list[Literal["succeeded", "errored", "expired", "canceled"]] = []
    faults: list[BatchFault] = []


class Script(msgspec.Struct, forbid_unknown_fields=True):
    default: Behaviour = msgspec.field(default_factory=Behaviour)
    queue: list[Behaviour] = []
    rules: list[Behaviour] = []
    aside: Behaviour = msgspec.field(default_factory=lambda: Behaviour(text=ASIDE_ANSWER))
    batches: BatchScript = msgspec.field(default_factory=BatchScript)

    def take(self, last_user_message: str, *, queued: bool = True) -> Behaviour:
        """The behaviour for the next request; used-up entries are gone. `queued`: the queue is
        there for it."""
        for rule in self.rules:
            if rule.contains in last_user_message:
                if rule.times is not None:
                    rule.times -= 1
                    if rule.times <= 0:
                        self.rules.remove(rule)
                return rule
        if self.queue and queued:
            head = self.queue[0]
            head.times = (1 if head.times is None else head.times) - 1
            if head.times <= 0:
                self.queue.pop(0)
            return head
        return self.default


def load(raw: bytes | str) -> Script:
    """Read a script. Raises msgspec.ValidationError or DecodeError, which say what is wrong."""
    return msgspec.json.decode(raw, type=Script)
