"""The lexical index: which terms occur in which of a user's documents, and how often.

A document is a number within (user, source). What is written here always agrees: the postings,
how many documents hold each term, and how many documents there are and how long they are in all.
Nothing here reads text: terms come in counted. Writers of one source of one user take turns (the
caller holds that user's lock).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from uuid import UUID

import msgspec

from mira.store.database import Tx
from mira.store.spaces import Source

#: Frequencies are kept in two bytes.
_MOST = 32_767


class Document(msgspec.Struct, frozen=True):
    """A document as it is indexed: its number, and how often each term occurs in it."""

    doc: int
    terms: Mapping[str, int]

    @property
    def length(self) -> int:
        return sum(self.terms.values())


class Corpus(msgspec.Struct, frozen=True):
    """What one user has of one source."""

    documents: int = 0
    length: int = 0

    @property
    def average(self) -> float:
        """The mean length of a document; 1 where there is none."""
        return self.length / self.documents if self.documents and self.length else 1.0


async def next_docs(tx: Tx, user_id: UUID, source: Source, count: int) -> int:
    """Take `count` new numbers; returns the first. A number is never given twice."""
    after: int = await tx.value(
        "insert into corpora as c (user_id, source, next_doc) values ($1, $2, 1 + $3) "
        "on conflict (user_id, source) do update set next_doc = c.next_doc + $3 "
        "returning next_doc",
        user_id, source, count,
    )  # fmt: skip
    return after - count


async def corpus(tx: Tx, user_id: UUID, source: Source) -> Corpus:
    """How many documents there are, and how long in all."""
    row = await tx.row(
        "select documents, length from corpora where user_id = $1 and source = $2", user_id, source
    )
    return Corpus() if row is None else Corpus(row["documents"], row["length"])


async def add(tx: Tx, user_id: UUID, source: Source, documents: Sequence[Document]) -> None:
    """Index documents that are not indexed yet."""
    if not documents:
        return
    rows = [
        (term, one.doc, min(tf, _MOST), one.length)
        for one in documents
        for term, tf in sorted(one.terms.items())
    ]
    held = Counter(term for one in documents for term in one.terms)
    terms = sorted(held)
    await tx.execute(
        "insert into postings (user_id, source, term, doc, tf, length) "
        "select $1, $2, * from unnest($3::text[], $4::integer[], $5::smallint[], $6::integer[])",
        user_id, source, *_columns(rows, 4),
    )  # fmt: skip
    await tx.execute(
        "insert into term_counts as t (user_id, source, term, documents) "
        "select $1, $2, * from unnest($3::text[], $4::integer[]) "
        "on conflict (user_id, source, term) "
        "do update set documents = t.documents + excluded.documents",
        user_id, source, terms, [held[term] for term in terms],
    )  # fmt: skip
    await _count(tx, user_id, source, len(documents), sum(one.length for one in documents))


async def remove(tx: Tx, user_id: UUID, source: Source, documents: Sequence[Document]) -> None:
    """Take documents out, given as they were indexed."""
    if not documents:
        return
    pairs = [(term, one.doc) for one in documents for term in one.terms]
    held = Counter(term for term, _ in pairs)
    terms = sorted(held)
    await tx.execute(
        "delete from postings p using unnest($3::text[], $4::integer[]) as gone(term, doc) "
        "where p.user_id = $1 and p.source = $2 and p.term = gone.term and p.doc = gone.doc",
        user_id, source, *_columns(pairs, 2),
    )  # fmt: skip
    await tx.execute(
        "update term_counts t set documents = t.documents - gone.documents "
        "from unnest($3::text[], $4::integer[]) as gone(term, documents) "
        "where t.user_id = $1 and t.source = $2 and t.term = gone.term",
        user_id, source, terms, [held[term] for term in terms],
    )  # fmt: skip
    await tx.execute(
        "delete from term_counts "
        "where user_id = $1 and source = $2 and term = any($3) and documents <= 0",
        user_id, source, terms,
    )  # fmt: skip
    await _count(tx, user_id, source, -len(documents), -sum(one.length for one in documents))


async def _count(tx: Tx, user_id: UUID, source: Source, documents: int, length: int) -> None:
    await tx.execute(
        "insert into corpora as c (user_id, source, documents, length) values ($1, $2, $3, $4) "
        "on conflict (user_id, source) do update "
        "set documents = c.documents + $3, length = c.length + $4",
        user_id, source, documents, length,
    )  # fmt: skip


def _columns(rows: Sequence[tuple[object, ...]], width: int) -> list[list[object]]:
    return [[row[at] for row in rows] for at in range(width)]


class TermDocuments(msgspec.Struct, frozen=True):
    """A term: in how many documents it occurs, and those that were read of them, rising."""

    term: str
    documents: int
    docs: Sequence[int]
    tf: Sequence[int]
    lengths: Sequence[int]


async def lists(
    tx: Tx, user_id: UUID, source: Source, terms: Sequence[str], *, budget: int
) -> tuple[list[TermDocuments], list[str]]:
    """The posting lists of the rarest of `terms`, as many as `budget` postings allow (of the
    first at most so many, the newest), and the terms that are too common for it."""
    rows = await tx.fetch(
        "with t as materialized (select term, documents, "
        "  sum(documents) over (order by documents, term) > $4 "
        "    and row_number() over (order by documents, term) > 1 as common "
        "  from term_counts where user_id = $1 and source = $2 and term = any($3)) "
        "select t.term, t.documents, t.common, p.docs, p.tf, p.lengths from t "
        "left join lateral (select array_agg(doc) as docs, array_agg(tf) as tf, "
        "    array_agg(length) as lengths "
        "  from (select doc, tf, length from postings where user_id = $1 and source = $2 "
        "    and term = t.term and not t.common order by doc desc limit $4) newest) p on true "
        "order by t.documents, t.term",
        user_id, source, list(terms), budget,
    )  # fmt: skip
    found = [
        TermDocuments(
            row["term"], row["documents"], row["docs"][::-1], row["tf"][::-1], row["lengths"][::-1]
        )
        for row in rows
        if row["docs"]
    ]
    return found, [row["term"] for row in rows if row["common"]]


async def among(
    tx: Tx, user_id: UUID, source: Source, terms: Sequence[str], docs: Sequence[int]
) -> list[TermDocuments]:
    """Where `terms` occur among `docs`."""
    if not terms or not docs:
        return []
    rows = await tx.fetch(
        "select t.term, t.documents, array_agg(p.doc order by p.doc) as docs, "
        "  array_agg(p.tf order by p.doc) as tf, array_agg(p.length order by p.doc) as lengths "
        "from term_counts t join postings p on p.user_id = $1 and p.source = $2 "
        "  and p.term = t.term and p.doc = any($4) "
        "where t.user_id = $1 and t.source = $2 and t.term = any($3) group by 1, 2",
        user_id, source, list(terms), list(docs),
    )  # fmt: skip
    return [TermDocuments(*row) for row in rows]
