"""The dashboard and the alerts use only metrics that exist."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import temporalio.bridge
import yaml  # type: ignore[import-untyped]

from api.metrics import Metrics
from proxy import metrics as proxy_metrics
from testkit.needs import need_program
from tests.deploy.compose import environment_of, services
from tests.deploy.programs import ROOT, run
from workflows.sweeps import ObserveWorkflow

MONITORING = ROOT / "monitoring"
DASHBOARD = MONITORING / "grafana/dashboards/codehub.json"
ALERTS = MONITORING / "prometheus/alerts.yml"
SCRAPING = MONITORING / "prometheus/prometheus.yml"
METRIC = re.compile(r"\b((?:codehub|temporal)_\w+)")
HISTOGRAM_PARTS = ("_bucket", "_sum", "_count")


def expressions() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return shown + [rule["expr"] for rule in rules()]


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def used_metrics() -> set[str]:
    return {name for expression in expressions() for name in METRIC.findall(expression)}


def metrics_of_api() -> set[str]:
    described = re.findall(r"^# TYPE (\w+) (\w+)", Metrics().render().decode(), re.MULTILINE)
    return {name for base, kind in described for name in _series(base, kind)}


def metrics_of_proxy() -> set[str]:
    """Return the proxy's metrics from its source, because its collector needs a running proxy."""
    source = Path(proxy_metrics.__file__).read_text()
    counts = re.findall(r'_(?:count|by_reason)\(\s*"(\w+)"', source)
    whole = re.findall(r'(\w+)MetricFamily\(\s*"(codehub_proxy_\w+)"', source)
    return {f"codehub_proxy_{name}_total" for name in counts} | {
        name for kind, base in whole for name in _series(base, kind.lower())
    }


def _series(base: str, kind: str) -> set[str]:
    if kind == "histogram":
        return {base + part for part in HISTOGRAM_PARTS}
    return {base if kind == "gauge" or base.endswith("_total") else f"{base}_total"}


def is_temporal_metric(name: str) -> bool:
    """Return whether Temporal's SDK, which is not Python, contains the name."""
    bare = name.removeprefix("temporal_").removesuffix("_bucket")
    (library,) = Path(temporalio.bridge.__file__ or "").parent.glob("*.so")
    return bare.encode() in library.read_bytes()


def test_the_expressions_are_found() -> None:
    assert len(used_metrics()) > 25


def test_every_codehub_metric_exists() -> None:
    ours = {name for name in used_metrics() if name.startswith("codehub_")}
    assert ours - metrics_of_api() - metrics_of_proxy() == set()


def test_every_temporal_metric_exists_in_the_sdk() -> None:
    theirs = {name for name in used_metrics() if name.startswith("temporal_")}
    assert theirs
    assert [name for name in theirs if not is_temporal_metric(name)] == []
    assert not is_temporal_metric("temporal_no_such_metric")


def test_the_monitored_sweep_exists() -> None:
    watched = re.findall(r'workflow_type="(\w+)"', " ".join(expressions()))
    assert set(watched) == {ObserveWorkflow.__name__}


def test_every_target_is_the_port_of_a_service() -> None:
    jobs = {
        each["job_name"]: each["static_configs"][0]["targets"]
        for each in yaml.safe_load(SCRAPING.read_text())["scrape_configs"]
    }
    workers = [
        environment_of(services()[name])["CODEHUB_WORKER_METRICS_PORT"] for name in ("worker-1", "worker-2")
    ]
    assert jobs["worker"] == [f"127.0.0.1:{port}" for port in workers]
    assert jobs["proxy"] == [f"127.0.0.1:{environment_of(services()['proxy'])['CODEHUB_PROXY_METRICS_PORT']}"]
    assert jobs["api"] == ["api:8081"]


def test_every_alert_has_a_summary() -> None:
    assert [rule["alert"] for rule in rules() if not rule["annotations"]["summary"].endswith(".")] == []


def test_the_dashboard_uses_the_provisioned_data_source() -> None:
    source = yaml.safe_load((MONITORING / "grafana/provisioning/datasources/prometheus.yml").read_text())
    panels = json.loads(DASHBOARD.read_text())["panels"]
    used = {target["datasource"]["uid"] for panel in panels for target in panel.get("targets", ())}
    assert used == {each["uid"] for each in source["datasources"]}


def test_no_panel_covers_another() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    taken = [cell for panel in panels for cell in _cells(panel["gridPos"])]
    assert len(taken) == len(set(taken))
    assert len({panel["id"] for panel in panels}) == len(panels)


def _cells(place: dict[str, int]) -> list[tuple[int, int]]:
    columns, lines = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
    return [(column, line) for column in columns for line in lines]


@pytest.mark.parametrize(("kind", "file"), [("config", SCRAPING), ("rules", ALERTS)], ids=["config", "rules"])
def test_prometheus_accepts_the_file(kind: str, file: Path) -> None:
    checked = run(need_program("promtool"), "check", kind, str(file))
    assert checked.returncode == 0, checked.stderr
