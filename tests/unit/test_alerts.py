"""Alerts and dashboard speak of metrics that exist, and every alert leads to a page that says what to do."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import Counter, Gauge, Histogram

from schema.runtime import metrics

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/rules.yml"
RULES_TEST = ROOT / "deploy/prometheus/tests/rules_test.yml"
DASHBOARD = ROOT / "deploy/grafana/overview.json"
RUNBOOK = ROOT / "docs/operations.md"
NAME = re.compile(r"\bdocstage_[a-z_]+")


def _declared():
    """Return every series name that a scrape can show."""
    names = set()
    for metric in vars(metrics).values():
        if isinstance(metric, Counter | Gauge | Histogram):
            (family,) = metric.describe()
            endings = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}[family.type]
            names |= {family.name + ending for ending in endings}
    return names


def _dashboard_expressions():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def test_every_panel_has_a_number_of_its_own():
    """Links and stored views name panels by it; of two with one number only one can be meant."""
    numbers = [panel["id"] for panel in json.loads(DASHBOARD.read_text())["panels"]]

    assert len(set(numbers)) == len(numbers)


def _anchors():
    headings = re.findall(r"^#+ (.+)$", RUNBOOK.read_text(), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_alerts_name_only_metrics_that_exist():
    """An alert on a misspelt metric is silent for ever."""
    assert set(NAME.findall(RULES.read_text())) <= _declared()


def test_the_dashboard_names_only_metrics_that_exist_and_leaves_none_out():
    """A metric that nobody looks at is not worth its cost; one that does not exist is an empty panel."""
    shown = set(NAME.findall(" ".join(_dashboard_expressions())))
    unseen = {name.removesuffix("_bucket") for name in _declared() if not name.endswith(("_sum", "_count"))}
    unseen -= {name.removesuffix("_bucket") for name in shown}

    assert shown <= _declared()
    assert unseen == set()


def test_every_alert_leads_to_a_section_of_the_runbook():
    """Whoever is woken at night must not have to search."""
    targets = re.findall(r"runbook: docs/operations\.md#([a-z-]+)", RULES.read_text())

    assert len(targets) == RULES.read_text().count("- alert:")
    assert set(targets) <= _anchors()


def test_the_dashboard_takes_its_data_source_from_a_variable():
    """It can be imported anywhere."""
    dashboard = json.loads(DASHBOARD.read_text())

    assert [variable["type"] for variable in dashboard["templating"]["list"]] == ["datasource"]
    sources = {panel["datasource"]["uid"] for panel in dashboard["panels"] if "datasource" in panel}
    assert sources == {"${datasource}"}


def test_the_alerts_fire_when_they_should_and_only_then():
    """A rule nobody has seen firing is a hope."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.fail("promtool is missing; it comes with Prometheus")

    for command in (["check", "rules", str(RULES)], ["test", "rules", str(RULES_TEST)]):
        done = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)  # noqa: S603 - a fixed command
        assert done.returncode == 0, done.stdout + done.stderr
