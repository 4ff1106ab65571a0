"""Signals to a crawl without a node."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.processes import environment
from tests.waiting import wait_for

CLOSING = """
import time
from pathlib import Path

import scrapy
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.store import Store

class Slow(Store):
    name = "slow"

    def open(self): ...

    def write(self, records): ...

    def close(self):
        Path("stores").write_text("")
        while not self.hurried:
            time.sleep(0.05)
        time.sleep(1)
        Path("has-stored").write_text("")

class Storing(BatchingPipeline):
    @classmethod
    def store_from_settings(cls, settings):
        return Slow()

class Closing(scrapy.Spider):
    name = "closing"
    custom_settings = {"ITEM_PIPELINES": {Storing: 1}}

    async def start(self):
        yield {}
"""


@pytest.mark.promise(
    "A crawl that is told to end stores what it has fetched, and says what was not done."
)
def test_a_signal_to_a_crawl_that_closes_hurries_its_stores_and_lets_it_close(
    tmp_path: Path,
) -> None:
    (tmp_path / "closing.py").write_text(CLOSING)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = its_settings\n")
    (tmp_path / "its_settings.py").write_text(
        'SPIDER_MODULES = ["closing"]\nCOMMANDS_MODULE = "moviecrawler.commands"\n'
        "TELNETCONSOLE_ENABLED = False\n"
    )
    command = [sys.executable, "-m", "scrapy", "crawl", "closing"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log) as process,
    ):
        try:
            wait_for((tmp_path / "stores").exists, 60, (tmp_path / "log").read_text)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        finally:
            process.kill()
    assert (tmp_path / "has-stored").exists()
    assert (tmp_path / "log").read_text().endswith("INFO: Spider closed (finished)\n")


STARTING = """
import sys
from moviecrawler.__main__ import main
sys.argv = ["moviecrawler", "crawl", "metacritic", "-a", "ids=movie/none"]
print("begun", flush=True)
main()
"""


@pytest.mark.parametrize("seconds", [0.05, 0.2, 0.4, 0.6])
def test_ctrl_c_in_the_first_second_leaves_no_traceback(
    seconds: float, replica: ReplicaProcess, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTING],
        cwd=tmp_path,
        env=environment(tmp_path, replica),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        written = process.communicate(timeout=60)[0]
    assert "Traceback" not in written
    assert "Task was destroyed" not in written
    assert process.returncode in {-signal.SIGINT, 0, 1, 3}
