"""The port through which pages become fields, and the default engine, which needs no network.

Runs inside the killable child process. Tiny text documents come at several hundred a second, so whatever a
kind does not need is not imported for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from stages.fields.cleaning import clean_text
from stages.fields.language import detect_language
from stages.fields.turning import turn_back

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """One document to normalize.

    Shape: ``document`` is the JSON of ``schema.wire.pages.ExtractedDocument``, not validated again here:
    a long manual has 300,000 words.
    """

    document: Mapping[str, Any]
    kind: str
    languages: tuple[str, ...] = ()
    sentences: int | None = None

    @property
    def pages(self) -> Sequence[Mapping[str, Any]]:
        """The extracted pages."""
        pages: Sequence[Mapping[str, Any]] = self.document["pages"]
        return pages

    @property
    def attachments(self) -> Sequence[Mapping[str, Any]]:
        """The XML files that the document carries."""
        attachments: Sequence[Mapping[str, Any]] = self.document.get("attachments", ())
        return attachments


class Engine(Protocol):
    """Reads fields out of pages; ``RulesEngine``, or ``ReportedEngine`` with a model's answer."""

    @property
    def name(self) -> str:
        """Its name and version, as results tell it."""

    def normalize(self, request: Request) -> Json:
        """Return the JSON of a ``schema.wire.results.NormalizedDocument``."""


def frame(request: Request, engine: str) -> Json:
    """Return what every result has, whoever reads the fields: clean pages and the language."""
    pages = [_page(page) for page in request.pages]
    return {
        "kind": request.kind,
        "language": detect_language((page["text"] for page in pages), request.languages),
        "engine": engine,
        "pages": pages,
        "warnings": [],
    }


class RulesEngine:
    """Rules that run offline and say where each value was found."""

    name: Final = "rules-1"

    def normalize(self, request: Request) -> Json:
        """Clean the text, tell its language and read what the kind asks for."""
        result = frame(request, self.name)
        if request.kind == "summary":
            from stages.fields.summary import summarize  # noqa: PLC0415 - only this kind pays for it

            result["summary"], result["warnings"] = summarize(request.pages, wanted=request.sentences)
        elif request.kind == "invoice":
            from stages.fields.invoice import read_invoice  # noqa: PLC0415 - only this kind pays for it

            result["invoice"], result["warnings"] = read_invoice(request.pages, request.attachments, result["language"])
        elif request.kind == "contract":
            from stages.fields.contract import read_contract  # noqa: PLC0415 - only this kind pays for it

            result["contract"], result["warnings"] = read_contract(request.pages)
        turn_back(result, request.pages)
        return result


DEFAULT_ENGINE: Final[Engine] = RulesEngine()


def normalize(request: Mapping[str, Any]) -> Json:
    """Normalize one document; the child's operation of this name.

    Shape: ``{"document": ExtractedDocument, "kind": …, "languages": […], "sentences": …}`` to
    ``NormalizedDocument``; with a model's ``answer`` (``stages.model.answers``) and the name of the ``engine``, that is
    what the fields are read from.
    """
    asked = Request(request["document"], request["kind"], tuple(request.get("languages", ())), request.get("sentences"))
    if "answer" not in request:
        return DEFAULT_ENGINE.normalize(asked)
    from stages.fields.reported import ReportedEngine  # noqa: PLC0415 - only an installation with a model pays for it

    return ReportedEngine(request["engine"], request["answer"]).normalize(asked)


def _page(page: Mapping[str, Any]) -> Json:
    return {
        "number": page["number"],
        "source": page["source"],
        "confidence": page.get("confidence"),
        "text": clean_text(page["text"]),
    }
