"""Programs that others wrote, at two nodes: scrapydweb, logparser, python-scrapyd-api and gerapy's calls."""

from __future__ import annotations

import http.cookiejar
import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.nodes import Node, cluster, toy_egg
from tests.services.redis import RedisServer
from tests.waiting import wait_for

pytestmark = pytest.mark.clients

AUTH = ("operator", "of-operators")
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the programs: that of CLIENTS_VENV, else of a new virtual environment."""
    given = os.environ.get("CLIENTS_VENV")
    folder = Path(given) if given else tmp_path_factory.mktemp("clients") / "venv"
    if not given:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install = ["install", "--quiet", "--disable-pip-version-check", "-r", str(HERE / "requirements.txt")]
        subprocess.run([folder / "bin" / "pip", *install], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    folder = tmp_path_factory.mktemp("nodes")
    options = {"SCRAPYD_MAX_PROC": "1", "SCRAPYD_LEASE_SECONDS": "12", "SCRAPYD_LOGS_DIR": str(folder / "logs")}
    with RedisServer() as redis, cluster(folder, redis.url, 2, auth=AUTH, **options) as running:
        assert running.nodes[0].deploy(toy_egg("1", folder)).json["status"] == "ok"
        yield running.nodes


def run(*command: Any, cwd: Path, text: str = "") -> str:
    """Run a program, without this one's environment; return what it printed."""
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG", "TMPDIR"}}
    ended = subprocess.run(
        list(map(str, command)), cwd=cwd, env=kept, input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


# --- scrapydweb -------------------------------------------------------------------------------------------------------


class ScrapydWeb:
    """A running scrapydweb."""

    def __init__(self, programs: Path, folder: Path, nodes: list[Node]) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        servers = [f"{AUTH[0]}:{AUTH[1]}@127.0.0.1:{node.port}" for node in nodes]
        settings = {
            "SCRAPYDWEB_BIND": "127.0.0.1",
            "SCRAPYDWEB_PORT": self.port,
            "SCRAPYD_SERVERS": servers,
            "DATA_PATH": str(folder / "data"),
            "DEBUG": False,
            "VERBOSE": False,
        }
        shutil.copy(
            next(programs.parent.glob("lib/*/site-packages/scrapydweb/default_settings.py")),
            folder / "scrapydweb_settings_v11.py",
        )
        with (folder / "scrapydweb_settings_v11.py").open("a") as file:
            file.writelines(f"\n{name} = {value!r}" for name, value in settings.items())
        self.log = (folder / "scrapydweb.log").open("wb")
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "TMPDIR"}}
        self.process = subprocess.Popen(
            [programs / "scrapydweb"],
            cwd=folder,
            env={**kept, "HOME": str(folder), "PYTHONWARNINGS": "ignore", "DATA_PATH": str(folder / "data")},
            stdout=self.log,
            stderr=self.log,
        )
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    @property
    def said(self) -> str:
        return (self.folder / "scrapydweb.log").read_text(errors="replace")

    def ask(self, path: str, data: bytes | None = None, headers: dict[str, str] | None = None) -> str:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/{path}", data, headers or {})
        with self._opener.open(request, timeout=60) as answer:
            return str(answer.read().decode())

    def answers(self) -> bool:
        assert self.process.poll() is None, self.said
        try:
            return bool(self.ask("1/api/daemonstatus/"))
        except OSError:
            return False

    def jobs(self, node: int = 1) -> dict[str, dict[str, str]]:
        """Return the jobs as it has read them, by id."""
        return {job["job"]: job for job in json.loads(self.ask(f"{node}/jobs/?listjobs=True"))}

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


@pytest.fixture(scope="module")
def web(programs: Path, nodes: list[Node], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ScrapydWeb]:
    running = ScrapydWeb(programs, tmp_path_factory.mktemp("web"), nodes)
    try:
        wait_for(running.answers, 60)
        yield running
    finally:
        running.stop()


def test_scrapydweb_reads_the_page_of_jobs_and_keeps_it_in_its_database(web: ScrapydWeb, nodes: list[Node]) -> None:
    done = nodes[0].schedule("quick")
    nodes[0].wait_for_end(done)
    slow = [nodes[0].schedule("slow") for _ in range(3)]
    wait_for(lambda: sum(bool(job["pid"]) for job in nodes[0].jobs("running")) == 2)
    found = web.jobs()
    assert found.keys() >= {done, *slow}
    assert sum(not found[job]["start"] for job in slow) == 1
    for job in slow:
        assert not found[job]["finish"]
        assert bool(found[job]["pid"]) == bool(found[job]["start"]) == bool(found[job]["runtime"])
    assert found[done]["finish"] >= found[done]["start"] > "2020"  # in whole seconds
    assert all(not job["href_items"] for job in found.values())
    page = web.ask("1/jobs/?style=database")
    assert "Fail to persist" not in page + web.said
    assert all(job in page for job in (done, *slow))
    assert f"/logs/toy/quick/{done}.log" in found[done]["href_log"]
    # It cancels them through the other node.
    for job in slow:
        assert json.loads(web.ask(f"2/api/stop/toy/{job}/"))["status"] == "ok"
    wait_for(lambda: not nodes[0].jobs("running"))
    assert all(web.jobs()[job]["finish"] for job in slow if found[job]["start"])


def test_scrapydweb_deploys_an_egg_starts_a_job_of_it_and_reads_its_log(web: ScrapydWeb, nodes: list[Node]) -> None:
    egg = toy_egg("2", web.folder, {"toy/data.txt": os.urandom(300 * 1024).hex()})
    boundary = "0123456789abcdef"
    fields = {"project": "web", "version": "v2", "1": "on", "checked_amount": "1"}
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in fields.items()]
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="web.egg"\r\n\r\n'
    body = "".join(parts).encode() + head.encode() + egg + f"\r\n--{boundary}--\r\n".encode()
    web.ask("1/deploy/upload/", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
    assert nodes[1].get("listversions.json", project="web").json["versions"] == ["v2"]
    job = json.loads(web.ask("1/api/start/web/quick/"))["jobid"]
    nodes[0].wait_for_end(job)
    assert json.loads(web.ask("2/api/listversions/web/"))["versions"] == ["v2"]
    stats = web.ask(f"1/log/stats/web/quick/{job}/")
    assert "finished" in stats
    assert json.loads(web.ask("1/api/delproject/web/"))["status"] == "ok"


# --- Others -----------------------------------------------------------------------------------------------------------

_LOGPARSER = """
import sys
from logparser import parse
stats = parse(sys.stdin.read())
print(stats["finish_reason"], stats["items"], stats["log_categories"]["error_logs"]["count"])
"""
_GERAPY = """
import sys, time, requests
from scrapyd_api import ScrapydAPI
url, user, password, egg = sys.argv[1:]
requests.get(url, timeout=60)
api = ScrapydAPI(url, auth=(user, password))
version = int(time.time())
print("toy" in api.list_projects(), api.add_version("gerapy", version, open(egg, "rb").read()))
print(api.list_versions("gerapy") == [str(version)], "slow" in api.list_spiders("gerapy"))
job = api.schedule("gerapy", "slow", note="gerapy")
while api.job_status("gerapy", job) != "running":
    time.sleep(0.1)
log = f"{url}logs/gerapy/slow/{job}.log"
while "Spider opened" not in (
    answer := requests.get(log, timeout=60, headers={"Range": "bytes=-1000"}, auth=(user, password))
).content.decode(answer.apparent_encoding or "ascii"):
    time.sleep(0.1)
print(answer.status_code, requests.get(log + "x", timeout=60, auth=(user, password)).status_code)
print(api.cancel("gerapy", job))
while not (done := api.list_jobs("gerapy")["finished"]):
    time.sleep(0.1)
print([each["id"] for each in done] == [job])
print(api.delete_version(project="gerapy", version=version), api.list_projects())
api.add_version("gerapy", version, open(egg, "rb").read())
print(api.delete_project(project="gerapy"))
"""
"""The calls of gerapy 0.9.13 (server/core/views.py, utils.py), by python-scrapyd-api and requests, with more patience."""


def test_logparser_reads_a_log(programs: Path, nodes: list[Node], tmp_path: Path) -> None:
    [done] = nodes[0].wait_for_end(nodes[0].schedule("quick"))
    log = nodes[1].get(done["log_url"].lstrip("/")).text
    assert run(programs / "python", "-c", _LOGPARSER, cwd=tmp_path, text=log) == "finished 1 0\n"


@pytest.mark.promise("Scrapyd's API and clients work unchanged.")
def test_python_scrapyd_api_and_gerapy_s_calls_work(programs: Path, nodes: list[Node], tmp_path: Path) -> None:
    (tmp_path / "toy.egg").write_bytes(toy_egg("1", tmp_path))
    told = run(programs / "python", "-c", _GERAPY, f"{nodes[1].url}/", *AUTH, "toy.egg", cwd=tmp_path).splitlines()
    assert told == ["True 5", "True True", "206 404", "running", "True", "True ['toy']", "True"]
