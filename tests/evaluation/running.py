"""Sending the cases to a running system and taking down what comes of each."""

import asyncio
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from intake.client.api import ApiClient, ApiError, Json
from intake.client.submissions import FINISHED
from stages.fields.language import detect_language
from tests.evaluation import outcomes
from tests.evaluation.cases import Case, Variant
from tests.evaluation.exposition import Reading, peak_of_one
from tests.evaluation.fields import Verdict, judge
from tests.evaluation.summaries import judge_summary
from tests.evaluation.texts import score_text

POLL_SECONDS: Final = 20
HOSTILE: Final = "hostile"


@dataclass(slots=True)
class Record:
    """What one case came to.

    Units: ``seconds`` are those that stages worked on it, ``waited_seconds`` those from upload to result;
    ``peak_bytes`` is the most that a parser had resident, where the case ran alone and long enough to be measured.
    """

    id: str
    kind: str
    group: str
    part: str
    variant: str
    expected: str
    outcome: str = outcomes.UNFINISHED
    fits: bool = False
    code: str | None = None
    pages: int = 0
    seconds: float = 0.0
    waited_seconds: float = 0.0
    peak_bytes: int | None = None
    attempts: int = 0
    workers_lost: int = 0
    text: dict[str, float] | None = None
    fields: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Runner:
    """Sends cases to one system.

    Args:
        client: the system.
        options: further fields of every submission, such as ``ocr``.
        limit_seconds: how long a case may take before it is cancelled and counts as unfinished.
        metrics: reads the system's own counts.
    """

    client: ApiClient
    options: Mapping[str, str]
    limit_seconds: float
    metrics: Callable[[], Reading] = dict

    async def all(self, cases: Sequence[Case], jobs: int, advance: Callable[[], None]) -> list[Record]:
        """Run all cases, ``jobs`` at once; then the hostile ones, each alone, so that its memory can be told."""
        crowd = [case for case in cases if case.entry.kind != HOSTILE]
        records = await self._together(crowd, jobs, advance)
        for case in cases:
            if case.entry.kind == HOSTILE:
                records.append(await self._alone(case))
                advance()
        return records

    async def _alone(self, case: Case) -> Record:
        """Run one case with nothing beside it, and take down what memory it took."""
        before = await asyncio.to_thread(self.metrics)
        record = await self.one(case)
        record.peak_bytes = peak_of_one(before, await asyncio.to_thread(self.metrics))
        return record

    async def _together(self, cases: Sequence[Case], jobs: int, advance: Callable[[], None]) -> list[Record]:
        places = asyncio.Semaphore(jobs)

        async def one(case: Case) -> Record:
            async with places:
                record = await self.one(case)
            advance()
            return record

        return list(await asyncio.gather(*(one(case) for case in cases)))

    async def one(self, case: Case) -> Record:
        """Run one case."""
        record, began = _record(case), time.monotonic()
        try:
            job = await self._submit(case)
        except ApiError as refusal:
            _fail(record, case, refusal.code)
        else:
            await self._follow(record, case, job)
        record.waited_seconds = round(time.monotonic() - began, 3)
        record.fits = outcomes.fits(case.entry, record.outcome)
        return record

    async def _submit(self, case: Case) -> Json:
        return await self.client.submit(
            case.path,
            {"kind": case.job_kind, **self.options},
            idempotency_key=uuid.uuid4().hex,
            upload=(case.entry.filename, case.entry.content_type),
        )

    async def _follow(self, record: Record, case: Case, job: Json) -> None:
        """See a job to its end and take down what it came to."""
        try:
            async with asyncio.timeout(self.limit_seconds):
                while job["status"] not in FINISHED:
                    changed, _ = await self.client.job(job["id"], wait=POLL_SECONDS)
                    job = changed or job
        except TimeoutError:
            await self.client.cancel(job["id"])
            return
        record.pages = job["progress"]["pages_done"]
        _take_attempts(record, await self.client.attempts(job["id"]))
        if job["status"] == "completed":
            _take_result(record, case, json.loads(await self.client.result(job["id"], with_text=True)))
        else:
            _fail(record, case, (job["error"] or {}).get("code", job["status"]))


def _record(case: Case) -> Record:
    entry = case.entry
    return Record(
        id=case.key,
        kind=entry.kind,
        group=case.group,
        part=entry.part.value,
        variant=case.variant.value,
        expected=entry.expected,
    )


def _fail(record: Record, case: Case, code: str) -> None:
    record.code = code
    record.outcome = outcomes.of_error(code, size=case.path.stat().st_size)


def _take_attempts(record: Record, attempts: Sequence[Json]) -> None:
    ended = [each for each in attempts if each["ended_at"]]
    record.attempts = len(attempts)
    record.workers_lost = sum(each["outcome"] == "worker_lost" for each in attempts)
    record.seconds = round(sum(_at(each["ended_at"]) - _at(each["began_at"]) for each in ended), 3)


def _at(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def _take_result(record: Record, case: Case, result: Json) -> None:
    entry = case.entry
    record.outcome = outcomes.of_result(result)
    record.warnings = sorted({warning["code"] for warning in result["warnings"]})
    if case.variant is Variant.SUMMARY:
        texts = [page["text"] for page in result["pages"]]
        record.fields = {name: each.value for name, each in judge_summary(result["summary"], texts).items()}
        return
    if entry.reference is not None and case.variant is Variant.AS_IT_IS:
        reference = entry.reference.read_text(encoding="utf-8")
        score = score_text(result["text"], reference)
        record.text = score and {
            "words": score.words,
            "recall": round(score.recall, 4),
            "precision": round(score.precision, 4),
            "character_error": round(score.character_error, 4),
        }
        record.fields |= judge_language(record, result["language"], entry.language or detect_language([reference]))
    section = result.get(entry.job_kind)
    if section is not None:
        verdicts = judge(entry, section, xml_counts=record.group == "invoice with xml")
        record.fields |= {name: verdict.value for name, verdict in verdicts.items()}
        record.values |= {name: _value(section.get(name)) for name in verdicts}


def judge_language(record: Record, found: str | None, true: str | None) -> dict[str, str]:
    """Judge the language; where the reference tells none, any or none may be told."""
    if true is None:
        return {}
    record.values["language"] = found
    return {"language": (Verdict.MISSING if found is None else _right(is_right=found == true)).value}


def _right(*, is_right: bool) -> Verdict:
    return Verdict.RIGHT if is_right else Verdict.WRONG


def _value(found: Any) -> Any:
    if isinstance(found, list):
        return [_value(each) for each in found]
    return found and found["value"]
