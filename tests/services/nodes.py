"""Real nodes, each a process of its own, that a test may kill, and eggs for them.

Two are there for all tests that leave them alive.
"""

import base64
import io
import json
import os
import signal
import socket
import subprocess
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from urllib3 import encode_multipart_formdata

from moviecrawler.replica.process import ReplicaProcess
from tests.forked_jobs import fork_jobs
from tests.processes import ForkedCommand
from tests.services.postgres import new_database
from tests.services.redis import RedisServer
from tests.shared import PROJECT
from tests.waiting import wait_for

_LEASE_SECONDS = "4"
"""A node that died is soon replaced."""
AUTH = ("operator", "pass:word")
DEPLOY_PASSWORD = "of-deployers"  # noqa: S105
PASSWORD = "s3cret-of-the-proxy"  # noqa: S105 - the test's own
USER = "customer-alice"
PER_DAY = 6000
PER_SECOND = 3
"""By which a crawl goes on for 200 s: longer than all tests take on a machine that does other
things, too."""
TITLES = 700
"""Of the replica of the nodes that tests share."""
_START_WITHIN = 240.0
_ANSWER_WITHIN = 60.0

HANG = "import ctypes; [ctypes.PyDLL(None).sleep(600) for _ in iter(int, 1)]"
"""Stands still as a regular expression may: no other thread gets the interpreter. It needs no
processor; a signal ends a sleep."""
TOY = Path(__file__).with_name("toy_spiders.txt").read_text("utf-8")
"""The spiders of a small project; VERSION and HANG stand for what they are."""


def egg(files: Mapping[str, str], settings: str | None) -> bytes:
    """Return an egg of these files, whose settings module is named.

    Of the same files it has the same bytes.
    """
    written = io.BytesIO()
    about = {
        "EGG-INFO/PKG-INFO": "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
        "EGG-INFO/entry_points.txt": f"[scrapy]\nsettings = {settings}\n" if settings else "",
    }
    with zipfile.ZipFile(written, "w") as archive:
        for name, text in {**files, **about}.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return written.getvalue()


def toy_egg(
    version: str = "1",
    notes: Path = Path("/tmp"),  # noqa: S108 - only listed then
    more: Mapping[str, str] | None = None,
) -> bytes:
    """Return an egg of a small project, whose spiders tell in files of `notes` that they ran."""
    settings = (
        f'SPIDER_MODULES = ["toy.spiders"]\nBOT_NAME = "toy"\nNOTES = {str(notes)!r}\n'
        "TELNETCONSOLE_ENABLED = REMOTE_CONTROL_ENABLED = False\n"
    )
    files = {
        "toy/__init__.py": "",
        "toy/settings.py": settings,
        "toy/spiders.py": TOY.replace("VERSION", version).replace("HANG", HANG),
        **(more or {}),
    }
    return egg(files, "toy.settings")


def project_egg(changes: Mapping[str, Callable[[str], str]] | None = None) -> bytes:
    """Return an egg of the project, of which some files are changed."""
    package = PROJECT / "moviecrawler"
    files = {
        str(path.relative_to(PROJECT)): path.read_text("utf-8")
        for path in sorted(package.rglob("*"))
        if path.is_file() and path.suffix not in {".md", ".png", ".pyc"}
    }
    for name, change in (changes or {}).items():
        files[name] = change(files[name])
    return egg(files, "moviecrawler.settings")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@dataclass(frozen=True)
class Answer:
    """What a node has answered."""

    code: int
    text: str
    headers: Mapping[str, str]

    @property
    def json(self) -> dict[str, Any]:
        """Its content."""
        return dict(json.loads(self.text))


class Node:
    """One node, forked from a process that has imported what it needs.

    Its jobs are forked likewise, or interpreters that start, as in production.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        name: str,
        *,
        auth: tuple[str, str] | None,
        forks_jobs: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.name = name
        self.forks_jobs = forks_jobs
        self.auth = auth and (auth[0], environment.get("SCRAPYD_DEPLOY_PASSWORD", auth[1]))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **{
                key: value
                for key, value in os.environ.items()
                if key in {"PATH", "HOME", "LANG", "TMPDIR"}
            },
            "SCRAPYD_LEASE_SECONDS": _LEASE_SECONDS,
            "SCRAPYD_HTTP_PORT": str(self.port),
            "SCRAPYD_NODE_NAME": name,
            **({"SCRAPYD_USERNAME": auth[0], "SCRAPYD_PASSWORD": auth[1]} if auth else {}),
            **environment,
        }

    def start(self) -> None:
        with suppress(FileExistsError):
            (self.folder / "scrapyd.conf").symlink_to(PROJECT / "scrapyd" / "scrapyd.conf")
        with (self.folder / "node.log").open("ab") as log:
            given: Any = {"env": self.environment, "cwd": self.folder, "stdout": log, "stderr": log}
            self.process = ForkedCommand(
                ["--pidfile="],
                **given,
                program="scrapyd",
                fork_jobs=fork_jobs if self.forks_jobs else None,
            )

    def wait_until_ready(self) -> None:
        def is_ready() -> bool:
            assert self.process.poll() is None, self.log
            return self.get("readyz").code == 200

        wait_for(is_ready, _START_WITHIN, lambda: self.log)

    @property
    def log(self) -> str:
        return (self.folder / "node.log").read_text(errors="replace")

    def kill(self) -> None:
        """Kill it, as a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Have it end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)

    # --- Asking -----------------------------------------------------------------------------------

    def request(
        self,
        path: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        method: str = "",
    ) -> Answer:
        """Ask; code 0 when nobody answers. A redirection is the answer."""
        given = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        if auth := auth or self.auth:
            given["Authorization"] = "Basic " + base64.b64encode(":".join(auth).encode()).decode()
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=_ANSWER_WITHIN)) as connection:
            try:
                connection.request(
                    method or ("GET" if data is None else "POST"), f"/{path}", data, given
                )
                answer = connection.getresponse()
                return Answer(answer.status, answer.read().decode(), dict(answer.headers))
            except (OSError, HTTPException) as error:
                return Answer(0, str(error), {})

    def get(self, path: str, **parameters: str) -> Answer:
        return self.request(f"{path}?{urlencode(parameters)}" if parameters else path)

    def post(self, path: str, *several: tuple[Any, Any], **parameters: str) -> Answer:
        return self.request(path, urlencode([*several, *parameters.items()]).encode())

    def deploy(self, data: bytes, project: str = "toy", version: str = "1") -> Answer:
        """Upload an egg, as scrapyd-deploy does."""
        fields: dict[str, Any] = {
            "project": project,
            "version": version,
            "egg": ("project.egg", data),
        }
        body, kind = encode_multipart_formdata(fields)
        return self.request("addversion.json", body, {"Content-Type": kind})

    def schedule(
        self,
        spider: str,
        project: str = "toy",
        settings: Mapping[str, str] | None = None,
        **more: str,
    ) -> str:
        """Queue a job; return its id."""
        given = [("setting", f"{name}={value}") for name, value in (settings or {}).items()]
        answer = self.post("schedule.json", *given, project=project, spider=spider, **more).json
        assert answer["status"] == "ok", answer
        return str(answer["jobid"])

    def jobs(self, state: str) -> list[dict[str, Any]]:
        """Return the cluster's jobs in a state."""
        while (answer := self.get("listjobs.json")).code == 503:
            # So it is on a machine that is so busy that Redis takes seconds; whoever asks asks
            # again.
            pass
        return list(answer.json[state])

    def finished(self, job: str) -> dict[str, Any] | None:
        """Return how a job has ended, if it has."""
        return next((done for done in self.jobs("finished") if done["id"] == job), None)

    def wait_for_end(self, *jobs: str, seconds: float = 120.0) -> list[dict[str, Any]]:
        """Wait until jobs are over; return how they ended."""
        wait_for(lambda: all(map(self.finished, jobs)), seconds, lambda: self.log)
        return [done for job in jobs if (done := self.finished(job))]


class Cluster:
    """Several nodes on one Redis."""

    def __init__(
        self,
        folder: Path,
        redis_url: str,
        *,
        auth: tuple[str, str] | None = None,
        forks_jobs: bool = False,
        **options: str,
    ) -> None:
        self.folder = folder
        self.auth = auth
        self.forks_jobs = forks_jobs
        """Whether nodes that are added fork their jobs."""
        # They share the eggs, so that Python compiles each once for all nodes.
        self.environment = {
            "SCRAPYD_REDIS_URL": redis_url,
            "SCRAPYD_EGGS_DIR": str(folder / "eggs"),
            **options,
        }
        self.nodes: list[Node] = []

    def add(self, count: int = 1) -> Node:
        """Start more nodes, and wait until they are ready; return the last one."""
        for _ in range(count):
            name = f"node{len(self.nodes) + 1}"
            node = Node(
                self.folder / name,
                self.environment,
                name,
                auth=self.auth,
                forks_jobs=self.forks_jobs,
            )
            self.nodes.append(node)
            node.start()
        for node in self.nodes[-count:]:
            node.wait_until_ready()
        return self.nodes[-1]


@contextmanager
def cluster(folder: Path, redis_url: str, count: int, **options: Any) -> Iterator[Cluster]:
    """Run so many nodes, and stop those that live at the end."""
    running = Cluster(folder, redis_url, **options)
    try:
        running.add(count)
        yield running
    finally:
        for node in running.nodes:
            node.process.send_signal(signal.SIGTERM)
        for node in running.nodes:
            try:
                node.process.wait(30)
            except subprocess.TimeoutExpired:
                node.kill()


def name_of(job: dict[str, Any]) -> str:
    """Return the name of the node that a job is or was at."""
    return str(job["node"]).partition(":")[0]


def alive(pid: int) -> bool:
    """Return whether there is such a process that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ran(notes: Path, prefix: str) -> list[str]:
    """Return the notes of the toy's spiders whose names begin so."""
    return sorted(path.name for path in notes.glob(f"{prefix}-*"))


def pid_of(note: str) -> int:
    """Return the process that has left a note."""
    return int(note.rpartition("-")[2])


@pytest.fixture(scope="session")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder where the toy's spiders tell that they ran."""
    return tmp_path_factory.mktemp("notes")


@pytest.fixture(scope="session")
def shared_nodes(
    tmp_path_factory: pytest.TempPathFactory,
    notes: Path,
    postgres_server: str,
    replica_of: Callable[..., ReplicaProcess],
) -> Iterator[list[Node]]:
    """Return two nodes with the toy's first version, whose crawls go to a replica, slowly.

    The second one forks its jobs.
    """
    folder = tmp_path_factory.mktemp("nodes")
    proxies = [f"http://{USER}:{PASSWORD}@127.0.0.1:9", f"http://bob:{PASSWORD}@proxy.example:3128"]
    options = {
        **replica_of(titles=TITLES, light=True).settings,
        "CSV_ENABLED": "0",
        "DATA_DIR": str(folder / "data"),
        "DATABASE_URL": new_database(postgres_server),
        "DOWNLOAD_DELAY": "0",
        "PROXY_ORDER": json.dumps({"rottentomatoes": "direct,datacenter"}),
        "PROXY_POOLS": json.dumps({"datacenter": {"kind": "datacenter", "urls": proxies}}),
        "SITE_BUDGETS": json.dumps({"127.0.0.1": {"per_second": PER_SECOND, "per_day": PER_DAY}}),
        "STORE_BATCH_SECONDS": "0.3",
        "SCRAPYD_DEPLOY_PASSWORD": DEPLOY_PASSWORD,
        "SCRAPYD_MAX_PROC": "1",
        "SCRAPYD_NODE_URL": "http://nodes.example:6800/",
        # Where a loaded machine is not taken for a dead node.
        "SCRAPYD_LEASE_SECONDS": "12",
    }
    with (
        RedisServer() as redis,
        cluster(folder, redis.url, 1, auth=AUTH, REDIS_URL=redis.url, **options) as made,
    ):
        made.forks_jobs = True
        made.add()
        assert made.nodes[0].deploy(toy_egg("1", notes)).json["status"] == "ok"
        yield made.nodes


@pytest.fixture
def nodes(shared_nodes: list[Node]) -> Iterator[list[Node]]:
    """Return both nodes; leave them without a job."""
    yield shared_nodes
    node = shared_nodes[0]
    for job in [*node.jobs("pending"), *node.jobs("running")]:
        node.post("cancel.json", project=job["project"], job=job["id"], signal="KILL")
    wait_for(lambda: not node.jobs("running"))


@pytest.fixture
def node(nodes: list[Node]) -> Node:
    """Return one of both nodes."""
    return nodes[0]
