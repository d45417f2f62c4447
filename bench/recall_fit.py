"""Fits the weights of the ranking of passages: `python -m bench.recall_fit --help`.

What is fitted is the order: each message that answers a question against all candidates that do
not, as a choice among them (a conditional logit, convex, with a ridge). Each data set counts alike
however many questions it has, each question alike however many answers it has.

Every figure that is printed is of questions in conversations that were left out of the fit, one
after another; the weights written in the end are fitted on all of them. Only weights, their number
of questions and the names of the data sets are written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from rich.console import Console
from rich.progress import track

from bench.memory_house import house
from bench.recall_data import DATASETS, load
from bench.recall_score import Ranked, interval, measures
from bench.recall_store import store
from mira.memory import passage_ranking
from mira.memory.bm25 import Floats
from mira.memory.passage_features import BY_MEANING, FEATURES, featured
from mira.memory.passages import POOL, PassageSearch
from mira.memory.query import RecallQuery

#: How strongly weights are held to 0, for features of standard deviation 1.
RIDGE = 0.03
#: Features that go by who speaks: reported with and without.
BY_SPEAKER = frozenset({"speaker", "own"})
LIMIT = 50


@dataclass(frozen=True)
class Case:
    """A question, its pool in the order of plain fusion, and which of it answers the question."""

    dataset: str
    group: str
    qid: str
    category: str
    evidence: tuple[str, ...]
    names: tuple[str, ...]
    answers: Floats
    features: Mapping[str, Floats]


def main(argv: Sequence[str] | None = None) -> int:
    """Fit and write; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.recall_fit", description=__doc__)
    parser.add_argument(
        "--data", nargs=2, action="append", required=True, metavar=("DATASET", "PATH"),
        help=f"a data set to be fitted on ({', '.join(DATASETS)}); may be said several times",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the weights")
    parser.add_argument(
        "--home", type=Path, metavar="DIR",
        help="keep the store there: what is in it already is not stored again",
    )  # fmt: skip
    parser.add_argument(
        "--rankings", type=Path, metavar="DIR", help="write the held-out rankings there"
    )
    options = parser.parse_args(argv)
    console = Console()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        cases = runner.run(
            _cases([(name, Path(path)) for name, path in options.data], options.home, console)
        )
    everything = list(FEATURES)
    report: dict[str, Any] = {}
    for label, features in (
        ("fused lanes", None),
        ("with meaning", everything),
        ("without speakers", [f for f in everything if f not in BY_SPEAKER]),
        ("words alone", [f for f in everything if f not in BY_MEANING]),
    ):
        held_out = _fused(cases) if features is None else _held_out(cases, features)
        report[label] = _judged(console, label, cases, held_out)
        if options.rankings is not None:
            _write_rankings(options.rankings, label, cases, held_out)
    _write_weights(options.out, cases, report)
    console.print(f"Written to {options.out}.")
    return 0


async def _cases(
    data: Sequence[tuple[str, Path]], home: Path | None, console: Console
) -> list[Case]:
    """Every question with evidence, with the pool that the product finds for it."""
    cases = []
    lanes = passage_ranking.LANE_WEIGHTS["recall"]
    async with house(home) as ready:
        search = PassageSearch(ready.database, ready.encoders)
        for dataset, path in data:
            for conversation in track(load(dataset, path), f"Asking {dataset}", console=console):
                stored = await store(ready, conversation)
                for question in conversation.questions:
                    if not question.evidence:
                        continue
                    query = RecallQuery(phrases=(question.text,), limit=LIMIT)
                    pool = await search.pool(stored.user_id, query)
                    vector = None if pool.vectors is None else pool.vectors[0]
                    found = featured(pool.asked[0], vector, pool.facts, lanes, POOL)
                    names = tuple(stored.names[pool.rows.message_id[at]] for at in found.at)
                    cases.append(
                        Case(
                            dataset, f"{dataset}/{conversation.id}", question.id,
                            question.category, question.evidence, names,
                            np.isin(names, question.evidence).astype(np.float64), found.features,
                        )
                    )  # fmt: skip
    return cases


def fit(cases: Sequence[Case], features: Sequence[str], ridge: float = RIDGE) -> dict[str, float]:
    """The weights of these features that order the cases best."""
    problem = _Problem([c for c in cases if 0 < c.answers.sum() < len(c.answers)], features, ridge)
    weights = np.zeros(len(features))
    loss, gradient, curvature = problem.at(weights)
    for _ in range(50):
        step = -np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > 1e-4:
            tried = problem.at(weights + size * step)
            if tried[0] <= loss:
                break
            size /= 2
        else:
            break
        weights = weights + size * step
        gained = loss - tried[0]
        loss, gradient, curvature = tried
        if gained < 1e-6:
            break
    found = weights / problem.scale
    return {name: round(float(one), 3) for name, one in zip(features, found, strict=True)}


class _Problem:
    """The loss of weights, its gradient and its curvature; all pools in one matrix, end to end."""

    def __init__(self, cases: Sequence[Case], features: Sequence[str], ridge: float) -> None:
        rows = np.concatenate(
            [np.column_stack([case.features[name] for name in features]) for case in cases]
        )
        self.scale = rows.std(axis=0)
        self.scale[self.scale < 1e-9] = 1.0
        self._rows = rows / self.scale
        self._ridge = ridge
        sizes = [len(case.answers) for case in cases]
        self._starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self._case = np.repeat(np.arange(len(cases)), sizes)
        answers = np.concatenate([case.answers for case in cases]) > 0
        self._right, self._others = np.flatnonzero(answers), (~answers).astype(np.float64)
        counts: dict[str, int] = {}
        for case in cases:
            counts[case.dataset] = counts.get(case.dataset, 0) + 1
        shares = [1 / counts[case.dataset] / len(counts) / case.answers.sum() for case in cases]
        self._share = np.array(shares)[self._case[self._right]]

    def at(self, weights: Floats) -> tuple[float, Floats, Floats]:
        score = self._rows @ weights
        score = score - np.maximum.reduceat(score, self._starts)[self._case]
        likely = np.exp(score)
        mass = likely * self._others
        total = np.add.reduceat(mass, self._starts)
        summed = np.add.reduceat(self._rows * mass[:, None], self._starts)
        of, own, rows = self._case[self._right], likely[self._right], self._rows[self._right]
        whole = total[of] + own
        expected = (summed[of] + own[:, None] * rows) / whole[:, None]
        loss = float(self._share @ (np.log(whole) - score[self._right]))
        weigh = np.bincount(of, self._share / whole, len(self._starts))[self._case] * mass
        weigh[self._right] += self._share * own / whole
        curvature = (self._rows * weigh[:, None]).T @ self._rows
        curvature -= (expected * self._share[:, None]).T @ expected
        return (
            loss + self._ridge / 2 * float(weights @ weights),
            self._share @ (expected - rows) + self._ridge * weights,
            curvature + self._ridge * np.eye(len(weights)),
        )


def _held_out(cases: Sequence[Case], features: Sequence[str]) -> list[Floats]:
    """Scores of each case by weights that were fitted without its conversation."""
    scores: dict[int, Floats] = {}
    for group in dict.fromkeys(case.group for case in cases):
        weights = fit([case for case in cases if case.group != group], features)
        for at, case in enumerate(cases):
            if case.group == group:
                scores[at] = _score(case, weights)
    return [scores[at] for at in range(len(cases))]


def _fused(cases: Sequence[Case]) -> list[Floats]:
    return [-np.arange(len(case.names), dtype=np.float64) for case in cases]


def _score(case: Case, weights: Mapping[str, float]) -> Floats:
    total = np.zeros(len(case.names))
    for name, weight in weights.items():
        total += weight * case.features[name]
    return total


def _rankings(cases: Sequence[Case], scores: Sequence[Floats], dataset: str) -> list[Ranked]:
    return [
        Ranked(
            case.qid, case.group, case.category, case.evidence,
            tuple(case.names[at] for at in np.argsort(-score, kind="stable")[:LIMIT]), 0.0,
        )
        for case, score in zip(cases, scores, strict=True)
        if case.dataset == dataset
    ]  # fmt: skip


def _judged(
    console: Console, label: str, cases: Sequence[Case], scores: Sequence[Floats]
) -> dict[str, Any]:
    report = {}
    for dataset in dict.fromkeys(case.dataset for case in cases):
        rows = _rankings(cases, scores, dataset)
        found = measures(rows)
        several = [row for row in rows if row.category == "1"]
        if several:
            found["all@10 of category 1"] = measures(several)["all@10"]
            found["its interval"] = interval(several, "all@10")
        report[dataset] = found
        console.print(f"{label}, {dataset}: {found}")
    return report


def _write_rankings(
    folder: Path, label: str, cases: Sequence[Case], scores: Sequence[Floats]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for dataset in dict.fromkeys(case.dataset for case in cases):
        path = folder / f"{dataset}-{label.replace(' ', '-')}.jsonl"
        with path.open("w") as file:
            for row in _rankings(cases, scores, dataset):
                file.write(json.dumps(asdict(row)) + "\n")


def _write_weights(path: Path, cases: Sequence[Case], report: Mapping[str, Any]) -> None:
    sets = dict.fromkeys(case.dataset for case in cases)
    everything = list(FEATURES)
    document = {
        "provenance": {
            "fitted_by": "bench/recall_fit.py",
            "on": {
                name: {
                    "conversations": len({c.group for c in cases if c.dataset == name}),
                    "questions": sum(c.dataset == name for c in cases),
                }
                for name in sets
            },
            "sources": _SOURCES,
            "held_out_R@10": {
                label: {name: found["R@10"] for name, found in sets_found.items()}
                for label, sets_found in report.items()
            },
            "ridge": RIDGE,
        },
        "with_meaning": fit(cases, everything),
        "words_alone": fit(cases, [name for name in everything if name not in BY_MEANING]),
    }
    path.write_text(json.dumps(document, indent=2) + "\n")


#: Whose work the numbers were learned from; none of its text is here.
_SOURCES = {
    "locomo": "LoCoMo (Maharana et al. 2024, CC BY-NC 4.0)",
    "beam": "BEAM, 100K (Tavakoli et al. 2025)",
}

if __name__ == "__main__":
    raise SystemExit(main())
