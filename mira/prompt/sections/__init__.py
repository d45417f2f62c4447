"""The sections of the prompt, one file each. Listed here, in the order in which they stand."""

from __future__ import annotations

from mira.prompt.sections.base import BASE
from mira.prompt.sections.behavioral_directives import BEHAVIORAL_DIRECTIVES
from mira.prompt.sections.behavioral_primer import BEHAVIORAL_PRIMER
from mira.prompt.sections.boundary import BOUNDARY
from mira.prompt.sections.continuation_brief import CONTINUATION_BRIEF
from mira.prompt.sections.earlier_segments import EARLIER_SEGMENTS
from mira.prompt.sections.manifest import MANIFEST
from mira.prompt.sections.proactive_memory import PROACTIVE_MEMORY
from mira.prompt.sections.time_manager import TIME_MANAGER
from mira.prompt.sections.user_portrait import USER_PORTRAIT
from mira.prompt.trinket import Trinket

#: Within a placement, what changes least stands first.
SECTIONS: tuple[Trinket, ...] = (
    BASE,
    BEHAVIORAL_DIRECTIVES,
    USER_PORTRAIT,
    MANIFEST,
    EARLIER_SEGMENTS,
    BEHAVIORAL_PRIMER,
    BOUNDARY,
    CONTINUATION_BRIEF,
    TIME_MANAGER,
    PROACTIVE_MEMORY,
)
