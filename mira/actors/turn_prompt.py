"""The prompt of one turn: what is recalled for it, what it is made of, and the account of it."""

from __future__ import annotations

from uuid import UUID

import msgspec

from mira.actors import subcortex
from mira.actors.live_turns import exchanges
from mira.actors.parts import Parts
from mira.actors.recall import Beside
from mira.actors.recalled import Recalled, ShownMemory, Wanted
from mira.actors.runtime.actor import Context
from mira.actors.taking_over import Standing, trigger
from mira.actors.working import WorkingState
from mira.errors import ContextOverflow, MiraError
from mira.llm.base import Effort
from mira.memory.usage import cited
from mira.messages.content import attached_in, plain_text
from mira.messages.stream import MemoriesUsed
from mira.messages.subcortex import Consider, Considered, InContext
from mira.messages.turn import PromptComposed
from mira.prompt import attachments
from mira.prompt.inputs import Inputs, LinkedMemory, SurfacedMemory, SurfacedPassage
from mira.prompt.layout import Prompt
from mira.prompt.misses import misses
from mira.store import effects, files
from mira.store.turn_account import (
    DroppedAccount,
    SectionAccount,
    ShownMemoryAccount,
    ShownPassageAccount,
    SubcortexAccount,
    TurnAccount,
)
from mira.store.turns import TakenTurn
from mira.telemetry import logger

log = logger("prompt")

#: How often a prompt is made smaller before the model is said to be too small for it.
CUTS = 2
#: A model that can read no more than this gets everything in short form.
COMPACT = 8192
#: The share of the usual bounds that what is said now has in the smallest prompt, and how often
#: that is halved for a model that by its own account could not hold even this.
LEAST, HALVINGS = 0.125, 4
#: The share of a model's window that a prompt may take; the rest is for the answer, and for what
#: the estimate of tokens is wrong by.
OF_WINDOW = 0.85


class TurnPrompt:
    """Gathers and composes, in the mailbox of the door, for one turn."""

    def __init__(
        self, parts: Parts, user_id: UUID, ctx: Context, standing: Standing, taken: TakenTurn
    ) -> None:
        self._parts = parts
        self._user_id = user_id
        self._ctx = ctx
        self._standing = standing
        self._taken = taken
        self._outcome: str | None = None
        self._cuts = 0
        self._halvings = 0
        #: Of the files that are given now, and of those of earlier turns.
        self._given: attachments.Forms = {}
        self._earlier: attachments.Forms = {}
        #: Documents are shown as the files that they are, while there is room.
        self._whole = True
        self.recalled = Recalled()
        self.composed: Prompt | None = None
        #: What keeps the first prompt of this turn from extending the last of the one before.
        self.missed: tuple[str, ...] = ()

    @property
    def effort(self) -> Effort:
        """How much thought the answer gets."""
        return subcortex.effort(self.recalled.considered)

    @property
    def share(self) -> float:
        """The share of the usual bounds that what is said in this turn may take."""
        return 1.0 if self._cuts < CUTS else LEAST / 2**self._halvings

    @property
    def working(self) -> WorkingState:
        """What the door must remember of this turn. One that the server began leaves it as it
        was: nothing is recalled for it."""
        if self._taken.origin == "action":
            return self._standing.working
        return WorkingState(surfaced=self.recalled.surfaced)

    async def gather(self, beside: Beside) -> None:
        """Find what is to be said beside the conversation itself. Never fails for what cannot be
        found; costs no more than the deadlines of the Subcortex and of a search."""
        taken, standing = self._taken, self._standing
        if taken.origin == "action":
            self._outcome = await self._what_came_of_it()
            return
        await self._read_files()
        named = ", ".join(one.name for one in attached_in(taken.blocks))
        words = plain_text(taken.blocks) or named
        before = exchanges((*standing.earlier.continuity, *standing.live.all()))

        async def consider(memories: tuple[InContext, ...]) -> Considered:
            return await subcortex.consider(
                self._ctx, self._user_id,
                Consider(
                    turn_id=taken.turn_id, words=words, exchanges=before, memories=memories
                ),
                timeout=self._parts.subcortex_deadline,
            )  # fmt: skip

        held = standing.live.message_ids | standing.earlier.message_ids
        self.recalled = await self._parts.recall.for_turn(
            Wanted(
                user_id=self._user_id,
                turn_id=taken.turn_id,
                words=words,
                surfaced=standing.working.surfaced,
                replies=standing.live.replies,
                held=held | {taken.message_id} if taken.message_id else held,
            ),
            consider if self._parts.considers() else None,
            beside,
        )

    async def _read_files(self) -> None:
        """Read the forms of the files in the prompt. Without a file nothing is asked; what cannot
        be read is named. A file given once more is shown large now, and stays small where it was
        given before."""
        standing, user_id = self._standing, self._user_id
        newest = [one.file_id for one in attached_in(self._taken.blocks)]
        older = attachments.given((*standing.earlier.continuity, *standing.live.all()))
        if not newest and not older:
            return
        try:
            async with self._parts.database.user(user_id) as tx:
                if newest:
                    self._given = await files.shown(
                        tx, user_id, newest, size="large", most=attachments.NOW
                    )
                if older:
                    self._earlier = await files.shown(
                        tx, user_id, older, size="small", most=attachments.EARLIER
                    )
        except MiraError as error:
            log.warning("files_not_read", code=error.code)

    async def compose(self) -> None:
        """Make the prompt; one that is estimated to be too long for the model is cut first."""
        room = int(self._parts.model.window * OF_WINDOW)
        prompt = self._compose()
        if prompt.tokens_estimated > room and self._given:
            # A page costs more as a page than by its words.
            self._whole = False
            prompt = self._compose()
        while prompt.tokens_estimated > room and self._halvings < HALVINGS:
            if self._cuts < CUTS:
                self._cuts += 1
            else:
                self._halvings += 1
            prompt = self._compose()
        await self._announce(prompt)

    async def smaller(self, error: ContextOverflow) -> None:
        """Make the prompt once more, cut deeper, since the model could not read it. Raises `error`
        if there is nothing left to cut."""
        if self._cuts >= CUTS:
            raise error
        self._cuts += 1
        self._whole = False
        await self._announce(self._compose())

    async def _announce(self, prompt: Prompt) -> None:
        before = self._standing.prompt
        self.missed = misses(before, prompt) if before is not None else ()
        self._standing.prompt = self.composed = prompt
        if self.missed:
            log.info("cache_missed", sections=self.missed)
        await self._ctx.publish(
            PromptComposed(
                user_id=self._user_id,
                turn_id=self._taken.turn_id,
                tokens_estimated=prompt.tokens_estimated,
                messages=len(prompt.messages),
            )
        )

    def _compose(self) -> Prompt:
        parts, standing, cuts = self._parts, self._standing, self._cuts
        earlier, live, window = standing.earlier, standing.live, parts.model.window
        # The first cut leaves half of the live turns, the second one sixteenth.
        turns = live.all() if not cuts else live.newest(trigger(parts) // (2, 16)[cuts - 1])
        return parts.composer.compose(
            Inputs(
                user=standing.name,
                timezone=standing.timezone,
                now=parts.clock.now(),
                last_message_at=live.last_message_at,
                turns=attachments.earlier(turns, self._earlier),
                words=attachments.now(
                    self._taken.blocks, self._given, self.share, whole=self._whole
                ),
                outcome=self._outcome,
                earlier=earlier.summaries if cuts < CUTS else (),
                continuity=attachments.earlier(earlier.continuity, self._earlier)
                if not cuts
                else (),
                boundary_end=earlier.ended_at,
                manifest=earlier.manifest if cuts < CUTS else (),
                brief=earlier.brief.text if earlier.brief else None,
                memories=tuple(map(_memory, self.recalled.memories)),
                passages=tuple(
                    SurfacedPassage(who=one.role, said_at=one.said_at, text=one.text)
                    for one in self.recalled.passages
                ),
                primer=parts.primer and not cuts,
                max_summaries=parts.max_summaries if not cuts else 1,
                compact=window <= COMPACT or cuts == CUTS,
                share=self.share,
            )
        )

    async def _what_came_of_it(self) -> str:
        """What a turn that the server began itself is about: an action that the user decided on."""
        async with self._parts.database.user(self._user_id) as tx:
            action = await effects.behind(tx, self._user_id, self._taken.turn_id)
        word = "allowed" if action.state == "executed" else "refused"
        return (
            f"The user was asked about your call of {action.tool} with {action.arguments} and "
            f"{word} it. What came of it: {action.result}"
        )

    def memories_used(self, reply: str, arguments: tuple[str, ...]) -> MemoriesUsed:
        """The short ids of the memories that were shown, and of those that the answer names."""
        shown = tuple(one.short_id for one in self.recalled.memories)
        named = cited((reply, *arguments))
        return MemoriesUsed(surfaced=shown, cited=tuple(one for one in shown if one in named))

    def trace(self) -> str:
        """How the answer came about, as JSON text of a TurnAccount."""
        recalled, prompt = self.recalled, self.composed
        considered = recalled.considered
        account = TurnAccount(
            effort=self.effort,
            cuts=self._cuts,
            tokens_estimated=prompt.tokens_estimated if prompt else 0,
            speculative=recalled.speculative,
            subcortex=None if considered is None else _considered(considered),
            memories=tuple(
                ShownMemoryAccount(
                    id=one.id, short_id=one.short_id, found_by=one.found_by,
                    score=round(one.score, 4), importance=round(one.importance, 4),
                    linked=tuple(other.id for other in one.linked),
                )
                for one in recalled.memories
            ),
            passages=tuple(
                ShownPassageAccount(message_id=one.message_id, score=round(one.score, 4))
                for one in recalled.passages
            ),
            dropped=tuple(DroppedAccount(id=one, why=why) for one, why in recalled.dropped),
            searches=recalled.traces,
            failed=dict(recalled.failed),
            recall_ms={name: round(value, 1) for name, value in recalled.timings.items()},
            sections=tuple(
                SectionAccount(
                    name=one.name, placement=one.placement, tokens=one.tokens, error=one.error
                )
                for one in (prompt.rendered if prompt else ())
            ),
            missed=self.missed,
        )  # fmt: skip
        return msgspec.json.encode(account).decode()


def _considered(considered: Considered) -> SubcortexAccount:
    return SubcortexAccount(
        phrases=considered.phrases,
        entities=considered.entities,
        retained=considered.retain,
        complexity=considered.complexity,
        fallback=considered.fallback,
        latency_ms=round(considered.latency_ms, 1),
        answer=considered.answer,
    )


def _memory(one: ShownMemory) -> SurfacedMemory:
    return SurfacedMemory(
        short_id=one.short_id,
        text=one.text,
        importance=one.importance,
        created_at=one.created_at,
        superseded=one.superseded,
        retained=one.found_by == "retained",
        linked=tuple(
            LinkedMemory(short_id=other.short_id, text=other.text, relation=other.how)
            for other in one.linked
        ),
    )
