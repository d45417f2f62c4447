"""The process in which the local model runs: `python -m mira.llm.local_child WEIGHTS`.

Prints one JSON line, `{"url": ...}`, when it can answer, and ends when its standard input closes.
A process of its own, since a crash in native code takes everything around it along.
"""

from __future__ import annotations

import json
import os
import sys

#: The context is divided among the slots.
SLOTS = 2
SLOT_TOKENS = 4096


def main(weights: str) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = weights
    params.model_alias = {"smollm2"}
    params.port = 0
    params.n_parallel = SLOTS
    params.n_ctx = SLOTS * SLOT_TOKENS
    # More threads stall each other on a busy machine, spinning for their turn.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 2
    params.cpuparams.poll = params.cpuparams_batch.poll = 0
    params.cache_ram_mib = 0  # else a prompt cache that may grow to gigabytes
    params.use_jinja = True
    params.warmup = False
    params.ui = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdout.flush()
    while sys.stdin.buffer.read(65536):
        pass
    os._exit(0)  # nothing to save, and native threads to leave behind


if __name__ == "__main__":
    main(sys.argv[1])
