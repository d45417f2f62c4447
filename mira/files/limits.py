"""How much of a file is taken, and how much is made of it."""

from __future__ import annotations

MB = 1024 * 1024

#: Bytes that a file may have.
IMAGE_BYTES = 5 * MB
DOCUMENT_BYTES = 32 * MB
#: Pixels that an image may have, and pages that are looked into.
PIXELS = 50_000_000
PAGES = 2_000
#: Characters that are kept of the words of a document.
WORDS = 400_000
#: Pixels of the longer side: for the turn that an image is given in, and for later ones.
LARGE, SMALL = 1568, 512
#: Bytes that an archive (DOCX, XLSX) may hold when it is unpacked, and its entries.
UNPACKED = 200 * MB
ENTRIES = 10_000
#: What reading one file may take: bytes of memory, seconds of a processor, seconds in all.
MEMORY = 1536 * MB
PROCESSOR = 25
DEADLINE = 30.0
