"""What is done to memories every few use-days: consolidation, floor review, merging of names.

Each is one or two questions, its effects, and, last and in one transaction with the end of its
message, the note that it was done. What is cut off before that is done again, and finds what it
has done already.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from uuid import UUID

import anyio.to_thread

from mira.actors.memory_keeper_links import all_shown
from mira.actors.memory_keeper_parts import KeeperParts, Step
from mira.actors.memory_keeper_questions import Answered, Question, T, gives_up
from mira.actors.runtime.actor import Context
from mira.errors import Conflict, MiraError, NotFound, ProviderError
from mira.memory import consolidation, entity_merge, floor_review, forgetting
from mira.memory.clusters import clusters
from mira.memory.consolidation import AlikeSet, Proposal
from mira.memory.entity_merge import Candidate
from mira.memory.floor_review import Fading, Review
from mira.store import memories, memory_jobs, memory_likeness, memory_scores, model_calls, spaces
from mira.store.database import Tx
from mira.store.memories import Memory
from mira.store.memory_jobs import Job, LastRun
from mira.store.memory_likeness import Alike
from mira.telemetry import logger

log = logger("keeper")

#: Memories from which likeness is looked for in one run, and in one statement.
SEEDS, SEEDS_AT_ONCE = 400, 40
#: Sets that are put to the question in one run.
SETS = 12
#: Entities looked at, and of them those whose names are compared by meaning.
ENTITIES, BY_MEANING = 5_000, 400


class Care:
    """Cares for the memories of one user."""

    def __init__(self, parts: KeeperParts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id

    async def _ask(self, question: Question, parse: Callable[[str], T]) -> Answered[T]:
        """Ask, and book what it cost."""
        answered = await self._parts.questions.ask(question, lambda words, _cut: parse(words))
        async with self._parts.database.user(self._user_id) as tx:
            await model_calls.book(tx, self._user_id, answered.calls, self._parts.clock.now())
        self._parts.reached(Step.ANSWERED)
        return answered

    async def _if_due(
        self, ctx: Context, job: Job, act: Callable[[LastRun, int], Awaitable[Note]]
    ) -> None:
        """Do a job if it is due, and note it with what it leaves to be noted."""
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            last = await memory_jobs.last_run(tx, user_id, job)
            use_day = await memories.use_days(tx, user_id)
        if not last.due(job, use_day):
            return
        try:
            note = await act(last, use_day)
        except ProviderError as error:
            if not gives_up(ctx, error):
                raise
            log.warning("memory_job_given_up", job=job.value, code=error.code)
            return
        async with parts.database.user(user_id) as tx:
            await note(tx)
            await memory_jobs.ran(tx, user_id, job, use_day, parts.clock.now())
            await ctx.done(tx)
        log.info("memory_job_done", job=job.value, use_day=use_day)

    # Consolidation.

    async def consolidate(self, ctx: Context) -> None:
        """Merge memories that say nearly the same, where a second answer approves it."""
        await self._if_due(ctx, Job.CONSOLIDATION, self._consolidate)

    async def _consolidate(self, last: LastRun, use_day: int) -> Note:
        found = await self._alike_sets(last)
        merged: set[UUID] = set()
        for start in range(0, len(found), consolidation.MOST_SETS):
            some = found[start : start + consolidation.MOST_SETS]
            for proposal in await self._approved([s for s, _ in some]):
                merged |= {
                    m.id for m in some[proposal.set][1]
                    if m.short_id in {one.short_id for one in proposal.members}
                }  # fmt: skip
                await self._merge(proposal, some[proposal.set][1])
                self._parts.reached(Step.MERGED)
        refused = [
            frozenset(m.id for m in members)
            for _, members in found
            if not merged & {m.id for m in members}
        ]

        async def note(tx: Tx) -> None:
            await memory_jobs.refuse(tx, self._user_id, refused, self._parts.clock.now())

        return note

    async def _alike_sets(self, last: LastRun) -> list[tuple[AlikeSet, list[Memory]]]:
        """Sets that were not refused too often, those of the newest memories first."""
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            space = await spaces.find(tx, user_id)
            if space is None:
                return []
            seeds = await memory_likeness.newest(
                tx, user_id, since_use_day=last.use_day, limit=SEEDS
            )
            refusals = await memory_jobs.refusals(tx, user_id)
        edges: list[Alike] = []
        for start in range(0, len(seeds), SEEDS_AT_ONCE):
            # A transaction each: none may take long.
            async with parts.database.user(user_id) as tx:
                edges += await memory_likeness.pairs(
                    tx, user_id, space.active, seeds[start : start + SEEDS_AT_ONCE],
                    floor=consolidation.LIKENESS,
                )  # fmt: skip
        sets = [
            members
            for members in clusters(
                [(e.one, e.other, e.likeness) for e in edges], most=consolidation.MOST_MEMBERS
            )
            if refusals.get(frozenset(members), 0) < consolidation.MOST_REFUSALS
        ]
        async with parts.database.user(user_id) as tx:
            known = await memories.find(tx, user_id, [one for members in sets for one in members])
        found = [[known[one] for one in members if one in known] for members in sets]
        found.sort(key=lambda members: -max(m.doc for m in members))
        return [(AlikeSet(all_shown(members)), members) for members in found[:SETS]]

    async def _approved(self, sets: list[AlikeSet]) -> list[Proposal]:
        proposed = await self._ask(
            Question(
                purpose="consolidation",
                template="consolidation",
                schema=consolidation.PROPOSALS,
                instructions={},
                data={"sets": consolidation.shown_sets(sets)},
            ),
            lambda words: consolidation.parse_proposals(words, sets),
        )
        proposals = proposed.taken()
        if not proposals:
            return []
        approval = await self._ask(
            Question(
                purpose="approval",
                template="approval",
                schema=consolidation.VERDICTS,
                instructions={},
                data={"proposals": consolidation.shown_proposals(proposals)},
            ),
            lambda words: consolidation.parse_verdicts(words, proposals),
        )
        return [p for p, good in zip(proposals, approval.taken(), strict=True) if good]

    async def _merge(self, proposal: Proposal, read: Sequence[Memory]) -> None:
        """Merge as approved, unless one of the memories is not any more what was read."""
        parts, user_id = self._parts, self._user_id
        try:
            made = await parts.memories.merge(
                user_id, [m.short_id for m in proposal.members], proposal.text,
                actor="consolidation", versions={m.id: m.version for m in read},
            )  # fmt: skip
        except (NotFound, Conflict) as passed:
            log.info("merge_passed_over", code=passed.code)
            return
        async with parts.database.user(user_id) as tx:
            # It has the links of those that it was made of.
            await memory_scores.integrated(tx, user_id, [made.id], parts.clock.now())

    # Floor review.

    async def review_floor(self, ctx: Context) -> None:
        """Look once more at memories that are about to be archived."""
        await self._if_due(ctx, Job.FLOOR_REVIEW, self._review_floor)

    async def _review_floor(self, last: LastRun, use_day: int) -> Note:
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            fading = await forgetting.sinking(
                tx, user_id, within=memory_scores.PATIENCE, limit=floor_review.MOST
            )
        if not fading:
            return _nothing
        shown = [
            Fading(
                short_id=m.short_id,
                since=m.created_at.date().isoformat(),
                text=m.text,
                used=m.access_count + m.mention_count,
                idle=use_day - (m.use_day_accessed or m.use_day_created),
            )
            for m in fading
        ]
        answered = await self._ask(
            Question(
                purpose="floor_review",
                template="floor_review",
                schema=floor_review.SCHEMA,
                instructions={},
                data={"memories": floor_review.shown(shown)},
            ),
            lambda words: floor_review.parse(words, shown),
        )
        by_ref = {m.short_id: m for m in fading}
        kept = []
        for review in answered.taken():
            memory = by_ref[review.short_id]
            try:
                await self._act_on(review, memory, last.at)
            except (NotFound, Conflict) as passed:
                log.info("review_passed_over", code=passed.code)
                continue
            if review.action != "archive":
                kept.append(memory.id)
            parts.reached(Step.REVIEWED)

        async def note(tx: Tx) -> None:
            await memory_scores.reviewed(tx, user_id, kept, use_day)

        return note

    async def _act_on(self, review: Review, memory: Memory, since: datetime | None) -> None:
        memories_, user_id = self._parts.memories, self._user_id
        if review.action == "archive":
            now = await memories_.get(user_id, memory.id)
            if now.below_since_use_day is None:
                raise Conflict("This memory was of use meanwhile.")
            await memories_.archive(user_id, memory.id, actor="review", version=memory.version)
        elif review.action == "salvage":
            notes = await memories_.annotations(user_id, memory.id)
            # An earlier try of this same review may have got this far.
            if not any(n.author == "review" and (since is None or n.at > since) for n in notes):
                await memories_.annotate(user_id, memory.id, review.note, author="review")

    # Names.

    async def merge_entities(self, ctx: Context) -> None:
        """Merge entities that are one under several names."""
        await self._if_due(ctx, Job.ENTITY_MERGE, self._merge_entities)

    async def _merge_entities(self, last: LastRun, use_day: int) -> Note:
        parts, user_id = self._parts, self._user_id
        async with parts.database.user(user_id) as tx:
            named = await memory_likeness.named(tx, user_id, limit=ENTITIES)
        new = {e.id for e in named if last.at is None or e.created_at > last.at}
        candidates = [
            Candidate(
                id=e.id, name=e.name, key=e.key, type=e.type, memories=e.memories,
                example=e.example or "",
            )
            for e in named
        ]  # fmt: skip
        meaning = await self._meaning(candidates[:BY_MEANING])
        # Thousands of names take a while to compare: not on the loop.
        groups = await anyio.to_thread.run_sync(entity_merge.groups, candidates, meaning)
        # Those that were looked at before and have not changed are not asked about again.
        groups = [g for g in groups if new & {e.id for e in g}][: entity_merge.MOST_GROUPS]
        if not groups:
            return _nothing
        answered = await self._ask(
            Question(
                purpose="entity_merge",
                template="entity_merge",
                schema=entity_merge.SCHEMA,
                instructions={},
                data={"groups": entity_merge.shown(groups)},
            ),
            lambda words: entity_merge.parse(words, groups),
        )
        for merge in answered.taken():
            try:
                await parts.memories.merge_entities(
                    user_id, merge.into, merge.others, actor="entities"
                )
            except (NotFound, Conflict) as passed:
                log.info("entity_merge_passed_over", code=passed.code)
            parts.reached(Step.MERGED)
        return _nothing

    async def _meaning(self, candidates: list[Candidate]) -> list[tuple[UUID, UUID]]:
        """Pairs of names of one type that mean nearly the same; none while nothing encodes."""
        encoder = self._parts.encoders.current
        if encoder is None or len(candidates) < 2:
            return []
        try:
            vectors = await encoder.texts([one.name for one in candidates])
        except MiraError as error:
            log.info("names_not_encoded", code=error.code)
            return []
        cosines = vectors @ vectors.T
        pairs = zip(*(cosines >= entity_merge.MEANING).nonzero(), strict=True)
        return [
            (candidates[i].id, candidates[j].id)
            for i, j in pairs
            if i < j and candidates[i].type == candidates[j].type
        ]


#: What a job leaves to be written with the note that it was done.
Note = Callable[[Tx], Awaitable[None]]


async def _nothing(tx: Tx) -> None:
    """Nothing to note."""
