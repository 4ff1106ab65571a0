"""Programs that others wrote.

At two nodes: scrapydweb, logparser, python-scrapyd-api and gerapy's calls. Without nodes:
kubernetes-validate, and Jupyter.
"""

import json
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from urllib3 import encode_multipart_formdata

from moviecrawler.pipelines.sqlite import SqliteStore
from tests.checkout import Ran, run
from tests.runs import make_movie, record_of
from tests.services.nodes import Node, cluster, free_port, toy_egg
from tests.services.redis import RedisServer
from tests.shared import PROJECT
from tests.stored import opened
from tests.waiting import wait_for

pytestmark = pytest.mark.clients

AUTH = ("operator", "of-operators")
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the programs: that of CLIENTS_VENV, or of a new virtual environment."""
    given = os.environ.get("CLIENTS_VENV")
    folder = Path(given) if given else tmp_path_factory.mktemp("clients") / "venv"
    if not given:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        install = [
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "-r",
            str(HERE / "requirements.txt"),
        ]
        subprocess.run([sys.executable, "-m", "pip", "--python", folder, *install], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    """Return two nodes whose logs lie in one folder."""
    folder = tmp_path_factory.mktemp("nodes")
    options = {
        "SCRAPYD_MAX_PROC": "1",
        "SCRAPYD_LEASE_SECONDS": "12",
        "SCRAPYD_LOGS_DIR": str(folder / "logs"),
    }
    with RedisServer() as redis, cluster(folder, redis.url, 2, auth=AUTH, **options) as running:
        assert running.nodes[0].deploy(toy_egg("1", folder)).json["status"] == "ok"
        yield running.nodes


# --- scrapydweb -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def web(
    programs: Path, pair: list[Node], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], str]]:
    """Return what asks scrapydweb, which runs, for a page."""
    folder = tmp_path_factory.mktemp("web")
    settings = {
        "SCRAPYDWEB_BIND": "127.0.0.1",
        "SCRAPYDWEB_PORT": (port := free_port()),
        "SCRAPYD_SERVERS": [f"{AUTH[0]}:{AUTH[1]}@127.0.0.1:{node.port}" for node in pair],
        "DATA_PATH": str(folder / "data"),
    }
    usual = next(
        programs.parent.glob("lib/*/site-packages/scrapydweb/default_settings.py")
    ).read_text()
    made = "".join(f"\n{name} = {value!r}" for name, value in settings.items())
    (folder / "scrapydweb_settings_v11.py").write_text(usual + made)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "DATA_PATH": str(folder / "data"),
    }
    environment["PYTHONWARNINGS"] = "ignore"

    def ask(path: str, **fields: Any) -> str:
        body, kind = encode_multipart_formdata(fields) if fields else (None, "")
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/{path}", body, {"Content-Type": kind}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())

    def answers() -> bool:
        assert process.poll() is None, (folder / "log").read_text()
        with suppress(OSError):
            return bool(ask("1/api/daemonstatus/"))
        return False

    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs / "scrapydweb"], cwd=folder, env=environment, stdout=log, stderr=log
        )
        try:
            wait_for(answers)
            yield ask
        finally:
            process.terminate()
            process.wait(20)


def test_scrapydweb_reads_the_page_of_jobs_and_a_log_and_cancels_through_the_other_node(
    web: Callable[[str], str], pair: list[Node]
) -> None:
    def jobs() -> dict[str, dict[str, str]]:
        return {job["job"]: job for job in json.loads(web("1/jobs/?listjobs=True"))}

    done = pair[0].schedule("quick")
    pair[0].wait_for_end(done)
    slow = [pair[0].schedule("slow") for _ in range(3)]
    wait_for(lambda: sum(bool(job["pid"]) for job in pair[0].jobs("running")) == 2)
    found = jobs()
    assert found.keys() >= {done, *slow}
    assert sum(not found[job]["start"] for job in slow) == 1
    for job in slow:
        assert not found[job]["finish"]
        assert bool(found[job]["pid"]) == bool(found[job]["start"]) == bool(found[job]["runtime"])
    assert found[done]["finish"] >= found[done]["start"] > "2020"  # in whole seconds
    assert all(not job["href_items"] for job in found.values())
    page = web("1/jobs/?style=database")
    assert "Fail to persist" not in page
    assert all(job in page for job in (done, *slow))
    assert f"/logs/toy/quick/{done}.log" in found[done]["href_log"]
    assert "finished" in web(f"1/log/stats/toy/quick/{done}/")
    for job in slow:
        assert json.loads(web(f"2/api/stop/toy/{job}/"))["status"] == "ok"
    wait_for(lambda: not pair[0].jobs("running"))
    assert all(jobs()[job]["finish"] for job in slow if found[job]["start"])
    assert json.loads(web("2/api/start/toy/quick/"))["status"] == "ok"


def test_scrapydweb_deploys_an_egg_and_deletes_its_project(
    web: Callable[..., str], pair: list[Node]
) -> None:
    about = {"project": "web", "version": "v2", "1": "on", "checked_amount": "1"}
    web("1/deploy/upload/", **about, file=("web.egg", toy_egg()))
    assert json.loads(web("2/api/listversions/web/"))["versions"] == ["v2"]
    assert json.loads(web("1/api/delproject/web/"))["status"] == "ok"
    assert pair[1].get("listprojects.json").json["projects"] == ["toy"]


# --- Others ---------------------------------------------------------------------------------------

_LOGPARSER = """
import sys
from logparser import parse
stats = parse(open(sys.argv[1]).read())
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
"""The calls of gerapy 0.9.13 (server/core/views.py, utils.py), by python-scrapyd-api and requests,
with more patience."""


def test_manifests_are_right_by_kubernetes_own_schemas(programs: Path) -> None:
    manifests = [
        path
        for path in (PROJECT / "scrapyd" / "kubernetes").glob("*.yaml")
        if path.name != "kustomization.yaml"
    ]
    subprocess.run(
        [programs / "kubernetes-validate", "--strict", "-k", "1.37.0", *manifests], check=True
    )


def test_jupyter_runs_the_notebook_in_its_own_folder(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with opened(SqliteStore(tmp_path / "data")) as store:
        store.write([record_of(make_movie(number)) for number in range(1, 9)])
    (tmp_path / "mine").mkdir()
    notebook = tmp_path / "mine" / "scores.ipynb"
    shutil.copy(PROJECT / "moviecrawler/examples/scores.ipynb", notebook)
    jupyter = (str(programs / "jupyter"), "execute", "--inplace", str(notebook))
    subprocess.run(jupyter, check=True, cwd="/", env={**os.environ, "HOME": str(tmp_path)})
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    drawn = [output for cell in cells for output in cell.get("outputs", ())]
    assert sum("image/png" in output.get("data", ()) for output in drawn) == 3


def test_logparser_reads_a_log(programs: Path, pair: list[Node], tmp_path: Path) -> None:
    [done] = pair[0].wait_for_end(pair[0].schedule("quick"))
    (tmp_path / "log").write_text(pair[1].get(done["log_url"].lstrip("/")).text)
    assert run(tmp_path, str(programs / "python"), "-c", _LOGPARSER, "log") == Ran(
        0, "finished 1 0\n"
    )


@pytest.mark.promise("Scrapyd's API and clients work unchanged.")
def test_python_scrapyd_api_and_gerapy_s_calls_work(
    programs: Path, pair: list[Node], tmp_path: Path
) -> None:
    (tmp_path / "toy.egg").write_bytes(toy_egg("1", tmp_path))
    ran = run(
        tmp_path, str(programs / "python"), "-c", _GERAPY, f"{pair[1].url}/", *AUTH, "toy.egg"
    )
    expected = ["True 4", "True True", "206 404", "running", "True", "True ['toy']", "True"]
    assert ran.output.splitlines() == expected
