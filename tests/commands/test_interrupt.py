"""A crawl without a node, whose callback holds the interpreter."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_for

SPIDER = """
import re
import sys
from pathlib import Path

import scrapy
from scrapy.cmdline import execute


class Hanging(scrapy.Spider):
    name = "hanging"

    async def start(self):
        Path("hangs").write_text("")
        re.match("(x+x+)+y", "x" * 40)
        yield {}


if __name__ == "__main__":
    execute(["scrapy", "crawl", "hanging"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_ends_a_crawl_that_hangs(number: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(SPIDER)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = hanging_settings\n")
    (tmp_path / "hanging_settings.py").write_text(
        'SPIDER_MODULES = ["hanging"]\nCOMMANDS_MODULE = "moviecrawler.commands"\nTELNETCONSOLE_ENABLED = False\n'
    )
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "hanging.py"], cwd=tmp_path, stdout=log, stderr=log)
    try:
        wait_for((tmp_path / "hangs").exists, 60, (tmp_path / "log").read_text)
        process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)  # the first one lets a crawl end what it has begun
        process.send_signal(number)
        assert process.wait(30) == -signal.SIGALRM
    finally:
        process.kill()
        process.wait()
    assert "Ending at once" in (tmp_path / "log").read_text()
