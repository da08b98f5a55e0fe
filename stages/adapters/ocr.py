"""The port of text recognition: what an engine is given, and what it must return."""

from dataclasses import dataclass
from typing import Final, Protocol

from PIL import Image

from stages.adapters.pages import PageText

MAX_SIDE: Final = 32_767
"""The widest and highest picture that any engine takes; it is Tesseract's own limit."""

TURNS: Final = {
    90: Image.Transpose.ROTATE_270,
    180: Image.Transpose.ROTATE_180,
    270: Image.Transpose.ROTATE_90,
}
"""How Pillow turns a picture clockwise by so many degrees."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A page as 8-bit grey pixels; ``dpi`` when it is known."""

    pixels: Image.Image
    dpi: int | None = None


class TextRecognizer(Protocol):
    """Reads the text of one picture."""

    @property
    def name(self) -> str:
        """Engine and version, as in ``tesseract-5.3.0``."""

    def recognize(self, picture: Picture) -> PageText:
        """Return the picture's text; raises ``PageError`` when the engine gives up on it."""


def is_blank(picture: Picture) -> bool:
    """Say whether all pixels are alike, so that there is nothing to read."""
    low, high = picture.pixels.getextrema()
    return low == high
