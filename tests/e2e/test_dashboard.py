"""What operators look at: a real Prometheus scrapes the running system, and every panel shows something."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.eventually import eventually
from tests.support.system import ROOT, System, free_port

DASHBOARD = json.loads((ROOT / "deploy/grafana/overview.json").read_text())
RULES = ROOT / "deploy/prometheus/rules.yml"
QUERIES = [(panel["title"], target["expr"]) for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]


@pytest.fixture(scope="module")
async def prometheus(system: System) -> AsyncIterator[httpx.AsyncClient]:
    """A Prometheus that scrapes a system in which work was done and a job was given up."""
    await system.start_all(DOCSTAGE_RETRY_ATTEMPTS="2")
    await system.start(system.process("deliver", "stages", "deliver"))
    done = await asyncio.gather(*(system.submit(f"text {number}".encode()) for number in range(5)))
    await asyncio.gather(*(system.finished(job_id) for job_id in done))
    await _fail_one(system)
    process, url = _start(system)
    try:
        async with httpx.AsyncClient(base_url=url, timeout=10) as client:
            await eventually(lambda: _scraped(client, len(system.processes)))
            yield client
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


async def _fail_one(system: System) -> None:
    """Give a job up after its retries, for want of time to read it, and leave a worker waiting for the object store."""
    system.processes["stages"].kill()
    limits = {"DOCSTAGE_TEXT_LIMIT_SECONDS": "0.000001", "DOCSTAGE_RETRY_ATTEMPTS": "2"}
    hurried = system.stages("stages", "extract", "normalize", "persist", **limits)
    cut_off = system.stages("cut_off", "validate", DOCSTAGE_S3_ENDPOINT="http://127.0.0.1:1")
    await system.start(hurried, cut_off)
    # Small enough to be in the database too, so that validate has no need of the store; the other one is not.
    job_id = await system.submit(b"never read")
    assert (await system.finished(job_id))["status"] == "failed"
    await system.submit(b"never read " * 2000)


def _start(system: System) -> tuple["subprocess.Popen[bytes]", str]:
    """Start Prometheus with every process of the system as a target and the shipped rules."""
    folder, port = system.folder / "prometheus", free_port()
    folder.mkdir()
    targets = [f"127.0.0.1:{process.port}" for process in system.processes.values()]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "docstage", "static_configs": [{"targets": targets}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(config))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - a program of the system's
            [
                "/usr/bin/prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    return process, f"http://127.0.0.1:{port}"


async def _query(client: httpx.AsyncClient, expression: str) -> list[dict[str, Any]]:
    answer = (await client.get("/api/v1/query", params={"query": expression})).json()
    assert answer["status"] == "success", answer
    return list(answer["data"]["result"])


async def _scraped(client: httpx.AsyncClient, processes: int) -> bool:
    """Every target was reached at least three times, so that rates exist."""
    try:
        found = await _query(client, "sum_over_time(up[1m]) >= 3")
    except (httpx.HTTPError, ValueError, AssertionError):
        return False
    return len(found) == processes


@pytest.mark.parametrize(("panel", "expression"), QUERIES, ids=[f"{title}: {expr}" for title, expr in QUERIES])
async def test_every_panel_shows_something(prometheus, panel, expression):
    """A panel that stays empty in a working system would hide a broken one."""
    assert await eventually(lambda: _query(prometheus, expression), seconds=30), panel


async def test_the_shipped_rules_are_loaded_and_evaluated(prometheus):
    """An alert that Prometheus cannot evaluate never rings."""

    async def look() -> bool:
        groups = (await prometheus.get("/api/v1/rules")).json()["data"]["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return bool(rules) and all(rule["health"] == "ok" for rule in rules)

    assert await eventually(look)


async def test_a_dead_letter_rings(prometheus):
    """The given-up job is pending or firing within moments, by stage and code."""

    async def look() -> bool:
        alerts = (await prometheus.get("/api/v1/alerts")).json()["data"]["alerts"]
        letters = [alert for alert in alerts if alert["labels"]["alertname"] == "DocstageDeadLettersOpen"]
        return any(alert["labels"]["code"] == "parser_timeout" for alert in letters)

    assert await eventually(look)


def test_the_dashboard_is_the_one_that_is_shipped():
    """Compose provisions this very file."""
    assert (Path(ROOT) / "deploy/compose.yaml").read_text().count("grafana") > 0
    assert len(QUERIES) > 20
