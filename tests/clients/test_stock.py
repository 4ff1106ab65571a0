"""A node's answers, field by field, beside those of a stock Scrapyd of the version that it extends.

Both get the same requests, one after the other. A field may be added; what else differs is listed.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.services.nodes import Answer, Node, cluster, free_port, toy_egg
from tests.services.redis import RedisServer
from tests.waiting import wait_for

pytestmark = pytest.mark.clients


@dataclass(frozen=True)
class Ask:
    """A request to both, and how our answer may differ."""

    path: str
    data: dict[str, str] | None = None
    """The form of a POST; None for a GET."""
    method: str = ""
    egg: bytes | None = None
    added: set[str] = field(default_factory=set)
    """Fields of ours that Scrapyd has not, by their path: `finished.reason`."""
    code: int | None = None
    """The status of ours, where it is another one."""
    message: str = ""
    """The beginning of our message, where it is another one."""
    waits_for: str = ""
    """A job whose end both wait for first."""
    runs: str = ""
    """A job whose process both wait for first."""

    def __str__(self) -> str:
        given = "&".join(f"{name}={value}" for name, value in (self.data or {}).items())
        return f"{self.method or ('GET' if self.data is None else 'POST')} {self.path} {given}"


TOY = {"project": "toy"}
JOB = {**TOY, "spider": "quick"}
OF_A_JOB = {"args", "priority", "run", "settings", "starts", "version"}
OF_A_RUNNING_JOB = {f"running.{name}" for name in (*OF_A_JOB, "node")}
OF_AN_END = {
    "bytes",
    "errors",
    "exit_code",
    "items",
    "node",
    "pages",
    "reason",
    "result",
    "seconds",
    "summary",
}
ADDED = {
    *(f"pending.{name}" for name in ("priority", "run", "starts")),
    *OF_A_RUNNING_JOB,
    *(f"finished.{name}" for name in (*OF_A_JOB, *OF_AN_END)),
}
OF_A_STATUS = {"reason", "result"}
GET_OF_A_POST: dict[str, Any] = {"code": 405, "message": "use one of OPTIONS, HEAD, POST"}
EGG = {**TOY, "version": "1"}
ASKED = [
    Ask("daemonstatus.json"),
    Ask("listprojects.json"),
    Ask("listversions.json?project=toy"),
    Ask("listjobs.json"),
    Ask("listspiders.json?project=toy"),
    Ask("schedule.json", JOB),
    # --- Deploying ---
    Ask("addversion.json", {}),
    Ask("addversion.json", TOY),
    Ask("addversion.json", EGG),
    Ask("addversion.json", EGG, egg=b"no egg", code=400),
    Ask("addversion.json", EGG, egg=toy_egg("1")),
    Ask("addversion.json", {**TOY, "version": "2"}, egg=toy_egg("2")),
    Ask("listprojects.json"),
    Ask("listversions.json"),
    Ask("listversions.json?project=toy"),
    Ask("listversions.json?project=none"),
    Ask("listspiders.json"),
    Ask("listspiders.json?project=toy"),
    Ask("listspiders.json?project=toy&_version=1"),
    Ask("listspiders.json?project=toy&_version=9"),
    Ask("listspiders.json?project=none"),
    # --- Scheduling ---
    Ask("schedule.json", {}),
    Ask("schedule.json", TOY),
    Ask("schedule.json", {"spider": "quick"}),
    Ask("schedule.json", {"project": "none", "spider": "quick"}),
    Ask("schedule.json", {**TOY, "spider": "none"}),
    Ask("schedule.json", {**JOB, "_version": "9"}),
    Ask("schedule.json", {**JOB, "priority": "high"}),
    Ask("schedule.json", {**JOB, "setting": "nonsense"}, message="setting is 'nonsense'"),
    Ask("schedule.json", {**JOB, "jobid": "a", "setting": "LOG_LEVEL=INFO", "x": "1"}),
    Ask("schedule.json", {**JOB, "_version": "1", "priority": "2", "jobid": "b"}, waits_for="a"),
    Ask("schedule.json", JOB | {"jobid": "c"}, waits_for="b"),
    Ask("schedule.json", {**TOY, "spider": "slow", "jobid": "slow"}, waits_for="c"),
    Ask("schedule.json", {**TOY, "spider": "slow", "jobid": "waits", "y": "2"}, runs="slow"),
    # --- Looking ---
    Ask("daemonstatus.json"),
    Ask("status.json"),
    Ask("status.json?job=none"),
    Ask("status.json?job=none&project=none"),
    Ask("status.json?job=a", added=OF_A_STATUS),
    Ask("status.json?job=a&project=toy", added=OF_A_STATUS),
    Ask("status.json?job=slow"),
    Ask("status.json?job=waits"),
    Ask("listjobs.json", added=ADDED),
    Ask("listjobs.json?project=toy", added=ADDED),
    Ask("listjobs.json?project=none"),
    # --- Cancelling ---
    Ask("cancel.json", {}),
    Ask("cancel.json", TOY),
    Ask("cancel.json", {"project": "none", "job": "slow"}),
    Ask("cancel.json", {**TOY, "job": "none"}),
    Ask("cancel.json", {**TOY, "job": "a"}),
    Ask("cancel.json", {**TOY, "job": "waits"}),
    Ask("cancel.json", {**TOY, "job": "slow"}),
    Ask("status.json?job=slow", waits_for="slow", added=OF_A_STATUS),
    # --- Other methods ---
    Ask("schedule.json", **GET_OF_A_POST),
    Ask("cancel.json", **GET_OF_A_POST),
    Ask("addversion.json", **GET_OF_A_POST),
    Ask("schedule.json", method="OPTIONS"),
    # --- Deleting ---
    Ask("delversion.json", {}),
    Ask("delversion.json", TOY),
    Ask("delversion.json", {**TOY, "version": "9"}),
    Ask("delversion.json", {"project": "none", "version": "1"}, message="project 'none' not found"),
    Ask("delversion.json", {**TOY, "version": "1"}),
    Ask("listversions.json?project=toy"),
    Ask("delproject.json", {}),
    Ask("delproject.json", {"project": "none"}),
    Ask("delproject.json", TOY),
    Ask("listprojects.json"),
]


class Stock(Node):
    """A stock Scrapyd, which is asked as a node is."""

    def start(self) -> None:
        conf = f"[scrapyd]\nhttp_port = {self.port}\nmax_proc = 1\npoll_interval = 0.2\n"
        (self.folder / "scrapyd.conf").write_text(conf)
        with (self.folder / "node.log").open("ab") as log:
            self.stock = subprocess.Popen(
                [sys.executable, "-m", "scrapyd", "--pidfile="],
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
                stdout=log,
                stderr=log,
            )
        wait_for(lambda: self.get("daemonstatus.json").code == 200, detail=lambda: self.log)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """Return a node of ours, and a stock Scrapyd."""
    folder = tmp_path_factory.mktemp("stock")
    stock = Stock(folder / "stock", {}, "stock", auth=None)
    stock.port = free_port()
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer())
        ours = stack.enter_context(cluster(folder, server.url, 1, SCRAPYD_MAX_PROC="1"))
        stock.start()
        stack.callback(stock.stock.wait)
        stack.callback(stock.stock.terminate)
        yield ours.nodes[0], stock


def answer_of(node: Node, ask: Ask) -> Answer:
    """Send a request when what it waits for has happened, and return the answer."""
    if ask.waits_for:
        wait_for(lambda: state_of(node, ask.waits_for) == "finished", detail=lambda: node.log)
    if ask.runs:
        # Stock Scrapyd tells no log before the spider has begun it.
        wait_for(lambda: [each for each in node.jobs("running") if each["pid"] and each["log_url"]])
    if ask.egg is not None:
        assert ask.data is not None
        return node.deploy(ask.egg, **ask.data)
    if ask.data is not None:
        return node.post(ask.path, **ask.data)
    return node.request(ask.path, method=ask.method)


def state_of(node: Node, job: str) -> str | None:
    state: str | None = node.get("status.json", job=job).json["currstate"]
    return state


def shape_of(value: Any, path: str = "") -> dict[str, str]:
    """Return the type of each field, by its path."""
    if isinstance(value, dict) and path not in {"pending.args", "pending.settings"}:
        fields = [shape_of(one, f"{path}.{name}".lstrip(".")) for name, one in value.items()]
        return {name: kind for shape in fields for name, kind in shape.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        shapes = [shape_of(one, path) for one in value]
        assert all(shape == shapes[0] for shape in shapes) or path != "pending"
        return shapes[0]
    return {path: type(value).__name__}


def is_added(name: str, ask: Ask) -> bool:
    """Return whether a field, or one that it is a part of, may be ours alone."""
    return any(f"{name}.".startswith(f"{added}.") for added in ask.added)


SAID = ("status", "message", "currstate", "prevstate", "spiders", "projects", "versions")
"""Fields whose values are the same, too."""


@pytest.mark.promise("Scrapyd's API and clients work unchanged.")
def test_answers_are_those_of_stock_scrapyd_field_by_field(both: tuple[Node, Node]) -> None:
    differences = []
    for ask in ASKED:
        ours, theirs = (answer_of(node, ask) for node in both)
        if ours.code != (ask.code or theirs.code):
            differences.append(f"{ask}: status {ours.code}, not {theirs.code}")
        if not theirs.text:
            assert not ours.text
            continue
        shapes = [shape_of(answer.json) for answer in (ours, theirs)]
        kept = {name: kind for name, kind in shapes[0].items() if not is_added(name, ask)}
        if kept != shapes[1]:
            differences.append(f"{ask}: {set(kept.items()) ^ set(shapes[1].items())}")
        values: list[dict[str, Any]] = [
            {name: answer.json.get(name) for name in SAID} for answer in (ours, theirs)
        ]
        if ask.message:
            assert values[0]["message"].startswith(ask.message)
            values[0]["message"] = values[1]["message"]
        if values[0] != values[1]:
            differences.append(f"{ask}: {values[0]}, not {values[1]}")
    assert not differences, "\n".join(differences)
