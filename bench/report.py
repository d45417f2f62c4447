"""What all benchmarks report alike: the machine, the versions, the JSON on disk."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median


def machine() -> dict[str, object]:
    """The machine as far as it bears on timings; the load is of this moment."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "system": f"{platform.system()} {platform.release()}",
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def versions(*packages: str) -> dict[str, str]:
    """The version of Python, of MIRA, and of each package that is installed."""
    found = {"python": platform.python_version()}
    for package in ("mira", *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def write_json(
    path: Path, results: Sequence[Mapping[str, object]], *packages: str, **more: object
) -> None:
    """Write `{machine, versions, results, …}`, making the folder if it is not there."""
    document = {"machine": machine(), "versions": versions(*packages), "results": results, **more}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")


def arguments(name: str, description: str) -> argparse.ArgumentParser:
    """A parser of the arguments that every benchmark takes: `--json FILE`."""
    parser = argparse.ArgumentParser(prog=f"mira bench {name}", description=description)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    return parser


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of `values` lie; they need not be sorted."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def middle(values: Sequence[float]) -> float:
    """The median over rounds."""
    return median(values)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())
