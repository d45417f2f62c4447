"""Any model of sentence-transformers: other dimensions, prompts, encoders for queries alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mira.clock import SystemClock
from mira.errors import EmbedderUnavailable
from mira.memory.embedding import Embedder, backend_for
from mira.memory.embedding.minilm_files import packaged
from mira.memory.embedding.sentence_transformer import SentenceTransformerModel
from mira.memory.pool import CpuPool

pytestmark = pytest.mark.anyio

DIMENSION = 48


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small models with random weights, on the disk as such models are."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router

    at = tmp_path_factory.mktemp("small")
    one, other = _encoder(at / "one", seed=1), _encoder(at / "other", seed=2)
    parts: dict[str, dict[str, Any]] = {
        "asymmetric": {"modules": [Router.for_query_document(one, other)]},
        "prompts": {"modules": one, "prompts": {"query": "look for: ", "document": ""}},
        "plain": {"modules": one},
        "retrained": {"modules": other},
    }
    for name, how in parts.items():
        SentenceTransformer(device="cpu", **how).save(str(at / name))
    return at


def _encoder(at: Path, *, seed: int) -> list[Any]:
    import torch
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(packaged())
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=DIMENSION,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
    )
    BertModel(config).save_pretrained(at)
    tokenizer.save_pretrained(at)
    transformer = Transformer(str(at), max_seq_length=64)
    return [transformer, Pooling(DIMENSION)]


async def _open(name: Path, pool: CpuPool, models: Path) -> Embedder:
    embedder = Embedder(backend_for(str(name), models), pool, SystemClock())
    await embedder.warm()
    return embedder


@pytest.mark.parametrize(
    ("name", "asymmetric"), [("asymmetric", True), ("prompts", True), ("plain", False)]
)
async def test_queries_and_texts_are_each_encoded_as_the_model_means_them(
    folder: Path, pool: CpuPool, tmp_path: Path, name: str, asymmetric: bool
) -> None:
    from sentence_transformers import SentenceTransformer

    itself = SentenceTransformer(str(folder / name), device="cpu")
    embedder = await _open(folder / name, pool, tmp_path)
    texts = ["where are my keys?", "", "我的钥匙在哪里", "word " * 300]
    for ours, theirs in (
        (await embedder.queries(texts), itself.encode_query(texts, normalize_embeddings=True)),
        (await embedder.texts(texts), itself.encode_document(texts, normalize_embeddings=True)),
    ):
        assert ours.shape == (4, DIMENSION)
        assert np.abs(ours - theirs).max() < 1e-5
        assert np.abs(np.linalg.norm(ours, axis=1) - 1).max() < 1e-5
    unlike = np.abs(await embedder.queries(texts) - await embedder.texts(texts)).max() > 1e-3
    assert unlike == asymmetric


async def test_a_model_is_named_by_what_it_is_and_not_by_where_it_lies(
    folder: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "plain"
    shutil.copytree(folder / "plain", moved)
    plain = SentenceTransformerModel(str(folder / "plain"))
    assert SentenceTransformerModel(str(moved)).model == plain.model
    assert plain.model.startswith("plain@")
    others = {
        SentenceTransformerModel(str(folder / name)).model.partition("@")[2]
        for name in ("asymmetric", "prompts", "retrained")
    }
    assert len(others | {plain.model.partition("@")[2]}) == 4, "each is a space of its own"


async def test_several_threads_may_ask_it_at_once(
    folder: Path, pool: CpuPool, tmp_path: Path
) -> None:
    import anyio

    embedder = await _open(folder / "plain", pool, tmp_path)
    texts = [f"text {n} " + "and so on " * (n % 7) for n in range(60)]
    async with anyio.create_task_group() as group:
        for text in texts:
            group.start_soon(embedder.query, text)
            group.start_soon(embedder.texts, [text + "!"])
    again = SentenceTransformerModel(str(folder / "plain")).encode(texts, "query")
    assert np.abs(await embedder.queries(texts) - again).max() < 1e-5


async def test_a_folder_without_a_model_is_refused_with_a_remedy(
    pool: CpuPool, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}")
    embedder = Embedder(backend_for(str(tmp_path), tmp_path), pool, SystemClock())
    with pytest.raises(EmbedderUnavailable, match="MIRA_EMBEDDING_MODEL"):
        await embedder.warm()
    assert not embedder.ready
