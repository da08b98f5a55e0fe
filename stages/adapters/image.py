"""Pictures by Pillow: pages of a TIFF, or the one page of any other format."""

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
from schema.domain.limits import DocumentLimits, LimitName
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
_TIFF: Final = TiffImagePlugin.TiffImageFile.format
_HEIF: Final = "HEIF"
_ANIMATED: Final = frozenset({"PNG", "WEBP", _HEIF})
_DEEP_MODES: Final = frozenset({"I", "F", "I;16", "I;16L", "I;16B", "I;16N"})
_WEBP_HEAD_BYTES: Final = 30
_WEBP_SIDE: Final = (1 << 14) - 1
_ORIENTATION: Final = 0x0112
_TURNS: Final[Mapping[object, Image.Transpose]] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_PHOTOMETRIC: Final = 0x0106
_FTYP: Final = slice(4, 8)
_SANE_DPI: Final = range(70, 1201)
_OPAQUE: Final = 128
_DARK: Final = 128
# Less than this share of what is drawn is dark: ink that was meant for a dark ground.
_FEW_DARK: Final = 0.02


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
                _check_webp(source.head(_WEBP_HEAD_BYTES), limits)
                self._image = Image.open(self._stream, formats=_formats(source))
                self.pages = self._count()
            # Whether there are further pictures that nobody will read; some formats forget it with the first.
            self.is_animation = self._image.format in _ANIMATED and getattr(self._image, "is_animated", False)
        except BaseException:
            self._stream.close()
            raise

    def read(self, number: int) -> PageText:
        """Decode one page, turn it as its orientation tag says, and recognize its text."""
        with _pillow_errors(PageError()):
            if self._image.format == _TIFF:
                self._image.seek(number - 1)
            _check_size(self._image.size, self._limits)
            self._image.load()
            # A header may have told another size than what came out.
            _check_size(self._image.size, self._limits)
            grey = to_grey(_upright(self._image))
            picture = Picture(ImageOps.invert(grey) if self._counts_ink() else grey, _resolution(self._image))
        return self._recognizer.recognize(picture)

    def attachments(self) -> list[dict[str, str]]:
        """Return nothing: a picture has no attachments."""
        return []

    def close(self) -> None:
        """Let go of the file."""
        self._image.close()
        self._stream.close()

    def _count(self) -> int:
        """Count the pages; animations of other formats than TIFF are taken for their first picture.

        Raises:
            PermanentError: when they are too many, or each is too large.
        """
        excess, frame = [self._excess()], 1
        while self._image.format == _TIFF:
            try:
                self._image.seek(frame)
            except EOFError:
                break
            excess.append(self._excess())
            frame += 1
            _check_count(frame, self._limits)
        if excess[0] and all(excess):
            raise excess[0].as_failure()
        return frame

    def _counts_ink(self) -> bool:
        """Say whether large samples are black; Pillow turns only those of 8 bits and less by itself."""
        if not isinstance(self._image, TiffImagePlugin.TiffImageFile) or self._image.mode not in _DEEP_MODES:
            return False
        return bool(self._image.tag_v2.get(_PHOTOMETRIC) == 0)

    def _excess(self) -> PageError | None:
        """Return in what the present picture is too large."""
        try:
            _check_size(self._image.size, self._limits)
        except PageError as error:
            return error
        return None


def to_grey(image: Image.Image) -> Image.Image:
    """Return any picture as 8-bit grey, transparent parts as white paper."""
    if image.mode in _DEEP_MODES:
        return _squeeze(image)
    if image.mode == "LAB":
        return image.getchannel("L")
    if image.mode == "PA" or "transparency" in image.info:
        image = image.convert("RGBA")
    grey = image.convert("L")
    if "A" not in image.getbands():
        return grey
    return _on_paper(grey, image.getchannel("A"))


def _on_paper(ink: Image.Image, opacity: Image.Image) -> Image.Image:
    """Lay what is drawn on white paper.

    Ink that covers less than half of a transparent ground and is light nearly everywhere was meant for a dark
    ground; on paper it has to be dark.
    """
    shown = ink.histogram(opacity.point(lambda value: 255 * (value >= _OPAQUE)))
    total, dark = sum(shown), sum(shown[:_DARK])
    if total * 2 < ink.width * ink.height and dark < total * _FEW_DARK:
        ink = ImageOps.invert(ink)
    return Image.composite(ink, Image.new("L", ink.size, "white"), opacity)


def _upright(image: Image.Image) -> Image.Image:
    """Turn a picture as its orientation tag says; a tag that cannot be read says nothing.

    Pillow's own way writes the other tags anew as well, and fails where one of them is damaged.
    """
    with suppress(OSError, SyntaxError, ValueError, TypeError, KeyError, struct.error, OverflowError):
        turn = _TURNS.get(image.getexif().get(_ORIENTATION))
        return image if turn is None else image.transpose(turn)
    return image


def _squeeze(image: Image.Image) -> Image.Image:
    """Scale samples of more than 8 bits by the range that the picture uses."""
    wide = image.convert("F")
    low, high = wide.getextrema()
    if not isinstance(low, float) or not isinstance(high, float) or not high > low:
        return Image.new("L", image.size, "white")
    factor = 255.0 / (high - low)
    return wide.point(lambda value: value * factor - low * factor).convert("L")


def _formats(source: Source) -> tuple[str, ...]:
    """Return the formats that the file may be opened as; the one from phones is loaded when one comes."""
    if source.head(_FTYP.stop)[_FTYP] != b"ftyp":
        return _FORMATS
    from pi_heif import register_heif_opener  # noqa: PLC0415 - a twentieth of a second in every child's start

    register_heif_opener(thumbnails=False, depth_images=False, aux_images=False, decode_threads=1)
    return (_HEIF,)


def _check_webp(head: bytes, limits: DocumentLimits) -> None:
    """Refuse a WebP whose header claims too much: opening one already takes the memory of two pictures.

    Source: RFC 9649, sections 2.5 to 2.7.
    """
    if head[8:12] != b"WEBP":
        return
    match head[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
        case b"VP8L":
            sizes = int.from_bytes(head[21:25], "little")
            width, height = (sizes & _WEBP_SIDE) + 1, (sizes >> 14 & _WEBP_SIDE) + 1
        case _:
            width, height = (int.from_bytes(head[at : at + 2], "little") & _WEBP_SIDE for at in (26, 28))
    try:
        _check_size((width, height), limits)
    except PageError as error:
        raise error.as_failure() from None


def _check_count(frames: int, limits: DocumentLimits) -> None:
    """Refuse a TIFF with more pages than allowed, as soon as so many are counted."""
    for limit, name in ((limits.max_frames, LimitName.FRAMES), (limits.max_pages, LimitName.PAGES)):
        if frames > limit:
            raise PermanentError(ErrorCode.TOO_MANY_PAGES, limit=limit, actual=frames, limit_name=name)


def _check_size(size: tuple[int, int], limits: DocumentLimits) -> None:
    """Refuse a picture with more pixels than allowed, as its header tells."""
    for actual, limit, name in (
        (size[0] * size[1], limits.max_pixels, LimitName.PIXELS),
        (max(size), limits.max_side, LimitName.SIDE),
    ):
        if actual > limit:
            raise PageError(ErrorCode.IMAGE_TOO_LARGE, limit=limit, actual=actual, limit_name=name)


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
