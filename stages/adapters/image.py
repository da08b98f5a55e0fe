"""Pictures by Pillow: pages of a TIFF, or the one page of any other format."""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from PIL import (
    Image,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits
from stages.adapters.ocr import Picture, TextRecognizer
from stages.adapters.pages import PageError, PageText
from stages.adapters.source import Source, is_damage

# Sizes are checked against our own limit before a pixel is decoded; Pillow's only warns.
Image.MAX_IMAGE_PIXELS = None
# Named, so that they are loaded with this module and no other plugin ever is.
_FORMATS: Final = (
    PngImagePlugin.PngImageFile.format,
    JpegImagePlugin.JpegImageFile.format,
    TiffImagePlugin.TiffImageFile.format,
    WebPImagePlugin.WebPImageFile.format,
)
_DEEP_MODES: Final = frozenset({"I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_SANE_DPI: Final = range(70, 1201)


class ImageReader:
    """A picture file opened for reading."""

    def __init__(self, source: Source, limits: DocumentLimits, recognizer: TextRecognizer) -> None:
        """Open the file and count its pages, without decoding pixels.

        Raises:
            PermanentError: ``corrupt_document``, ``image_too_large`` or ``too_many_pages``.
        """
        self._limits = limits
        self._recognizer = recognizer
        self._stream = source.open()
        try:
            with _pillow_errors(PermanentError(ErrorCode.CORRUPT_DOCUMENT)):
                self._image = Image.open(self._stream, formats=_FORMATS)
                self.pages = self._count()
        except BaseException:
            self._stream.close()
            raise

    def read(self, number: int) -> PageText:
        """Decode one page, turn it as its orientation tag says, and recognize its text."""
        with _pillow_errors(PageError()):
            self._image.seek(number - 1)
            upright = ImageOps.exif_transpose(self._image)
            picture = Picture(to_grey(upright), _resolution(self._image))
        return self._recognizer.recognize(picture)

    def attachments(self) -> list[dict[str, str]]:
        """Return nothing: a picture has no attachments."""
        return []

    def close(self) -> None:
        """Let go of the file."""
        self._image.close()
        self._stream.close()

    def _count(self) -> int:
        """Count the pages; animations of other formats than TIFF are taken for their first picture."""
        limits = self._limits
        if self._image.format != "TIFF":
            _check_size(self._image, limits)
            return 1
        frame, most = 0, min(limits.max_frames, limits.max_pages)
        while True:
            try:
                self._image.seek(frame)
            except EOFError:
                return frame
            _check_size(self._image, limits)
            frame += 1
            if frame > most:
                raise PermanentError(ErrorCode.TOO_MANY_PAGES, limit=most, actual=frame)


def to_grey(image: Image.Image) -> Image.Image:
    """Return any picture as 8-bit grey, transparent parts as white paper."""
    if image.mode in _DEEP_MODES:
        return _squeeze(image)
    if image.mode == "PA" or "transparency" in image.info:
        image = image.convert("RGBA")
    grey = image.convert("L")
    if "A" not in image.getbands():
        return grey
    return Image.composite(grey, Image.new("L", image.size, "white"), image.getchannel("A"))


def _squeeze(image: Image.Image) -> Image.Image:
    """Scale samples of more than 8 bits by the range that the picture uses."""
    wide = image.convert("F")
    low, high = wide.getextrema()
    if not isinstance(low, float) or not isinstance(high, float) or not high > low:
        return Image.new("L", image.size, "white")
    factor = 255.0 / (high - low)
    return wide.point(lambda value: value * factor - low * factor).convert("L")


def _check_size(image: Image.Image, limits: DocumentLimits) -> None:
    """Refuse a picture with more pixels than allowed, as its header tells."""
    if _pixels(image) > limits.max_pixels:
        raise PermanentError(ErrorCode.IMAGE_TOO_LARGE, limit=limits.max_pixels, actual=_pixels(image))


def _pixels(image: Image.Image) -> int:
    """Count the picture's pixels."""
    return image.width * image.height


def _resolution(image: Image.Image) -> int | None:
    """Return the picture's dots per inch when it tells a believable number."""
    try:
        dpi = round(float(image.info["dpi"][0]))
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None
    return dpi if dpi in _SANE_DPI else None


@contextmanager
def _pillow_errors(instead: PermanentError | PageError) -> Iterator[None]:
    """Turn what Pillow raises about damaged files into ``instead``."""
    try:
        yield
    except OSError as error:
        if not is_damage(error):
            raise
        raise instead from None
    except (
        SyntaxError,
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        struct.error,
        EOFError,
        OverflowError,
        ZeroDivisionError,
        NotImplementedError,
        Image.DecompressionBombError,
    ):
        raise instead from None
