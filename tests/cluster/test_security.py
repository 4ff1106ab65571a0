"""Who may do what with a node, and what a stranger finds out."""

from __future__ import annotations

import hashlib
import html
import json
import socket
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import ClusterState
from tests.cluster.nodes import Cluster, Node, cluster, toy_egg
from tests.conftest import PROJECT
from tests.deploy.checkout import Ran, run
from tests.waiting import wait_for

USER, DEPLOYER = ("operator", "of-operators"), ("robot", "of-robots")
HOSTILE = "x<img src=x onerror=alert(1)>\"'&"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, redis_server: str) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("guarded")
    options = {
        "SCRAPYD_DEPLOY_USERNAME": DEPLOYER[0],
        "SCRAPYD_DEPLOY_PASSWORD": DEPLOYER[1],
        "SCRAPYD_MAX_PROC": "1",
    }
    prefix = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    with cluster(folder, redis_server, 1, prefix=prefix, auth=USER, **options) as made:
        yield made


@pytest.fixture(scope="module")
def node(running: Cluster) -> Node:
    made = running.nodes[0]
    curious = toy_egg("1", running.folder)
    assert made.deploy(curious, auth=DEPLOYER).json["status"] == "ok"
    return made


# --- Credentials ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "Basic b3BlcmF0b3I6d3Jvbmc=",  # operator:wrong
        "Basic bm9ib2R5Om9mLW9wZXJhdG9ycw==",  # nobody:of-operators
        *("Basic Og==", "Basic ???", "Basic", "Bearer x", ""),
    ],
)
def test_wrong_password_or_none_gets_nothing(node: Node, header: str) -> None:
    api = ("listprojects.json", "metrics", "nodes.json", "logs/", "nothing")
    for path in (*api, "", "jobs", "crawls/toy/x", "titles/1", "quality/sample", "static/dashboard.js"):
        answer = node.request(path, headers={"Authorization": header})
        assert answer.code == 401
        assert answer.headers["WWW-Authenticate"].lower() == 'basic realm="scrapyd"'
        assert "toy" not in answer.text


def test_probes_need_no_password_and_show_nothing(node: Node) -> None:
    for path in ("healthz", "readyz"):
        answer = node.request(path, headers={"Authorization": "Basic Og=="})
        assert answer.code == 200
        assert answer.json == {"status": "ok", "node_name": "node1"}


def test_deploying_takes_its_own_password_and_reading_takes_either(node: Node) -> None:
    for path in ("addversion.json", "delversion.json", "delproject.json", "//%64elversion.json", "delversion.json/x"):
        refused = node.request(path, b"project=toy&version=1", auth=USER)
        assert (refused.code, refused.json["status"]) == (403, "error")
    assert node.deploy(toy_egg("evil"), version="evil", auth=USER).code == 403
    for who in (USER, DEPLOYER):
        answer = node.request("listversions.json?project=toy", auth=who)
        assert answer.json["versions"] == ["1"]


def test_page_of_another_site_can_not_use_a_browser_s_password(node: Node) -> None:
    form = b"project=toy&spider=slow"
    before = node.get("daemonstatus.json").json["pending"]
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": f"http://127.0.0.1:{node.port + 1}"},
    ):
        assert node.request("schedule.json", form, headers).code == 403
        assert node.request("crawls", form, headers).code == 403
    for path in ("crawls", "schedule.json"):
        assert node.request(path, form, {"Authorization": "Basic Og=="}).code == 401
    assert node.get("daemonstatus.json").json["pending"] == before
    assert node.request("cancel.json", b"project=toy&job=x", {"Origin": node.url}).json["prevstate"] is None
    assert "Access-Control-Allow-Origin" not in node.get("listprojects.json").headers


# --- What is sent -----------------------------------------------------------------------------------------------------


def test_empty_segments_of_a_path_are_dropped(node: Node) -> None:
    """As scrapyd-client asks where its URL ends in a slash."""
    for path in ("/listprojects.json", "//listprojects.json?x=//"):
        assert node.get(path).json["projects"] == node.get("listprojects.json").json["projects"] != []


def test_broken_egg_is_refused_in_scrapyd_s_words(node: Node) -> None:
    text = "egg is not a ZIP file (if using curl, use egg=@path not egg=path)"
    answer = node.deploy(b"no egg", version="broken", auth=DEPLOYER)
    assert (answer.code, answer.json["status"]) == (400, "error")
    assert answer.json["message"].startswith(text)
    assert f"POST /addversion.json was refused: {text}" in node.log
    assert node.get("listversions.json", project="toy").json["versions"] == ["1"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"setting": "LOG_FILE=/x"}, "setting LOG_FILE can't be made by a job"),
        ({"setting": "DATABASE_URL=postgresql://u:hunter2@h/x"}, "holds a secret"),
        ({"setting": "no-equals"}, "give NAME=VALUE"),
        ({"priority": "high"}, "priority is invalid"),
        ({"_version": "../1"}, "version '../1' not found"),
        ({"spider": "nothing"}, "spider 'nothing' not found"),
        ({"project": "none"}, "project 'none' not found"),
    ],
)
def test_hostile_job_is_refused_in_a_sentence(node: Node, given: dict[str, str], expected: str) -> None:
    answer = node.post("schedule.json", **{"project": "toy", "spider": "slow", **given})
    assert (answer.code, answer.json["status"]) == (200, "error")
    assert expected in answer.json["message"]
    assert "hunter2" not in answer.text
    assert node.get("daemonstatus.json").json["pending"] == 0


def test_who_may_only_schedule_runs_no_program(node: Node, running: Cluster) -> None:
    """By none of the settings by which Scrapy, scrapy-redis or this project load a class, open a path or ask a URL."""
    out = running.folder / "out"
    written = str(running.folder / "written")
    program = {written: {"/bin/sh": 1, "-c": 1, f"touch {out}": 1, "format": "csv", "item_filter": "subprocess.Popen"}}
    for name, value in {
        "FEEDS": json.dumps(program),
        "DATA_DIR": written,
        "whatever": "1",
    }.items():
        answer = node.post("schedule.json", project="toy", spider="quick", setting=f"{name}={value}")
        assert answer.json["message"].startswith(f"setting {name} can't be made by a job"), name
        form = urllib.parse.urlencode({"project": "toy", "spider": "quick", "setting": f"{name}={value}"}).encode()
        assert node.request("schedule.json", form, auth=DEPLOYER).json == answer.json
    # Nor is what another version has queued, or somebody who writes to Redis, run unchecked.
    state = ClusterState(
        NodeOptions(
            redis_url=running.environment["SCRAPYD_REDIS_URL"], redis_prefix=running.environment["SCRAPYD_REDIS_PREFIX"]
        )
    )
    state.schedule(Job(project="toy", spider="quick", id="smuggled", settings={"FEEDS": json.dumps(program)}))
    [done] = node.wait_for_end("smuggled")
    assert done["reason"].startswith("setting FEEDS can't be made by a job")
    assert not out.exists()
    assert not Path(written).exists()


def test_request_that_is_not_text_is_refused_in_a_sentence(node: Node) -> None:
    for form in (b"project=toy&spider=%ff", b"project=toy&spider=slow&%ff=1", b"project=toy&spider=slow&a=%ff"):
        answer = node.request("schedule.json", form)
        assert (answer.code, answer.json["status"]) == (200, "error"), form
    assert (
        node.post("cancel.json", project="toy", job="x", signal="STOP").json["message"].startswith("signal is 'STOP'")
    )
    assert node.get("schedule.json").code == 405
    assert node.options("logs/toy/slow/x.log") in {200, 204, 404, 405}  # and does not wait for ever
    assert node.get("logs/toy%00").code == 404
    assert node.get("logs/toy/slow%00/x.log").code == 404


# --- What is shown ----------------------------------------------------------------------------------------------------


def test_pages_show_hostile_names_as_text(node: Node) -> None:
    spiders = f"import scrapy\n\n\nclass Evil(scrapy.Spider):\n    name = {HOSTILE!r}\n\n    async def start(self):\n"
    spiders += f"        raise ValueError({HOSTILE!r})\n        yield\n"
    assert node.deploy(toy_egg(more={"toy/spiders.py": spiders}), "evil", auth=DEPLOYER).json["spiders"] == 1
    filling = node.schedule("slow")
    wait_for(lambda: node.jobs("running"))
    waiting = node.schedule(HOSTILE, "evil")
    pages = [node.get("jobs").text]
    node.post("cancel.json", project="toy", job=filling, signal="KILL")
    [done] = node.wait_for_end(waiting)
    answers = [node.get(""), node.get("jobs"), node.get("jobs")]
    pages += [answer.text for answer in answers]
    for page in pages:
        assert "<img" not in page
    assert HOSTILE in html.unescape(pages[0])
    assert HOSTILE in html.unescape(pages[-1])
    assert "default-src 'none'" in answers[0].headers["Content-Security-Policy"]
    assert "<img" not in urllib.parse.quote(done["log_url"])
    for path in (done["log_url"].lstrip("/"), "logs/", "listjobs.json", "nothing"):
        headers = node.get(path).headers
        assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == ("nosniff", "DENY"), path
    assert node.get(done["log_url"].lstrip("/")).code == 200
    reflected = node.request("", headers={"x-forwarded-prefix": '"><img src=x>'}).text
    assert "<img" not in reflected


def test_no_secret_is_logged(node: Node) -> None:
    node.get("jobs")
    assert '"GET /jobs ' in node.log
    for secret in (USER[1], DEPLOYER[1], "hunter2"):
        assert secret not in node.log


# --- Starting ---------------------------------------------------------------------------------------------------------


def start(folder: Path, **environment: str) -> Ran:
    made = Node(folder, {"SCRAPYD_REDIS_URL": "redis://127.0.0.1:1/0", **environment}, "node1", auth=None)
    return run(folder, str(PROJECT / "scrapyd" / "entrypoint.sh"), **made.environment)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SCRAPYD_BIND_ADDRESS": "0.0.0.0"}, "set SCRAPYD_USERNAME and SCRAPYD_PASSWORD"),  # noqa: S104
        ({"SCRAPYD_PASSWORD_FILE": "/nowhere"}, "SCRAPYD_PASSWORD_FILE is /nowhere, which can't be read"),
        ({"SCRAPYD_CONF": "/nowhere"}, "SCRAPYD_CONF is /nowhere, which can't be read"),
        ({"SCRAPYD_MAX_PROCS": "3"}, "SCRAPYD_MAX_PROCS is no option of a node; correct or remove it"),
    ],
)
def test_node_that_would_be_unsafe_does_not_start(tmp_path: Path, environment: dict[str, str], expected: str) -> None:
    ended = start(tmp_path, **environment)
    assert ended.code != 0
    assert expected in ended.output
    assert "Traceback" not in ended.output


def test_taken_port_is_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ended = start(tmp_path, SCRAPYD_HTTP_PORT=str(other.getsockname()[1]))
    assert ended.code != 0
    assert "can't be listened at (Address already in use); set SCRAPYD_HTTP_PORT to another port" in ended.output
    assert "Traceback" not in ended.output


def test_configuration_that_somebody_edits_in_a_node_s_folder_is_kept(tmp_path: Path) -> None:
    (tmp_path / "scrapyd.conf").write_text("edited")
    for _ in range(2):
        run(tmp_path, str(PROJECT / "scrapyd" / "entrypoint.sh"), PYTHON="true")
    assert (tmp_path / "scrapyd.conf").resolve() == (PROJECT / "scrapyd" / "scrapyd.conf").resolve()
    assert (tmp_path / "scrapyd.conf.old").read_text() == "edited"
