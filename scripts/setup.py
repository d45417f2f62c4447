#!/usr/bin/env python3
"""Make the machine ready: `.venv` with exactly what the locks name, and the few Debian packages.

    python3 scripts/setup.py              what MIRA needs to run
    python3 scripts/setup.py --dev        also what its checks need
    python3 scripts/setup.py --browser    also Chromium, which the tests of the page drive

Standard library only, since it runs before anything is installed. It promises:
 - a second run that finds nothing changed does nothing and is done at once;
 - packages come from the locks alone, each held to its sha256, none resolved anew; but for torch,
   which only the checks need and which is held to its version (see `install_torch`);
 - what cannot be made ready ends the run with status 1, a reason and a remedy.

As root, missing Debian packages are installed; otherwise the command that does so is named.
"""

import sys

if sys.version_info < (3, 11):  # this file must parse on old Pythons, or they could not say so
    import os
    import shutil

    for name in ("python3.13", "python3.12", "python3.11"):
        better = shutil.which(name)
        if better:
            os.execv(better, [better] + sys.argv)
    sys.exit(
        "MIRA needs Python 3.11 or newer; %s is %d.%d.\n"
        "Install one (Debian 12 and newer: apt-get install python3 python3-venv), "
        "or name one: make run PYTHON=/path/to/python3.12"
        % ((sys.executable,) + sys.version_info[:2])
    )

import argparse
import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "mira-setup.json"
RUNTIME, DEV = ROOT / "requirements.lock", ROOT / "requirements-dev.lock"
TORCH = ROOT / "requirements-torch.lock"
VERSION = ".".join(str(part) for part in sys.version_info[:3])
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def main() -> None:
    options = argparse.ArgumentParser(description="Make the machine ready for MIRA.")
    options.add_argument("--dev", action="store_true", help="also install what the checks need")
    options.add_argument("--browser", action="store_true", help="also see to Chromium")
    chosen = options.parse_args()
    check_machine()
    if chosen.browser and not any(map(shutil.which, BROWSERS)):
        debian(("chromium", "fonts-dejavu-core"), "Chromium, which the tests of the page drive")
    with only_one():
        make_ready(dev=chosen.dev)


def check_machine() -> None:
    """See that this machine can run MIRA at all; cheap enough for every start."""
    if sys.platform != "linux":
        refuse(
            f"MIRA runs on Linux; this is {sys.platform}.",
            "Run it in a Linux machine, virtual machine or container.",
        )
    if not importlib.util.find_spec("ensurepip") or not importlib.util.find_spec("venv"):
        # Debian splits these off its Python; elsewhere they are part of it.
        package = f"python3.{sys.version_info.minor}-venv"
        debian((package,), f"the venv module of {sys.executable}")
    if not shutil.which("setpriv"):
        debian(("util-linux",), "setpriv, which ties the database's life to MIRA's")


def debian(packages: tuple[str, ...], what: str) -> None:
    """Install Debian packages when root; otherwise refuse, naming the command that does it."""
    command = ["apt-get", "install", "-y", "--no-install-recommends", *packages]
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        refuse(f"Missing: {what}.", "Install it with:  sudo " + " ".join(command))
    say(f"installing {', '.join(packages)} with apt-get ({what})")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    patient = ["-o", "DPkg::Lock::Timeout=300"]
    for step in (["apt-get", "update"], command):
        done = subprocess.run(
            [step[0], "-q", *patient, *step[1:]],
            env=quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        # An update may fail for one source of many: what counts is whether the install succeeds.
        if done.returncode and step is command:
            print(done.stdout[-4000:], file=sys.stderr)
            refuse(f"Missing: {what}.", "Install it with:  " + " ".join(command))


@contextmanager
def only_one() -> Iterator[None]:
    """Keep two set-ups of one checkout from mixing: the second waits for the first."""
    with (ROOT / ".venv.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another set-up of this checkout")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_ready(*, dev: bool) -> None:
    """Bring `.venv` to what the locks name, unless the stamp says that it is there already."""
    wanted = {"runtime": key(RUNTIME), "dev": key(RUNTIME, DEV, TORCH)}
    there = read_stamp()
    if PYTHON.exists() and there["dev"] == wanted["dev"]:
        return
    if PYTHON.exists() and there["runtime"] == wanted["runtime"] and not dev:
        return
    began = time.monotonic()
    make_venv()
    STAMP.unlink(missing_ok=True)
    # The runtime lock comes first: it holds setuptools, with which the few packages of the
    # development lock that are published as source only, and MIRA itself, are then built.
    install(RUNTIME, "what MIRA runs on")
    if dev:
        install(DEV, "what its checks need")
        install(TORCH, "what its embedding models are checked against")
        install_torch()
    say("installing MIRA itself, editable")
    pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    done = wanted if dev else {"runtime": wanted["runtime"]}
    STAMP.write_text(json.dumps(done) + "\n")
    say(f"ready in {time.monotonic() - began:.0f} s")


def key(*locks: Path) -> str:
    """What decides whether an environment is current: interpreter, place, locks, entry points."""
    digest = hashlib.sha256(f"{VERSION}\0{ROOT}\0".encode())
    for file in (*locks, ROOT / "pyproject.toml"):
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()


def read_stamp() -> dict[str, str]:
    try:
        found = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        found = {}
    return {"runtime": found.get("runtime", ""), "dev": found.get("dev", "")}


def make_venv() -> None:
    """Make `.venv`, or keep the one that is there if it works and has this Python's version."""
    probe = "import sys, pip; print('.'.join(map(str, sys.version_info[:3])))"
    if PYTHON.exists():
        seen = subprocess.run(
            [PYTHON, "-c", probe], capture_output=True, text=True, check=False
        ).stdout.strip()
        if seen == VERSION:
            return
    say(f"making .venv with Python {VERSION}")
    made = subprocess.run(
        [sys.executable, "-m", "venv", "--clear", VENV], capture_output=True, text=True, check=False
    )
    if made.returncode:
        print(made.stdout + made.stderr, file=sys.stderr)
        refuse("The virtual environment could not be made.", "See the lines above.")


def install(lock: Path, what: str) -> None:
    say(f"installing {what} ({lock.name})")
    pip("--no-deps", "--no-build-isolation", "--require-hashes", "--requirement", str(lock))


def install_torch() -> None:
    """Install the torch that pyproject.toml names, the one package that is not held to a hash.

    One version of it is several builds: with graphics cards or without, and not all of them come
    from one place. Which of them a machine gets is pip's to say; a hash would name a single one,
    for most machines gigabytes too large. What torch itself asks for is locked and already there,
    but for what a build with graphics cards brings along.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = project["optional-dependencies"]["torch"]
    (pin,) = [line for line in pins if line.startswith("torch==")]
    say(f"installing {pin}, which those need")
    pip(pin)


def pip(*arguments: str) -> None:
    """Run `pip install`; count what it takes up on a terminal, show its words only if it fails."""
    command = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    words, count, live = [], 0, sys.stdout.isatty()
    with subprocess.Popen(
        [*command, "--progress-bar", "off", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    ) as run:
        assert run.stdout
        for line in run.stdout:
            words.append(line)
            if live and line.startswith("Collecting "):
                count += 1
                print(f"\r   {count:3d}  {line.split()[1].split('=')[0]:40.40}", end="", flush=True)
    if live and count:
        print("\r" + " " * 50, end="\r", flush=True)
    if run.returncode:
        print("".join(words), file=sys.stderr)
        refuse(
            "The packages could not be installed; pip's own words stand above.",
            "With the network back, or the cause removed, run the same command again.",
        )


def say(words: str) -> None:
    print(f"== {words}", flush=True)


def refuse(reason: str, remedy: str) -> None:
    sys.exit(f"{reason}\n{remedy}")


if __name__ == "__main__":
    main()
