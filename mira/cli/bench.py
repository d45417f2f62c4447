"""`mira bench NAME …`: benchmarks that installed packages offer.

They are entry points of the group `mira.bench`; each is a function that takes the rest of the
arguments and returns an exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

GROUP = "mira.bench"


def bench(arguments: Sequence[str]) -> int:
    """Run the benchmark that the first argument names; it reads the others itself."""
    known = {point.name: point for point in entry_points(group=GROUP)}
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview(known))
        return 0
    name, *rest = arguments
    point = known.get(name)
    if point is None:
        print(f"mira: There is no benchmark {name!r}.\n{_overview(known)}", file=sys.stderr)
        return 2
    run = point.load()
    result = run(rest)
    return result if isinstance(result, int) else 0


def _overview(known: dict[str, EntryPoint]) -> str:
    if not known:
        return "No benchmark is installed. Install MIRA from its source, with: make bench"
    return f"Usage: mira bench NAME …\nBenchmarks: {', '.join(sorted(known))}"
