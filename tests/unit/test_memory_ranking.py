"""The order of memories: relevance, importance, debut, and what was superseded."""

from __future__ import annotations

import numpy as np
import pytest

from mira.memory.query import Intent
from mira.memory.ranking import Blend, Standing, debut, rank

NAN = float("nan")
INTENTS: tuple[Intent, ...] = ("recall", "explore", "exact", "general")


def standing(count: int, **given: list[float]) -> Standing:
    values = {"importance": [0.5] * count, "age": [100.0] * count, "superseded": [0.0] * count}
    values |= given
    return Standing(**{name: np.array(row, float) for name, row in values.items()})


def order(lanes: dict[str, list[float]], given: Standing, **blend: object) -> list[int]:
    arrays = {name: np.array(lane, float) for name, lane in lanes.items()}
    return rank(arrays, given, "recall", Blend(**blend)).order  # type: ignore[arg-type]


@pytest.mark.parametrize("fusion", ["min_max", "rrf"])
def test_what_two_lanes_find_ranks_before_what_one_finds(fusion: str) -> None:
    lanes = {"dense": [0.9, 0.8, NAN, 0.1], "lexical": [NAN, 7.0, 6.0, 1.0]}
    assert order(lanes, standing(4), fusion=fusion)[0] == 1


def test_a_lane_that_found_nothing_takes_nothing_from_the_others() -> None:
    lanes = {"dense": [0.9, 0.3, 0.1], "lexical": [5.0, 1.0, 2.0]}
    silent = {**lanes, "entity": [NAN, NAN, NAN]}
    arrays = [{n: np.array(v, float) for n, v in one.items()} for one in (lanes, silent)]
    first, second = (rank(one, standing(3), "recall", Blend()) for one in arrays)
    assert first.score.tolist() == second.score.tolist()


def test_importance_weighs_a_quarter() -> None:
    lanes = {"dense": [0.5, 0.5]}
    result = rank(
        {"dense": np.array(lanes["dense"])}, standing(2, importance=[0.2, 0.9]), "recall", Blend()
    )
    assert result.order == [1, 0]
    assert result.score.tolist() == pytest.approx([0.75 + 0.05, 0.75 + 0.225])


def test_what_was_superseded_counts_three_tenths() -> None:
    result = rank(
        {"dense": np.array([0.5, 0.5])}, standing(2, superseded=[1.0, 0.0]), "recall", Blend()
    )
    assert result.score[0] == pytest.approx(0.3 * result.score[1])


def test_the_debut_is_whole_for_seven_use_days_and_gone_after_ten() -> None:
    ages = np.array([0, 7, 8.5, 10, 400], float)
    assert debut(ages, Blend()).tolist() == pytest.approx([0.15, 0.15, 0.075, 0, 0])


def test_no_candidates_are_no_order() -> None:
    assert order({"dense": [], "lexical": []}, standing(0)) == []


def test_each_intent_weighs_the_lanes_its_own_way() -> None:
    lanes = {
        "dense": np.array([1.0, 0.0, 0.5, 0.5]),
        "lexical": np.array([0.0, 1.0, 0.55, 0.5]),
        "entity": np.array([NAN, NAN, NAN, 1.0]),
    }
    first = {intent: rank(lanes, standing(4), intent, Blend()).order for intent in INTENTS}
    # By words alone the second; by meaning and names the last, in which all agree.
    assert first["exact"][0] == 1
    assert first["explore"][0] == 3
    assert first["recall"].index(1) < first["recall"].index(0)
    assert first["explore"].index(0) < first["explore"].index(1)
