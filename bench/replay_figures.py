"""What a replayed chat has left in the books: one row of figures, and what must hold of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from bench.replay_house import House
from bench.replay_run import Asked, Replayed
from bench.report import quantile
from mira.store.database import Tx

Row = dict[str, Any]

#: Dollars for a million tokens: read, written, read from a cache, written to one. List prices of
#: models of these two sizes as they were in 2025; batches cost half. Only for a sense of scale.
PRICES = {"sonnet": (3.0, 15.0, 0.30, 3.75), "haiku": (1.0, 5.0, 0.10, 1.25)}
#: Purposes that are asked for in batches.
BATCHED = frozenset({"extraction"})
STAGES = (
    "started_ms", "recalled_ms", "composed_ms", "first_text_ms", "streamed_ms", "committed_ms",
)  # fmt: skip


async def figures(house: House, one: Replayed) -> Row:
    """All figures of a chat. Texts of it are not among them."""
    async with house.database.user(one.user_id) as tx:
        turns = await tx.fetch("select state, timings::text from turns order by seq")
        accounts = [
            msgspec.json.decode(row["trace"])
            for row in await tx.fetch("select trace::text from turn_traces order by at")
        ]
        return {
            "chat": one.chat.name,
            "seconds": round(one.seconds, 1),
            "turns": len(turns),
            "probes": len(one.probed),
            **await _segments(tx),
            **await _memories(tx),
            "calls": await _calls(tx),
            "prompt_tokens": _spread(one.prompts),
            "estimated_tokens": _spread([account["tokens_estimated"] for account in accounts]),
            "cuts": sum(account["cuts"] for account in accounts),
            "shown": {
                kind: round(sum(len(a[kind]) for a in accounts) / max(1, len(accounts)), 1)
                for kind in ("memories", "passages")
            },
            "speculative": sum(account["speculative"] for account in accounts),
            "sections": _sections(accounts),
            "stages": _stages([msgspec.json.decode(row["timings"]) for row in turns]),
            "recall": _parts([account["recall_ms"] for account in accounts]),
            "collapses": _collapses(one.silences),
            "probed": await _probed(tx, one),
            "wrong": await _wrong(house, tx, one, turns, accounts),
        }


def _spread(values: Sequence[float]) -> Row:
    if not values:
        return {}
    return {
        "p50": round(quantile(values, 0.5), 1), "p95": round(quantile(values, 0.95), 1),
        "max": round(max(values), 1),
    }  # fmt: skip


def _stages(timings: Sequence[Row]) -> Row:
    found = {name: [t[name] for t in timings if t.get(name) is not None] for name in STAGES}
    return {name.removesuffix("_ms"): _spread(values) for name, values in found.items()}


def _parts(timings: Sequence[dict[str, float]]) -> Row:
    found: dict[str, list[float]] = {}
    for one in timings:
        for name, value in one.items():
            found.setdefault(name, []).append(value)
    return {name: _spread(values) for name, values in sorted(found.items())}


def _sections(accounts: Sequence[Row]) -> Row:
    found: dict[str, list[float]] = {}
    for account in accounts:
        for section in account["sections"]:
            found.setdefault(section["name"], []).append(section["tokens"])
    return {name: _spread(values) for name, values in found.items()}


async def _segments(tx: Tx) -> Row:
    rows = await tx.fetch(
        "select g.state, s.parts, s.drift, s.model, s.vector is not null as encoded "
        "from segments g left join summaries s on s.segment_id = g.id order by g.opened_at"
    )
    checks = await tx.fetch("select kind, drift, corrected, flagged::text from drift_checks")
    first = [row["drift"] for row in rows if row["drift"] is not None]
    kinds: Counter[str] = Counter()
    for check in checks:
        for flag in msgspec.json.decode(check["flagged"]):
            kinds.update(flag["kinds"])
    return {
        "segments": len(rows),
        "ended": sum(row["state"] == "collapsed" for row in rows),
        "summaries": len(first),
        "encoded": sum(bool(row["encoded"]) for row in rows),
        "parts": dict(sorted(Counter(str(row["parts"]) for row in rows if row["parts"]).items())),
        "drift": dict(sorted(Counter(f"{value:.2f}" for value in first).items())),
        "drift_checks": dict(Counter(check["kind"] for check in checks)),
        "corrected": sum(check["corrected"] for check in checks),
        "flags": dict(kinds),
    }


async def _memories(tx: Tx) -> Row:
    counted = await tx.fetch("select status, count(*) as n from memories group by status")
    types = await tx.fetch("select type, count(*) as n from memory_links group by type")
    chunks = await tx.row(
        "select count(*) as n, coalesce(sum(calls), 0) as calls, "
        "count(*) filter (where state <> 'done') as left from extraction_chunks"
    )
    assert chunks is not None
    return {
        "memories": {row["status"]: row["n"] for row in counted},
        "links": {row["type"]: row["n"] for row in types},
        "chunks": {"all": chunks["n"], "calls": int(chunks["calls"]), "left": chunks["left"]},
        "passages": await tx.value("select count(*) from passages"),
    }


async def _calls(tx: Tx) -> dict[str, Row]:
    """By purpose: calls, tokens, cost, and the share of what was read that a cache held."""
    rows = await tx.fetch(
        "select purpose, model, count(*) as calls, count(error) as errors, "
        "sum(input_tokens) as read, sum(output_tokens) as written, "
        "sum(cache_read_tokens) as cached, sum(cache_write_tokens) as stored "
        "from model_calls group by purpose, model order by purpose"
    )
    return {row["purpose"]: call_row(dict(row)) for row in rows}


def call_row(row: Row) -> Row:
    read, written, cached, stored = (int(row[k]) for k in ("read", "written", "cached", "stored"))
    size = next((prices for name, prices in PRICES.items() if name in row["model"]), None)
    cost = 0.0
    if size is not None:
        parts = zip((read, written, cached, stored), size, strict=True)
        cost = sum(tokens * price for tokens, price in parts) / 1e6
        cost *= 0.5 if row["purpose"] in BATCHED else 1.0
    return {
        "model": row["model"], "calls": row["calls"], "errors": row["errors"], "read": read,
        "written": written, "cached": cached, "stored": stored,
        "cached_share": round(cached / max(1, read + cached + stored), 3), "cost": round(cost, 4),
    }  # fmt: skip


def _collapses(silences: Sequence[dict[str, int]]) -> Row:
    """Calls of each collapse by kind, and those of them that broke the bound: three, one for each
    further part or chunk, and repairs, of which there may be three."""
    totals: Counter[str] = Counter()
    most = repairs_most = 0
    for one in silences:
        totals.update(one)
        repairs = one.get("summary_again", 0) + one.get("summary_part_again", 0)
        repairs += one.get("summary_correction", 0)
        parts, chunks = one.get("summary_part", 0), max(1, one.get("extraction", 0))
        plain = one.get("summary", 0) + parts + one.get("extraction", 0) + one.get("links", 0)
        most = max(most, plain - parts - (chunks - 1))
        repairs_most = max(repairs_most, repairs)
    return {
        "count": len(silences), "by_kind": dict(sorted(totals.items())),
        "most_without_parts": most, "most_repairs": repairs_most,
    }  # fmt: skip


# Probes.


async def _probed(tx: Tx, one: Replayed) -> list[Row]:
    """For each probe what of its evidence was shown, and how."""
    at = {our: name for name, our in one.ids.items()}
    turn_of = {name: int(name) // 2 for name in one.ids}
    sources = {
        row["id"]: set(row["source_messages"])
        for row in await tx.fetch("select id, source_messages from memories")
    }
    shown_segments = [
        row["segment_id"]
        for row in await tx.fetch(
            "select s.segment_id from summaries s join segments g on g.id = s.segment_id "
            "order by g.opened_at desc limit 8"
        )
    ]
    segment_of = {
        row["id"]: row["segment_id"]
        for row in await tx.fetch(
            "select m.id, t.segment_id from messages m join turns t on t.id = m.turn_id"
        )
    }
    return [_hit(asked, one, at, turn_of, sources, shown_segments, segment_of)
            for asked in one.probed]  # fmt: skip


def _hit(
    asked: Asked, one: Replayed, at: dict[UUID, str], turn_of: dict[str, int],
    sources: dict[UUID, set[UUID]], shown_segments: list[UUID], segment_of: dict[UUID, UUID],
) -> Row:  # fmt: skip
    account, evidence = asked.account, set(asked.probe.evidence)
    row: Row = {"ability": asked.probe.ability, "evidence": len(evidence)}
    if account is None:
        return row | {"passage": 0, "memory": 0, "either": 0, "share": 0.0, "turn": 0, "summary": 0}
    passages = {at[p.message_id] for p in account.passages if p.message_id in at}
    shown = {i for m in account.memories for i in (m.id, *m.linked)}
    from_memories = {
        at[message] for i in shown for message in sources.get(i, ()) if message in at
    }  # fmt: skip
    found = passages | from_memories
    turns = {turn_of[name] for name in found}
    return row | {
        "passage": int(bool(passages & evidence)),
        "memory": int(bool(from_memories & evidence)),
        "either": int(bool(found & evidence)),
        "share": round(len(found & evidence) / len(evidence), 3),
        "turn": int(any(turn_of[name] in turns for name in evidence)),
        "summary": int(any(segment_of[one.ids[name]] in shown_segments for name in evidence)),
    }


# What must hold.


async def _wrong(
    house: House, tx: Tx, one: Replayed, turns: Sequence[Any], accounts: Sequence[Row]
) -> list[str]:
    """Everything that should not be; empty if all is well."""
    wrong = list(one.failed)
    wrong += [f"turn ended as {row['state']}" for row in turns if row["state"] != "complete"]
    wrong += [f"recall failed: {name}" for a in accounts for name in a["failed"]]
    wrong += [
        f"section left out: {section['name']}"
        for a in accounts for section in a["sections"] if section["error"]
    ]  # fmt: skip
    checks = {
        "ended segments without a summary": "select count(*) from segments g where state in "
        "('collapsing', 'collapsed') and not exists "
        "(select from summaries s where s.segment_id = g.id)",
        "summaries of open segments": "select count(*) from summaries s join segments g "
        "on g.id = s.segment_id where g.state not in ('collapsing', 'collapsed')",
        "segments that hang in their collapse": "select count(*) from segments "
        "where state = 'collapsing'",
        "chunks not extracted": "select count(*) from extraction_chunks where state <> 'done'",
        "failed calls": "select count(*) from model_calls where error is not null",
        "messages not indexed": "select count(*) from messages m where role in "
        "('user', 'assistant') and not exists "
        "(select from passages p where p.message_id = m.id)",
    }
    for name, sql in checks.items():
        if count := await tx.value(sql):
            wrong.append(f"{name}: {count}")
    async with house.database.engine() as engine:
        if letters := await engine.value("select count(*) from dead_letters"):
            wrong.append(f"dead letters: {letters}")
    wrong += [f"{name} ({count})" for name, count in house.failures.seen.items()]
    if house.rules.strange:
        wrong.append(f"asked for something else than was said: {house.rules.strange}")
    return wrong
