"""Prometheus' rules and Grafana's panels, on the figures of crawls on a real node."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from moviecrawler.cluster.figures import FIGURES
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, crawl
from tests.extensions.test_coverage import IDENTITY, RATING
from tests.pipelines.limited import IMPATIENT
from tests.services.nodes import Node, cluster, free_port, project_egg
from tests.services.redis import RedisServer
from tests.services.replica import IDS
from tests.shared import PROJECT
from tests.waiting import LONGEST, wait_for

MONITORING = PROJECT / "scrapyd" / "monitoring"
RULES = yaml.safe_load((MONITORING / "rules.yml").read_text("utf-8"))["groups"]
ALERTS = {rule["alert"]: rule for group in RULES for rule in group["rules"]}
RULES_TEST = PROJECT / "tests" / "deploy" / "rules_test.yml"
DASHBOARD = json.loads((MONITORING / "grafana-dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
QUERIES = {
    f"{panel['title']} {target['refId']}": target["expr"]
    for panel in PANELS
    for target in panel["targets"]
}
OF_CRAWLS = {f"{figure.name}_total" for figure in FIGURES}
OF_NODES = {
    "moviecrawler_jobs_pending",
    "moviecrawler_jobs_running",
    "moviecrawler_jobs_total",
    "moviecrawler_node_jobs",
    "moviecrawler_node_memory_bytes",
    "moviecrawler_node_spiders_memory_bytes",
    "moviecrawler_nodes_lost_total",
    "moviecrawler_slots",
}
AWAY = {
    "STORE_UNREACHABLE": "wait",
    "DATABASE_URL": "postgresql://127.0.0.1:1/x",
    "ITEM_PIPELINES": IMPATIENT,
    "FRONTIER_PATIENCE": "2",
}


@pytest.mark.promise("Each alert names figures that exist, and has an entry in the runbook.")
def test_alerts_and_panels_name_figures_that_exist() -> None:
    queries = {**QUERIES, **{name: rule["expr"] for name, rule in ALERTS.items()}}
    for name, query in {**queries, "rules_test.yml": RULES_TEST.read_text("utf-8")}.items():
        named = set(re.findall(r"\bmoviecrawler_\w+", query))
        assert named or "up{" in query, name
        assert named <= OF_CRAWLS | OF_NODES, name


@pytest.mark.promise("Each alert names figures that exist, and has an entry in the runbook.")
def test_each_alert_has_its_entry_in_the_runbook_and_its_test() -> None:
    runbook = (PROJECT / "scrapyd" / "README.md").read_text("utf-8")
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"].keys() == {"summary", "runbook"}
        assert f"\n| {rule['annotations']['runbook']} |" in runbook
        assert re.search(rf'alertname(: |="){name}\b', RULES_TEST.read_text("utf-8"))


def test_dashboard_can_be_loaded() -> None:
    source = yaml.safe_load((MONITORING / "grafana-datasource.yml").read_text("utf-8"))[
        "datasources"
    ][0]["uid"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert {panel["datasource"]["uid"] for panel in PANELS} == {source}
    assert len(QUERIES) == sum(len(panel["targets"]) for panel in PANELS)


# --- With Prometheus' own programs ----------------------------------------------------------------


def program(name: str) -> str:
    """Return the path of one of Debian's package prometheus."""
    path = shutil.which(name)
    assert path is not None, (
        f"install Debian's package prometheus for {name}, or deselect this test"
    )
    return path


TROUBLES: dict[str, tuple[dict[str, Any], dict[str, Any], set[str]]] = {
    "nothing": ({}, {}, set()),
    "refusals": ({"faults": {"403": 1}}, {}, {"SiteStopped", "CrawlIncomplete"}),
    "unreadable pages": (
        {"renames": IDENTITY, "rename_after": 0},
        {},
        {"PagesUnreadable", "CrawlIncomplete"},
    ),
    "a missing field": ({"renames": RATING, "rename_after": 20}, {}, {"FieldMissing"}),
    "a store away": ({}, AWAY, {"ItemsNotStored", "CrawlIncomplete"}),
}
"""What the replica does in a crawl, the crawl's settings, and the alerts that fire."""


def figures_of(folder: Path) -> dict[str, float]:
    """Return the series that crawls of IMDb have added to the file of their figures."""
    lines = (folder / "moviecrawler_imdb.prom").read_text("utf-8").splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")
    }


@pytest.mark.prometheus
@pytest.mark.parametrize("trouble", TROUBLES)
def test_alerts_fire_and_end_on_the_figures_of_real_crawls(
    trouble: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    options, settings, alerts = TROUBLES[trouble]
    given: dict[str, Any] = {
        "data": tmp_path,
        "replica": replica,
        "METRICS_FOLDER": str(tmp_path),
        "RETRY_TIMES": "0",
    }
    arguments = ["ids=" + ",".join(IDS[:40]), "via=pages"]
    assert crawl("imdb", *arguments, **given).code == 0
    before = figures_of(tmp_path)
    change(replica, **options)
    crawl("imdb", *arguments, **given, FRESHNESS_MARGIN="0", **settings)
    series = [
        {"series": name, "values": f"{before.get(name, 0)}x120 {value}x1800"}
        for name, value in figures_of(tmp_path).items()
    ]
    firing = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(alerts)]
    expression = 'group by (alertname) (ALERTS{alertname!="NoNode",alertstate="firing"})'
    asked = [
        {"expr": expression, "eval_time": time, "exp_samples": samples}
        for time, samples in (("119m", []), ("130m", firing), ("30h", []))
    ]
    tests = [{"interval": "1m", "input_series": series, "promql_expr_test": asked}]
    test = {
        "rule_files": [str(MONITORING / "rules.yml")],
        "evaluation_interval": "1m",
        "tests": tests,
    }
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test))
    promtool_agrees(tmp_path / "test.yml")


def promtool_agrees(path: Path) -> None:
    """Have promtool run the tests of rules in a file."""
    command = [program("promtool"), "test", "rules", str(path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.prometheus
def test_promtool_finds_that_the_rules_say_what_they_should() -> None:
    promtool_agrees(RULES_TEST)


def crawl_on(node: Node, replica: ReplicaProcess) -> None:
    """Have a node crawl pages that lack a field, and then a site that refuses."""
    assert node.deploy(project_egg(), "moviecrawler", "v1").json["status"] == "ok"
    change(
        replica, renames={"aggregateRating": "meanOfVotes"}, rename_after=10, faults={"500": 0.1}
    )
    for arguments in ({}, {"via": "pages"}):
        job = node.schedule("imdb", "moviecrawler", {}, ids=",".join(IDS[:40]), **arguments)
        node.wait_for_end(job)
        change(replica, faults={"403": 1})


@pytest.mark.prometheus
def test_prometheus_has_data_for_every_panel_that_is_not_about_proxies(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    address = f"127.0.0.1:{free_port()}"

    def has_data(query: str) -> bool:
        query = urllib.parse.urlencode({"query": query.replace("$site", ".*")})
        try:
            with urllib.request.urlopen(
                f"http://{address}/api/v1/query?{query}", timeout=10
            ) as answer:
                return bool(json.load(answer)["data"]["result"])
        except OSError:  # it is still starting
            return False

    def without_data() -> list[str]:
        return [
            name for name, query in QUERIES.items() if "proxy" not in query and not has_data(query)
        ]

    given = {
        **replica.settings,
        "DATA_DIR": str(tmp_path),
        "RETRY_TIMES": "1",
        "RETRY_BACKOFF": "0.02",
    }
    with RedisServer() as redis, cluster(tmp_path / "nodes", redis.url, 1, **given) as nodes:
        [node] = nodes.nodes
        targets = [{"targets": [f"127.0.0.1:{node.port}"]}]
        config = {
            "global": {"scrape_interval": "1s"},
            "scrape_configs": [{"job_name": "all", "static_configs": targets}],
        }
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
        files = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/db"]
        command = [program("prometheus"), *files, f"--web.listen-address={address}"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                crawl_on(node, replica)
                wait_for(lambda: not without_data(), 2 * LONGEST, without_data)
            finally:
                process.kill()
