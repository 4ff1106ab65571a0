"""Read many mutants of pages: no failure but ExtractionError, no page that takes too long or too much memory."""

from __future__ import annotations

import faulthandler
import random
import sys
import time
import traceback
from dataclasses import dataclass, field
from itertools import accumulate
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
_STATUS = Path("/proc/self/status")


@dataclass(slots=True)
class Report:
    """What became of mutants."""

    read: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    """Page, seed, and what was wrong."""


def shared_pages() -> list[Path]:
    """Return all saved pages that lie beside the project."""
    return sorted(path for path in PAGES.rglob("*") if path.suffix in {".html", ".json", ".xml", ".gz"})


def golden_pages() -> list[Path]:
    """Return the project's own pages."""
    return sorted((PROJECT / "tests" / "pages").glob("*/*/page.*"))


def fuzz(pages: list[Path], seeds: range, slack: float = 1.0) -> Report:
    """Read the mutants of these seeds, each of a page that its seed draws. Small pages are drawn more often: they take less time.

    A page may take `slack` times LONGEST_SECONDS, where the machine is slow or has other things to do.
    """
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
