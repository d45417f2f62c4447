"""The embedder's queues and caches, on a model whose threads the test holds and lets go.

What vectors mean is tested on the real models; here they only say which text they are of.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import anyio
import numpy as np
import pytest

from mira.clock import ManualClock
from mira.errors import EmbedderUnavailable
from mira.memory.embedding import Embedder, Kind, Vectors
from mira.memory.embedding.batching import LINGER, TEXTS, TOKENS
from mira.memory.pool import CpuPool

pytestmark = pytest.mark.anyio


class Model:
    """A model at the edge of the threads: it waits to be let go, and notes its batches."""

    model, dimension, asymmetric = "double@1", 2, True

    def __init__(self) -> None:
        self.batches: list[tuple[Kind, list[str]]] = []
        self.held = threading.Event()
        self.held.set()

    def hold(self) -> None:
        self.held.clear()

    def go(self) -> None:
        self.held.set()

    @property
    def texts(self) -> list[str]:
        return [text for _, texts in self.batches for text in texts]

    def weigh(self, text: str) -> int:
        return max(1, len(text))

    def encode(self, texts: Sequence[str], kind: Kind) -> Vectors:
        if texts != ["warm"]:
            self.batches.append((kind, list(texts)))
        assert self.held.wait(20)
        if "poison" in texts:
            raise RuntimeError("the library says something about a text")
        return np.array([vector_of(text, kind) for text in texts], np.float32)


def vector_of(text: str, kind: Kind) -> tuple[float, float]:
    return (float(sum(map(ord, text))), float(kind == "query"))


class Shared:
    """The cache beyond the process, as the port has it."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def get(self, keys: Sequence[str]) -> Sequence[bytes | None]:
        await anyio.lowlevel.checkpoint()
        return [self.kept.get(key) for key in keys]

    async def put(self, entries: Mapping[str, bytes]) -> None:
        await anyio.lowlevel.checkpoint()
        self.kept.update(entries)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def busy(model: Model, pool: CpuPool, clock: ManualClock) -> Embedder:
    """An embedder on the model of this test."""
    embedder = Embedder(lambda: model, pool, clock)
    await embedder.warm()
    return embedder


def _given(model: Model, text: str) -> bool:
    return text in model.texts


def _batches(model: Model, count: int) -> bool:
    return len(model.batches) == count


async def _driven(clock: ManualClock, seen: Callable[[], bool]) -> None:
    """Let time go by as long as it takes."""
    with anyio.fail_after(10):
        while not seen():
            clock.advance(LINGER)
            await anyio.lowlevel.checkpoint()


async def test_texts_that_arrive_together_are_one_batch(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    async with anyio.create_task_group() as group:
        for text in ("one", "two", "three"):
            group.start_soon(busy.texts, [text])
        await anyio.wait_all_tasks_blocked()
        clock.advance(LINGER / 2)
        group.start_soon(busy.texts, ["four"])
        await anyio.wait_all_tasks_blocked()
        assert not model.batches, "there may be more to come"
        clock.advance(LINGER)
    assert sorted(model.texts) == ["four", "one", "three", "two"]
    assert len(model.batches) == 1


async def test_a_live_query_waits_for_nobody(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    model.hold()
    async with anyio.create_task_group() as group:
        group.start_soon(busy.texts, [f"text {n}" for n in range(200)])
        await _driven(clock, lambda: bool(model.batches))
        group.start_soon(busy.query, "where are my keys?")
        await _driven(clock, lambda: len(model.batches) == 2)
        assert model.batches[1] == ("query", ["where are my keys?"])
        assert len(model.batches[0][1]) < 200, "the rest of the texts is still to come"
        group.start_soon(_let_go, model, clock, 201)
    assert len(model.texts) == 201


async def _let_go(model: Model, clock: ManualClock, texts: int) -> None:
    """Let the model work until it was given so many texts."""
    model.go()
    await _driven(clock, lambda: len(model.texts) == texts)


async def test_live_queries_that_wait_together_are_one_batch(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    model.hold()
    async with anyio.create_task_group() as group:
        for name in ("a", "b"):  # both threads are taken
            group.start_soon(busy.query, name)
            await _driven(clock, partial(_given, model, name))
        for name in "cdefgh":
            group.start_soon(busy.query, name)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(_let_go, model, clock, 8)
    assert [len(texts) for _, texts in model.batches] == [1, 1, 6]


async def test_batches_are_bounded_and_hold_texts_of_like_length(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    texts = [f"{n:03d}" + "x" * (100 if n % 2 else 1) for n in range(100)]
    async with anyio.create_task_group() as group:

        async def all_of_them() -> None:
            vectors = await busy.texts(texts)
            assert vectors.tolist() == [list(vector_of(t, "text")) for t in texts]

        group.start_soon(all_of_them)
        await _driven(clock, lambda: len(model.texts) == 100)
    for _, batch in model.batches:
        assert len(batch) <= TEXTS
        assert len(batch) * max(map(len, batch)) <= TOKENS
        assert len({len(text) for text in batch}) == 1, "padding is work for nothing"


async def test_a_text_longer_than_a_batch_may_be_is_a_batch_of_its_own(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(busy.texts, ["short", "y" * (TOKENS + 5), "brief"])
        await _driven(clock, lambda: len(model.texts) == 3)
    assert ["y" * (TOKENS + 5)] in [batch for _, batch in model.batches]


async def test_no_text_is_passed_over_for_ever(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    model.hold()
    async with anyio.create_task_group() as group:
        group.start_soon(busy.texts, ["first"])
        await _driven(clock, lambda: bool(model.batches))
        group.start_soon(busy.texts, ["the long one " * 15])
        await anyio.wait_all_tasks_blocked()
        group.start_soon(busy.texts, [f"{n}" for n in range(100)])
        await anyio.wait_all_tasks_blocked()
        group.start_soon(_let_go, model, clock, 102)
    assert model.batches[1][1] == ["the long one " * 15], "it had waited longest"


async def test_a_text_is_encoded_once(busy: Embedder, model: Model, clock: ManualClock) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(busy.texts, ["again", "again", "other"])
        await _driven(clock, lambda: len(model.texts) == 2)
    again = await busy.texts(["other", "again"])
    assert sorted(model.texts) == ["again", "other"]
    assert again.tolist() == [list(vector_of("other", "text")), list(vector_of("again", "text"))]


async def test_a_phrase_that_two_look_for_at_the_same_time_is_encoded_once(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    found: dict[str, list[list[float]]] = {}

    async def look(other: str) -> None:
        found[other] = (await busy.queries(["both", other])).tolist()

    model.hold()
    async with anyio.create_task_group() as group:
        group.start_soon(look, "mine")
        group.start_soon(look, "yours")
        await anyio.wait_all_tasks_blocked()
        model.go()
        await _driven(clock, lambda: len(model.texts) == 3)
    assert sorted(model.texts) == ["both", "mine", "yours"]
    for other in ("mine", "yours"):
        assert found[other] == [[*vector_of(text, "query")] for text in ("both", other)]


async def test_a_phrase_comes_though_the_one_who_asked_for_it_first_has_left(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    found: list[list[float]] = []
    first = anyio.CancelScope()

    async def leave() -> None:
        with first:
            await busy.query("both")

    async def stay() -> None:
        found.append((await busy.query("both")).tolist())

    async with anyio.create_task_group() as group:
        group.start_soon(leave)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(stay)
        await anyio.wait_all_tasks_blocked()
        first.cancel()
        await _driven(clock, lambda: bool(found))
    assert found == [[*vector_of("both", "query")]]


async def test_writing_into_a_vector_changes_nobody_elses(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(_driven, clock, lambda: bool(model.texts))
        mine = await busy.query("x")
    mine[:] = 0
    assert (await busy.query("x")).tolist() == list(vector_of("x", "query"))


async def test_an_asymmetric_models_query_is_not_the_same_text_as_a_text(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(busy.query, "same")
        group.start_soon(busy.texts, ["same"])
        await _driven(clock, lambda: len(model.batches) == 2)
    assert {kind for kind, _ in model.batches} == {"query", "text"}


async def test_another_process_is_not_asked_for_vectors_of_another_model(
    model: Model, pool: CpuPool, clock: ManualClock
) -> None:
    shared = Shared()
    for name, batches in (("double@1", 1), ("double@1", 1), ("double@2", 2)):
        model.model = name
        embedder = Embedder(lambda: model, pool, clock, shared=shared)
        await embedder.warm()
        async with anyio.create_task_group() as group:
            group.start_soon(embedder.texts, ["kept"])
            await _driven(clock, partial(_batches, model, batches))
    assert len(shared.kept) == 2


async def test_a_damaged_copy_is_not_used(model: Model, pool: CpuPool, clock: ManualClock) -> None:
    shared = Shared()
    for batches in (1, 2):
        embedder = Embedder(lambda: model, pool, clock, shared=shared)
        await embedder.warm()
        async with anyio.create_task_group() as group:
            group.start_soon(embedder.texts, ["kept"])
            await _driven(clock, partial(_batches, model, batches))
        shared.kept = {key: data[:-1] for key, data in shared.kept.items()}


async def test_one_callers_bad_text_fails_for_that_caller_alone(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    found: list[Vectors] = []

    async def good(text: str) -> None:
        found.append(await busy.texts([text]))

    async def bad() -> None:
        with pytest.raises(EmbedderUnavailable):
            await busy.texts(["fine", "poison"])

    async with anyio.create_task_group() as group:
        group.start_soon(good, "one")
        group.start_soon(bad)
        group.start_soon(good, "two")
        await _driven(clock, lambda: len(found) == 2)
    assert len(model.batches[0][1]) == 4, "they were one batch"


async def test_a_caller_that_leaves_takes_its_waiting_texts_along(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    model.hold()
    async with anyio.create_task_group() as group:
        group.start_soon(busy.texts, ["runs"])
        await _driven(clock, lambda: bool(model.batches))
        with anyio.CancelScope() as left:
            async with anyio.create_task_group() as inner:
                inner.start_soon(busy.texts, [f"left {n}" for n in range(1000)])
                await anyio.wait_all_tasks_blocked()
                left.cancel()
        group.start_soon(busy.texts, ["stays"])
        await anyio.wait_all_tasks_blocked()
        group.start_soon(_let_go, model, clock, 2)
    assert model.texts == ["runs", "stays"]


async def test_leaving_while_the_model_works_on_it_leaves_the_embedder_whole(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    model.hold()
    with anyio.CancelScope() as left:
        async with anyio.create_task_group() as group:
            group.start_soon(busy.texts, ["left"])
            await _driven(clock, lambda: bool(model.batches))
            left.cancel()
    model.go()
    async with anyio.create_task_group() as group:
        group.start_soon(busy.texts, ["next"])
        await _driven(clock, lambda: "next" in model.texts)


async def test_a_long_list_is_taken_in_piece_by_piece(
    busy: Embedder, model: Model, clock: ManualClock
) -> None:
    """Others get their turn between its pieces, however long it is."""
    model.hold()
    async with anyio.create_task_group() as group:
        group.start_soon(busy.texts, [f"l{n:05d}" for n in range(2000)])
        await _driven(clock, lambda: bool(model.batches))
        group.start_soon(busy.texts, ["another"])
        await anyio.wait_all_tasks_blocked()
        group.start_soon(_let_go, model, clock, 2001)
    assert model.texts.index("another") < 300


async def test_nothing_to_encode_is_no_work(busy: Embedder, model: Model) -> None:
    assert (await busy.texts([])).shape == (0, 2)
    assert (await busy.queries([])).shape == (0, 2)
    assert not model.batches


async def test_before_it_is_loaded_it_says_so(pool: CpuPool, clock: ManualClock) -> None:
    embedder = Embedder(Model, pool, clock)
    assert not embedder.ready
    for ask in (lambda: embedder.model, lambda: embedder.dimension):
        with pytest.raises(EmbedderUnavailable, match="not loaded yet"):
            ask()
    with pytest.raises(EmbedderUnavailable, match="not loaded yet"):
        await embedder.query("x")


async def test_a_model_that_cannot_be_loaded_is_tried_again_when_asked(
    pool: CpuPool, clock: ManualClock
) -> None:
    reasons = iter(["the weights are damaged"])

    def load() -> Model:
        for reason in reasons:
            raise EmbedderUnavailable(reason)
        return Model()

    embedder = Embedder(load, pool, clock)
    with pytest.raises(EmbedderUnavailable, match="damaged"):
        await embedder.warm()
    with pytest.raises(EmbedderUnavailable, match="damaged"):
        await embedder.texts(["x"])
    await embedder.warm()
    assert (embedder.ready, embedder.model) == (True, "double@1")


async def test_closing_while_busy_answers_everyone(model: Model, clock: ManualClock) -> None:
    pool = CpuPool(1)
    embedder = Embedder(lambda: model, pool, clock)
    await embedder.warm()
    model.hold()
    said: list[str] = []

    async def caller(text: str) -> None:
        try:
            await embedder.texts([text])
        except EmbedderUnavailable as error:
            said.append(error.detail)
        else:
            said.append(text)

    async with anyio.create_task_group() as group:
        group.start_soon(caller, "runs")
        await _driven(clock, lambda: bool(model.batches))
        group.start_soon(caller, "waits")
        await anyio.wait_all_tasks_blocked()
        await embedder.aclose()
        await anyio.wait_all_tasks_blocked()
        assert said == ["The embedding model is put away: MIRA is stopping."]
        model.go()
        await pool.aclose()
    assert said[1:] == ["runs"]
    with pytest.raises(EmbedderUnavailable):
        await embedder.query("late")
