"""Signals to a crawl without a node."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.waiting import wait_for

SPIDER = """
import sys
import time
from pathlib import Path

import scrapy
from scrapy.cmdline import execute
from moviecrawler.commands import crawl

crawl._END_SECONDS = 1

class Hanging(scrapy.Spider):
    name = "hanging"

    async def start(self):
        Path(f"hangs-{sys.argv[1]}").write_text("")
        time.sleep(600)
        yield {}


if __name__ == "__main__":
    execute(["scrapy", "crawl", "hanging"])
"""


def crawl(folder: Path, module: str, log: str, *command: str) -> subprocess.Popen[bytes]:
    """Start a command in a project of one spider."""
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = its_settings\n")
    (folder / "its_settings.py").write_text(
        f'SPIDER_MODULES = ["{module}"]\nCOMMANDS_MODULE = "moviecrawler.commands"\nTELNETCONSOLE_ENABLED = False\n'
    )
    with (folder / log).open("wb") as file:
        return subprocess.Popen([sys.executable, *command], cwd=folder, stdout=file, stderr=file)


def test_second_signal_ends_a_crawl_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(SPIDER)
    with ExitStack() as stack:
        crawls = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            process = crawl(tmp_path, "hanging", f"log-{number}", "hanging.py", str(int(number)))
            crawls[number] = stack.enter_context(process)
            stack.callback(crawls[number].kill)
        for number, process in crawls.items():
            wait_for((tmp_path / f"hangs-{number}").exists, 60, (tmp_path / f"log-{number}").read_text)
            process.send_signal(number)
        for process in crawls.values():
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1)  # the first one lets a crawl end what it has begun
        for number, process in crawls.items():
            process.send_signal(number)
        for number, process in crawls.items():
            assert process.wait(30) == -signal.SIGALRM
            assert "Ending at once" in (tmp_path / f"log-{number}").read_text()


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


@pytest.mark.promise("A crawl that is told to end stores what it has fetched, and says what was not done.")
def test_a_signal_to_a_crawl_that_closes_hurries_its_stores_and_lets_it_close(tmp_path: Path) -> None:
    (tmp_path / "closing.py").write_text(CLOSING)
    with crawl(tmp_path, "closing", "log", "-m", "scrapy", "crawl", "closing") as process:
        try:
            wait_for((tmp_path / "stores").exists, 60, (tmp_path / "log").read_text)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        finally:
            process.kill()
    assert (tmp_path / "has-stored").exists()
    assert (tmp_path / "log").read_text().endswith("INFO: Spider closed (finished)\n")
