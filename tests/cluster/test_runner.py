"""The program that runs a spider, without a node: its memory, its watchdog and its report."""

import io
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from moviecrawler.cluster.process import RUNNER
from tests.services.nodes import toy_egg
from tests.waiting import wait_for


def crawl(
    folder: Path, spider: str, begin: str, hang_seconds: int, **settings: str
) -> subprocess.Popen[bytes]:
    """Run a toy's spider by a line of a shell, `begin`, in which "$@" is the command.

    Its report goes to the file `report`.
    """
    with zipfile.ZipFile(io.BytesIO(toy_egg("1", folder))) as archive:
        archive.extractall(folder / "toy.egg")
    task = {
        "egg": str(folder / "toy.egg"),
        "settings": settings,
        "arguments": {},
        "hang_seconds": hang_seconds,
    }
    command = [
        "sh",
        "-c",
        f"{begin} 3>report 2>errors",
        "sh",
        sys.executable,
        "-P",
        RUNNER,
        "crawl",
        "toy",
        spider,
    ]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(json.dumps(task).encode() + b"\n")
    process.stdin.flush()
    return process


def test_memory_of_a_spider_is_its_own_and_not_the_peak_of_its_node(tmp_path: Path) -> None:
    once_large = "import os, sys; b'x' * 2**28; os.execv(sys.argv[1], sys.argv[1:])"
    limits = {"MEMUSAGE_ENABLED": "1", "MEMUSAGE_LIMIT_MB": "200"}
    with crawl(
        tmp_path, "quick", f'exec {sys.executable} -c "{once_large}" "$@"', 60, **limits
    ) as process:
        assert process.wait(60) == 0
    closing, told = map(json.loads, (tmp_path / "report").read_text().splitlines())
    assert closing["closing"] == told["reason"] == "finished"
    assert told["stats"]["item_scraped_count"] == 1


def test_spider_that_hangs_kills_itself_and_says_where(tmp_path: Path) -> None:
    process = crawl(tmp_path, "hanging", 'exec "$@"', 2)
    assert process.stdin is not None
    wait_for((tmp_path / f"hanging-{process.pid}").exists, 60)
    process.stdin.close()  # the node is gone, and no thread gets the interpreter to end the process
    assert process.wait(30) == 1
    text = (tmp_path / "errors").read_text()
    assert re.search(
        r"^Timeout \(0:00:02\.\d+\)!\n.*spiders\.py.*, line \d+ in start",
        text,
        re.DOTALL | re.MULTILINE,
    )
