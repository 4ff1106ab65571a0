"""Watches which fields title pages have, and keeps pages that can't be read.

A crawl whose site has changed its pages is stopped.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from scrapy import signals

from moviecrawler.basics.clock import utc_now
from moviecrawler.extensions.missing_fields import GONE_AFTER_PAGES, MissingFields
from moviecrawler.politeness.kept_pages import folder_of, keep_page
from moviecrawler.scrapy_internals import end_crawl
from moviecrawler.signals import title_read, title_unread

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from moviecrawler.basics.errors import ExtractionError
    from moviecrawler.items import Movie

logger = logging.getLogger(__name__)


class CoverageWatch:
    """Watches the title pages of the spider's site.

    Counts the pages in `pages/read` and `pages/unknown/<field>`, and says why a field is missing in
    `pages/missing/<field>`.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.fields = MissingFields()
        self._stops = crawler.settings.getbool("COVERAGE_STOP")
        self._folder = folder_of(crawler.settings)
        self._site: str = crawler.spidercls.site  # type: ignore[attr-defined]
        self._keeping: set[asyncio.Future[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read COVERAGE_STOP and DATA_DIR."""
        watch = cls(crawler)
        crawler.signals.connect(watch.spider_closed, signals.spider_closed)
        crawler.signals.connect(watch.title_read, title_read)
        crawler.signals.connect(watch.title_unread, title_unread)
        return watch

    async def spider_closed(self) -> None:
        """Wait until the last pages are kept."""
        if self._keeping:
            await asyncio.wait(self._keeping)

    def title_read(self, movie: Movie, response: Response) -> None:
        """Count what was read from a page."""
        stats = self.crawler.stats
        new = self.fields.add(movie)
        stats.inc_value("pages/read")
        for name in movie.unknown_fields:
            stats.inc_value(f"pages/unknown/{name}")
        for name in new:
            stats.set_value(f"pages/missing/{name}", self.fields.missing[name])
            logger.error(
                "%s: the field %s is missing: %s", self._site, name, self.fields.missing[name]
            )
        if new:
            self._keep(response, "missing", ", ".join(new))
        if self.fields.scoreless >= GONE_AFTER_PAGES:
            self._stop(
                f"every score is unknown on {self.fields.scoreless} title pages in a row,"
                f" such as {movie.site_id}"
            )

    def title_unread(self, site_id: str, error: ExtractionError, response: Response) -> None:
        """Count a title's page that could not be read, and keep it."""
        self.fields.add_unreadable()
        self._keep(response, "unreadable", str(error))
        if self.fields.unreadable >= GONE_AFTER_PAGES:
            self._stop(
                f"{self.fields.unreadable} title pages in a row can't be read,"
                f" such as {site_id}: {error}"
            )

    def _keep(self, response: Response, kind: str, why: str) -> None:
        keep = partial(keep_page, self._folder, self._site, kind, response, utc_now(), why=why)
        keeping = asyncio.get_running_loop().run_in_executor(None, keep)
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)

    def _stop(self, why: str) -> None:
        if self._stops:
            cause = (
                f"{why}, so the site has probably changed its pages; nothing that is stored is "
                f"lost; see what scrapy extract reads of the pages in {self._folder}; "
                "COVERAGE_STOP=0 continues anyway"
            )
            end_crawl(self.crawler, "pages_changed", cause)
