"""The add-on that checks the settings of a crawl, and lists the components which they ask for.

It lists no others. A component is imported when it is listed, with the client of its service:
boto3, pymongo, psycopg2, redis, Prometheus'. A crawl that stores CSV files does without them, and
starts in half the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings


class _Part(NamedTuple):
    """A component that is used when one of some settings has a value."""

    enabled_by: tuple[str, ...]
    listed_in: str
    """Scrapy's setting that lists components of its kind."""
    path: str
    order: int


_SPIDERMON = (
    *(
        f"SPIDERMON_{when}_MONITORS"
        for when in ("SPIDER_OPEN", "SPIDER_CLOSE", "ENGINE_STOP", "PERIODIC")
    ),
    *(
        f"SPIDERMON_{when}_EXPRESSION_MONITORS"
        for when in ("SPIDER_OPEN", "SPIDER_CLOSE", "ENGINE_STOP")
    ),
)
_PARTS = (
    _Part(
        ("DATABASE_URL",), "ITEM_PIPELINES", "moviecrawler.pipelines.postgres.PostgresPipeline", 310
    ),
    _Part(("MONGO_URL",), "ITEM_PIPELINES", "moviecrawler.pipelines.mongo.MongoPipeline", 320),
    _Part(("S3_BUCKET",), "ITEM_PIPELINES", "moviecrawler.pipelines.s3.S3Pipeline", 330),
    _Part(("S3_BUCKET",), "ITEM_PIPELINES", "moviecrawler.pipelines.archive.ArchivePipeline", 340),
    # Before HttpErrorMiddleware, so that it sees a 404 too.
    _Part(
        ("S3_BUCKET",),
        "SPIDER_MIDDLEWARES",
        "moviecrawler.middlewares.archive.ArchiveMiddleware",
        10,
    ),
    # Learns how every attempt ended before a redirect is followed, and sees decompressed bodies.
    _Part(
        ("PROXY_ORDER",),
        "DOWNLOADER_MIDDLEWARES",
        "moviecrawler.proxies.middleware.ProxyMiddleware",
        620,
    ),
    # As Scrapy has it.
    _Part(
        ("COOKIES_ENABLED",),
        "DOWNLOADER_MIDDLEWARES",
        "scrapy.downloadermiddlewares.cookies.CookiesMiddleware",
        700,
    ),
    _Part(
        ("DATABASE_URL",), "EXTENSIONS", "moviecrawler.extensions.catalogue.CatalogueRecorder", 0
    ),
    _Part(_SPIDERMON, "EXTENSIONS", "spidermon.contrib.scrapy.extensions.Spidermon", 10),
)


class ConfiguredParts:
    """Scrapy add-on; list it in ADDONS.

    A component that is listed already, or switched off by None, stays as it is.
    """

    def __init__(self, spidercls: type[Spider]) -> None:
        self._spidercls = spidercls

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read the settings of a crawl of one of the sites."""
        return cls(crawler.spidercls)

    def update_settings(self, settings: BaseSettings) -> None:
        """List the components whose settings have a value.

        Raises ConfigurationError for the first wrong value.
        """
        # Scrapy imports this module for every command.
        from moviecrawler.options import warn_of_names  # noqa: PLC0415

        warn_of_names(settings)
        check(settings, self._spidercls)


def _list_parts(settings: BaseSettings) -> None:
    for part in _PARTS:
        listed = settings.getdict(part.listed_in)
        if part.path not in listed and any(settings.get(name) for name in part.enabled_by):
            priority = settings.getpriority(part.listed_in) or 0
            settings.set(part.listed_in, {**listed, part.path: part.order}, priority=priority)


def check(settings: BaseSettings, spidercls: type[Spider]) -> None:
    """List the components whose settings have a value, unless they are listed.

    Nothing is connected. Raises ConfigurationError for the first setting of a crawl of a site that
    can't be right.
    """
    # Scrapy imports this module for every command.
    from moviecrawler.frontier.budgets import site_budget  # noqa: PLC0415
    from moviecrawler.monitors.actions import chosen_actions  # noqa: PLC0415 - as above
    from moviecrawler.options import check_settings  # noqa: PLC0415 - as above
    from moviecrawler.pipelines.base import check_stores  # noqa: PLC0415 - as above
    from moviecrawler.pipelines.files import check_data_dir  # noqa: PLC0415 - as above
    from moviecrawler.proxies.site_pools import SitePools  # noqa: PLC0415 - as above

    _list_parts(settings)
    if not hasattr(spidercls, "site"):
        return  # such as `scrapy replay`, which asks no site
    check_settings(settings)
    check_data_dir(settings["DATA_DIR"])
    check_stores(settings)
    site_budget(settings, spidercls.site)
    if settings.get("REDIS_URL"):
        # Imports Redis' client.
        from moviecrawler.redis_client import connect  # noqa: PLC0415

        connect(settings["REDIS_URL"])  # which opens no connection
    SitePools.from_settings(settings)
    chosen_actions(settings)
