"""Questions in fragments: how much of what answers them each turn was shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from bench.replay_run import Replayed, Turn
from mira.store.database import Tx

Row = dict[str, Any]


async def probed(tx: Tx, one: Replayed) -> list[Row]:
    """For each probe how much of its evidence was shown, and how.

    `passage`, `memory`, `verbatim`: whether any of it was shown as a message of the history, by a
    memory that was made of it (or one linked to that), or as one of the last turns; `any`: in
    whichever way; `share`: how much of it. `turn`: whether a message of the same exchange was.
    """
    rows = await tx.fetch("select id, source_messages from memories")
    sources = {row["id"]: frozenset(row["source_messages"]) for row in rows}
    return [_hit(turn, one, sources) for turn in one.turns if turn.probe is not None]


def _hit(turn: Turn, one: Replayed, sources: Mapping[UUID, frozenset[UUID]]) -> Row:
    assert turn.probe is not None
    name_of = {id_: name for name, id_ in one.ids.items()}
    evidence, account = set(turn.probe.evidence), turn.account
    passages, memories = account.passages if account else (), account.memories if account else ()
    shown = {id_ for memory in memories for id_ in (memory.id, *memory.linked)}
    said = {
        "passage": {passage.message_id for passage in passages},
        "memory": {message for id_ in shown for message in sources.get(id_, ())},
    }
    found = {how: {name_of[id_] for id_ in ids if id_ in name_of} for how, ids in said.items()}
    found["verbatim"] = set(turn.verbatim)
    together = set().union(*found.values())
    exchange = {
        name: number
        for number, said_ in enumerate(one.chat.exchanges)
        for name in (said_.user.id, said_.answer.id)
    }
    near = {exchange[name] for name in together}
    return {
        "ability": turn.probe.ability,
        "evidence": len(evidence),
        **{how: bool(names & evidence) for how, names in found.items()},
        "any": bool(together & evidence),
        "share": round(len(together & evidence) / len(evidence), 3),
        "turn": any(exchange[name] in near for name in evidence),
    }
