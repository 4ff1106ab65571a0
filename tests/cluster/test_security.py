"""Who may do what with a node, and what a stranger finds out."""

import html
import json
import socket
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from twisted.web.test.requesthelper import DummyRequest

from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import ClusterState
from moviecrawler.cluster.website import refusal
from tests.deploy.checkout import run
from tests.services.nodes import AUTH, DEPLOY_PASSWORD, Node, toy_egg
from tests.shared import PROJECT

HOSTILE = "x<img src=x onerror=alert(1)>\"'&"

# --- Credentials ----------------------------------------------------------------------------------


@pytest.mark.promise("Without the password nobody gets anything from a node.")
@pytest.mark.parametrize("auth", [("operator", "wrong"), ("nobody", AUTH[1]), ("", "")], ids=str)
def test_wrong_password_or_none_gets_nothing(node: Node, auth: tuple[str, str]) -> None:
    api = ("listprojects.json", "metrics", "nodes.json", "logs/", "nothing")
    for path in (*api, "", "jobs", "crawls/toy/x", "titles/1", "static/dashboard.css"):
        answer = node.request(path, auth=auth)
        assert answer.code == node.request(path, b"x=1", auth=auth).code == 401
        assert answer.headers["WWW-Authenticate"].lower() == 'basic realm="scrapyd"'
        assert "toy" not in answer.text
    for path in ("healthz", "readyz"):
        answer = node.request(path, auth=auth)
        assert (answer.code, answer.json) == (200, {"status": "ok", "node_name": "node1"})


def test_deploying_takes_its_own_password_and_reading_takes_either(node: Node) -> None:
    for path in (
        "addversion.json",
        "delversion.json",
        "delproject.json",
        "//%64elversion.json",
        "delversion.json/x",
    ):
        refused = node.request(path, b"project=toy&version=1", auth=AUTH)
        assert (refused.code, refused.json["status"]) == (403, "error")
    for password in (AUTH[1], DEPLOY_PASSWORD):
        answer = node.request("listversions.json?project=toy", auth=(AUTH[0], password))
        assert "1" in answer.json["versions"]


def test_page_of_another_site_can_not_use_a_browser_s_password(node: Node) -> None:
    origins = "https://evil.example", "null", "http://[", "", f"http://127.0.0.1:{node.port + 1}"
    for headers in [{"Sec-Fetch-Site": "cross-site"}, *({"Origin": origin} for origin in origins)]:
        for path in ("schedule.json", "crawls"):
            assert node.request(path, b"project=toy&spider=slow", headers).code == 403
    assert node.get("daemonstatus.json").json["pending"] == 0
    assert (
        node.request("cancel.json", b"project=toy&job=x", {"Origin": node.url}).json["prevstate"]
        is None
    )
    assert "Access-Control-Allow-Origin" not in node.get("listprojects.json").headers


@pytest.mark.parametrize(
    ("host", "is_answered"),
    [
        *(
            (host, True)
            for host in ("127.0.0.1", "localhost:6800", "[::1]:6800", "node1", "crawler.example")
        ),
        *((host, False) for host in ("evil.example:6800", "127.0.0.1.evil.example", "[", "")),
    ],
)
def test_node_without_a_password_answers_by_its_own_name_only(host: str, is_answered: bool) -> None:
    options = NodeOptions(
        redis_url="redis://x", node_name="node1", node_url="http://crawler.example:6800"
    )
    request: Any = DummyRequest([])
    request.requestHeaders.setRawHeaders("host", [host])
    assert (refusal(options, request, b"listprojects.json") is None) == is_answered
    assert refusal(options, request, b"healthz") is None


# --- What is sent ---------------------------------------------------------------------------------


@pytest.mark.promise(
    "A job makes no setting that names a class, a path or a URL, and shows no secret."
)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"setting": "DATABASE_URL=postgresql://u:hunter2@h/x"}, "holds a secret"),
        ({"setting": "no-equals"}, "give NAME=VALUE"),
        ({"priority": "high"}, "priority is invalid"),
        ({"_version": "../1"}, "version '../1' not found"),
        ({"spider": "nothing"}, "spider 'nothing' not found"),
        ({"a": b"\xff"}, "can't decode"),
        ({b"\xff": "a"}, "can't decode"),
    ],
    ids=str,
)
def test_hostile_job_is_refused_in_a_sentence(
    node: Node, given: dict[str, str], expected: str
) -> None:
    answer = node.post("schedule.json", *{"project": "toy", "spider": "slow", **given}.items())
    assert (answer.code, answer.json["status"]) == (200, "error")
    assert expected in answer.json["message"]
    assert "hunter2" not in answer.text + node.log
    assert node.get("daemonstatus.json").json["pending"] == 0


@pytest.mark.promise(
    "A job makes no setting that names a class, a path or a URL, and shows no secret."
)
def test_job_that_somebody_wrote_into_redis_runs_no_program(node: Node, tmp_path: Path) -> None:
    program = {"format": "csv", "item_filter": "subprocess.Popen", f"touch {tmp_path / 'out'}": 1}
    settings = {"FEEDS": json.dumps({str(tmp_path / "written"): program})}
    state = ClusterState(NodeOptions(redis_url=node.environment["SCRAPYD_REDIS_URL"]))
    state.schedule(Job(project="toy", spider="quick", id="smuggled", settings=settings))
    [done] = node.wait_for_end("smuggled")
    assert done["reason"].startswith("setting FEEDS can't be made by a job")
    assert list(tmp_path.iterdir()) == []


def test_odd_request_is_refused_in_a_sentence(node: Node) -> None:
    refused = node.post("cancel.json", project="toy", job="x", signal="STOP")
    assert refused.json["message"].startswith("signal is 'STOP'")
    # It does not wait for ever, either.
    assert node.request("logs/toy/slow/x.log", method="OPTIONS").code == 404
    assert node.request("schedule.json", method="OPTIONS").code == 204
    assert node.get("schedule.json").code == 405
    for path in (
        "logs/toy%00",
        "logs/toy/slow%00/x.log",
        "logs/nobody",
        "logs/toy/slow/nothing.log",
    ):
        assert (node.get(path).code, node.get(path).text) == (404, "there is no such log\n")
    for path in (
        "logs/../node.log",
        "logs/%2e%2e/node.log",
        "logs/toy/..%2f..%2f/node.log",
        "logs/toy/%2e%2e/x.log",
    ):
        assert node.get(path).code == 404, path


# --- What is shown --------------------------------------------------------------------------------


@pytest.mark.promise("No secret is in a log, a queue or a command line.")
def test_pages_show_hostile_names_as_text_and_no_secret_is_logged(node: Node) -> None:
    spiders = (
        f"import scrapy\n\n\nclass Evil(scrapy.Spider):\n    name = {HOSTILE!r}\n\n"
        "    async def start(self):\n"
    )
    spiders += f"        raise ValueError({HOSTILE!r})\n        yield\n"
    assert node.deploy(toy_egg(more={"toy/spiders.py": spiders}), "evil").json["spiders"] == 1
    job = node.schedule(HOSTILE, "evil")
    pages = [node.get("jobs").text]
    [done] = node.wait_for_end(job)
    front = node.get("")
    pages += [
        front.text,
        node.get("jobs").text,
        node.request("", headers={"x-forwarded-prefix": '"><img src=x>'}).text,
    ]
    assert all("<img" not in page for page in pages)
    assert all(HOSTILE in html.unescape(page) for page in (pages[0], pages[2]))
    assert "default-src 'none'" in front.headers["Content-Security-Policy"]
    path = done["log_url"].lstrip("/")
    assert "<img" not in urllib.parse.quote(path)
    for shown in (path, "logs/", "listjobs.json", "nothing"):
        headers = node.get(shown).headers
        assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == (
            "nosniff",
            "DENY",
        ), shown
    assert node.post("delproject.json", project="evil").json["status"] == "ok"
    assert '"GET /jobs ' in node.log
    assert "the node answers requests with a password\n" in node.log
    assert AUTH[1] not in node.log
    assert DEPLOY_PASSWORD not in node.log


def test_every_log_is_plain_text(node: Node) -> None:
    (node.folder / "logs").mkdir(exist_ok=True)
    for name in ("page.html", "a1.log", "image.svg", "page.html.gz"):
        (node.folder / "logs" / name).write_text("<script>")
        headers = node.get(f"logs/{name}").headers
        assert (headers["Content-Type"], headers.get("Content-Encoding")) == (
            "text/plain; charset=utf-8",
            None,
        ), name


# --- Starting -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        (
            {"SCRAPYD_PASSWORD_FILE": "/nowhere"},
            "SCRAPYD_PASSWORD_FILE is /nowhere, which can't be read",
        ),
        ({"SCRAPYD_CONF": "/nowhere"}, "SCRAPYD_CONF is /nowhere, which can't be read"),
        (
            {},
            "can't be listened at (Address already in use); set SCRAPYD_HTTP_PORT to another port",
        ),
    ],
)
def test_node_that_can_not_start_says_why_in_a_sentence(
    tmp_path: Path, environment: dict[str, str], expected: str
) -> None:
    made = Node(
        tmp_path, {"SCRAPYD_REDIS_URL": "redis://127.0.0.1:1/0", **environment}, "node1", auth=None
    )
    with socket.create_server(("127.0.0.1", made.port)):
        ended = run(tmp_path, str(PROJECT / "scrapyd" / "entrypoint.sh"), **made.environment)
    assert ended.code != 0
    assert expected in ended.output
    assert "Traceback" not in ended.output
