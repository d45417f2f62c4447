"""Images in the two sizes that models are shown."""

from __future__ import annotations

import io
import warnings

from PIL import Image, ImageOps

from mira.files.kinds import JPEG, PNG, WEBP
from mira.files.limits import LARGE, PIXELS, SMALL
from mira.files.result import DAMAGE, Unreadable
from mira.messages.files import ReadImage

#: Bytes beyond which a drawing is not kept without loss: providers take 5 MB at most.
_HEAVY = 1_500_000


def read(content: bytes, media_type: str) -> ReadImage:
    """Both sizes, upright and without metadata. Raises Unreadable."""
    Image.MAX_IMAGE_PIXELS = PIXELS
    warnings.simplefilter("error", Image.DecompressionBombWarning)
    notes = []
    try:
        with Image.open(io.BytesIO(content), formats=("JPEG", "PNG", "GIF", "WEBP")) as opened:
            if opened.width * opened.height > PIXELS:
                raise Unreadable(_too_many())
            # Some telephones write a second picture behind a photograph, which does not move.
            if getattr(opened, "is_animated", False) and opened.format != "MPO":
                notes.append("It moves; only its first picture is looked at.")
            opened.draft("RGB", (2 * LARGE, 2 * LARGE))  # a large JPEG is decoded smaller
            whole = _plain(ImageOps.exif_transpose(opened))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Unreadable(_too_many()) from None
    except DAMAGE:
        raise Unreadable("This image is damaged and cannot be read.") from None
    large = _within(whole, LARGE)
    small = _within(whole, SMALL)
    shown, shown_type = _encoded(large, media_type)
    return ReadImage(
        media_type=media_type,
        large=shown, large_type=shown_type, large_width=large.width, large_height=large.height,
        small=_bytes(small, "WEBP", quality=80, method=4),
        small_width=small.width, small_height=small.height,
        notes=tuple(notes),
    )  # fmt: skip


def _too_many() -> str:
    return f"This image has more than {PIXELS // 1_000_000} million pixels."


def _plain(image: Image.Image) -> Image.Image:
    """The picture alone, as RGB, or RGBA where it is seen through."""
    if image.mode.startswith("I"):  # sixteen bits a pixel
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    through = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
    plain = image.convert("RGBA" if through else "RGB")
    plain.info = {}
    return plain


def _within(image: Image.Image, side: int) -> Image.Image:
    smaller = image.copy()
    smaller.thumbnail((side, side), Image.Resampling.LANCZOS)
    return smaller


def _encoded(image: Image.Image, media_type: str) -> tuple[bytes, str]:
    if media_type != JPEG:
        drawn = _bytes(image, "PNG", optimize=False)
        if len(drawn) <= _HEAVY:
            return drawn, PNG
        if image.mode == "RGBA":
            return _bytes(image, "WEBP", quality=90, method=4), WEBP
    return _bytes(image, "JPEG", quality=90), JPEG


def _bytes(image: Image.Image, form: str, **options: object) -> bytes:
    into = io.BytesIO()
    image.save(into, form, **options)
    return into.getvalue()
