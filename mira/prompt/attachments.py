"""Files in a prompt: what was given now in full, what was given earlier small.

Each form is made of what is stored alone, so that an earlier turn reads the same in every prompt.
The words of a document stand between tags of ours: they are nobody's own words, and what they ask
for is not asked by the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from uuid import UUID

import msgspec

from mira.messages.content import Attached, Document, Image, Said, Shown, Text
from mira.prompt.bounds import shortened
from mira.prompt.budget import EARLIER_WORDS
from mira.prompt.tags import neutral, quoted, wrapped
from mira.prompt.turn import Turn

#: Characters of all documents of one message together: in its own turn, and in later ones.
NOW, EARLIER = 32_000, EARLIER_WORDS
#: Images of earlier turns that are shown, the newest; others are named. So many at once become
#: names, that the prompts between stay the same.
IMAGES, STEP = 20, 10
_NAME = 120

Forms = Mapping[UUID, Image | Document]


def given(turns: Iterable[Turn]) -> tuple[UUID, ...]:
    """The files of earlier turns of which a form is wanted, in order."""
    return tuple(
        block.file_id
        for turn in turns
        for said in turn.said
        for block in said.blocks
        if isinstance(block, Attached)
    )


def now(
    blocks: Sequence[Shown], forms: Forms, share: float = 1.0, *, whole: bool = True
) -> tuple[Shown, ...]:
    """What the user says, with the files: images large, documents in full, within bounds.

    With `share` less than 1 the bounds are that part of themselves, and images are only named.
    Unless `whole`, documents are shown by their words alone.
    """
    documents = sum(isinstance(_form(b, forms), Document) for b in blocks)
    most = int(NOW * share) // max(1, documents)

    def shown(block: Shown) -> Shown:
        form = _form(block, forms)
        if isinstance(form, Image) and share == 1.0:
            return msgspec.structs.replace(form, name=_named(form.name))
        if isinstance(form, Document):
            return _document(form, most, whole=whole and share == 1.0)
        return line(block) if isinstance(block, Attached) else block

    return tuple(map(shown, blocks))


def earlier(turns: Sequence[Turn], forms: Forms) -> tuple[Turn, ...]:
    """Turns with their files: images small, the first of the words of documents."""
    images = [one for one in given(turns) if isinstance(forms.get(one), Image)]
    beyond = max(0, len(images) - IMAGES)
    named_only = -(-beyond // STEP) * STEP
    number = count()

    def shown(block: Shown, most: int) -> Shown:
        form = _form(block, forms)
        if isinstance(form, Document):
            return _document(form, most, whole=False)
        if isinstance(form, Image) and next(number) >= named_only:
            return msgspec.structs.replace(form, name=_named(form.name))
        return line(block) if isinstance(block, Attached) else block

    def with_files(said: Said) -> Said:
        documents = sum(isinstance(_form(b, forms), Document) for b in said.blocks)
        most = EARLIER // max(1, documents)
        return Said(role=said.role, blocks=tuple(shown(b, most) for b in said.blocks))

    return tuple(
        Turn(tuple(map(with_files, turn.said)), turn.tokens) if given((turn,)) else turn
        for turn in turns
    )


def line(file: Attached) -> Text:
    """A file by its name alone."""
    return Text(text=f"[Attached: {_named(file.name)}, {file.media_type}]")


def _form(block: Shown, forms: Forms) -> Image | Document | None:
    return forms.get(block.file_id) if isinstance(block, Attached) else None


def _document(document: Document, most: int, *, whole: bool) -> Document:
    """With its words as models read them, and, if `whole`, as the file that it is."""
    return msgspec.structs.replace(
        document, name=_named(document.name), words=_words(document, most),
        content=document.content if whole else b"",
    )  # fmt: skip


def _words(document: Document, most: int) -> str:
    pages = "" if document.pages is None else f", {document.pages} pages"
    head = f"{_named(document.name)}, {document.media_type}{pages}"
    words = shortened(neutral(document.words), most, "document") or "(It holds no words.)"
    return wrapped("file", f"{head}\n\n{words}")


def _named(name: str) -> str:
    return quoted(name, _NAME)
