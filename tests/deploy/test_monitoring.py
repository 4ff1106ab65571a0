"""Prometheus' rules and Grafana's panels, on the figures of real crawls and of a real node."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from prometheus_client.parser import text_string_to_metric_families

from moviecrawler.figures import FIGURES
from moviecrawler.replica.process import ReplicaProcess
from tests.cluster.nodes import Node, cluster, project_egg
from tests.conftest import PROJECT
from tests.crawling import change, crawl, reset
from tests.services.redis import RedisServer
from tests.services.replica import IDS
from tests.waiting import LONGEST, wait_for

MONITORING = PROJECT / "scrapyd" / "monitoring"
RULES = yaml.safe_load((MONITORING / "rules.yml").read_text("utf-8"))["groups"]
ALERTS = {rule["alert"]: rule for group in RULES for rule in group["rules"]}
DASHBOARD = json.loads((MONITORING / "grafana-dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = {f"{panel['title']} {target['refId']}": target["expr"] for panel in PANELS for target in panel["targets"]}
OF_CRAWLS = {f"{figure.name}_total" for figure in FIGURES}
OF_NODES = {
    *("moviecrawler_jobs_pending", "moviecrawler_jobs_running", "moviecrawler_slots", "moviecrawler_nodes_lost_total"),
    *("moviecrawler_jobs_total", "moviecrawler_node_jobs", "moviecrawler_node_memory_bytes"),
    "moviecrawler_node_spiders_memory_bytes",
}
FORTY = "ids=" + ",".join(IDS[:40])
RATING = {"aggregateRating": "meanOfVotes"}
IDENTITY = {"titleText": "nameOfTheTitle", "og:title": "og:name", "<title>": "<name>", '"name"': '"called"'}


@pytest.mark.promise("Each alert names figures that exist, and has an entry in the runbook.")
@pytest.mark.parametrize(
    ("name", "query"), [*QUERIES.items(), *((name, rule["expr"]) for name, rule in ALERTS.items())]
)
def test_query_names_existing_metrics(name: str, query: str) -> None:
    named = set(re.findall(r"\bmoviecrawler_\w+", query))
    assert named or "up{" in query, name
    assert named <= OF_CRAWLS | OF_NODES


@pytest.mark.promise("Each alert names figures that exist, and has an entry in the runbook.")
def test_each_alert_has_its_entry_in_the_runbook() -> None:
    runbook = (PROJECT / "scrapyd" / "README.md").read_text("utf-8")
    for rule in ALERTS.values():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"].keys() == {"summary", "runbook"}
        assert f"\n| {rule['annotations']['runbook']} |" in runbook


def test_dashboard_can_be_loaded() -> None:
    source = yaml.safe_load((MONITORING / "grafana-datasource.yml").read_text("utf-8"))["datasources"][0]["uid"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    placed: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & placed, f"{panel['title']} overlaps another panel"
        assert at["x"] + at["w"] <= 24
        placed |= cells
    for panel in PANELS:
        assert panel["datasource"]["uid"] == source
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0


# --- With Prometheus' own programs ------------------------------------------------------------------------------------


def program(name: str) -> str:
    """Return the path of one of Debian's package prometheus."""
    path = shutil.which(name)
    assert path is not None, f"install Debian's package prometheus for {name}, or deselect this test"
    return path


Figures = dict[str, float]
"""Series, as promtool writes them, and their values."""


def figures_of(folder: Path) -> Figures:
    """Return what the crawls of IMDb have added to the file of their figures."""
    path = folder / "moviecrawler_imdb.prom"
    families = text_string_to_metric_families(path.read_text("utf-8")) if path.exists() else ()
    return {
        f"{sample.name}{{{','.join(f'{name}={json.dumps(value)}' for name, value in sample.labels.items())}}}": sample.value
        for family in families
        for sample in family.samples
    }


def crawl_with(trouble: str, replica: ReplicaProcess, folder: Path) -> tuple[Figures, Figures]:
    """Return the figures before and after a crawl that has a trouble."""
    given: dict[str, Any] = {"data": folder, "replica": replica, "METRICS_FOLDER": str(folder), "RETRY_TIMES": "0"}
    reset(replica)
    assert crawl("imdb", FORTY, **given).code == 0
    before = figures_of(folder)
    given["FRESHNESS_MARGIN"] = "0"
    if trouble == "refusals":
        change(replica, faults={"403": 1})
    elif trouble == "unreadable pages":
        change(replica, renames=IDENTITY, rename_after=0)
    elif trouble == "a missing field":
        change(replica, renames=RATING, rename_after=20)
    elif trouble == "a store away":
        given |= {
            "STORE_UNREACHABLE": "wait",
            "DATABASE_URL": "postgresql://127.0.0.1:1/x",
            "STORE_CLOSE_SECONDS": "0.5",
        }
    crawl("imdb", FORTY, *(["via=pages"] if trouble == "refusals" else []), **given)
    return before, figures_of(folder)


def made_up(name: str, growth: float) -> tuple[Figures, Figures]:
    """Return figures before and after what takes too long for a test."""
    series = f'moviecrawler_{name}_total{{site="imdb"}}'
    return {series: 2.0}, {series: 2.0 + growth}


def fired(before: Figures, after: Figures, folder: Path) -> dict[str, bool]:
    """Return which alerts of crawls fire on figures that grow after two hours; each must fire once, and end within 25 hours."""
    series = [{"series": name, "values": f"{before.get(name, 0)}x120 {value}x1800"} for name, value in after.items()]
    found = {}
    for rule in RULES[1]["rules"]:
        name = rule["alert"]
        firing = f'ALERTS{{alertname="{name}",alertstate="firing"}}'
        minutes = f"max(count_over_time({firing}[32h:1m]))"
        first, last = (f"{end}(max by () (timestamp({firing}))[32h:1m])" for end in ("min_over_time", "max_over_time"))
        # In one piece, later than the growth, and over at the end.
        once = f"({minutes} - ({last} - {first}) / 60 - 1) or vector(0)"
        asked = [
            {"expr": f"{once}", "eval_time": "32h", "exp_samples": [{"labels": "{}", "value": 0}]},
            {"expr": firing, "eval_time": "119m", "exp_samples": []},
            {"expr": firing, "eval_time": "30h", "exp_samples": []},
            {
                "expr": f"count({firing}) or vector(0)",
                "eval_time": "130m",
                "exp_samples": [{"labels": "{}", "value": 1}],
            },
        ]
        test = {
            "rule_files": [str(MONITORING / "rules.yml")],
            "evaluation_interval": "1m",
            "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": asked[:3]}],
        }
        path = folder / "test.yml"
        path.write_text(yaml.safe_dump(test))
        _promtool(path, must=True)
        test["tests"][0]["promql_expr_test"] = asked[3:]  # type: ignore[index]
        path.write_text(yaml.safe_dump(test))
        found[name] = _promtool(path, must=False)
    return found


def _promtool(path: Path, *, must: bool) -> bool:
    ran = subprocess.run(
        [program("promtool"), "test", "rules", path], capture_output=True, text=True, timeout=60, check=False
    )
    assert not must or ran.returncode == 0, ran.stdout + ran.stderr
    return ran.returncode == 0


@pytest.mark.prometheus
@pytest.mark.parametrize(
    ("trouble", "alerts"),
    [
        ("nothing", set()),
        ("refusals", {"SiteStopped", "CrawlIncomplete"}),
        ("unreadable pages", {"PagesUnreadable", "CrawlIncomplete"}),
        ("a missing field", {"FieldMissing"}),
        ("a store away", {"ItemsNotStored", "CrawlIncomplete"}),
    ],
)
def test_promtool_sees_each_alert_fire_once_and_end_on_a_real_crawl(
    trouble: str, alerts: set[str], replica: ReplicaProcess, tmp_path: Path
) -> None:
    found = fired(*crawl_with(trouble, replica, tmp_path), tmp_path)
    assert {name for name, is_firing in found.items() if is_firing} == alerts


@pytest.mark.prometheus
@pytest.mark.parametrize(
    ("figure", "growth", "alert"), [("stalled_seconds", 1200, "CrawlStalled"), ("dead_letters", 3, "DeadLetters")]
)
def test_promtool_sees_alerts_on_what_takes_too_long_for_a_test(
    figure: str, growth: float, alert: str, tmp_path: Path
) -> None:
    found = fired(*made_up(figure, growth), tmp_path)
    assert [name for name, is_firing in found.items() if is_firing] == [alert]


@pytest.mark.prometheus
def test_promtool_sees_overdue_titles(tmp_path: Path) -> None:
    (before, after), (before_too, after_too) = made_up("titles_overdue", 11), made_up("titles_fetched", 100)
    found = fired(before | before_too, after | after_too, tmp_path)
    assert [name for name, is_firing in found.items() if is_firing] == ["TitlesOverdue"]


@pytest.mark.prometheus
def test_promtool_finds_that_the_rules_of_nodes_say_what_they_should() -> None:
    assert _promtool(PROJECT / "tests" / "deploy" / "rules_test.yml", must=True)


@pytest.fixture
def prometheus(replica: ReplicaProcess, tmp_path: Path) -> Iterator[str]:
    """Run Prometheus on the figures of a node, whose crawls have a bit of everything; return its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    given = {**replica.settings, "DATA_DIR": str(tmp_path), "RETRY_TIMES": "1", "RETRY_BACKOFF": "0.02"}
    with RedisServer() as redis, cluster(tmp_path / "nodes", redis.url, 1, **given) as nodes:
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [
                {"job_name": "all", "static_configs": [{"targets": [nodes.nodes[0].url.removeprefix("http://")]}]}
            ],
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
        command = [
            program("prometheus"),
            f"--config.file={tmp_path}/prometheus.yml",
            f"--storage.tsdb.path={tmp_path}/db",
        ]
        with subprocess.Popen(
            [*command, f"--web.listen-address=127.0.0.1:{port}"], stderr=subprocess.DEVNULL
        ) as process:
            try:
                crawl_on(nodes.nodes[0], replica)
                yield f"http://127.0.0.1:{port}"
            finally:
                process.kill()


def crawl_on(node: Node, replica: ReplicaProcess) -> None:
    """Have a node crawl pages that lack a field, and then a site that refuses."""
    assert node.deploy(project_egg(), "moviecrawler", "v1").json["status"] == "ok"
    change(replica, renames=RATING, rename_after=10, faults={"500": 0.1})
    for arguments in ({}, {"via": "pages"}):
        job = node.schedule("imdb", "moviecrawler", {}, ids=",".join(IDS[:40]), **arguments)
        wait_for(lambda job=job: node.finished(job), 2 * LONGEST, lambda: node.log)  # type: ignore[misc]  # mypy infers no default
        change(replica, faults={"403": 1})


@pytest.mark.prometheus
def test_prometheus_has_data_for_every_panel_that_is_not_about_proxies(prometheus: str) -> None:
    def data(query: str) -> list[Any]:
        query = urllib.parse.urlencode({"query": query.replace("$site", ".*")})
        with urllib.request.urlopen(f"{prometheus}/api/v1/query?{query}", timeout=10) as answer:
            result: list[Any] = json.load(answer)["data"]["result"]
            return result

    wait_for(lambda: _answers(prometheus), 2 * LONGEST)
    left = {name: query for name, query in QUERIES.items() if "proxy" not in query}

    def without_data() -> list[str]:
        return [name for name, query in left.items() if not data(query)]

    wait_for(lambda: not without_data(), 2 * LONGEST, without_data)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
