"""The fields of a result against the truth: each right, wrong or missing."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from stdnum import iban

from tests.evaluation.manifest import Entry
from tests.evaluation.values import COMPARISONS, same_parties, strangers

TRUTH_NAMES: Final[Mapping[str, str]] = {
    "due": "amount_due",
    "seller_vat": "seller_tax_id",
    "document_name": "title",
}
CHECK_NAMES: Final[Mapping[str, str]] = {"company": "seller", "date": "issue_date"}
TEMPLATE_FIELDS: Final = ("parties", "agreement_date", "effective_date", "expiration_date", "governing_law")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


class Verdict(StrEnum):
    """What a field is worth. Null where nothing is to be found is right, anything else there is wrong."""

    RIGHT = "right"
    WRONG = "wrong"
    MISSING = "missing"


def judge(entry: Entry, section: Mapping[str, Any], *, xml_counts: bool) -> dict[str, Verdict]:
    """Judge every field of which the truth is known.

    Args:
        entry: the document and its truth.
        section: the result's ``invoice`` or ``contract``.
        xml_counts: whether the electronic invoice inside was there to read; the truth that was taken from it then
            counts in full, else only what ``truth_checks`` says is on the page.
    """
    return {name: _verdict(name, section.get(name), true) for name, true in _truths(entry, xml_counts=xml_counts)}


def _truths(entry: Entry, *, xml_counts: bool) -> Iterator[tuple[str, Any]]:
    if entry.is_template:
        yield from ((name, None) for name in TEMPLATE_FIELDS)
    checks = {CHECK_NAMES.get(name, name): good for name, good in (entry.truth_checks or {}).items()}
    for given, true in entry.truth.items():
        name = TRUTH_NAMES.get(given, given)
        is_checked = entry.truth_checks is None or xml_counts or checks.get(name, False)
        if name in {*COMPARISONS, "parties"} and is_checked and _is_fair(name, true, entry.truth):
            yield name, true


def _is_fair(name: str, true: Any, truth: Mapping[str, Any]) -> bool:
    """Say whether a truth can be asked for: some sources repeat the total as net, or have invalid IBANs."""
    if true is None:
        return True
    if name == "iban":
        return bool(iban.is_valid(true))
    if name.endswith("_date"):
        return _DATE.fullmatch(true) is not None
    return not (name == "net_total" and "tax_total" not in truth and true == truth.get("total"))


def _verdict(name: str, found: Any, true: Any) -> Verdict:
    if name == "parties":
        return _parties_verdict([party["value"] for party in found or []], true or [])
    if found is None:
        return Verdict.RIGHT if true is None else Verdict.MISSING
    is_right = true is not None and COMPARISONS[name](found["value"], true)
    return Verdict.RIGHT if is_right else Verdict.WRONG


def _parties_verdict(read: list[str], true: list[str]) -> Verdict:
    """All parties are right, some of them are not all, and one that is none is wrong."""
    if same_parties(read, true):
        return Verdict.RIGHT
    return Verdict.WRONG if strangers(read, true) else Verdict.MISSING
