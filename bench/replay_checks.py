"""What must hold of a replayed chat. Everything that does not is said in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from bench.replay_house import House
from bench.replay_run import Replayed, Turn
from mira.errors import Unavailable
from mira.memory.links_review import MOST_NEW
from mira.memory.quoting import quoted
from mira.store.database import Tx

#: Calls of a collapse: its summary, the extraction of its first chunk, and links of the first
#: memories; and those that ask again or correct, beside these.
CALLS, REPAIRS = 3, 3
#: Tokens that a prompt may have beside what is said live: what a full one usually has in all.
BESIDE = 8_300
#: Memories that a turn is shown at most, and earlier summaries that a new one is told with.
MEMORIES, EARLIER = 8, 5

PLAIN = ("summary", "summary_part", "extraction", "links")
AGAIN = ("summary_again", "summary_part_again", "summary_correction")
_KNOWN = re.compile(r"<known>\n(.*?)</known>", re.DOTALL)
_IN_BOOKS = {
    "ended segments without a summary": "select count(*) from segments g where state in "
    "('collapsing', 'collapsed') and not exists "
    "(select from summaries s where s.segment_id = g.id)",
    "summaries of open segments": "select count(*) from summaries s join segments g "
    "on g.id = s.segment_id where g.state not in ('collapsing', 'collapsed')",
    "segments that hang in their collapse": "select count(*) from segments "
    "where state = 'collapsing'",
    "segments that are open after a day of silence": "select count(*) from segments "
    "where state in ('active', 'paused')",
    "chunks not extracted": "select count(*) from extraction_chunks where state <> 'done'",
    "turns not complete": "select count(*) from turns where state <> 'complete'",
    "failed calls": "select count(*) from model_calls where error is not null",
    "messages not indexed": "select count(*) from messages m where role in "
    "('user', 'assistant') and not exists "
    "(select from passages p where p.message_id = m.id)",
}


async def wrong(house: House, one: Replayed, *, local: bool = False) -> list[str]:
    """Everything that should not be; empty if all is well. `local`: of the local model, which
    extracts nothing and may not succeed, only that it breaks nothing."""
    found = [*one.failed, *(problem for turn in one.turns for problem in _shown(turn))]
    async with house.database.user(one.user_id) as tx:
        books = {name: await tx.value(sql) for name, sql in _IN_BOOKS.items()}
        if not local:
            found += broken_chain(house.rules.told, await _told(tx))
    if local:
        for name in ("chunks not extracted", "failed calls"):
            del books[name]
    else:
        found += calls_of_turns(one.turns)
        found += [
            f"a collapse with {what}"
            for what in (dear(each.calls, each.made) for each in one.silences)
            if what
        ]
        found += too_long([turn.tokens for turn in one.turns], house.settings.history_tokens)
    found += [f"{name}: {count}" for name, count in books.items() if count]
    async with house.database.engine() as engine:
        if letters := await engine.value("select count(*) from dead_letters"):
            found.append(f"dead letters: {letters}")
    return found + [f"{name} ({count})" for name, count in house.failures.seen.items()]


async def _told(tx: Tx) -> list[str]:
    rows = await tx.fetch(
        "select s.title, s.precis from summaries s join segments g on g.id = s.segment_id "
        "order by g.opened_at, g.id"
    )
    return [f"{quoted(row['title'])}. {quoted(row['precis'])}" for row in rows]


def broken_chain(asked: Sequence[str], told: Sequence[str]) -> list[str]:
    """Requests for summaries (their data, in order) that did not show the five summaries before
    it, and those alone, in order; `told` are all summaries as they are shown."""
    found = []
    if len(asked) != len(told):
        found.append(f"{len(asked)} summaries were asked for, and {len(told)} are there")
    for number, data in enumerate(asked):
        known = _KNOWN.search(data)
        shown = known[1].strip().split("\n") if known else []
        due = told[max(0, number - EARLIER) : number]
        if [line.partition(": ")[2] for line in shown if line] != list(due):
            found.append(f"summary {number + 1} was not told with the {len(due)} before it")
    return found


def calls_of_turns(turns: Sequence[Turn]) -> list[str]:
    """Turns that did not call the Subcortex once, then the model once, and the Subcortex no more.
    Housework that happens to fall into a turn is none of its calls."""
    found = []
    for number, turn in enumerate(turns, 1):
        own = [kind for kind in turn.calls if kind in ("subcortex", "conversation")]
        if own != ["subcortex", "conversation"]:
            found.append(f"turn {number} called {', '.join(own) or 'nobody'}")
    return found


def dear(calls: Mapping[str, int], made: int = 0) -> str:
    """What is too much in the calls of one collapse, by kind, that made so many memories; nothing
    if they keep the bound."""
    more = calls.get("summary_part", 0) + max(0, calls.get("extraction", 0) - 1)
    # One question about links is about so many new memories at most.
    more += max(0, -(-made // MOST_NEW) - 1)
    plain = sum(calls.get(kind, 0) for kind in PLAIN)
    repairs = sum(calls.get(kind, 0) for kind in AGAIN)
    if plain > CALLS + more:
        return f"{plain} calls where {CALLS + more} are due"
    return f"{repairs} repairs" if repairs > REPAIRS else ""


def too_long(tokens: Sequence[int], live: int) -> list[str]:
    """Prompts that have more tokens than what may be live and what may stand beside it."""
    return [f"a prompt of {count} tokens" for count in tokens if count > live + BESIDE]


def late(turns: Sequence[Turn]) -> Counter[str]:
    """In how many turns each part of recall was left out, since it took longer than it may. On a
    busy machine that is as it must be."""
    return Counter(
        name
        for turn in turns
        if turn.account is not None
        for name, code in turn.account.failed.items()
        if code == Unavailable.code
    )


def _shown(turn: Turn) -> Iterator[str]:
    if turn.account is None:
        yield "a turn without an account"
        return
    if len(turn.account.memories) > MEMORIES:
        yield f"{len(turn.account.memories)} memories shown"
    for name, code in turn.account.failed.items():
        if code != Unavailable.code:
            yield f"recall failed: {name}: {code}"
    for section in turn.account.sections:
        if section.error:
            yield f"section left out: {section.name}"
