"""Who may do what with a node, and what a stranger finds out."""

import html
import json
import socket
import time
import urllib.parse
from base64 import b64encode
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from twisted.web.test.requesthelper import DummyRequest
from urllib3 import encode_multipart_formdata

from moviecrawler.cluster.jobs import Job
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import ClusterState
from moviecrawler.cluster.website import refusal
from tests.checkout import run
from tests.services.nodes import AUTH, DEPLOY_PASSWORD, Node, toy_egg
from tests.shared import PROJECT

KNOWN: Any = {"redis_url": "redis://x", "username": "u", "password": "p"}
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


@pytest.mark.promise("Without the password nobody gets anything from a node.")
@pytest.mark.parametrize(
    ("deploy_password", "user", "password", "service", "code"),
    [
        ("", "u", "p", "jobs", None),
        ("", "u", "p", "addversion.json", None),
        ("", "u", "", "jobs", 401),
        ("", "u", "", "addversion.json", 401),
        ("", "x", "p", "addversion.json", 401),
        ("d", "u", "p", "jobs", None),
        ("d", "u", "p", "delproject.json", 403),
        ("d", "u", "d", "delproject.json", None),
        ("d", "u", "d", "jobs", None),
        ("d", "x", "d", "delproject.json", 401),
        ("d", "u", "", "delproject.json", 401),
        ("d", "x", "", "readyz", None),
    ],
)
def test_who_may_do_what(
    deploy_password: str, user: str, password: str, service: str, code: int | None
) -> None:
    options = NodeOptions(**KNOWN, deploy_password=deploy_password)
    request = asked("GET", user, password)
    refused = refusal(options, request, service.encode())
    assert (refused and refused[0]) == code


@pytest.mark.parametrize(
    ("method", "headers", "is_refused"),
    [
        ("POST", {}, False),
        ("POST", {"Origin": "http://h:1"}, False),
        ("POST", {"Origin": "https://front", "X-Forwarded-Host": "front"}, False),
        ("POST", {"Origin": "https://front"}, True),
        ("POST", {"Origin": "", "X-Forwarded-Host": ""}, True),
        ("POST", {"Origin": "null"}, True),
        ("POST", {"Origin": "http://h:1", "Sec-Fetch-Site": "cross-site"}, False),
        ("POST", {"Sec-Fetch-Site": "cross-site"}, True),
        ("POST", {"Sec-Fetch-Site": "same-origin"}, False),
        ("GET", {"Origin": "null"}, False),
    ],
)
def test_what_pages_of_another_site_send_is_refused(
    method: str, headers: dict[str, str], is_refused: bool
) -> None:
    request = asked(method, "u", "p", {"Host": "h:1", **headers})
    expected = (403, "a page of another site sent this") if is_refused else None
    assert refusal(NodeOptions(**KNOWN), request, b"schedule.json") == expected


def asked(method: str, user: str, password: str, headers: dict[str, str] | None = None) -> Any:
    """Return a request, as far as access depends on it."""
    return Mock(
        method=method.encode(),
        getUser=Mock(return_value=user.encode()),
        getPassword=Mock(return_value=password.encode()),
        getHeader=(headers or {}).get,
    )


# --- What is sent ---------------------------------------------------------------------------------


@pytest.mark.promise(
    "A job makes no setting that names a class, a path or a URL, and shows no secret."
)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"setting": "DATABASE_URL=postgresql://u:hunter2@h/x"}, "holds a secret"),
        ({"setting": "x" * 81}, f"setting is {'x' * 80!r}; give NAME=VALUE"),
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
    assert done["reason"].startswith("setting FEEDS cannot be set by a job")
    assert list(tmp_path.iterdir()) == []


def test_odd_request_is_refused_in_a_sentence(node: Node) -> None:
    refused = node.post("cancel.json", project="toy", job="x", signal="x" * 21)
    assert refused.json["message"] == f"signal is {'x' * 20!r}; give one of INT, KILL, TERM"
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


# --- Uploads --------------------------------------------------------------------------------------


def sent_by_headers(node: Node, path: str, auth: tuple[str, str] | None, *headers: str) -> str:
    """Send the headers of a POST alone, and return what is answered to them."""
    lines = [f"POST /{path} HTTP/1.1", f"Host: 127.0.0.1:{node.port}", *headers]
    if auth:
        lines.append("Authorization: Basic " + b64encode(":".join(auth).encode()).decode())
    with socket.create_connection(("127.0.0.1", node.port), timeout=30) as client:
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = b""
        while chunk := client.recv(65536):
            answer += chunk
        return answer.decode()


@pytest.mark.promise("Without the password nobody gets anything from a node.")
@pytest.mark.parametrize(
    ("path", "auth", "header", "expected"),
    [
        ("schedule.json", None, "Content-Length: 60000000", "401 Unauthorized"),
        ("schedule.json", None, "Content-Length: 1", "401 Unauthorized"),
        ("addversion.json", None, "Content-Length: 60000000", "401 Unauthorized"),
        ("addversion.json", AUTH, "Content-Length: 60000000", "403 Forbidden"),
        ("schedule.json", AUTH, "Content-Length: 65537", "413 Request Entity Too Large"),
        ("crawls", AUTH, "Content-Length: 65537", "413 Request Entity Too Large"),
        (
            "//%61ddversion.json",
            (AUTH[0], DEPLOY_PASSWORD),
            "Content-Length: 104857601",
            "413 Request Entity Too Large",
        ),
        ("schedule.json", None, "Transfer-Encoding: chunked", "401 Unauthorized"),
    ],
)
def test_upload_is_refused_by_its_headers(
    node: Node, path: str, auth: tuple[str, str] | None, header: str, expected: str
) -> None:
    head, _, content = sent_by_headers(node, path, auth, header).partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {expected}")
    answer = json.loads(content)
    assert (answer["status"], answer["node_name"]) == ("error", "node1")


def test_body_that_says_no_length_is_refused_when_it_is_too_long(node: Node) -> None:
    assert node.request("schedule.json", b"x" * 65_536).code == 200
    headers = {"Transfer-Encoding": "chunked"}
    with closing(HTTPConnection("127.0.0.1", node.port, timeout=30)) as client:
        credentials = b64encode(":".join(AUTH).encode()).decode()
        headers["Authorization"] = f"Basic {credentials}"
        body = (b"x" * 1000 for _ in range(70))
        client.request("POST", "/schedule.json", body, headers, encode_chunked=True)
        answer = client.getresponse()
        assert (answer.status, answer.headers["Connection"]) == (413, "close")


@pytest.mark.promise("Without the password nobody gets anything from a node.")
def test_stranger_who_goes_on_to_send_is_cut_off_and_nobody_waits_for_him(node: Node) -> None:
    head = "POST /schedule.json HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", node.port), timeout=30) as client:
        client.sendall(head.encode())
        sent = 0
        with suppress(OSError):
            while sent < 900_000_000:
                sent += client.send(b"&a=b" * 16_000)
                time.sleep(0.02)
                if sent % 64_000_000 < 64_000:
                    assert node.get("healthz").code == 200
    assert 0 < sent < 900_000_000


@pytest.mark.parametrize("kind", ["urlencoded", "multipart", "broken"])
def test_egg_is_read_from_any_form(node: Node, kind: str) -> None:
    fields: dict[str, Any] = {"project": "forms", "version": "1", "egg": ("x.egg", toy_egg("1"))}
    body, content_type = encode_multipart_formdata(fields)
    if kind == "urlencoded":
        form = {"project": "forms", "version": "1", "egg": toy_egg("1")}
        body = urllib.parse.urlencode(form).encode()
        content_type = "application/x-www-form-urlencoded"
    elif kind == "broken":
        body = body.replace(b"Content-Disposition", b"\xff: \xff", 1)
    answer = node.request("addversion.json", body, {"Content-Type": content_type})
    if kind == "broken":
        assert (answer.code, answer.json["status"]) == (400, "error")
        assert "the form can't be read" in answer.json["message"]
    else:
        assert answer.json["spiders"] == 4
        assert node.post("delproject.json", project="forms").json["status"] == "ok"


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
    icon = node.get("favicon.ico")
    assert (icon.code, icon.headers["Content-Type"]) == (200, "image/svg+xml")
    for shown in (path, "logs/", "listjobs.json", "nothing"):
        headers = node.get(shown).headers
        assert (headers["X-Content-Type-Options"], headers["X-Frame-Options"]) == (
            "nosniff",
            "DENY",
        ), shown
    assert node.post("delproject.json", project="evil").json["status"] == "ok"
    assert '"GET /jobs ' in node.log
    assert "the node accepts requests with a password\n" in node.log
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
        (
            {"SCRAPYD_PASSWROD_FILE": "/run/secrets/password"},
            "SCRAPYD_PASSWROD_FILE is set, and nothing reads it; correct or remove it",
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
