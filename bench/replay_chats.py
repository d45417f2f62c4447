"""Long chats as they are replayed: exchanges at planned moments, and questions in fragments.

A chat is a folder of BEAM (see bench.recall_data). Its batches begin on dates that it names. The
turns of a batch are spread evenly over the days until the next: eight a day, four in the morning
and four in the afternoon, `BETWEEN` apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

from bench.recall_data import Conversation, Message, Question, load
from bench.replay_words import content_words, words_of
from mira.messages.content import Role

#: Turns of a sitting, and the most that leave a gap of two hours before the next one.
TOGETHER, MOST_TOGETHER = 4, 40
SITTINGS = 2
#: Between two turns of one sitting: shorter than a provider keeps a prompt in its cache.
BETWEEN = timedelta(minutes=4)
MORNING, AFTERNOON = timedelta(hours=9), timedelta(hours=14)
#: Words of a question that is asked in a fragment.
FEWEST, MOST = 3, 6
#: Words that ask, and name nothing.
_ASKING = words_of(
    """able answer aspects best brought chat clear comprehensive conversation conversations could
    describe different discussed discussion discussions explain give help helpful know like list
    looking make mention mentioned need order overall over planning please previous provide
    recommend recommended said show some start steps suggest suggestions summarize summary take
    talked tell through throughout time total try trying walk want wanted way ways would
    item items three four five six"""
)


@dataclass(frozen=True)
class Exchange:
    """What the user said, and what was answered; with the chat's own numbers of both."""

    at: datetime
    user: Message
    answer: Message


@dataclass(frozen=True)
class Probe:
    """A question about the chat, in a fragment, and the messages that answer it."""

    ability: str
    words: str
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Chat:
    name: str
    exchanges: tuple[Exchange, ...]
    probes: tuple[Probe, ...]
    #: Turns of a sitting.
    together: int = TOGETHER


def read(
    folder: Path, only: Sequence[str] | None = None, *, together: int = TOGETHER
) -> list[Chat]:
    """The chats of a folder, or those of them that are named, in sittings of so many turns.

    Raises ValueError if one of these or any at all is missing, and OSError.
    """
    found = {one.id: one for one in load("beam", folder)}
    if missing := [name for name in only or () if name not in found]:
        raise ValueError(f"There is no chat {', '.join(missing)} in {folder}.")
    return [_chat(found[name], together) for name in only or found]


def _chat(found: Conversation, together: int) -> Chat:
    batches = [_pairs(session) for session in found.sessions if session]
    anchors = [session[0].at for session in found.sessions if session]
    days = _days(anchors, list(map(len, batches)), together)
    exchanges = tuple(
        Exchange(at, user, answer)
        for batch, ats in zip(batches, days, strict=True)
        for (user, answer), at in zip(batch, ats, strict=True)
    )
    known: Counter[str] = Counter()
    for one in exchanges:
        known.update(set(content_words(one.user.text)))
    probes = (_probe(question, known) for question in found.questions if question.evidence)
    return Chat(
        found.id, exchanges, tuple(p for p in probes if len(p.words.split()) >= FEWEST), together
    )


def _pairs(session: Sequence[Message]) -> list[tuple[Message, Message]]:
    """Each message of the user with the answer that follows it."""
    return [
        (one, other)
        for one, other in pairwise(session)
        if one.role is Role.USER and other.role is Role.ASSISTANT
    ]


def _days(
    anchors: Sequence[datetime], counts: Sequence[int], together: int
) -> list[list[datetime]]:
    """The moments of each batch's turns. A batch that takes longer than the chat gives it puts off
    the one after it."""
    starts = [one.replace(hour=0, minute=0, second=0, microsecond=0) for one in anchors]
    spans = [(later - earlier).days for earlier, later in pairwise(starts)]
    # How long the last batch takes nobody says: as long as the one before it.
    spans.append(spans[-1] if spans else 0)
    found: list[list[datetime]] = []
    free = starts[0]
    for anchor, span, count in zip(starts, spans, counts, strict=True):
        start = max(anchor, free)
        found.append(_spread(start, span, count, together))
        free = found[-1][-1].replace(hour=0, minute=0) + timedelta(days=1)
    return found


def _spread(start: datetime, days: int, count: int, together: int) -> list[datetime]:
    """So many moments over so many days, or over as many as they take."""
    wanted = -(-count // (SITTINGS * together))
    moments = []
    for number in range(count):
        day, place = divmod(number, SITTINGS * together)
        sitting, turn = divmod(place, together)
        at = start + timedelta(days=day * max(days, wanted) // wanted)
        moments.append(at + (AFTERNOON if sitting else MORNING) + turn * BETWEEN)
    return moments


def _probe(question: Question, known: Counter[str]) -> Probe:
    """The question as somebody asks who writes no sentences: of its words at most `MOST`, in their
    order; what was never said in the chat is left out first, then what was said most often."""
    words = [
        word for word in dict.fromkeys(content_words(question.text)) if word not in _ASKING
    ]  # fmt: skip
    rarest = sorted(words, key=lambda word: (not known[word], known[word]))[:MOST]
    return Probe(question.category, " ".join(w for w in words if w in rarest), question.evidence)
