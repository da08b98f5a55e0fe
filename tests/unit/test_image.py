"""Pictures: their pages, their sizes, and how any of them becomes grey."""

import pytest
from PIL import Image

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits
from schema.wire.results import PageSource
from stages.adapters.image import ImageReader, to_grey
from stages.adapters.pages import PageError, PageText
from stages.adapters.source import Source
from tests.support.documents import picture, png_of_size, saved, tiff

PAPER = (255, 255, 255)


class Eye:
    """A recognizer that keeps what it is shown."""

    name = "eye"

    def __init__(self):
        """Nothing seen yet."""
        self.seen = []

    def recognize(self, shown):
        """Keep the picture."""
        self.seen.append(shown)
        return PageText(PageSource.OCR, "seen")


def _open(data, eye=None, **limits):
    return ImageReader(Source(data=data), DocumentLimits(**limits), eye or Eye())


def test_every_page_of_a_tiff_is_a_page():
    """Fax servers put a whole letter into one file."""
    eye = Eye()
    reader = _open(tiff("one", "two", "three", dpi=(200, 200)), eye)

    texts = [reader.read(number).text for number in range(1, reader.pages + 1)]

    assert texts == ["seen"] * 3
    assert [shown.dpi for shown in eye.seen] == [200] * 3


def test_an_animation_is_its_first_picture():
    """Nobody sends a document as an animation; its frames are no pages."""
    moving = saved(picture("a", size=(9, 9)), "WEBP", save_all=True, append_images=[picture("b", size=(9, 9))])

    assert _open(moving).pages == 1


def test_a_picture_is_turned_as_its_camera_says():
    """Phones store every photograph lying down."""
    eye = Eye()
    exif = Image.Exif()
    exif[0x0112] = 6

    _open(saved(picture("x", size=(30, 20)), "JPEG", exif=exif), eye).read(1)

    assert eye.seen[0].pixels.size == (20, 30)


@pytest.mark.parametrize(
    ("data", "limits", "code"),
    [
        (png_of_size(65_536, 65_536), {}, ErrorCode.IMAGE_TOO_LARGE),
        (tiff("a", "b", "c"), {"max_frames": 2}, ErrorCode.TOO_MANY_PAGES),
        (tiff("a", "b", "c"), {"max_pages": 2}, ErrorCode.TOO_MANY_PAGES),
        (saved(picture("x"), "PNG"), {"max_pixels": 1000}, ErrorCode.IMAGE_TOO_LARGE),
        (b"\x89PNG\r\n\x1a\n" + b"junk" * 10, {}, ErrorCode.CORRUPT_DOCUMENT),
        (saved(picture("x"), "GIF"), {}, ErrorCode.CORRUPT_DOCUMENT),
        (tiff("a")[:60], {}, ErrorCode.CORRUPT_DOCUMENT),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow warns of the damage before it raises
def test_a_file_that_is_too_large_or_broken_is_refused_before_its_pixels(data, limits, code):
    """P12: what a header claims decides, not what decoding it would cost."""
    with pytest.raises(PermanentError) as caught:
        _open(data, **limits)

    assert caught.value.code is code
    if code is not ErrorCode.CORRUPT_DOCUMENT:
        assert caught.value.actual > caught.value.limit


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("file_format", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_a_truncated_picture_is_a_page_that_failed(file_format):
    """Half a page must not pass for a whole one."""
    whole = saved(picture("Text " * 20), file_format)

    with pytest.raises((PageError, PermanentError)) as caught:
        _open(whole[: len(whole) // 2]).read(1)

    assert caught.value.code is ErrorCode.CORRUPT_DOCUMENT


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (Image.new("1", (2, 2), 1), 255),
        (Image.new("P", (2, 2), 0), 0),
        (Image.new("LA", (2, 2), (0, 0)), 255),
        (Image.new("RGBA", (2, 2), (0, 0, 0, 0)), 255),
        (Image.new("RGBA", (2, 2), (0, 0, 0, 255)), 0),
        (Image.new("CMYK", (2, 2), (0, 0, 0, 255)), 0),
        (Image.new("RGB", (2, 2), PAPER), 255),
        (Image.new("I;16", (2, 2), 40_000), 255),
    ],
)
def test_any_kind_of_picture_becomes_grey(image, expected):
    """A transparent page read as black would have no text."""
    grey = to_grey(image)

    assert grey.mode == "L"
    assert grey.getextrema() == (expected, expected)


def test_sixteen_bits_are_scaled_by_what_the_picture_uses():
    """Cutting off the upper bits turns a scan into noise."""
    deep = Image.new("I;16", (2, 1))
    deep.putpixel((0, 0), 1_000)
    deep.putpixel((1, 0), 4_000)

    assert to_grey(deep).getextrema() == (0, 255)
