"""Pictures: their pages, their sizes, and how any of them becomes grey."""

import struct
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageDraw, ImageFont

from schema.domain.errors import ErrorCode, PermanentError
from schema.domain.limits import DocumentLimits
from schema.wire.results import PageSource
from stages.adapters.image import ImageReader, to_grey
from stages.adapters.pages import PageError, PageText
from stages.adapters.source import Source
from tests.support.documents import picture, png_of_size, saved, tiff, webp_of_size

PHOTO = Path(__file__).parents[1] / "support" / "photo.heic"
ORIENTATION = 0x0112
RESOLUTION_X = 0x011A
PHOTOMETRIC = struct.pack("<HHI", 0x0106, 3, 1)
TURN = Image.Transpose
# How a picture lies in a file whose orientation has this number.
STORED = {
    2: TURN.FLIP_LEFT_RIGHT,
    3: TURN.ROTATE_180,
    4: TURN.FLIP_TOP_BOTTOM,
    5: TURN.TRANSPOSE,
    6: TURN.ROTATE_90,
    7: TURN.TRANSVERSE,
    8: TURN.ROTATE_270,
}
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


@pytest.mark.parametrize("file_format", ["WEBP", "PNG"])
def test_an_animation_is_its_first_picture(file_format):
    """Nobody sends a document as an animation; its frames are no pages, and the client is told."""
    eye, first, second = Eye(), picture("a", size=(9, 9)), Image.new("L", (9, 9), "black")
    moving = _open(saved(first, file_format, save_all=True, append_images=[second], lossless=True), eye)

    moving.read(1)

    assert (moving.pages, moving.is_animation) == (1, True)
    assert ImageChops.difference(eye.seen[0].pixels, first).getextrema() == (0, 0)
    assert not _open(saved(first, file_format)).is_animation


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("file_format", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_a_picture_is_turned_as_its_camera_says(file_format, orientation):
    """Phones store every photograph lying down, and scanners mirror slides."""
    eye, shown = Eye(), Image.new("L", (32, 16), "white")
    shown.paste(0, (0, 0, 8, 8))
    stored = shown.transpose(STORED[orientation]) if orientation in STORED else shown
    exif = Image.Exif()
    exif[ORIENTATION] = orientation

    _open(saved(stored, file_format, exif=exif), eye).read(1)

    pixels = eye.seen[0].pixels
    assert pixels.size == shown.size
    assert [pixels.getpixel(place) > 127 for place in ((4, 4), (28, 4), (4, 12), (28, 12))] == [False, True, True, True]


def test_a_damaged_orientation_says_nothing():
    """What a camera wrote beside the picture is no reason to refuse the picture."""
    eye = Eye()

    _open(saved(picture("x", size=(30, 20)), "PNG", exif=b"Exif\0\0junk of a camera"), eye).read(1)

    assert eye.seen[0].pixels.size == (30, 20)


def test_damage_elsewhere_leaves_the_orientation_standing():
    """One tag that makes no sense is no reason to read a page lying on its side."""
    eye, exif = Eye(), Image.Exif()
    exif[ORIENTATION], exif[RESOLUTION_X] = 6, 72
    tags = exif.tobytes().replace(struct.pack(">HH", RESOLUTION_X, 5), struct.pack(">HH", RESOLUTION_X, 2))

    _open(saved(picture("x", size=(30, 20)), "JPEG", exif=tags), eye).read(1)

    assert eye.seen[0].pixels.size == (20, 30)


def test_a_photograph_from_a_phone_is_a_picture():
    """Phones write HEIC; this one lies on its side and says so."""
    eye = Eye()

    _open(PHOTO.read_bytes(), eye).read(1)

    assert eye.seen[0].pixels.size == (700, 120)
    assert eye.seen[0].pixels.getextrema()[0] < 64


def test_a_photograph_that_is_cut_off_is_corrupt():
    """Half a page must not pass for a whole one."""
    with pytest.raises((PageError, PermanentError)) as caught:
        _open(PHOTO.read_bytes()[:4000]).read(1)

    assert caught.value.code is ErrorCode.CORRUPT_DOCUMENT


@pytest.mark.parametrize(
    "compression", ["raw", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits", "lzma", "zstd", "jpeg"]
)
def test_a_tiff_may_be_packed_in_any_way(compression):
    """Scanners and archives have each their own."""
    eye, shown = Eye(), picture("x", mode="RGB", size=(200, 200))

    _open(saved(shown, "TIFF", compression=compression), eye).read(1)

    darkest, lightest = eye.seen[0].pixels.getextrema()
    assert darkest < 64
    assert lightest > 192


@pytest.mark.parametrize("compression", ["group3", "group4", "tiff_ccitt"])
def test_a_fax_is_a_picture(compression):
    """Black on white, a bit a pixel."""
    eye, shown = Eye(), picture("x" * 40, mode="1", size=(640, 160))

    _open(saved(shown, "TIFF", compression=compression), eye).read(1)

    assert ImageChops.difference(eye.seen[0].pixels, shown.convert("L")).getextrema() == (0, 0)


@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exif": Image.Exif()}])
def test_a_webp_of_just_the_size_allowed_is_read(options):
    """Its size is read before it is opened, and must be read rightly in each of its three forms."""
    reader = _open(saved(picture("x"), "WEBP", **options), max_pixels=1240 * 1754)

    assert reader.read(1).text == "seen"


def test_one_page_too_large_is_no_reason_to_refuse_the_others():
    """Only what has no readable page at all is refused as a whole."""
    small, large = picture("a", size=(50, 50)), picture("b", size=(500, 500))
    reader = _open(saved(small, "TIFF", save_all=True, append_images=[large]), max_pixels=10_000)

    assert reader.read(1).text == "seen"
    with pytest.raises(PageError) as caught:
        reader.read(2)

    assert (caught.value.code, caught.value.actual) == (ErrorCode.IMAGE_TOO_LARGE, 250_000)


@pytest.mark.parametrize("ink", ["white", (255, 230, 120)])
@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_light_ink_on_a_transparent_ground_becomes_dark(mode, ink):
    """Laid on white paper it would be a blank page."""
    image = Image.new("RGBA", (400, 100))
    ImageDraw.Draw(image).text((20, 20), "white on nothing", fill=ink, font=ImageFont.load_default(40))
    grey = to_grey(Image.open(BytesIO(saved(image.convert(mode), "PNG"))))

    assert grey.getpixel((0, 0)) == 255
    assert grey.getextrema()[0] < 80


def test_a_white_page_with_transparent_margins_keeps_its_colours():
    """The page is the paper; what is around it is not meant for a dark ground."""
    image = Image.new("RGBA", (400, 400))
    image.paste((255, 255, 255, 255), (40, 40, 360, 360))
    image.paste((0, 0, 0, 255), (100, 100, 110, 110))

    grey = to_grey(image)

    assert [grey.getpixel(place) for place in ((0, 0), (60, 60), (105, 105))] == [255, 255, 0]


@pytest.mark.parametrize(
    ("data", "limits", "code"),
    [
        (png_of_size(65_536, 65_536), {}, ErrorCode.IMAGE_TOO_LARGE),
        (tiff("a", "b", "c"), {"max_frames": 2}, ErrorCode.TOO_MANY_PAGES),
        (tiff("a", "b", "c"), {"max_pages": 2}, ErrorCode.TOO_MANY_PAGES),
        (tiff("a", "b", "c"), {"max_pixels": 1000}, ErrorCode.IMAGE_TOO_LARGE),
        (png_of_size(40_000, 100), {}, ErrorCode.IMAGE_TOO_LARGE),
        (webp_of_size(16_000, 16_000), {}, ErrorCode.IMAGE_TOO_LARGE),
        (webp_of_size(1 << 24, 1 << 24), {}, ErrorCode.IMAGE_TOO_LARGE),
        (saved(picture("x"), "WEBP"), {"max_pixels": 1240 * 1754 - 1}, ErrorCode.IMAGE_TOO_LARGE),
        (saved(picture("x"), "WEBP", lossless=True), {"max_pixels": 1240 * 1754 - 1}, ErrorCode.IMAGE_TOO_LARGE),
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
        assert DocumentLimits(**limits).as_json()[caught.value.limit_name] == caught.value.limit


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
        (Image.new("LAB", (2, 2), (255, 128, 128)), 255),
        (Image.new("I;16", (2, 2), 40_000), 255),
    ],
)
def test_any_kind_of_picture_becomes_grey(image, expected):
    """A transparent page read as black would have no text."""
    grey = to_grey(image)

    assert grey.mode == "L"
    assert grey.getextrema() == (expected, expected)


def test_sixteen_bits_that_count_ink_become_ink():
    """Some scanners store how black a pixel is and not how white."""
    eye, shown = Eye(), Image.new("I;16", (20, 20), 65_535)
    shown.putpixel((2, 5), 0)
    stored = saved(shown, "TIFF").replace(PHOTOMETRIC + b"\1\0", PHOTOMETRIC + b"\0\0")

    _open(stored, eye).read(1)

    assert [eye.seen[0].pixels.getpixel(place) for place in ((0, 0), (2, 5))] == [0, 255]


def test_sixteen_bits_are_scaled_by_what_the_picture_uses():
    """Cutting off the upper bits turns a scan into noise."""
    deep = Image.new("I;16", (2, 1))
    deep.putpixel((0, 0), 1_000)
    deep.putpixel((1, 0), 4_000)

    assert to_grey(deep).getextrema() == (0, 255)
