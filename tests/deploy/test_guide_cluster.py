"""The guide's commands for two nodes are run as they stand, but on ports that are free."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.checkout import copy_project
from tests.services.nodes import free_port
from tests.services.redis import executable
from tests.shared import PROJECT
from tests.waiting import wait_for

_HEAD = "two nodes on one machine:\n\n"
_INSTALL = "pip install -e '.[cluster]'"  # they are there already


def _is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.long
def test_two_nodes_start_and_take_a_job(tmp_path: Path) -> None:
    folder = copy_project(tmp_path / "moviecrawler")
    shutil.copytree(PROJECT / "scrapyd", folder / "scrapyd")
    (folder / "redis-server").symlink_to(executable())
    guide = (PROJECT / "moviecrawler/guides/many_machines.md").read_text("utf-8")
    shown = guide.partition(_HEAD)[2].partition("\n\n")[0]
    commands = [line.strip() for line in shown.splitlines() if _INSTALL not in line]
    script = "\n".join(["set -e", *commands]).replace(
        "--appendonly yes", "--appendonly yes --port 6379"
    )
    ports = {usual: free_port() for usual in ("6379", "6800", "6801")}
    script = re.sub("|".join(ports), lambda port: str(ports[port[0]]), script)
    target = folder / "scrapy.cfg"
    target.write_text(target.read_text("utf-8").replace("6800", str(ports["6800"])))
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "SCRAPYD_HTTP_PORT": str(ports["6800"]),
        "IMDB_URL": "http://127.0.0.1:9",  # the job asks nobody
    }
    output = tmp_path / "output"
    given: Any = {
        "cwd": folder,
        "env": environment,
        "stdin": subprocess.DEVNULL,
        "start_new_session": True,
    }
    with output.open("wb") as file:
        shell = subprocess.Popen(
            ["bash", "-c", script], stdout=file, stderr=subprocess.STDOUT, **given
        )
        try:
            code = shell.wait(120)
            assert code == 0, output.read_text("utf-8")
            (answer,) = re.findall(r"^{.*\bjobid\b.*}$", output.read_text("utf-8"), re.MULTILINE)
            assert json.loads(answer)["status"] == "ok"
            wait_for(lambda: _is_open(ports["6801"]))
            assert not [*folder.rglob("dbs")], (
                "no project is that of scrapy.cfg, and no queue a file"
            )
        finally:
            os.killpg(shell.pid, signal.SIGTERM)
            wait_for(lambda: not any(map(_is_open, ports.values())))
