"""`scrapy demo`: all spiders against the replica, and the scores they found side by side."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.catalogue.scoreboard import scoreboard
from moviecrawler.catalogue.tables import read_movies
from moviecrawler.console.output import Console, check_no_arguments
from moviecrawler.console.scoreboard import render_table
from moviecrawler.errors import ConfigurationError
from moviecrawler.pipelines.files import check_data_dir
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

_STOP_SECONDS = 30  # seconds that a spider has to end after it was asked to


class Demo(Console):
    """Needs no network and no service."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the demo; exit code 1 when a spider failed."""
        check_no_arguments(args)
        if opts.titles < 1:
            raise ConfigurationError(f"--titles is {opts.titles}; give at least 1")
        folder = Path(self.settings["DATA_DIR"]) / "demo"
        check_data_dir(folder)
        started = time.monotonic()
        with ReplicaProcess(titles=opts.titles, seed=opts.seed) as replica:
            failed = asyncio.run(_crawl_all(replica.settings, folder))
        rows = scoreboard(read_movies(folder / "movies.csv")) if (folder / "movies.csv").exists() else []
        print(render_table(rows))
        print(f"\n{len(rows)} movies in {time.monotonic() - started:.1f} s. The files:")
        for file in sorted(folder.glob("*.csv")):
            print(f"  {file}")
        for name in failed:
            self.exitcode = 1
            print(f"The spider {name} failed; see {folder / name}.log", file=sys.stderr)


async def _crawl_all(sites: Mapping[str, str], folder: Path) -> list[str]:
    """Run all spiders, each in a process of its own as in production; return those that failed."""
    crawls = [asyncio.create_task(_crawl(name, sites, folder)) for name in SITES]
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, lambda: [crawl.cancel() for crawl in crawls])
    codes = await asyncio.gather(*crawls)
    return [name for name, code in zip(SITES, codes, strict=True) if code]


async def _crawl(name: str, sites: Mapping[str, str], folder: Path) -> int:
    """Run one spider and show the first line of its summary; return its exit code."""
    log = folder / f"{name}.log"
    log.unlink(missing_ok=True)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "scrapy", "crawl", name, "--logfile", str(log)),
        env={**os.environ, **sites, "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings", "DATA_DIR": str(folder)},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, output = await process.communicate()
        print(output.decode().partition("\n")[0], flush=True)
        assert process.returncode is not None  # noqa: S101 - it has ended
        return process.returncode
    finally:
        if process.returncode is None:
            process.terminate()
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _STOP_SECONDS)
            if process.returncode is None:
                process.kill()
