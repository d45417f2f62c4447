"""One chat replayed as one user's: said at its moments, segments ending by silence in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import anyio

from bench.provider_cache import PrefixCache
from bench.replay_chats import AFTERNOON, BETWEEN, Chat, Exchange, Probe
from bench.replay_house import House
from bench.replay_tokens import prompt_tokens, texts
from mira.messages.stream import Completed
from mira.store.turn_account import TurnAccount
from mira.store.turn_traces import newest
from mira.store.users import ensure_user

#: What is answered to a question in a fragment: no words that could be found later.
NOTED = "Let me think about that."
#: A pause after which a provider holds no prompt any more. Between sittings it is longer, and a
#: segment ends in it.
FORGOTTEN = timedelta(minutes=30)


@dataclass(frozen=True)
class Turn:
    """A turn as it went: the calls made in it, by kind and in order; the tokens of its prompt, as
    a real model counts them; what it was shown. If it was a question in a fragment, also that, and
    which of its evidence stood in the prompt as it was said."""

    calls: tuple[str, ...]
    tokens: int
    account: TurnAccount | None
    probe: Probe | None = None
    verbatim: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Silence:
    """A silence between sittings: the calls made in it, by kind, and how many memories."""

    calls: Counter[str]
    made: int


@dataclass
class Replayed:
    """What the run itself has seen; the rest stands in the database."""

    chat: Chat
    user_id: UUID
    #: Our ids of the chat's messages, by its numbers.
    ids: dict[str, UUID] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    silences: list[Silence] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0


async def replay(
    house: House,
    chat: Chat,
    turns: int | None = None,
    *,
    probes: bool = True,
    progress: Callable[[str], None] = lambda _line: None,
) -> Replayed:
    """Replay a chat, or its first turns; then ask what it is probed with, in a sitting of its own.

    Everything that follows from a segment's end is done before the next turn begins. `progress`
    hears of every segment. Raises TimeoutError when something is not done in the house's patience.
    """
    began = house.clock.monotonic()
    user = await ensure_user(
        house.database, house.ids.new(), f"chat-{chat.name}", "UTC", house.clock.now()
    )
    exchanges = chat.exchanges[:turns]
    found = Replayed(replace(chat, exchanges=exchanges), user.id)

    def say_so() -> None:
        found.seconds = house.clock.monotonic() - began
        progress(
            f"Chat {chat.name}: {min(len(found.turns), len(exchanges))} of {len(exchanges)} turns, "
            f"{len(found.silences)} segments ended, {found.seconds:.0f} s"
        )

    for exchange in exchanges:
        if await _pause(house, found, exchange.at):
            say_so()
        turn_id = await _say(house, found, exchange.user.text, exchange.answer.text)
        await _note_ids(house, found, exchange, turn_id)
    at = _next_day(exchanges[-1].at) + AFTERNOON
    for probe in chat.probes if probes else ():
        if found.ids.keys() >= set(probe.evidence):
            await _pause(house, found, at)
            await _say(house, found, probe.words, NOTED, probe)
            at += BETWEEN
    await _pause(house, found, _next_day(at))
    say_so()
    return found


def _next_day(at: datetime) -> datetime:
    return at.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


async def _pause(house: House, found: Replayed, until: datetime) -> bool:
    """Let the time pass, with all that falls due in it. Whether a sitting has ended with it."""
    long = until - house.clock.now() > FORGOTTEN
    if long:
        house.double.cache = PrefixCache()
    before = len(house.rules.calls)
    await house.settle(until)
    if long and found.turns:
        async with house.database.user(found.user_id) as tx:
            memories = await tx.value("select count(*) from memories")
        made = memories - sum(one.made for one in found.silences)
        found.silences.append(Silence(Counter(house.rules.calls[before:]), made))
    return long and bool(found.turns)


async def _say(
    house: House, found: Replayed, words: str, answer: str, probe: Probe | None = None
) -> UUID:
    """One turn, to its very end."""
    rules = house.rules
    rules.said, rules.last = answer, {}
    before = len(rules.calls)
    receipt = await house.conversations.accept(
        found.user_id, request_id=str(house.ids.new()), content=words
    )
    with anyio.fail_after(house.patience):
        async with house.conversations.follow(found.user_id, receipt.turn_id) as batches:
            events = [event async for batch in batches for event in batch]
    if not isinstance(events[-1], Completed):
        found.failed.append(f"turn {receipt.seq}: {type(events[-1]).__name__}")
    await house.settle()
    if rules.last and not _asks(rules.last, words):
        found.failed.append(f"turn {receipt.seq}: the model was asked something else")
    async with house.database.user(found.user_id) as tx:
        account = await newest(tx, found.user_id, receipt.turn_id)
    calls, tokens = tuple(rules.calls[before:]), prompt_tokens(rules.last)
    found.turns.append(Turn(calls, tokens, account, probe, _verbatim(found, probe, rules.last)))
    return receipt.turn_id


def _verbatim(found: Replayed, probe: Probe | None, body: dict[str, Any]) -> frozenset[str]:
    """Of a probe's evidence the messages that the prompt holds whole."""
    if probe is None:
        return frozenset()
    shown = "\n".join(text for one in body.get("messages", ()) for text in texts(one["content"]))
    said = {m.id: m.text for one in found.chat.exchanges for m in (one.user, one.answer)}
    return frozenset(name for name in probe.evidence if said[name] in shown)


def _asks(body: dict[str, Any], words: str) -> bool:
    return any(words.strip() in text for text in texts(body["messages"][-1]["content"]))


async def _note_ids(house: House, found: Replayed, exchange: Exchange, turn_id: UUID) -> None:
    async with house.database.user(found.user_id) as tx:
        rows = await tx.fetch("select id, role from messages where turn_id = $1", turn_id)
    for row in rows:
        number = exchange.user.id if row["role"] == "user" else exchange.answer.id
        found.ids[number] = row["id"]
