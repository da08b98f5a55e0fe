"""What a client may ask for beside the kind: validated once at intake, carried as JSON ever after."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

LANGUAGE: Final = re.compile(r"[a-z]{3}(_[a-z]{2,8})?")
RANGES: Final = re.compile(r"\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*")
MAX_LANGUAGES: Final = 5
MAX_CLIENT_TAG: Final = 64
MAX_SENTENCES: Final = 30


class InvalidOptionError(ValueError):
    """An option does not have the form it must have; ``name`` says which, ``expected`` what would do."""

    def __init__(self, name: str, expected: str) -> None:
        """Keep the option's name and the expectation, never the value."""
        super().__init__(f"{name}: expected {expected}")
        self.name = name
        self.expected = expected


class OcrMode(StrEnum):
    """How pictures of text are read: quickly, again where that was not sure, or always by the accurate engine."""

    FAST = "fast"
    AUTO = "auto"
    ACCURATE = "accurate"


@dataclass(frozen=True, slots=True)
class JobOptions:
    """A job's options.

    Shape: ``languages`` are Tesseract's codes (``eng``, ``deu``), empty for automatic; ``pages`` are
    inclusive ranges from 1, empty for all; ``sentences`` is how long a summary may be, ``None`` for as long as
    its document deserves.
    """

    languages: tuple[str, ...] = ()
    pages: tuple[tuple[int, int], ...] = ()
    strict: bool = False
    client_tag: str | None = None
    ocr: OcrMode = OcrMode.AUTO
    sentences: int | None = None

    def wants(self, page: int) -> bool:
        """Say whether ``page`` (from 1) is asked for."""
        return not self.pages or any(first <= page <= last for first, last in self.pages)

    def as_json(self) -> dict[str, Any]:
        """Return the options as JSON."""
        return asdict(self)


def options_from_json(data: Mapping[str, Any]) -> JobOptions:
    """Read options back from the JSON that ``as_json`` made."""
    return JobOptions(
        languages=tuple(data.get("languages", ())),
        pages=tuple((int(first), int(last)) for first, last in data.get("pages", ())),
        strict=bool(data.get("strict", False)),
        client_tag=data.get("client_tag"),
        ocr=OcrMode(data.get("ocr", OcrMode.AUTO)),
        sentences=data.get("sentences"),
    )


def parse_languages(value: str) -> tuple[str, ...]:
    """Read ``eng+deu`` or ``eng,deu``.

    Raises:
        InvalidOptionError: when it is something else or names too many.
    """
    codes = tuple(part.strip() for part in re.split(r"[+,]", value) if part.strip())
    if len(codes) > MAX_LANGUAGES or not all(LANGUAGE.fullmatch(code) for code in codes):
        msg = "languages"
        raise InvalidOptionError(msg, f"up to {MAX_LANGUAGES} codes such as eng+deu")
    return codes


def parse_pages(value: str) -> tuple[tuple[int, int], ...]:
    """Read ``1-3,5`` as inclusive ranges.

    Raises:
        InvalidOptionError: when it is something else, counts from 0 or runs backwards.
    """
    compact = value.replace(" ", "")
    if not compact:
        return ()
    if not RANGES.fullmatch(compact):
        msg = "pages"
        raise InvalidOptionError(msg, "ranges such as 1-3,5")
    ranges = []
    for part in compact.split(","):
        first, _, last = part.partition("-")
        ranges.append((int(first), int(last or first)))
    if any(first < 1 or last < first for first, last in ranges):
        msg = "pages"
        raise InvalidOptionError(msg, "ranges that count from 1 and do not run backwards")
    return tuple(ranges)


def parse_ocr(value: str) -> OcrMode:
    """Read how pictures of text are to be read; empty leaves it to the service.

    Raises:
        InvalidOptionError: when it is something else.
    """
    try:
        return OcrMode(value.lower() or OcrMode.AUTO)
    except ValueError:
        msg = "ocr"
        raise InvalidOptionError(msg, f"one of {', '.join(OcrMode)}") from None


def parse_sentences(value: str) -> int | None:
    """Read how many sentences a summary may have; empty leaves it to the document.

    Raises:
        InvalidOptionError: when it is something else, none or too many.
    """
    if not value:
        return None
    if not re.fullmatch(r"[0-9]{1,3}", value) or not 1 <= int(value) <= MAX_SENTENCES:
        msg = "sentences"
        raise InvalidOptionError(msg, f"a whole number from 1 to {MAX_SENTENCES}")
    return int(value)


def parse_client_tag(value: str) -> str | None:
    """Read a client's own mark for the job.

    Raises:
        InvalidOptionError: when it is too long or not printable.
    """
    if not value:
        return None
    if len(value) > MAX_CLIENT_TAG or not value.isprintable():
        msg = "client_tag"
        raise InvalidOptionError(msg, f"1 to {MAX_CLIENT_TAG} printable characters")
    return value
