"""What a replayed chat has left in the books: one row of figures, without a word of the chat."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from bench.replay_checks import AGAIN, PLAIN, dear, late, wrong
from bench.replay_house import House
from bench.replay_local import answers
from bench.replay_probes import Row, probed
from bench.replay_run import Replayed, Silence
from bench.report import quantile
from mira.store.database import Tx
from mira.store.turn_account import TurnAccount

#: Dollars for a million tokens: read, written, read from a cache, written to one. List prices of
#: models of these two sizes as they were in 2025; batches cost half. Only for a sense of scale.
PRICES = {"sonnet": (3.0, 15.0, 0.30, 3.75), "haiku": (1.0, 5.0, 0.10, 1.25)}
#: Purposes that are asked for in batches.
BATCHED = frozenset({"extraction"})
STAGES = ("started", "recalled", "composed", "first_text", "streamed")


async def figures(house: House, one: Replayed, *, local: bool = False) -> Row:
    """All figures of a chat."""
    accounts = [turn.account for turn in one.turns if turn.account is not None]
    rules = house.rules
    async with house.database.user(one.user_id) as tx:
        timings = await tx.fetch("select timings::text as json from turns order by seq")
        return {
            "chat": one.chat.name,
            "seconds": round(one.seconds, 1),
            "turns": len(one.turns),
            "days": (one.chat.exchanges[-1].at - one.chat.exchanges[0].at).days,
            **await _segments(tx),
            **await _memories(tx),
            "calls": await _calls(tx),
            "turn_calls": Counter(" then ".join(turn.calls) for turn in one.turns),
            "collapses": _collapses(one.silences),
            "sentences": rules.sentences,
            "doubted": dict(rules.doubted),
            "untrue": rules.untrue,
            **_prompts(one, accounts),
            "stages": _timings([msgspec.json.decode(row["json"]) for row in timings]),
            "recall": _spreads([account.recall_ms for account in accounts]),
            "late": dict(late(one.turns)),
            "probed": await probed(tx, one),
            "answers": await answers(tx) if local else {},
            "wrong": await wrong(house, one, local=local),
        }


def _spread(values: Sequence[float]) -> Row:
    if not values:
        return {}
    return {
        "p50": round(quantile(values, 0.5), 1), "p95": round(quantile(values, 0.95), 1),
        "max": round(max(values), 1),
    }  # fmt: skip


def _spreads(several: Sequence[Mapping[str, float]]) -> Row:
    found: dict[str, list[float]] = defaultdict(list)
    for one in several:
        for name, value in one.items():
            found[name].append(value)
    return {name: _spread(values) for name, values in sorted(found.items())}


def _timings(turns: Sequence[dict[str, float | None]]) -> Row:
    return {
        stage: _spread([value for one in turns if (value := one.get(f"{stage}_ms")) is not None])
        for stage in STAGES
    }


def _prompts(one: Replayed, accounts: Sequence[TurnAccount]) -> Row:
    counted = [turn for turn in one.turns if turn.tokens and turn.account]
    ratios = [turn.account.tokens_estimated / turn.tokens for turn in counted if turn.account]
    shown = [len(account.memories) for account in accounts]
    passages = [len(account.passages) for account in accounts]
    return {
        "prompt_tokens": _spread([turn.tokens for turn in counted]),
        "estimated_tokens": _spread([account.tokens_estimated for account in accounts]),
        "estimate_ratio": [round(min(ratios), 2), round(max(ratios), 2)] if ratios else [],
        "cuts": sum(account.cuts for account in accounts),
        "speculative": sum(account.speculative for account in accounts),
        "shown": {"memories": _spread(shown), "passages": _spread(passages)},
        "sections": _spreads(
            [{s.name: s.tokens for s in account.sections} for account in accounts]
        ),
    }


async def _segments(tx: Tx) -> Row:
    rows = await tx.fetch(
        "select g.state, s.parts, s.drift, s.vector is not null as encoded "
        "from segments g left join summaries s on s.segment_id = g.id order by g.opened_at"
    )
    checks = await tx.fetch("select kind, corrected, flagged::text from drift_checks")
    kinds: Counter[str] = Counter()
    for check in checks:
        for flag in msgspec.json.decode(check["flagged"]):
            kinds.update(flag["kinds"])
    drift = [row["drift"] for row in rows if row["drift"] is not None]
    return {
        "segments": len(rows),
        "summaries": len(drift),
        "encoded": sum(bool(row["encoded"]) for row in rows),
        "parts": dict(sorted(Counter(str(row["parts"]) for row in rows if row["parts"]).items())),
        "drift": dict(sorted(Counter(f"{value:.2f}" for value in drift).items())),
        "drift_checks": dict(Counter(check["kind"] for check in checks)),
        "corrected": sum(check["corrected"] for check in checks),
        "left_flagged": dict(kinds),
    }


async def _memories(tx: Tx) -> Row:
    counted = await tx.fetch("select status, count(*) as n from memories group by status")
    types = await tx.fetch("select type, count(*) as n from memory_links group by type")
    chunks = await tx.fetch("select state, count(*) as n from extraction_chunks group by state")
    return {
        "memories": {row["status"]: row["n"] for row in counted},
        "links": {row["type"]: row["n"] for row in types},
        "chunks": {row["state"]: row["n"] for row in chunks},
        "passages": await tx.value("select count(*) from passages"),
        "briefs": await tx.value("select count(*) from briefs"),
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
    """The figures of one purpose, with what they cost: nothing, of a model without a price."""
    read, written, cached, stored = (int(row[k]) for k in ("read", "written", "cached", "stored"))
    prices = next((each for name, each in PRICES.items() if name in row["model"]), (0.0,) * 4)
    parts = zip((read, written, cached, stored), prices, strict=True)
    cost = sum(tokens * price for tokens, price in parts) / 1e6
    cost *= 0.5 if row["purpose"] in BATCHED else 1.0
    return {
        "model": row["model"], "calls": row["calls"], "errors": row["errors"], "read": read,
        "written": written, "cached": cached, "stored": stored,
        "cached_share": round(cached / max(1, read + cached + stored), 3), "cost": round(cost, 4),
    }  # fmt: skip


def _collapses(silences: Sequence[Silence]) -> Row:
    """How many collapses made which calls: all that are usual, and those that repair."""
    calls = [one.calls for one in silences]
    plain = Counter(
        ", ".join(f"{one[kind]} {kind}" for kind in PLAIN if one[kind]) for one in calls
    )
    repairs = Counter(str(sum(one[kind] for kind in AGAIN)) for one in calls)
    return {
        "count": len(silences),
        "calls": dict(plain.most_common()),
        "repairs": dict(sorted(repairs.items())),
        "by_kind": dict(sum(calls, Counter[str]())),
        "over": sum(bool(dear(one.calls, one.made)) for one in silences),
    }
