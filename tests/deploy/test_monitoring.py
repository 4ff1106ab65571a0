"""Prometheus' rules and Grafana's panels, on the figures of crawls on a real node."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest
import redis
import yaml  # type: ignore[import-untyped]
from werkzeug import Request, Response

from moviecrawler.cluster import keys
from moviecrawler.cluster.figures import FIGURES
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change, crawl, reset
from tests.limited import IMPATIENT
from tests.passes import make_pass
from tests.scripted_site import Site, Told
from tests.services.changing_replica import IDENTITY, RATING
from tests.services.nodes import Node, cluster, free_port, project_egg, toy_egg
from tests.services.postgres import execute
from tests.services.redis import RedisServer
from tests.services.replica import IDS, TITLES
from tests.shared import PROJECT
from tests.waiting import LONGEST, wait_for

MONITORING = PROJECT / "scrapyd" / "monitoring"
RULES = yaml.safe_load((MONITORING / "rules.yml").read_text("utf-8"))["groups"]
ALERTS = {rule["alert"]: rule for group in RULES for rule in group["rules"]}
ALERTS_OF_CRAWLS = {
    rule["alert"] for group in RULES if group["name"] == "crawls" for rule in group["rules"]
}
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
    "moviecrawler_node_fit",
    "moviecrawler_node_jobs",
    "moviecrawler_node_memory_bytes",
    "moviecrawler_node_spiders_memory_bytes",
    "moviecrawler_nodes_lost_total",
    "moviecrawler_redis_up",
    "moviecrawler_run_ended",
    "moviecrawler_slots",
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


class Prometheus:
    """A running Prometheus of the tests."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self._address = f"127.0.0.1:{free_port()}"
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        files = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/db"]
        command = [program("prometheus"), *files, f"--web.listen-address={self._address}"]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def query(self, query: str) -> list[dict[str, Any]]:
        """Return the samples that a query finds now."""
        text = urllib.parse.urlencode({"query": query})
        try:
            with urllib.request.urlopen(
                f"http://{self._address}/api/v1/query?{text}", timeout=10
            ) as answer:
                return list(json.load(answer)["data"]["result"])
        except OSError:  # it is still starting
            return []

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        found = self.query('ALERTS{alertstate="firing"}')
        return {sample["metric"]["alertname"] for sample in found}

    def wait_for(self, *alerts: str) -> None:
        """Wait until these alerts have fired, at one time or another."""

        def left() -> set[str]:
            found = self.query('max_over_time(ALERTS{alertstate="firing"}[1h])')
            return {*alerts} - {sample["metric"]["alertname"] for sample in found}

        wait_for(lambda: not left(), 2 * LONGEST, left)


@pytest.mark.prometheus
def test_prometheus_has_data_for_every_panel_that_is_not_about_proxies(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
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
        with Prometheus(tmp_path, config) as prometheus:

            def without_data() -> list[str]:
                return [
                    name
                    for name, query in QUERIES.items()
                    if "proxy" not in query and not prometheus.query(query.replace("$site", ".*"))
                ]

            crawl_on(node, replica)
            wait_for(lambda: not without_data(), 2 * LONGEST, without_data)


SHORTER = {
    "2m": "1s",
    "5m": "2500ms",
    "15m": "7500ms",
    "30m": "15s",
    "900": "7.5",
    "1h": "30s",
    "1d": "30s",
    "2d": "30s",
}
"""The times of the rules, as a test can wait for them: a 120th, and 30 s in place of days."""


@contextmanager
def prometheus_with_shorter_rules(folder: Path, *addresses: str) -> Iterator[Prometheus]:
    """Run a Prometheus that asks each of these once a second."""
    rules = (MONITORING / "rules.yml").read_text("utf-8")
    rules = re.sub(r"\b(?:\d+[mhd]|900)\b", lambda found: SHORTER[found[0]], rules)
    (folder / "rules.yml").write_text(rules)
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(folder / "rules.yml")],
        "scrape_configs": [
            {"job_name": "moviecrawler", "static_configs": [{"targets": addresses}]}
        ],
    }
    with Prometheus(folder, config) as prometheus:
        yield prometheus


class Exporter(Site):
    """Shows the figures of crawls without a node, as Prometheus' node exporter does."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._file = folder / "moviecrawler_imdb.prom"

    def usual_answer(self, request: Request) -> Response:
        """Return the figures as they are now."""
        del request
        return Told(200, self._file.read_bytes(), {"Content-Type": "text/plain"})


@pytest.mark.prometheus
def test_alerts_of_crawls_are_fired_by_their_trouble_and_end(
    replica: ReplicaProcess,
    database_url: str,
    redis_url: str,
    redis_client: redis.Redis,
    tmp_path: Path,
) -> None:
    expected: set[str] = set()

    def firing() -> set[str]:
        return prometheus.firing() & ALERTS_OF_CRAWLS

    def crawl_has(
        *alerts: str, titles: int = TITLES, options: dict[str, Any] | None = None, **settings: str
    ) -> None:
        reset(replica)
        change(replica, **(options or {}))
        crawl(
            "imdb",
            "via=pages",
            "ids=" + ",".join(IDS[:titles]),
            data=tmp_path / "-".join(alerts),
            replica=replica,
            METRICS_FOLDER=str(tmp_path),
            RETRY_TIMES="0",
            **settings,
        )
        prometheus.wait_for(*alerts)
        expected.update(alerts)
        assert firing() <= expected, "no other alert fires"

    (tmp_path / "moviecrawler_imdb.prom").touch()
    with (
        Exporter(tmp_path) as exporter,
        prometheus_with_shorter_rules(tmp_path, f"127.0.0.1:{exporter.port}") as prometheus,
    ):
        crawl_has(DATABASE_URL=database_url)
        wait_for(lambda: prometheus.query("moviecrawler_pages_total > 0"))
        crawl_has("FieldMissing", options={"renames": RATING, "rename_after": 20})
        crawl_has("SiteStopped", "CrawlIncomplete", options={"faults": {"403": 1}})
        crawl_has("PagesUnreadable", options={"renames": IDENTITY, "rename_after": 0})
        crawl_has(
            "ItemsNotStored",
            STORE_UNREACHABLE="wait",
            DATABASE_URL="postgresql://127.0.0.1:1/x",
            ITEM_PIPELINES=IMPATIENT,
            FRONTIER_PATIENCE="2",
        )
        redis_client.rpush("imdb:start_urls", "rubbish")
        crawl_has("DeadLetters", titles=1, REDIS_URL=redis_url, FRONTIER_RUN="default")
        execute(database_url, "UPDATE title_sites SET next_due = now() - interval '1 day'")
        crawl_has("TitlesOverdue", titles=1, DATABASE_URL=database_url)
        crawl_has(
            "CrawlStalled",
            titles=1,
            options={"latency": 12_000},
            LOGSTATS_INTERVAL="1",
            DOWNLOAD_TIMEOUT="60",
        )
        assert expected == ALERTS_OF_CRAWLS
        wait_for(lambda: not firing(), 2 * LONGEST, firing)


@pytest.mark.prometheus
def test_alerts_of_nodes_are_fired_by_their_trouble_and_end_with_it(tmp_path: Path) -> None:
    with RedisServer() as redis:
        options = {"REDIS_URL": redis.url, "SCRAPYD_LEASE_SECONDS": "3", "SCRAPYD_MAX_PROC": "2"}
        with cluster(tmp_path / "nodes", redis.url, 2, **options) as nodes:
            one, two = nodes.nodes
            assert one.deploy(toy_egg("1", tmp_path)).json["status"] == "ok"
            assert one.deploy(project_egg(), "moviecrawler").json["status"] == "ok"
            addresses = [f"127.0.0.1:{node.port}" for node in nodes.nodes]
            with prometheus_with_shorter_rules(tmp_path, *addresses) as prometheus:
                wait_for(lambda: prometheus.query("moviecrawler_slots == 4"))
                make_trouble_for_jobs(one, redis, prometheus)
                make_trouble_for_nodes(one, two, redis, prometheus)
                wait_for(lambda: not prometheus.firing(), 3 * LONGEST, prometheus.firing)


def make_trouble_for_jobs(node: Node, redis: RedisServer, prometheus: Prometheus) -> None:
    """Have jobs end in each bad way, and a run stand still."""
    make_pass(Path(), redis.url, {"a": "stored", "b": ""})
    node.schedule("lost")
    node.schedule("imdb", "moviecrawler", list="nonsense")
    prometheus.wait_for("JobsFailed", "JobsMisused")
    jobs = [node.schedule("slow") for _ in range(4)]
    killed: set[int] = set()
    while not all(map(node.finished, jobs)):
        for running in node.jobs("running"):
            if running["pid"] and running["pid"] not in killed:
                killed.add(running["pid"])
                os.kill(running["pid"], signal.SIGKILL)
        time.sleep(0.2)
    prometheus.wait_for("RunStandsStill", "WorkersDie", "JobsGivenUp")
    redis.client.delete(*redis.client.keys("*weekly*"))
    # Redis loses the queue, so that nobody takes the job.
    redis.client.hset(keys.JOBS, "toy/left", redis.client.hget(keys.JOBS, f"toy/{jobs[0]}") or b"")
    record = json.loads(redis.client.hget(keys.JOBS, "toy/left") or b"")
    record["job"]["id"] = "left"
    redis.client.hset(keys.JOBS, "toy/left", json.dumps({**record, "state": "pending"}))
    prometheus.wait_for("JobsWait")
    redis.client.hdel(keys.JOBS, "toy/left")


def make_trouble_for_nodes(
    one: Node, two: Node, redis: RedisServer, prometheus: Prometheus
) -> None:
    """Make a node sick, take Redis away, and kill a node."""
    logs = one.folder / "logs"
    logs.rename(one.folder / "kept")
    logs.touch()
    prometheus.wait_for("NodeUnfit")
    redis.stop()
    prometheus.wait_for("RedisAway")
    assert not {"NodeDown", "NoNode"} & prometheus.firing(), "one outage is one alert"
    redis.start()
    wait_for(lambda: "RedisAway" not in prometheus.firing())
    two.kill()
    prometheus.wait_for("NodeLost", "NodeDown", "NoNode")
    logs.unlink()
    (one.folder / "kept").rename(logs)
    two.start()
