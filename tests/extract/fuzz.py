"""Read many mutants of pages: no failure but ExtractionError, no page that takes too long or too much memory.

From the command line, over the shared pages and in as many processes as there are cores:

    python -m tests.extract.fuzz --mutants 200000
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import sys
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path

from moviecrawler.errors import ExtractionError, InvalidItemError
from moviecrawler.extract.pages import page_record, read_page
from moviecrawler.extract.sitemaps import read_sitemap
from moviecrawler.items import Page
from moviecrawler.pipelines.validate import check_movie
from moviecrawler.sites import SCORES
from tests.extract.limits import LONGEST_SECONDS, TooSlowError, processor_time
from tests.extract.mutants import mutant
from tests.shared import PAGES, PROJECT

MOST_MEGABYTES = 200
"""Of memory that reading one page may take."""
_HANGS_SECONDS = 120
"""After which a process that hangs in C code, where no signal reaches it, ends and says where."""
_AT_A_TIME = 250
_STATUS = Path("/proc/self/status")


@dataclass(slots=True)
class Report:
    """What became of mutants."""

    read: int = 0
    refused: int = 0
    slowest: float = 0.0
    """Seconds of processor time."""
    largest: float = 0.0
    """Megabytes of memory, beyond those of a process that has read nothing."""
    faults: list[str] = field(default_factory=list)
    """Page, seed, and what was wrong."""

    def add(self, other: Report) -> None:
        """Add what became of others."""
        self.read += other.read
        self.refused += other.refused
        self.slowest = max(self.slowest, other.slowest)
        self.largest = max(self.largest, other.largest)
        self.faults += other.faults

    def __str__(self) -> str:
        return (
            f"{self.read + self.refused:,} mutants: {self.read:,} read, {self.refused:,} refused, {len(self.faults)} faults; "
            f"the slowest took {self.slowest:.2f} s, the largest {self.largest:.0f} MB"
        )


def shared_pages() -> list[Path]:
    """Return all saved pages that lie beside the project."""
    return sorted(path for path in PAGES.rglob("*") if path.suffix in {".html", ".json", ".xml", ".gz"})


def golden_pages() -> list[Path]:
    """Return the project's own pages."""
    return sorted((PROJECT / "tests" / "pages").glob("*/*/page.*"))


def fuzz(pages: list[Path], mutants: int, seed: int = 1, processes: int = 0, slack: float = 1.0) -> Report:
    """Read so many mutants, in this process when `processes` is 0. Small pages are drawn more often: they take less time.

    A page may take `slack` times LONGEST_SECONDS, where the machine is slow or has other things to do.
    """
    whole = Report()
    if not processes:
        whole.add(read_mutants(pages, range(seed * 10**9, seed * 10**9 + mutants), slack))
        return whole
    seeds = [
        range(start, min(start + _AT_A_TIME, seed * 10**9 + mutants))
        for start in range(seed * 10**9, seed * 10**9 + mutants, _AT_A_TIME)
    ]
    # Without max_tasks_per_child, with which Python 3.11 waits for ever once a process has done so many.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        for number, report in enumerate(pool.map(read_mutants, [pages] * len(seeds), seeds, [slack] * len(seeds)), 1):
            whole.add(report)
            if report.faults or not number % 40:
                print(whole, *report.faults, sep="\n  ", flush=True)  # noqa: T201 - a command's output
    return whole


def read_mutants(pages: list[Path], seeds: range, slack: float = 1.0) -> Report:
    """Read the mutants of these seeds, each of a page that its seed draws."""
    report = Report()
    before = _memory_now()
    weights = list(accumulate(1 / (path.stat().st_size + 50_000) for path in pages))
    for seed in seeds:
        path = random.Random(seed).choices(pages, cum_weights=weights)[0]  # noqa: S311 - nothing to be kept secret
        body = mutant(path.read_bytes(), seed)
        _read(body, f"{path.parent.parent.name}/{path.parent.name}/{path.name} {seed}", before, report, slack)
    return report


def _read(body: bytes, name: str, before: float, report: Report, slack: float) -> None:
    faulthandler.dump_traceback_later(_HANGS_SECONDS, exit=True, file=sys.__stderr__ or 2)
    _memory_now()
    began = time.process_time()
    try:
        with processor_time(LONGEST_SECONDS * 2 * slack):
            if name.partition(" ")[0].endswith((".xml", ".gz")):
                read_sitemap(body)
            else:
                page = read_page(body)
                page_record(page)
                check_believable(page)
        report.read += 1
    except ExtractionError:
        report.refused += 1
    except TooSlowError:
        report.faults.append(f"{name}: too slow: {_place()}")
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        report.faults.append(f"{name}: {type(error).__name__}: {error!s:.200} {_place()}")
    finally:
        faulthandler.cancel_dump_traceback_later()
    took, memory = time.process_time() - began, _memory_peak() - before
    report.slowest, report.largest = max(report.slowest, took), max(report.largest, memory)
    if took > LONGEST_SECONDS * slack:
        report.faults.append(f"{name}: {took:.1f} s")
    if memory > MOST_MEGABYTES:
        report.faults.append(f"{name}: {memory:.0f} MB")


def check_believable(page: Page) -> None:
    """Raise an error when a page was read that says what no page can. A title that a store refuses, with a sentence, may be one."""
    for entry in page.listing.entries if page.listing else ():
        assert entry.site_id
        assert entry.title
        assert entry.year is None or 1870 <= entry.year <= 2100
        assert all(0 <= score.value <= SCORES[score.kind].scale for score in entry.scores)
    if page.movie is None:
        return
    movie = page.movie
    texts = (movie.title, *movie.genres, *movie.countries, *movie.languages, *(c.name for c in movie.credits))
    assert all(text is not None and text.strip() for text in texts)
    given = (movie.original_title, movie.certificate, movie.plot, movie.poster_url)
    assert all(text is None or text.strip() for text in given)
    try:
        check_movie(movie)
    except InvalidItemError:
        return
    for season in page.seasons:
        check_movie(season)


def _place() -> str:
    return " < ".join(
        f"{line.filename.rpartition('/')[2]}:{line.lineno}" for line in traceback.extract_tb(sys.exc_info()[2])[:2:-1]
    )


def _memory_now() -> float:
    """Return the memory that this process has, in MB, and begin to measure its peak anew."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0.0
    return _status("VmRSS")


def _memory_peak() -> float:
    return _status("VmHWM")


def _status(name: str) -> float:
    if not _STATUS.exists():
        return 0.0
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--golden", action="store_true", help="the project's own pages, not the shared ones")
    given = parser.parse_args()
    pages = golden_pages() if given.golden else shared_pages()
    if not pages:
        print(f"no pages in {PAGES}", file=sys.stderr)  # noqa: T201 - a command's output
        return 2
    report = fuzz(pages, given.mutants, given.seed, given.processes)
    print(report)  # noqa: T201 - a command's output
    print(*report.faults, sep="\n")  # noqa: T201 - a command's output
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
