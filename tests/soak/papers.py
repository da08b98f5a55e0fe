"""What the clients submit, and what must become of each."""

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from intake.accept import SMALL_BYTES
from stages.sandbox.settings import INLINE_BYTES
from tests.soak.gate import MARK
from tests.support import documents
from tests.support.documents import SENTENCE

LINE: Final = "A line that makes a document long.\n"


@dataclass(frozen=True, slots=True)
class Paper:
    """A sort of document: how many of it are in a pack, how it is made, and how it must end.

    ``make`` takes a word that is in no other document. ``refusal`` is the code with which intake refuses it,
    ``failure`` that with which its job fails; without them it completes. ``doomed``: first it becomes a dead letter.
    ``told``: the word must be in the result.
    """

    name: str
    count: int
    make: Callable[[str], bytes]
    kind: str = "text"
    options: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""
    failure: str = ""
    doomed: bool = False
    told: bool = False


def _large(word: str, size: int) -> bytes:
    return f"{word}\n{LINE * (size // len(LINE) + 1)}".encode()


@cache
def _picture() -> bytes:
    return documents.saved(documents.picture(SENTENCE, size=(1240, 300)), "PNG")


@cache
def _scan() -> bytes:
    return documents.scan(*(f"{SENTENCE}\nThis is page {page}." for page in range(1, 5)))


@cache
def _bomb() -> bytes:
    return documents.bomb(40 << 20)


DOOMED: Final = Paper(
    # Beyond what is kept in the database, so that it must be fetched.
    "doomed",
    2,
    lambda word: MARK + _large(word, SMALL_BYTES),
    doomed=True,
    told=True,
)
PAPERS: Final = (
    Paper("text", 44, lambda word: f"{SENTENCE}\n{word}\n".encode(), told=True),
    Paper("summary", 4, lambda word: f"{SENTENCE}\n{word}\n".encode(), kind="summary", told=True),
    Paper("long text", 4, lambda word: _large(word, 2 * INLINE_BYTES), told=True),
    Paper("pdf", 12, lambda word: documents.pdf(f"{SENTENCE}\n{word}", "Total 10.00 EUR"), kind="invoice", told=True),
    Paper(
        "docx", 8, lambda word: documents.docx(documents.paragraph(f"{SENTENCE} {word}")), kind="contract", told=True
    ),
    Paper("picture", 2, lambda _: _picture()),
    Paper("scan", 1, lambda _: _scan()),
    Paper("truncated pdf", 3, lambda word: documents.pdf(word)[:300], failure="corrupt_document"),
    Paper("locked pdf", 3, lambda word: documents.pdf(word, user="u", owner="o"), failure="password_required"),
    Paper("huge picture", 2, lambda _: documents.png_of_size(100_000, 100_000), failure="image_too_large"),
    Paper("bomb", 1, lambda _: _bomb(), failure="archive_bomb"),
    Paper("wrong page", 2, documents.pdf, options={"pages": "7-9"}, failure="page_out_of_range"),
    Paper("unknown type", 2, lambda _: bytes(100), refusal="unsupported_type"),
    Paper("nothing", 1, lambda _: b"", refusal="empty_document"),
    DOOMED,
)


def pack(draw: random.Random) -> Iterator[Paper]:
    """Deal papers without end: a doomed one first, then each sort as often as it is in a pack."""
    yield DOOMED
    cards = [paper for paper in PAPERS for _ in range(paper.count)]
    while True:
        yield from draw.sample(cards, len(cards))
