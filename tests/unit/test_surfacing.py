"""What is shown of what was found: how much, of which kind, and with what beside it."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from mira.memory.surfacing import CAP, LINKED, PASSAGES, RETAINED, Offer, surface


def offer(n: int, score: float = 0.5, *linked: int, kind: str = "memory") -> Offer:
    return Offer(
        id=UUID(int=n), score=score, kind=kind,  # type: ignore[arg-type]
        linked=tuple(UUID(int=x) for x in linked),
    )  # fmt: skip


def numbers(ids: object) -> list[int]:
    return [one.id.int for one in ids]  # type: ignore[attr-defined]


def test_by_default_eight_are_shown_the_best_fresh_ones_beside_six_of_earlier_turns() -> None:
    retained = [offer(n) for n in range(1, 11)]
    fresh = [offer(n, 1 - n / 100) for n in range(20, 40)]
    chosen = surface(fresh, [], retained)
    assert numbers(chosen.shown) == [1, 2, 3, 4, 5, 6, 20, 21]
    assert [one.retained for one in chosen.shown] == [True] * 6 + [False] * 2
    why = {one.int: reason for one, reason in chosen.dropped}
    assert (why[7], why[22]) == ("retained no longer", "ranked too low")


def test_without_anything_retained_all_places_are_for_fresh_ones_of_which_three_are_passages() -> (
    None
):
    passages = [offer(n, 0.99, kind="passage") for n in range(50, 60)]
    fresh = [offer(n, 0.5) for n in range(20, 40)]
    chosen = surface(fresh, passages, [])
    assert [one.kind for one in chosen.shown].count("passage") == PASSAGES
    assert len(chosen.shown) == 8


def test_what_the_prompt_holds_is_not_shown_again_not_even_as_linked() -> None:
    chosen = surface([offer(1, 1.0, 3, 4), offer(2)], [], [], held={UUID(int=2), UUID(int=3)})
    assert numbers(chosen.shown) == [1]
    assert chosen.shown[0].linked == (UUID(int=4),)
    assert chosen.dropped == ((UUID(int=2), "in the prompt already"),)


def test_one_that_is_found_again_stays_retained_and_is_shown_once() -> None:
    chosen = surface([offer(1, 0.9), offer(2, 0.8)], [], [offer(1)])
    assert [(one.id.int, one.retained) for one in chosen.shown] == [(1, True), (2, False)]


ids = st.integers(1, 60)
offers = st.lists(
    st.builds(
        lambda n, score, linked: offer(n, score, *linked),
        ids, st.floats(0, 1), st.lists(st.integers(1, 200), max_size=6),
    ),
    max_size=40,
)  # fmt: skip
told = st.lists(
    st.builds(lambda n, s: offer(n, s, kind="passage"), st.integers(1000, 1030), st.floats(0, 1)),
    max_size=20,
)


@given(offers, told, offers, st.integers(-3, 40), st.frozensets(ids, max_size=10))
def test_no_bound_is_ever_passed(
    memories: list[Offer], passages: list[Offer], retained: list[Offer], limit: int,
    held: frozenset[int],
) -> None:  # fmt: skip
    kept_out = {UUID(int=n) for n in held}
    chosen = surface(memories, passages, retained, limit=limit, held=kept_out)
    shown = [one.id for one in chosen.shown]
    beside = [other for one in chosen.shown for other in one.linked]
    assert len(shown) <= max(0, min(limit, CAP))
    assert len(shown) + len(beside) <= CAP
    assert len({*shown, *beside}) == len(shown) + len(beside)
    assert not kept_out & {*shown, *beside}
    assert sum(one.retained for one in chosen.shown) <= RETAINED
    assert sum(one.kind == "passage" for one in chosen.shown) <= PASSAGES
    assert all(len(one.linked) <= LINKED for one in chosen.shown)
    offered = {one.id for one in (*memories, *passages)} - {one.id for one in retained} - kept_out
    available = len(offered) - max(0, sum(i.int >= 1000 for i in offered) - PASSAGES)
    fresh = sum(not one.retained for one in chosen.shown)
    assert fresh >= min(2, available, max(0, min(limit, CAP)))
