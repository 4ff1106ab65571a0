"""The add-on that gives a crawl the components which its settings ask for, and no others.

A component is imported when it is listed, with the client of its service: boto3, pymongo, psycopg2, redis, Prometheus'. A
crawl that stores CSV files does without them, and starts in half the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


class _Part(NamedTuple):
    """A component that is used when one of some settings has a value."""

    asked_by: tuple[str, ...]
    listed_in: str
    """Scrapy's setting that lists components of its kind."""
    path: str
    order: int


_PARTS = (
    _Part(("DATABASE_URL",), "ITEM_PIPELINES", "moviecrawler.pipelines.postgres.PostgresPipeline", 310),
    _Part(("MONGO_URL",), "ITEM_PIPELINES", "moviecrawler.pipelines.mongo.MongoPipeline", 320),
    _Part(("S3_BUCKET",), "ITEM_PIPELINES", "moviecrawler.pipelines.s3.S3Pipeline", 330),
    _Part(("S3_BUCKET",), "ITEM_PIPELINES", "moviecrawler.pipelines.archive.ArchivePipeline", 340),
    # Before HttpErrorMiddleware, so that it sees a 404 too.
    _Part(("S3_BUCKET",), "SPIDER_MIDDLEWARES", "moviecrawler.middlewares.archive.ArchiveMiddleware", 10),
    # Sees what the spider makes of a page, and keeps one that could not be read.
    _Part(("REDIS_URL",), "SPIDER_MIDDLEWARES", "moviecrawler.extensions.failed_pages.FailedPages", 20),
    # Learns how every attempt ended before a redirect is followed, and sees decompressed bodies.
    _Part(
        ("PROXY_ORDER", "WORKER_POOL"),
        "DOWNLOADER_MIDDLEWARES",
        "moviecrawler.proxies.middleware.ProxyMiddleware",
        620,
    ),
    # As Scrapy has it.
    _Part(
        ("COOKIES_ENABLED",), "DOWNLOADER_MIDDLEWARES", "scrapy.downloadermiddlewares.cookies.CookiesMiddleware", 700
    ),
    _Part(("DATABASE_URL",), "EXTENSIONS", "moviecrawler.extensions.catalogue.CatalogueRecorder", 0),
    _Part(("METRICS_FOLDER", "METRICS_PUSH_URL"), "EXTENSIONS", "moviecrawler.extensions.metrics.Metrics", 20),
    _Part(
        tuple(
            f"SPIDERMON_{when}_MONITORS"
            for when in (
                *("SPIDER_OPEN", "SPIDER_CLOSE", "ENGINE_STOP", "PERIODIC"),
                *("SPIDER_OPEN_EXPRESSION", "SPIDER_CLOSE_EXPRESSION", "ENGINE_STOP_EXPRESSION"),
            )
        ),
        "EXTENSIONS",
        "spidermon.contrib.scrapy.extensions.Spidermon",
        10,
    ),
    _Part(("REDIS_URL",), "EXTENSIONS", "moviecrawler.extensions.store_stats.StoreStats", 50),
    _Part(("REDIS_URL",), "EXTENSIONS", "moviecrawler.extensions.rejected_items.RejectedItems", 50),
)


class ConfiguredParts:
    """Scrapy add-on; list it in ADDONS. A component that is listed already, or switched off by None, stays as it is."""

    def update_settings(self, settings: BaseSettings) -> None:
        """List the components whose settings have a value."""
        for part in _PARTS:
            listed = settings.getdict(part.listed_in)
            if part.path not in listed and any(settings.get(name) for name in part.asked_by):
                priority = settings.getpriority(part.listed_in) or 0
                settings.set(part.listed_in, {**listed, part.path: part.order}, priority=priority)


def with_parts(settings: BaseSettings) -> BaseSettings:
    """Return a copy of settings as a crawl will have them, to be checked before it starts."""
    settings = settings.copy()
    ConfiguredParts().update_settings(settings)
    return settings
