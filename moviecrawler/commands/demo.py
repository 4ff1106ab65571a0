"""`scrapy demo`: crawl the replica of all sites, and print their scores side by side."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import BaseCommand, option
from moviecrawler.commands.scoreboard import render_table
from moviecrawler.replica.process import ReplicaProcess, stop

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_FOLDER = Path("data") / "demo"
_LOG = _FOLDER / "crawl.log"
_INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
    "SYSTEMROOT",
    "TERM",
    "TMPDIR",
    "VIRTUAL_ENV",
)
"""Environment variables that the crawl inherits. Others could be settings of the project."""


class Command(BaseCommand, ScrapyCommand):
    """Crawl a local replica of all sites and print their scores side by side.

    It needs no internet access and no service, ignores your settings, and replaces data/demo.
    """

    options = (
        option(
            "--titles",
            type=int,
            default=60,
            help="films on the replica (default: 60); one series is added per 100 films",
        ),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.database.board import BoardQuery, read_board
        from moviecrawler.database.reading import reading_sqlite

        started = time.monotonic()
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does
        with ReplicaProcess(titles=opts.titles) as replica:
            shutil.rmtree(_FOLDER, ignore_errors=True)
            _FOLDER.mkdir(parents=True)
            has_failed = _crawl(replica.settings)
        with reading_sqlite(_FOLDER) as tables:
            rows = list(read_board(tables, BoardQuery()).rows)
        print(render_table(rows))
        print(f"\n{len(rows)} movies in {time.monotonic() - started:.1f} s. The files:")
        for file in sorted(_FOLDER.glob("*.csv")):
            print(f"  {file}")
        if has_failed:
            self.fail(f"the crawl failed; see {_LOG}")


def _crawl(settings: Mapping[str, str]) -> bool:
    """Run `scrapy crawl all` in a child process; return whether it has failed.

    The settings are its environment variables. It shows its progress on the terminal.
    """
    environment = {key: os.environ[key] for key in _INHERITED if key in os.environ}
    environment |= {
        "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings",
        "DATA_DIR": str(_FOLDER),
        **settings,
    }
    command = (sys.executable, "-m", "scrapy", "crawl", "all", "--logfile", str(_LOG))
    crawl = subprocess.Popen(  # noqa: S603 - it is our own
        command,
        env=environment,
        text=True,
        start_new_session=True,  # Ctrl-C reaches only the demo, which then stops the crawl
    )
    try:
        return crawl.wait() != 0
    finally:  # also on Ctrl-C
        stop(crawl, within=30)
