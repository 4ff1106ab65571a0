"""The add-on that checks the settings of a crawl before its first request."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from moviecrawler.options import check_settings, warn_of_names
from moviecrawler.pipelines.base import check_stores
from moviecrawler.pipelines.files import check_data_dir
from moviecrawler.proxies.site_pools import SitePools
from moviecrawler.spiders.components import leave_out_stores

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


class ConfiguredParts:
    """Scrapy add-on; list it in ADDONS."""

    def __init__(self, spidercls: type[Spider], *, is_crawl: bool) -> None:
        self._spidercls = spidercls
        self._is_crawl = is_crawl

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Look whether the spider's own `start` will run.

        `scrapy fetch`, `view` and `parse` put one of their own in its place, and `scrapy shell`
        makes the spider later.
        """
        begins_itself = not crawler.spidercls.start.__module__.startswith("scrapy.commands.")
        return cls(crawler.spidercls, is_crawl=begins_itself and crawler.spider is not None)

    def update_settings(self, settings: BaseSettings) -> None:
        """Warn of misspelt names, and check the settings of a movie spider.

        Without a crawl it needs no stores. Raises ConfigurationError for the first wrong value.
        """
        # Scrapy imports this module for every command.
        from moviecrawler.spiders.base import MovieSpider  # noqa: PLC0415

        warn_of_names(settings)
        if issubclass(self._spidercls, MovieSpider) and not self._is_crawl:
            logger.info("No store is opened, as this is no crawl")
            leave_out_stores(settings)
        check(settings, self._spidercls)


def check(settings: BaseSettings, spidercls: type[Spider]) -> None:
    """Check the settings of a spider's crawl if it is one of the sites.

    Nothing is connected. Raises ConfigurationError for the first setting that can't be right.
    """
    from moviecrawler.spiders.base import MovieSpider  # noqa: PLC0415 - as above

    if not issubclass(spidercls, MovieSpider):
        return
    check_settings(settings)
    check_data_dir(settings["DATA_DIR"])
    check_stores(settings)
    spidercls.check_budget(settings)
    if settings.get("REDIS_URL"):
        # Imports Redis' client.
        from moviecrawler.frontier.redis_client import connect  # noqa: PLC0415

        connect(settings["REDIS_URL"])  # which opens no connection
    SitePools.from_settings(settings)
    if settings.get("ALERT_URLS"):
        # Imports Apprise.
        from moviecrawler.extensions.messengers import messengers_of  # noqa: PLC0415

        messengers_of(settings)
