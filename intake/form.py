"""What a submission asks for beside its file: each field checked as soon as it is read."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from intake.problems import Problem, ProblemCode
from schema.domain.kinds import Kind
from schema.domain.options import (
    InvalidOptionError,
    JobOptions,
    OcrMode,
    parse_client_tag,
    parse_languages,
    parse_ocr,
    parse_pages,
    parse_sentences,
)

_TRUE: Final = frozenset({"true", "1", "yes", "on"})
_FALSE: Final = frozenset({"false", "0", "no", "off", ""})


def parse_kind(value: str) -> Kind:
    """Read what the client wants to know."""
    try:
        return Kind(value)
    except ValueError:
        msg = "kind"
        raise InvalidOptionError(msg, f"one of {', '.join(Kind)}") from None


def parse_flag(value: str) -> bool:
    """Read a yes or no."""
    lowered = value.lower()
    if lowered in _TRUE or lowered in _FALSE:
        return lowered in _TRUE
    msg = "strict"
    raise InvalidOptionError(msg, "true or false")


def parse_seconds(value: str) -> int | None:
    """Read a number of seconds; empty is none."""
    if not value:
        return None
    if not value.isascii() or not value.isdecimal() or len(value) > 9 or int(value) < 1:  # noqa: PLR2004 - digits
        msg = "deadline_seconds"
        raise InvalidOptionError(msg, "a whole number of seconds from 1")
    return int(value)


PARSERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "kind": parse_kind,
    "languages": parse_languages,
    "pages": parse_pages,
    "strict": parse_flag,
    "ocr": parse_ocr,
    "sentences": parse_sentences,
    "deadline_seconds": parse_seconds,
    "client_tag": parse_client_tag,
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What this installation allows: the longest deadline, and the languages that can be recognized.

    ``languages`` empty leaves the check to the workers.
    """

    default_deadline_seconds: int
    max_deadline_seconds: int
    languages: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Wishes:
    """A checked form."""

    kind: Kind
    options: JobOptions
    deadline_seconds: int | None

    def fingerprint(self, sha256: str) -> str:
        """Return what two requests have in common that ask the same of the same bytes."""
        asked = [sha256, self.kind.value, self.options.as_json(), self.deadline_seconds]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class Form:
    """The fields read so far."""

    bounds: Bounds
    _values: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, text: str) -> None:
        """Take one field.

        Raises:
            Problem: ``unknown_field``, ``malformed_request`` when it is there twice, ``invalid_parameter``,
                ``language_unavailable``.
        """
        parser = PARSERS.get(name)
        if parser is None:
            raise Problem(ProblemCode.UNKNOWN_FIELD, f"The fields are file, {', '.join(PARSERS)}.")
        if name in self._values:
            raise Problem(ProblemCode.MALFORMED_REQUEST, f"The field {name} is there twice.")
        try:
            self._values[name] = parser(text.strip())
        except InvalidOptionError as error:
            raise _invalid(error) from None
        self._check(name)

    def wishes(self) -> Wishes:
        """Return the whole form.

        Raises:
            Problem: ``invalid_parameter``, when the kind is missing.
        """
        values = self._values
        if "kind" not in values:
            msg = "kind"
            raise _invalid(InvalidOptionError(msg, f"one of {', '.join(Kind)}"))
        options = JobOptions(
            languages=values.get("languages", ()),
            pages=values.get("pages", ()),
            strict=values.get("strict", False),
            client_tag=values.get("client_tag"),
            ocr=values.get("ocr", OcrMode.AUTO),
            sentences=values.get("sentences"),
        )
        return Wishes(values["kind"], options, values.get("deadline_seconds"))

    def _check(self, name: str) -> None:
        """Hold a value against this installation's bounds."""
        value, bounds = self._values[name], self.bounds
        if name == "deadline_seconds" and value is not None and value > bounds.max_deadline_seconds:
            raise Problem(
                ProblemCode.INVALID_PARAMETER,
                "deadline_seconds is longer than allowed.",
                parameter=name,
                limit=bounds.max_deadline_seconds,
                actual=value,
            )
        if name == "languages" and bounds.languages and not bounds.languages.issuperset(value):
            raise Problem(
                ProblemCode.LANGUAGE_UNAVAILABLE,
                f"Installed are {', '.join(sorted(bounds.languages))}.",
                parameter=name,
            )


def _invalid(error: InvalidOptionError) -> Problem:
    return Problem(ProblemCode.INVALID_PARAMETER, f"{error.name}: expected {error.expected}.", parameter=error.name)
