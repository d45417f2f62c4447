"""New memories looked at once: linked with older ones, merged into one of them, or left.

Whether a memory was looked at stands with it, and is set only when that has succeeded. One
question serves several new memories; those that nothing is like need none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from mira.actors.memory_keeper_parts import LINKS, KeeperParts, Step, keeper_of
from mira.actors.memory_keeper_questions import Question, gives_up
from mira.actors.runtime.actor import Context
from mira.errors import Conflict, EmbedderUnavailable, NotFound, ProviderError
from mira.memory import links_review
from mira.memory.encoding import ready
from mira.memory.links_review import FoundLink, FoundMerge, Newcomer, Shown
from mira.memory.terms import term_frequencies
from mira.messages.memory import LinkMemories
from mira.store import (
    memories,
    memory_jobs,
    memory_likeness,
    memory_scores,
    memory_search,
    model_calls,
    spaces,
)
from mira.store.database import Tx
from mira.store.memories import Memory
from mira.store.memory_jobs import Job
from mira.telemetry import logger

log = logger("keeper")

#: Likeness of candidates: of any memory, and of one about the same person or thing.
LIKENESS, LIKENESS_SHARING = 0.75, 0.55
#: Questions of one run; what is then left is another message.
ROUNDS = 10


class Linking:
    """Looks at the new memories of one user."""

    def __init__(self, parts: KeeperParts, user_id: UUID) -> None:
        self._parts = parts
        self._user_id = user_id

    async def look(self, ctx: Context, message: LinkMemories) -> None:
        """Look at memories that nobody has looked at, until none is left, or at many of them."""
        try:
            for _ in range(ROUNDS):
                if not await self._round():
                    return
        except ProviderError as error:
            if not gives_up(ctx, error):
                raise
            log.warning("links_given_up", code=error.code)
            async with self._parts.database.user(self._user_id) as tx:
                today = await memories.use_days(tx, self._user_id)
                now = self._parts.clock.now()
                await memory_jobs.ran(tx, self._user_id, Job.LINKS_FAILED, today, now)
                await ctx.done(tx)
            return
        async with self._parts.database.user(self._user_id) as tx:
            # In place of this one, which is thereby done.
            await ctx.tell_durable(
                tx, keeper_of(self._user_id), LinkMemories(), lane=LINKS, key=LINKS
            )

    async def _round(self) -> bool:
        """One question at most. False if nothing was left to look at."""
        parts, user_id = self._parts, self._user_id
        if parts.encoders.current is not None and ready(parts.encoders) is None:
            # Without vectors most of what belongs to them would not be found.
            raise EmbedderUnavailable("New memories wait for the embedding model.")
        async with parts.database.user(user_id) as tx:
            ids = await memory_scores.not_integrated(tx, user_id, limit=links_review.MOST_NEW)
            if not ids:
                return False
            found = await memories.find(tx, user_id, ids)
            news: list[Newcomer] = []
            versions = {one: memory.version for one, memory in found.items()}
            for one in ids:
                if candidates := await self._candidates(tx, found[one]):
                    news.append(Newcomer(shown(found[one]), all_shown(candidates)))
                    versions |= {memory.id: memory.version for memory in candidates}
            if not news:
                await memory_scores.integrated(tx, user_id, ids, parts.clock.now())
                return True
        answered = await parts.questions.ask(
            Question(
                purpose="links",
                template="links",
                schema=links_review.SCHEMA,
                instructions={},
                data={"news": links_review.shown(news)},
            ),
            lambda words, _cut: links_review.parse(words, news),
        )
        async with parts.database.user(user_id) as tx:
            await model_calls.book(tx, user_id, answered.calls, parts.clock.now())
        parts.reached(Step.ANSWERED)
        review = answered.taken()
        for link in review.links:
            await self._link(link)
        parts.reached(Step.LINKED)
        made = [await self._merge(merge, versions) for merge in review.merges]
        parts.reached(Step.MERGED)
        async with parts.database.user(user_id) as tx:
            looked_at = [*ids, *(one for one in made if one is not None)]
            await memory_scores.integrated(tx, user_id, looked_at, parts.clock.now())
        log.info(
            "integrated", memories=len(ids), links=len(review.links), merges=len(review.merges),
            refused=review.refused, damaged=review.damaged, calls=answered.spent.calls,
        )  # fmt: skip
        return True

    async def _candidates(self, tx: Tx, new: Memory) -> list[Memory]:
        """Older memories that a new one may belong to, the likeliest first, twenty at most."""
        user_id, most = self._user_id, links_review.MOST_CANDIDATES
        space = await spaces.find(tx, user_id)
        likeness: dict[UUID, float] = {}
        if space is not None:
            near = await memory_likeness.near(
                tx, user_id, space.active, new.doc, floor=LIKENESS, limit=most
            )
            likeness.update(near)
        sharing = await memory_likeness.sharing_entities(
            tx, user_id, space.active if space else None, new.id, new.doc,
            floor=LIKENESS_SHARING, limit=most,
        )  # fmt: skip
        for memory_id, cosine in sharing:
            likeness.setdefault(memory_id, cosine)
        terms = term_frequencies(new.text)
        docs = await memory_search.sharing_rare_terms(
            tx, user_id, list(terms), sum(terms.values()), limit=5
        )
        for memory in await memories.active_texts(tx, user_id, [d for d in docs if d != new.doc]):
            shared = terms.keys() & term_frequencies(memory.text).keys()
            if 2 * len(shared) >= len(terms):
                likeness.setdefault(memory.id, 0.0)
        found = await memories.find(tx, user_id, list(likeness))
        ordered = sorted(found.values(), key=lambda m: (-likeness[m.id], -m.doc))
        return ordered[:most]

    async def _link(self, link: FoundLink) -> None:
        """Link two memories; nothing if they are linked so, or one has gone meanwhile."""
        memories_, user_id = self._parts.memories, self._user_id
        start, end = link.from_ref, link.to_ref
        try:
            if link.type == "supersedes":
                # Which of them is newer is not for the model to say, nor when each was learned:
                # what was said first may have been learned last.
                one, other = await memories_.get(user_id, start), await memories_.get(user_id, end)
                if one.valid_from < other.valid_from:
                    start, end = end, start
            await memories_.link(
                user_id, start, end, link.type, reason=link.reason,
                confidence=link.confidence, actor="linking",
            )  # fmt: skip
        except (NotFound, Conflict) as passed:
            log.info("link_passed_over", code=passed.code)

    async def _merge(self, merge: FoundMerge, versions: Mapping[UUID, int]) -> UUID | None:
        """Let one memory stand for two that say the same, in the words of one of them; unless one
        of them is not any more what was read."""
        memories_, user_id = self._parts.memories, self._user_id
        try:
            kept = await memories_.get(user_id, merge.keep)
            made = await memories_.merge(
                user_id, [merge.new, merge.into], kept.text, actor="linking", versions=versions
            )
        except (NotFound, Conflict) as passed:
            log.info("merge_passed_over", code=passed.code)
            return None
        return made.id


def shown(memory: Memory) -> Shown:
    """A memory for a question."""
    return Shown(memory.short_id, f"{memory.valid_from:%Y-%m-%d %H:%M}", memory.text)


def all_shown(found: Sequence[Memory]) -> tuple[Shown, ...]:
    return tuple(shown(memory) for memory in found)
