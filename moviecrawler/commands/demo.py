"""`scrapy demo`: crawl the replica with all three spiders, and print their scores side by side."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.commands.base import BaseCommand, option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_FOLDER = Path("data") / "demo"
_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "SYSTEMROOT")
"""Environment variables that the spiders inherit: those that Python needs, none that is a setting."""
_STOP_SECONDS = 30
"""Seconds that a spider has to end after SIGTERM."""


class Command(BaseCommand, ScrapyCommand):
    """Crawl a local replica of the three sites and print their scores side by side.

    It uses no network, service or setting, and replaces the folder data/demo.
    """

    options = (
        option("--titles", type=int, default=60, metavar="N", help="movies on the replica (default: 60)"),
        option("--seed", type=int, default=1, metavar="S", help="which movies those are (default: 1)"),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.catalogue.scoreboard import scoreboard_rows
        from moviecrawler.commands.scoreboard import render_table
        from moviecrawler.database.embedded import open_embedded
        from moviecrawler.replica.process import ReplicaProcess

        started = time.monotonic()
        with ReplicaProcess(titles=opts.titles, seed=opts.seed) as replica:
            shutil.rmtree(_FOLDER, ignore_errors=True)
            _FOLDER.mkdir(parents=True)
            failed = asyncio.run(_crawl_all(replica.settings))
        with closing(open_embedded(_FOLDER)) as connection:
            rows = list(scoreboard_rows(connection))
        print(render_table(rows))
        print(f"\n{len(rows)} movies in {time.monotonic() - started:.1f} s. The files:")
        for file in sorted(_FOLDER.glob("*.csv")):
            print(f"  {file}")
        for name in failed:
            self.fail(f"the spider {name} failed; see {_FOLDER / name}.log")


async def _crawl_all(sites: Mapping[str, str]) -> list[str]:
    """Run all spiders, each in a process of its own as in production; return those that failed."""
    from moviecrawler.sites import SITES

    # SIGTERM does what Ctrl-C does: it cancels this coroutine.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, os.kill, os.getpid(), signal.SIGINT)
    async with asyncio.TaskGroup() as group:  # which waits for all of them, also when it is cancelled
        crawls = {name: group.create_task(_crawl(name, sites)) for name in SITES}
    return [name for name, crawl in crawls.items() if crawl.result()]


async def _crawl(name: str, sites: Mapping[str, str]) -> int:
    """Run one spider and print the first line of its summary; return its exit code."""
    environment = {key: value for key in _INHERITED if (value := os.environ.get(key)) is not None}
    environment |= {"SCRAPY_SETTINGS_MODULE": "moviecrawler.settings", "DATA_DIR": str(_FOLDER), **sites}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "scrapy", "crawl", name, "--logfile", str(_FOLDER / f"{name}.log")),
        env=environment,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # a terminal's Ctrl-C reaches the demo alone, which then ends its spiders
    )
    try:
        _, output = await process.communicate()
    except asyncio.CancelledError:
        if process.returncode is None:
            process.terminate()
        # The output is read to its end: the event loop can't close the pipe once it has ended itself.
        with suppress(TimeoutError):
            await asyncio.wait_for(process.communicate(), _STOP_SECONDS)
        if process.returncode is None:
            process.kill()
            await process.communicate()
        raise
    print(output.decode().partition("\n")[0], flush=True)
    return process.returncode or 0
