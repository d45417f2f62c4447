"""The report of a replay: tables in Markdown, made of its figures alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.replay_answers import UNTITLED, UNTRUE
from bench.replay_chats import TOGETHER
from bench.replay_checks import BESIDE, CALLS, MEMORIES, REPAIRS
from bench.replay_local import told as told_of_local
from bench.replay_probes import Row
from bench.replay_tokens import NAME
from mira.memory.links_review import MOST_NEW

_ABILITY = "what the questions are about"
_PREFACE = f"""# Replay of recorded chats

Written by `mira bench replay`; see [bench/README.md](../bench/README.md). Recorded chats between a
user and an assistant (BEAM, 100,000 tokens each) are lived through turn by turn: eight turns a
day, in two sittings of four, spread evenly between the dates that the chat names. Segments end by
the silence between sittings. At last the chat's own questions are asked, of each only the three to
six words that name something, in a sitting a day later.

**What it was run on.** Real PostgreSQL, Valkey, embedding model (MiniLM) and names (spaCy), the
real engine, keeper and composer, in one process; the clock is put forward from turn to turn. The
provider is a double on loopback that speaks Anthropic's protocol, its batches and its cache, and
answers **by rule**: in conversation with the chat's own answers, in housework with clauses of what
was said. So the figures say how the pipeline behaves, not how well a model writes. One summary in
{UNTRUE} holds a sentence that is untrue, one in {UNTITLED} lacks its title, on purpose. The
machine was shared with other work, so times are those of a busy machine.

**In sample.** The weights by which messages of the history are ranked were fitted on these same
five chats (with whole questions, not fragments), so the shares below that concern messages shown
are too good by a little; memories and summaries are fitted to nothing.
"""


def render(results: Sequence[Row], machine: Mapping[str, object] | None = None) -> str:
    """The whole report, of the figures of each chat."""
    local = [row for row in results if row["local"]]
    usual: list[Row] = []
    long: list[Row] = []
    for row in results:
        if not row["local"]:
            (usual if row["together"] == TOGETHER else long).append(row)
    parts = [_PREFACE]
    if machine:
        load = machine["load"]
        parts.append(
            f"Machine: {machine['cores']} cores, {machine['cpu']}; load at its end {load}."
        )
    if usual:
        parts += [_verdict(usual), *_tables(usual)]
    if long:
        parts += _in_long_sittings(long)
    parts += [told_of_local(row) for row in local]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown; its first column is text, the others are figures."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def three(spread: Mapping[str, float]) -> str:
    """p50 / p95 / max."""
    if not spread:
        return "–"
    return " / ".join(f"{spread[name]:,.0f}" for name in ("p50", "p95", "max"))


def _verdict(rows: Sequence[Row]) -> str:
    problems = [f"- chat {row['chat']}: {problem}" for row in rows for problem in row["wrong"]]
    turns = sum(row["turns"] for row in rows)
    if problems:
        return "\n".join(
            [f"**Of {turns} turns and what followed them this was not as it must be:**", "",
             *problems]
        )  # fmt: skip
    return (
        f"**In {turns} turns nothing was otherwise than it must be**: every turn complete, with "
        "one call of the Subcortex before the model's and none besides; every segment ended with "
        "one summary, told with the five before it in their order; every collapse within "
        f"{CALLS} calls, one for each further part, chunk or {MOST_NEW} memories, and {REPAIRS} "
        "repairs; every chunk "
        "extracted, every message indexed; no section left out, no failed call, nothing "
        f"undelivered; every prompt within the {rows[0]['live']:,} tokens that may be live and "
        f"{BESIDE:,} beside them."
    )


def _tables(rows: Sequence[Row]) -> list[str]:
    return [
        "## Turns, segments, memories", _extent(rows),
        "## Calls of a collapse", _collapses(rows),
        "## Calls, tokens, cost", _calls(rows),
        "## Prompts", _prompts(rows),
        "## What summaries are held against", _drift(rows),
        "## Questions in fragments", _probes(rows),
        "## Times", _times(rows),
    ]  # fmt: skip


def _in_long_sittings(rows: Sequence[Row]) -> list[str]:
    head = ["chat", "turns", "of a sitting", "tokens that may be live", "briefs",
            "parts of summaries", "a prompt's tokens", "its brief, as estimated"]  # fmt: skip
    lines = [
        [
            row["chat"], row["turns"], row["together"], f"{row['live']:,}", row["briefs"],
            ", ".join(row["parts"]), three(row["prompt_tokens"]),
            three(row["sections"].get("ContinuationBrief", {})),
        ]
        for row in rows
    ]  # fmt: skip
    return [
        "## In long sittings", _verdict(rows),
        "So many turns without a pause, and less room than usual, so that the older part of a "
        "sitting becomes a brief.", table(head, lines), _collapses(rows),
    ]  # fmt: skip


def _extent(rows: Sequence[Row]) -> str:
    head = ["chat", "days", "its turns", "questions", "segments", "summaries",
            "told in parts", "memories", "links", "passages", "$", "seconds"]  # fmt: skip
    return table(
        head,
        [
            [
                row["chat"], row["days"], f"{row['turns'] - len(row['probed'])} of {row['of']}",
                len(row["probed"]), row["segments"],
                row["summaries"], sum(n for parts, n in row["parts"].items() if parts != "1"),
                sum(row["memories"].values()), sum(row["links"].values()), row["passages"],
                f"{sum(one['cost'] for one in row['calls'].values()):.2f}",
                f"{row['seconds']:.0f}",
            ]
            for row in rows
        ],
    )  # fmt: skip


def _collapses(rows: Sequence[Row]) -> str:
    made: Counter[str] = Counter()
    repairs: Counter[str] = Counter()
    for row in rows:
        made.update(row["collapses"]["calls"])
        repairs.update(row["collapses"]["repairs"])
    count = sum(row["collapses"]["count"] for row in rows)
    beside = ", ".join(f"{n} with {times}" for times, n in sorted(repairs.items()))
    turns: Counter[str] = Counter()
    for row in rows:
        turns.update(row["turn_calls"])
    return (
        "A segment without facts, or whose facts are like none that is known, needs no links.\n\n"
        + table(["calls", "collapses"], made.most_common())
        + f"\n\nRepairs, beside these (an answer asked for again, a correction), of {count} "
        f"collapses: {beside}.\n\nCalls of a turn, with housework that became due in it:\n\n"
        + table(["calls", "turns"], turns.most_common())
    )


def _calls(rows: Sequence[Row]) -> str:
    names = sorted({name for row in rows for name in row["calls"]})
    lines = []
    for name in names:
        found = [row["calls"][name] for row in rows if name in row["calls"]]
        total = {key: sum(one[key] for one in found)
                 for key in ("calls", "read", "written", "cached", "stored", "cost")}  # fmt: skip
        share = total["cached"] / max(1, total["read"] + total["cached"] + total["stored"])
        lines.append([
            name, found[0]["model"], f"{total['calls']:,}", f"{total['read']:,}",
            f"{total['stored']:,}", f"{total['cached']:,}", f"{share:.0%}", f"{total['written']:,}",
            f"{total['cost']:.2f}",
        ])  # fmt: skip
    cost = sum(one["cost"] for row in rows for one in row["calls"].values())
    turns = sum(row["turns"] for row in rows)
    head = ["purpose", "model", "calls", "read", "written to cache", "read from cache", "share",
            "answered", "$"]  # fmt: skip
    return (
        table(head, lines)
        + f"\n\nTokens are the double's, a quarter of the bytes. In all ${cost:.2f}, or "
        f"${cost / max(1, turns) * 100:.2f} for a hundred turns, at list prices of models of these "
        "sizes as they were in 2025 (extraction in batches at half): for a sense of scale."
    )


def _prompts(rows: Sequence[Row]) -> str:
    head = ["chat", f"tokens ({NAME})", "as estimated before", "estimate / tokens", "cuts",
            "from cache", "memories shown", "messages shown"]  # fmt: skip
    lines = []
    for row in rows:
        low, high = row["estimate_ratio"] or (0, 0)
        lines.append([
            row["chat"], three(row["prompt_tokens"]), three(row["estimated_tokens"]),
            f"{low:.2f} to {high:.2f}", row["cuts"],
            f"{row['calls']['conversation']['cached_share']:.0%}",
            three(row["shown"]["memories"]), three(row["shown"]["passages"]),
        ])  # fmt: skip
    names = list(dict.fromkeys(name for row in rows for name in row["sections"]))
    sections = [
        [name, *(three(row["sections"].get(name, {})) for row in rows)] for name in names
    ]  # fmt: skip
    typical = [row["prompt_tokens"]["p50"] for row in rows]
    base = max(row["sections"]["BasePrompt"]["max"] for row in rows)
    most = max(row["shown"]["memories"]["max"] for row in rows)
    bounds = [
        ["base prompt at most 1,500 tokens", f"{base:,.0f}"],
        [f"a prompt usually at most {BESIDE:,} tokens: p50 of the chats",
         f"{min(typical):,.0f} to {max(typical):,.0f}"],
        [f"at most {MEMORIES} memories shown", most],
    ]  # fmt: skip
    return (
        "p50 / p95 / max, the whole request with the schemas of its tools.\n\n"
        + table(head, lines)
        + "\n\n"
        + table(["bound", "figure"], bounds)
        + "\n\nSections, as estimated:\n\n"
        + table(["section", *(f"chat {row['chat']}" for row in rows)], sections)
    )


def _drift(rows: Sequence[Row]) -> str:
    lines = []
    doubted: Counter[str] = Counter()
    for row in rows:
        doubted.update(row["doubted"])
        wrongly = sum(n for kind, n in row["doubted"].items() if kind != "untrue")
        true = row["sentences"] - row["untrue"]
        lines.append([
            row["chat"], row["sentences"], row["untrue"], row["doubted"].get("untrue", 0),
            f"{wrongly} ({wrongly / max(1, true):.0%})",
            row["corrected"], _counts(row["drift"]), row["drift_checks"].get("again", 0),
        ])  # fmt: skip
    head = ["chat", "sentences", "untrue", "of these found", "true, but doubted",
            "summaries corrected", "drift of what was kept", "checked again later"]  # fmt: skip
    reasons = ", ".join(f"{kind} {n}" for kind, n in doubted.most_common() if kind != "untrue")
    return (
        table(head, lines)
        + f"\n\nWhat is true was doubted for: {reasons or 'nothing'}. Drift is the share of a "
        "summary's sentences that are still doubted after its one correction."
    )


def _counts(found: Mapping[str, int]) -> str:
    return ", ".join(f"{n} × {value}" for value, n in found.items()) or "–"


def _probes(rows: Sequence[Row]) -> str:
    probes = [probe for row in rows for probe in row["probed"]]
    by: dict[str, list[Row]] = {}
    for probe in probes:
        by.setdefault(str(probe["ability"]).replace("_", " "), []).append(probe)
    chats = {f"chat {row['chat']}": row["probed"] for row in rows}
    head = ["questions", "asked", "any of it", "share of it", "as message", "by memory",
            "its exchange"]  # fmt: skip
    groups = {"all": probes, **chats, **dict(sorted(by.items()))}
    return (
        "Whether the turn that asked was shown what answers the question, before the model was "
        "called and without a tool: any of the messages that answer it, and which share of them; "
        "as a message of the history, or by a memory made of one; any message of the same "
        "exchange.\n\n"
        + table(head, [_shares(name, some) for name, some in groups.items() if some])
    )


def _shares(name: str, probes: Sequence[Row]) -> list[Any]:
    def mean(what: str) -> str:
        return f"{sum(float(probe[what]) for probe in probes) / len(probes):.2f}"

    return [name, len(probes), *map(mean, ("any", "share", "passage", "memory", "turn"))]


def _times(rows: Sequence[Row]) -> str:
    stages = list(dict.fromkeys(stage for row in rows for stage in row["stages"]))
    parts = list(dict.fromkeys(part for row in rows for part in row["recall"]))
    head = [*(f"chat {row['chat']}" for row in rows)]
    late: Counter[str] = Counter()
    for row in rows:
        late.update(row["late"])
    left_out = ", ".join(f"{name} in {count} turns" for name, count in late.items()) or "none"
    return (
        "Milliseconds from acceptance to each stage of a turn, p50 / p95 / max; the double answers "
        "at once.\n\n"
        + table(["stage", *head],
                [[s.replace("_", " "), *(three(row["stages"].get(s, {})) for row in rows)]
                 for s in stages])
        + "\n\nParts of recall, which overlap:\n\n"
        + table(["part", *head],
                [[p, *(three(row["recall"].get(p, {})) for row in rows)] for p in parts])
        + f"\n\nParts that took longer than they may, and were left out: {left_out}."
    )  # fmt: skip
