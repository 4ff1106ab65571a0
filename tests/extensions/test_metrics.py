"""A crawl's metrics, as Prometheus reads them, and the files that ask for them."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from moviecrawler.cluster.metrics import _Cluster
from moviecrawler.cluster.state import EVENTS
from moviecrawler.dashboard.site import MENU
from moviecrawler.extensions import metrics
from moviecrawler.extensions.metrics import COUNTERS, GAUGES
from moviecrawler.monitors.alarm_store import FIRST_STEPS, Alarm, open_alarm_store
from moviecrawler.replica.process import ReplicaProcess
from tests.conftest import PROJECT
from tests.crawling import crawl, reset
from tests.monitors.receivers import Webhook
from tests.proxies.chain import Chain
from tests.services.threads import Host

MONITORING = PROJECT / "scrapyd" / "monitoring"
UNITS = ("_total", "_bytes", "_seconds", "_ratio", "_max", "_open", "_running", "_success", "_stopped", "_pages")
"""Ends of names: a counter's, a unit, or what a gauge counts."""
OWN = re.compile(r"\bmoviecrawler_\w+")
DEFINED_BY_NODES = set(
    re.findall(r'"(moviecrawler_\w+)"', (PROJECT / "moviecrawler" / "cluster" / "metrics.py").read_text("utf-8"))
) | {
    *("moviecrawler_jobs_total", "moviecrawler_nodes_lost_total"),
    *(f"moviecrawler_crawl_{name}" for name in ("done", "failed", "to_go", "dead_letters", "workers")),
}
EXISTING = DEFINED_BY_NODES | {f"{counter.name}_total" for counter in COUNTERS} | set(GAUGES)


@pytest.fixture(scope="module")
def families(running_replica: ReplicaProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Metric]:
    """Return the metrics of a crawl of 20 titles of which one isn't there."""
    folder = tmp_path_factory.mktemp("metrics")
    given = ("ids=tt0000001", "list=top", "limit=20")
    reset(running_replica)
    finished = crawl(
        "imdb", *given, data=folder, replica=running_replica, METRICS_FOLDER=str(folder), METRICS_EVERY="0.1"
    )
    assert finished.code == 0, finished.log
    (file,) = folder.glob("*.prom")
    assert file.name == "moviecrawler_imdb_default.prom"
    return {family.name: family for family in text_string_to_metric_families(file.read_text("utf-8"))}


def value(families: dict[str, Metric], name: str, **labels: str) -> float:
    (sample,) = [
        sample
        for sample in families[name.removesuffix("_total")].samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    return sample.value


def test_file_tells_what_was_stored(families: dict[str, Metric]) -> None:
    assert value(families, "moviecrawler_titles_asked_total") == 20
    assert value(families, "moviecrawler_titles_total", outcome="stored") == 19
    assert value(families, "moviecrawler_titles_total", outcome="absent") == 1
    assert value(families, "moviecrawler_store_items_total", store="csv", outcome="durable") == 20
    assert value(families, "moviecrawler_responses_total", status="404") == 1
    assert value(families, "moviecrawler_pages_total") == 19
    assert value(families, "moviecrawler_field_coverage_ratio", field="year") == 1
    assert value(families, "moviecrawler_crawl_running") == 0
    assert value(families, "moviecrawler_crawl_success") == 1
    assert value(families, "moviecrawler_site_stopped") == 0
    assert value(families, "moviecrawler_received_bytes_total") > 10_000


def test_names_and_labels_follow_the_conventions(families: dict[str, Metric]) -> None:
    for family in families.values():
        assert re.fullmatch(r"moviecrawler_[a-z_]+", family.name)
        assert family.documentation.endswith(".")
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter")
            assert sample.name.endswith(UNITS)
            assert sample.labels["site"] == "imdb"
            assert sample.labels["run"] == "default"
            assert sample.labels.keys() <= {*("site", "run", "outcome", "status", "kind", "field", "store", "pool")}
            # No label says which title or URL it was.
            assert not any(re.search(r"tt\d|/", label) for label in sample.labels.values())


def test_metrics_are_pushed_with_the_password_where_it_belongs(replica: ReplicaProcess, tmp_path: Path) -> None:
    with Webhook() as gateway:
        url = f"http://operator:hunter%402@127.0.0.1:{gateway.port}"
        push = {"METRICS_PUSH_URL": url, "FRONTIER_NODE": "node7"}
        finished = crawl("imdb", "limit=5", data=tmp_path, replica=replica, **push)
    assert finished.code == 0
    method, path, headers = gateway.requests[-1]
    assert (method, path) == ("PUT", "/metrics/job/moviecrawler/instance/node7/run/default/site/imdb")
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"operator:hunter@2"
    pushed = {family.name: family for family in text_string_to_metric_families(gateway.bodies[-1].decode())}
    assert value(pushed, "moviecrawler_titles_total", outcome="stored") == 5
    assert "hunter" not in finished.log.replace(url, "")


async def test_figures_of_the_end_are_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bool] = []
    began, overtaken = threading.Event(), threading.Event()

    def write(_path: str, registry: CollectorRegistry) -> None:
        is_running = 'moviecrawler_crawl_running{run="default",site="imdb"} 1.0' in generate_latest(registry).decode()
        (began if is_running else overtaken).set()
        if is_running:
            overtaken.wait(0.5)  # as on a slow disk
        written.append(is_running)

    monkeypatch.setattr(metrics, "write_to_textfile", write)
    one = metrics.Metrics.from_crawler(Chain(0, tmp_path, METRICS_FOLDER=str(tmp_path)).crawler)
    one.spider_opened()
    assert await asyncio.to_thread(began.wait, 20)
    await one.spider_closed("finished")
    assert written == [True, False]


@pytest.mark.parametrize(("is_away", "error"), [(True, "URLError"), (False, "BadStatusLine")])
def test_gateway_that_is_away_or_speaks_no_http_stops_neither_the_crawl_nor_the_file(
    is_away: bool, error: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        gateway = stack.enter_context(Host(b"-ERR unknown command\r\n"))
        own = {"METRICS_FOLDER": str(tmp_path), "METRICS_PUSH_URL": f"http://{gateway.address}", "METRICS_EVERY": "0.1"}
        if is_away:
            stack.close()
        finished = crawl("imdb", "limit=5", data=tmp_path, replica=replica, **own)
    assert finished.code == 0
    assert finished.log.count(f"Metrics could not be written to METRICS_PUSH_URL ({error})") == 1
    assert "Traceback" not in finished.log


def test_nodes_tell_the_alarms_of_the_crawls_they_run(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_alarm_store({"REDIS_URL": redis_url})
    for field in ("year", "plot"):
        name = f"coverage/imdb/{field}"
        store.fire(Alarm(name=name, kind="coverage", site="imdb", text="missing", since=0, seen_at=0), 60)
    store.close()
    monkeypatch.setenv("REDIS_URL", redis_url)
    nodes: list[Any] = [SimpleNamespace(has_frontier=known) for known in (True, False)]
    (sample,) = _Cluster(nodes[0])._alarms().samples
    assert (sample.name, sample.value) == ("moviecrawler_alarms_open", 2)
    assert sample.labels == {"site": "imdb", "kind": "coverage"}
    assert not _Cluster(nodes[1])._alarms().samples


def queries() -> Iterator[tuple[str, str]]:
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text("utf-8"))
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    rules = yaml.safe_load((MONITORING / "rules.yml").read_text("utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


@pytest.mark.parametrize(("name", "query"), list(queries()))
def test_query_names_existing_metrics(name: str, query: str) -> None:
    named = set(OWN.findall(query))
    assert named or "up{" in query, name
    assert named <= EXISTING
    for opening, closing in ("()", "{}", "[]"):
        assert query.count(opening) == query.count(closing)
    for labels in re.findall(r"\{(.*?)\}", query):
        assert re.fullmatch(r'(?:\w+(?:=|=~|!=)"[^"]*"(?:, )?)+', labels)


def test_dashboard_can_be_loaded() -> None:
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text("utf-8"))
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    source = yaml.safe_load((MONITORING / "grafana-datasource.yml").read_text("utf-8"))["datasources"][0]["uid"]
    placed: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & placed, f"{panel['title']} overlaps another panel"
        assert place["x"] + place["w"] <= 24
        placed |= cells
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == source
            # Grafana's schema wants the list, and a reference for each query.
            assert panel["fieldConfig"]["overrides"] == []
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0


def test_alert_rules_are_whole_and_lead_to_the_runbook() -> None:
    rules = yaml.safe_load((MONITORING / "rules.yml").read_text("utf-8"))
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in alerts}) == len(alerts) > 5
    for rule in alerts:
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"].keys() == {"summary", "runbook", "dashboard"}
        kind, page = rule["annotations"]["runbook"], rule["annotations"]["dashboard"]
        # That of dead letters is about requests alone; the alarm is about refused items, too.
        expected = "/stores#letters" if kind == "dead_letters" else FIRST_STEPS.get(kind, (page,))[0]
        assert page == expected
        assert page.partition("#")[0] in MENU
        assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
        assert set(re.findall(r'event="(\w+)"', rule["expr"])) <= set(EVENTS)
        # A number that was computed is shown as people read it.
        assert all("|" in shown for shown in re.findall(r"\{\{ \$value(.*?)\}\}", rule["annotations"]["summary"]))
