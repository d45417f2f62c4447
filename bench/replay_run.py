"""One chat replayed as one user's: said at its moments, segments ending by silence in between."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import anyio

from bench.provider_cache import PrefixCache
from bench.replay_chats import AFTERNOON, BETWEEN, Chat, Exchange, Probe
from bench.replay_house import PATIENCE, House
from bench.replay_tokens import prompt_tokens
from mira.messages.stream import Completed
from mira.store.turn_account import TurnAccount
from mira.store.turn_traces import newest
from mira.store.users import ensure_user

#: What is answered to a question in a fragment: no words that could be found later.
NOTED = "Let me think about that."
#: A pause after which a provider holds no prompt any more.
FORGOTTEN = timedelta(minutes=30)


@dataclass
class Asked:
    """A probe, and what its turn was shown."""

    probe: Probe
    account: TurnAccount | None


@dataclass
class Replayed:
    """What the run itself has seen; the rest stands in the database."""

    chat: Chat
    user_id: UUID
    #: Our ids of the chat's messages, by its numbers.
    ids: dict[str, UUID] = field(default_factory=dict)
    #: Tokens of the last prompt of each turn.
    prompts: list[int] = field(default_factory=list)
    #: For each silence the calls by kind that were made in it.
    silences: list[dict[str, int]] = field(default_factory=list)
    probed: list[Asked] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    seconds: float = 0.0


async def replay(house: House, chat: Chat, turns: int | None = None) -> Replayed:
    """Replay a chat, or its first turns; then ask what it is probed with, in a sitting of its own.

    Everything that follows from a segment's end is done before the next turn begins.
    """
    began = house.clock.monotonic()
    user = await ensure_user(
        house.database, house.ids.new(), f"chat-{chat.name}", "UTC", house.clock.now()
    )
    found = Replayed(chat, user.id)
    exchanges = chat.exchanges[:turns]
    for exchange in exchanges:
        await _pause(house, found, exchange.at)
        turn_id = await _say(house, found, exchange.user.text, exchange.answer.text)
        await _note_ids(house, found, exchange, turn_id)
    last = exchanges[-1].at
    next_day = last.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    said = {one.user.id for one in exchanges} | {one.answer.id for one in exchanges}
    at = next_day + AFTERNOON
    for probe in chat.probes:
        if not said.issuperset(probe.evidence):
            continue
        await _pause(house, found, at)
        turn_id = await _say(house, found, probe.words, NOTED)
        async with house.database.user(user.id) as tx:
            found.probed.append(Asked(probe, await newest(tx, user.id, turn_id)))
        at += BETWEEN
    found.seconds = house.clock.monotonic() - began
    return found


async def _pause(house: House, found: Replayed, until: datetime) -> None:
    """Let the time pass, with all that falls due in it."""
    long = until - house.clock.now() > FORGOTTEN
    if long:
        house.double.cache = PrefixCache()
    before = house.rules.asked.copy()
    await house.settle(until)
    if long and found.prompts:
        found.silences.append(dict(house.rules.asked - before))


async def _say(house: House, found: Replayed, words: str, answer: str) -> UUID:
    """One turn, to its very end."""
    rules = house.rules
    rules.words, rules.said = words, answer
    receipt = await house.conversations.accept(
        found.user_id, request_id=str(house.ids.new()), content=words
    )
    with anyio.fail_after(PATIENCE):
        async with house.conversations.follow(found.user_id, receipt.turn_id) as batches:
            events = [event async for batch in batches for event in batch]
    if not isinstance(events[-1], Completed):
        found.failed.append(f"turn {receipt.seq}: {type(events[-1]).__name__}")
    await house.settle()
    found.prompts.append(prompt_tokens(rules.last))
    return receipt.turn_id


async def _note_ids(house: House, found: Replayed, exchange: Exchange, turn_id: UUID) -> None:
    async with house.database.user(found.user_id) as tx:
        rows = await tx.fetch("select id, role from messages where turn_id = $1", turn_id)
    for row in rows:
        number = exchange.user.id if row["role"] == "user" else exchange.answer.id
        found.ids[number] = row["id"]
