"""The real server, with tools that leave traces, killed at a stage of a turn if told so.

MIRA_TEST_EFFECTS=FILE          effects go to this file
MIRA_TEST_LIMITS=JSON           bounds of the surfaces in place of the usual ones
MIRA_TEST_KILL=STAGE            SIGKILL to this process when a turn first reaches the stage
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from uuid import UUID

from mira.actors.parts import Stage
from mira.app import serve
from mira.settings import load
from mira.web.services import Limits
from tests.support.effects import FileTools

if __name__ == "__main__":
    effects = os.environ.get("MIRA_TEST_EFFECTS")
    killed_at = os.environ.get("MIRA_TEST_KILL")

    def reached(stage: Stage, turn_id: UUID) -> None:
        if stage == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.exit(
        serve(
            load(),
            tools=FileTools(Path(effects)) if effects else None,
            reached=reached,
            limits=Limits(**json.loads(os.environ.get("MIRA_TEST_LIMITS", "{}"))),
        )
    )
