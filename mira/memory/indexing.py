"""Takes the history into the search: first the words, then the vectors, a few turns at a time.

What has been taken in is marked by the transaction that did it; a step that was cut off is simply
done again. Words do not wait for the encoder: while it loads, or if it cannot, messages are found
by their words.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID
from zoneinfo import ZoneInfo

from mira.clock import Clock
from mira.memory import asked, passage_text, terms
from mira.memory.encoding import Encoders
from mira.memory.passage_text import PassageText
from mira.store import passages, postings, spaces, vectors
from mira.store.database import Database
from mira.store.passages import NewPassage, Passage, Unindexed
from mira.store.postings import Document
from mira.store.spaces import Source

#: Turns of one step.
TURNS = 16


class NoEncoders:
    """None at all: messages are found by their words."""

    current = None

    def of(self, model: str) -> None:
        return None


class _OutOfDate(Exception):
    """A turn was settled once more while it was being taken in: what was read of it is old."""


class HistoryIndex:
    """See mira.actors.indexer.HistoryIndex."""

    def __init__(self, database: Database, encoders: Encoders, clock: Clock) -> None:
        self._database = database
        self._encoders = encoders
        self._clock = clock

    async def step(self, user_id: UUID) -> bool:
        """Take in a few turns more. False if nothing is left to do.

        Raises Unavailable while there is no encoder; the words are in by then.
        """
        return await self._index(user_id) or await self._encode(user_id)

    async def _index(self, user_id: UUID) -> bool:
        with suppress(_OutOfDate):
            return await self._index_next(user_id)
        return True

    async def _index_next(self, user_id: UUID) -> bool:
        async with self._database.user(user_id) as tx:
            await passages.lock(tx, user_id)
            mark = (await passages.marks(tx, user_id)).indexed
            messages, last = await passages.next_messages(tx, user_id, mark, TURNS)
            if last == mark:
                return False
            names = await passages.names(tx, user_id)
            zone = ZoneInfo(names.timezone)
            # Of a turn that was tried again, an earlier attempt may be here.
            old = await passages.of_turns(tx, user_id, mark + 1, last)
            await postings.remove(
                tx, user_id, Source.PASSAGES, [_document(_text(p, names), p.doc, zone) for p in old]
            )
            await vectors.remove(tx, user_id, Source.PASSAGES, [p.doc for p in old])
            await passages.remove(tx, user_id, [p.doc for p in old])
            new, documents = [], []
            doc, segment = await passages.newest(tx, user_id)
            for message in messages:
                doc += 1 if message.segment_id == segment else 2
                segment = message.segment_id
                document = _document(_text(message, names), doc, zone)
                documents.append(document)
                new.append(_passage(message, doc, document.length))
            await passages.add(tx, user_id, new)
            await postings.add(tx, user_id, Source.PASSAGES, documents)
            if not await passages.move_mark(tx, user_id, "indexed", mark, last):
                raise _OutOfDate
        return True

    async def _encode(self, user_id: UUID) -> bool:
        current = self._encoders.current
        if current is None:
            return False
        async with self._database.user(user_id) as tx:
            marks = await passages.marks(tx, user_id)
            if marks.encoded >= marks.indexed:
                return False
            last = min(marks.indexed, marks.encoded + TURNS)
            new = await passages.of_turns(tx, user_id, marks.encoded + 1, last)
            around: list[Passage] = []
            if new:
                # What came before has a neighbour more now.
                around = await passages.between(tx, user_id, new[0].doc - 2, new[-1].doc + 1)
            names = await passages.names(tx, user_id)
            ours = await spaces.ensure(
                tx, user_id, current.model, current.dimension, self._clock.now()
            )
        texts = {p.doc: _text(p, names) for p in around}
        fresh = {p.doc for p in new}
        units: list[tuple[int, int, str]] = []
        for doc, one in texts.items():
            if doc in fresh or doc + 1 in fresh:
                units.append(
                    (doc, 0, passage_text.window(texts.get(doc - 1), one, texts.get(doc + 1)))
                )
            if doc in fresh:
                units += [(doc, n, part) for n, part in enumerate(passage_text.parts(one), start=1)]
        made = [
            (space, await encoder.texts([text for _, _, text in units]))
            for space in ours.all
            if (encoder := self._encoders.of(space.model))
        ]
        async with self._database.user(user_id) as tx:
            await passages.lock(tx, user_id)
            if not await passages.move_mark(tx, user_id, "encoded", marks.encoded, last):
                return True  # a turn was put back in line meanwhile: look again
            standing = {p.doc for p in await passages.between(tx, user_id, *_span(units))}
            for space, encoded in made:
                rows = [
                    (doc, unit, vector.tolist())
                    for (doc, unit, _), vector in zip(units, encoded, strict=True)
                    if doc in standing
                ]
                await vectors.put(tx, user_id, Source.PASSAGES, space, rows)
        return True


def _text(one: Passage | Unindexed, names: passages.Names) -> PassageText:
    doc = one.doc if isinstance(one, Passage) else 0
    return PassageText(doc=doc, speaker=names.of(one.role), at=one.said_at, words=one.words)


def _document(text: PassageText, doc: int, zone: ZoneInfo) -> Document:
    return Document(doc, terms.term_frequencies(passage_text.indexed(text, zone)))


def _passage(message: Unindexed, doc: int, length: int) -> NewPassage:
    return NewPassage(
        doc=doc, message_id=message.message_id, segment_id=message.segment_id,
        turn_seq=message.turn_seq, role=message.role, said_at=message.said_at, length=length,
        asks=terms.asks(message.words), timed=asked.timed(message.words),
        counted=asked.counted(message.words),
    )  # fmt: skip


def _span(units: Sequence[tuple[int, int, str]]) -> tuple[int, int]:
    docs = [doc for doc, _, _ in units]
    return (min(docs), max(docs)) if docs else (0, 0)
