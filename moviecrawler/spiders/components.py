"""What is ours in a crawl of one of the sites: scheduler, middlewares, pipelines, extensions.

A `MovieSpider` sets it up for its own crawl, so that every other spider of the project, and what
`scrapy shell`, `fetch` and `view` use, runs on Scrapy's own parts.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING

from scrapy.settings import SETTINGS_PRIORITIES, default_settings

from moviecrawler.options import PACE_OF_OTHER_SPIDERS, SCRAPYS

if TYPE_CHECKING:
    from collections.abc import Collection

    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

SCHEDULER = "moviecrawler.frontier.scheduler.FrontierScheduler"
REDIS_SCHEDULER = "moviecrawler.frontier.redis_backend.RedisFrontierScheduler"

# --- Plain settings, each with the reason why it differs from Scrapy's own ------------------------
_SETTINGS: dict[str, object] = {
    **SCRAPYS,
    # Tries after the first; read by BackoffRetryMiddleware.
    "RETRY_TIMES": 3,
    # Only what passes by itself. 429 is not among them: it closes the gate.
    "RETRY_HTTP_CODES": [408, 500, 502, 503, 504, 522, 524],
    "REDIRECT_MAX_TIMES": 5,
    # Decoding a whole page to look for a tag that these sites don't use costs 2 ms.
    "METAREFRESH_ENABLED": False,
    # Scrapy starts this many tasks for every response, to hand what its callback yields to the
    # pipelines. More would gain nothing: an item waits only while a store's buffer is full, and
    # then the others would wait as well.
    "CONCURRENT_ITEMS": 1,
    "LOG_FORMATTER": "moviecrawler.spiders.logformatter.TerseLogFormatter",
    "ITEM_PROCESSOR": "moviecrawler.pipelines.processor.FollowingItemProcessor",
    # Seconds between two lines of Progress.
    "LOGSTATS_INTERVAL": 10.0,
    # Scrapy imports what is listed here, even what is switched off; a web server comes with this
    # one, which takes 0.1 s.
    "EXTENSIONS_BASE": {
        path: order
        for path, order in default_settings.EXTENSIONS_BASE.items()
        if path != "scrapy.extensions.remote_control.RemoteControl"
    },
}

# --- Components -----------------------------------------------------------------------------------
_COMPONENTS: dict[str, dict[str, int | None]] = {
    # Pages come by http and https alone, and no request can name a file of this machine.
    "DOWNLOAD_HANDLERS": {
        "data": None,
        "file": None,
        "ftp": None,
        "s3": None,
    },
    "DOWNLOADER_MIDDLEWARES": {
        # Before all that check whether an address may be fetched.
        "moviecrawler.middlewares.aliases.AliasMiddleware": 40,
        "moviecrawler.middlewares.fresh.FreshMiddleware": 45,
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
        "moviecrawler.middlewares.offsite.StrictOffsiteMiddleware": 50,
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
        "moviecrawler.middlewares.retry.BackoffRetryMiddleware": 550,
        # After Offsite, and inside Retry and Redirect, so that each attempt enters the gate. It
        # sees decompressed bodies.
        "moviecrawler.politeness.middleware.PolitenessMiddleware": 560,
        "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
        "moviecrawler.middlewares.compression.GzipMiddleware": 640,
    },
    "SPIDER_MIDDLEWARES": {
        # These drop requests, of which the queue would not know.
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
        # It looks for copies of a page's meta in all that the page yields; the spiders make none.
        "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
    },
    "ITEM_PIPELINES": {
        "moviecrawler.pipelines.validate.ValidatePipeline": 100,
        "moviecrawler.pipelines.sqlite.SqlitePipeline": 300,
    },
    "EXTENSIONS": {
        # The gate slows down where a site does.
        "scrapy.extensions.throttle.AutoThrottle": None,
        "scrapy.extensions.feedexport.FeedExporter": None,
        "scrapy.extensions.logstats.LogStats": None,
        "moviecrawler.extensions.completion.ItemCompletion": 0,
        "moviecrawler.extensions.coverage.CoverageWatch": 0,
        "moviecrawler.pipelines.feeds.FeedExporter": 0,
        "moviecrawler.extensions.progress.Progress": 30,
        "moviecrawler.extensions.summary.Summary": 40,
    },
}

_COOKIES = "scrapy.downloadermiddlewares.cookies.CookiesMiddleware"
_OF_CONTRACTS = "moviecrawler.spiders.contracts.GoldenPageMiddleware"
_VALIDATE = "moviecrawler.pipelines.validate.ValidatePipeline"
_ALERTS = "moviecrawler.extensions.alerts.Alerts"
_METRICS = "moviecrawler.extensions.metrics.Metrics"


_ENABLED_BY: dict[str, dict[str, dict[str, int | None]]] = {
    "DATABASE_URL": {
        "ITEM_PIPELINES": {"moviecrawler.pipelines.postgres.PostgresPipeline": 310},
    },
    "MONGO_URL": {
        "ITEM_PIPELINES": {"moviecrawler.pipelines.mongo.MongoPipeline": 320},
    },
    "S3_BUCKET": {
        "ITEM_PIPELINES": {
            "moviecrawler.pipelines.s3.S3Pipeline": 330,
            "moviecrawler.pipelines.archive.ArchivePipeline": 340,
        },
        # Before HttpErrorMiddleware, so that it sees a 404 too.
        "SPIDER_MIDDLEWARES": {"moviecrawler.middlewares.archive.ArchiveMiddleware": 10},
    },
    "PROXY_ORDER": {
        # Learns how an attempt ended before a redirect is followed, and sees decompressed bodies.
        "DOWNLOADER_MIDDLEWARES": {"moviecrawler.proxies.middleware.ProxyMiddleware": 620},
    },
    "ALERT_WEBHOOK": {"EXTENSIONS": {_ALERTS: 10}},
    "ALERT_URLS": {"EXTENSIONS": {_ALERTS: 10}},
    "METRICS_FOLDER": {"EXTENSIONS": {_METRICS: 20}},
    "MOVIECRAWLER_FIGURES": {"EXTENSIONS": {_METRICS: 20}},  # a variable that a node sets
}
"""The components that are enabled when a setting has a value.

Each is imported when it is listed, with the client of its service: boto3, pymongo, psycopg2,
Prometheus'. A crawl that stores CSV files does without them, and starts in half the time.
"""


def set_up(settings: BaseSettings) -> None:
    """Give the crawl of a movie spider what is ours, in the place of Scrapy's defaults.

    What anyone has set stays, except what keeps the queue: a plain setting as it is, and a
    component that is listed or switched off by None, beside which ours are listed. An add-on can
    change the result.
    """
    _choose_pace(settings)
    for name, value in _SETTINGS.items():
        _set_default(settings, name, value)
    for name, components in _COMPONENTS.items():
        list_components(settings, name, components)
    for setting, enabled in _ENABLED_BY.items():
        if settings.get(setting, os.environ.get(setting)):
            for name, components in enabled.items():
                list_components(settings, name, components)
    if settings["COOKIES_ENABLED"] in {False, "0", "False", "false"}:
        # Scrapy imports it even then, with a web client, which takes 0.1 s.
        base = dict(default_settings.DOWNLOADER_MIDDLEWARES_BASE)
        del base[_COOKIES]
        _set_default(settings, "DOWNLOADER_MIDDLEWARES_BASE", base)
    _choose_scheduler(settings)


def leave_out_stores(settings: BaseSettings) -> None:
    """Leave out of ours what stores items and what watches a crawl, after `set_up`.

    A contract of `scrapy check` is answered by its page.
    """
    list_components(settings, "DOWNLOADER_MIDDLEWARES", {_OF_CONTRACTS: 1})
    for name in ("ITEM_PIPELINES", "SPIDER_MIDDLEWARES", "EXTENSIONS"):
        lists = [_COMPONENTS, *_ENABLED_BY.values()]
        ours = {path for components in lists for path in components.get(name, ())}
        leave_out(settings, name, ours - {_VALIDATE})


def leave_out(settings: BaseSettings, name: str, paths: Collection[str]) -> None:
    """Leave components out of those that the setting `name` lists, after `set_up`."""
    changed = {}
    for component, order in settings.getdict(name).items():
        changed[component] = None if _path_of(component) in paths else order
    settings.set(name, changed, priority=settings.getpriority(name) or 0)


def _set_default(settings: BaseSettings, name: str, value: object) -> None:
    """Set a plain setting if it has Scrapy's default."""
    if not settings.getpriority(name):
        settings.set(name, value, priority="addon")


def list_components(settings: BaseSettings, name: str, components: dict[str, int | None]) -> None:
    """List components in the setting `name`, of which none changes that is listed there."""
    listed = settings.getdict(name)
    paths = {_path_of(component) for component in listed}
    added = {path: order for path, order in components.items() if path not in paths}
    if added:
        _replace(settings, name, {**listed, **added})


def _replace(settings: BaseSettings, name: str, value: object) -> None:
    """Replace the value of a setting, whoever has set it.

    When a crawl begins, Scrapy sets once more what its user has set, with the priority that it had.
    """
    priority = settings.getpriority(name)
    settings.set(name, value, priority=priority + 1 if priority else "addon")


def _path_of(component: str | type[object]) -> str:
    """Return the import path of a component, which may be listed as the class itself."""
    if isinstance(component, str):
        return component
    return f"{component.__module__}.{component.__qualname__}"


def _choose_pace(settings: BaseSettings) -> None:
    """Leave it to the gate of a site when a request is sent: nothing waits in the downloader.

    A DOWNLOAD_DELAY that the operator has set is the gate's LEAST_GAP, and a
    CONCURRENT_REQUESTS_PER_DOMAIN holds for all requests, as they are those of one site.
    """
    try:
        delay = settings.getfloat("DOWNLOAD_DELAY")
        concurrency = settings.getint("CONCURRENT_REQUESTS") or sys.maxsize  # 0 is no limit
        of_a_host = settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
    except (TypeError, ValueError):
        return  # the check of all settings says so
    least_gap = delay if _is_operators(settings, "DOWNLOAD_DELAY") else None
    if _is_operators(settings, "CONCURRENT_REQUESTS_PER_DOMAIN"):
        concurrency = min(concurrency, of_a_host)
    _replace(settings, "LEAST_GAP", least_gap)
    _replace(settings, "DOWNLOAD_DELAY", 0)
    _replace(settings, "CONCURRENT_REQUESTS", concurrency)
    _replace(settings, "CONCURRENT_REQUESTS_PER_DOMAIN", concurrency)


def _is_operators(settings: BaseSettings, name: str) -> bool:
    """Return whether the operator has set a pace, and not this project for other spiders."""
    is_projects_own = settings[name] == PACE_OF_OTHER_SPIDERS[name]
    is_in_settings_py = (settings.getpriority(name) or 0) <= SETTINGS_PRIORITIES["project"]
    return not (is_projects_own and is_in_settings_py)


def _choose_scheduler(settings: BaseSettings) -> None:
    """Have the frontier keep the queue, whatever is set for other spiders."""
    is_shared = bool(settings.get("REDIS_URL"))
    ours = {
        "SCHEDULER": REDIS_SCHEDULER if is_shared else SCHEDULER,
        # The queue knows what was requested.
        "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
        "JOBDIR": None,
    }
    for name, value in ours.items():
        if settings.getpriority(name) and settings[name] not in {value, ""}:
            logger.warning(
                "%s has no effect on this spider: its queue is kept anyway, in %s",
                name,
                "Redis" if is_shared else "DATA_DIR",
            )
        _replace(settings, name, value)
