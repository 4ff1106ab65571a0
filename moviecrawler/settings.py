"""The project's settings for Scrapy: the declared ones, and Scrapy's own that differ here.

`options.py` declares the former. Each of the latter has the reason why this project differs.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from urllib.parse import urlsplit

from scrapy.settings import default_settings

from moviecrawler import sites
from moviecrawler.options import project_settings

# Each is also read from an environment variable of the same name.
globals().update(project_settings(os.environ))

# --- The project ----------------------------------------------------------------------------------
BOT_NAME = "moviecrawler"
SPIDER_MODULES = ["moviecrawler.spiders"]
COMMANDS_MODULE = "moviecrawler.commands"

# --- Who asks -------------------------------------------------------------------------------------
# Says what we are. A browser's name would be a lie, and gets challenges from IMDb all the same.
USER_AGENT = f"{BOT_NAME}/{version(BOT_NAME)}"
DEFAULT_REQUEST_HEADERS = {
    "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8",
    # Without it IMDb answers in the language of our address.
    "Accept-Language": "en-US,en;q=0.8",
}
# The sites' cookies say who is asking from page to page; no page that we read needs them.
COOKIES_ENABLED = False
# Which page led to which is our own business.
REFERRER_POLICY = "no-referrer"

# --- Politeness -----------------------------------------------------------------------------------
ROBOTSTXT_OBEY = True
# Seconds between two requests to one host, ± 50 %; read by the downloader. SiteThrottle never goes
# below it.
DOWNLOAD_DELAY = 2.0
CONCURRENT_REQUESTS_PER_DOMAIN = 2
# What sites.py says of hosts. The last two are this machine's own: a replica or a proxy of the
# operator's, which nobody else shares. Read by the downloader and SiteThrottle.
DOWNLOAD_SLOTS = {
    **{
        urlsplit(host.live).hostname: {"delay": host.delay, "concurrency": 1}
        for profile in sites.SITES.values()
        for host in profile.hosts
        if host.delay is not None
    },
    "127.0.0.1": {"delay": 0.0, "concurrency": 16},
    "localhost": {"delay": 0.0, "concurrency": 16},
}
# A site that answers slower is asked more slowly. SiteThrottle replaces Scrapy's extension, which
# would raise the hosts above to DOWNLOAD_DELAY.
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_START_DELAY = DOWNLOAD_DELAY
AUTOTHROTTLE_TARGET_CONCURRENCY = 1.0
# Tries after the first; read by BackoffRetryMiddleware.
RETRY_TIMES = 3
# Only what passes by itself. 429 is not among them: SiteBlockMiddleware stops the site.
RETRY_HTTP_CODES = [408, 500, 502, 503, 504, 522, 524]

# --- Safety ---------------------------------------------------------------------------------------
# On by default in Scrapy 2.19: runs Python that is sent to it.
REMOTE_CONTROL_ENABLED = False
# Nor is it imported: a web server comes with it.
EXTENSIONS_BASE = {
    path: order
    for path, order in default_settings.EXTENSIONS_BASE.items()
    if path != "scrapy.extensions.remote_control.RemoteControl"
}
TELNETCONSOLE_ENABLED = False
DOWNLOAD_VERIFY_CERTIFICATES = True
# Pages come by http and https alone, and no request can name a file of this machine.
DOWNLOAD_HANDLERS = {"data": None, "file": None, "ftp": None, "s3": None}
# Seconds; the slowest page seen took 20.
DOWNLOAD_TIMEOUT = 60
# Bytes after decompression, of a sitemap, which may have 50 MB; of a page, PAGE_MAX_BYTES in
# `middlewares/compression.py`. Read by the downloader and GzipMiddleware.
DOWNLOAD_MAXSIZE = 64 * 1024 * 1024
REDIRECT_MAX_TIMES = 5
# Old answers would pass for fresh ones.
HTTPCACHE_ENABLED = False

# --- Speed ----------------------------------------------------------------------------------------
# Decoding a whole page to look for a tag that these sites don't use costs 2 ms.
METAREFRESH_ENABLED = False
# Scrapy starts this many tasks for every response, to hand what its callback yields to the
# pipelines. More would gain nothing: an item waits only while a store's buffer is full, and then
# the others would wait as well.
CONCURRENT_ITEMS = 1
STATS_CLASS = "moviecrawler.extensions.stats.PlainStatsCollector"
# Reads and parses the source of every callback, for a mistake that mypy finds.
WARN_ON_GENERATOR_RETURN_VALUE = False
# In the order asked for, so that a chart is fetched from its top.
SCHEDULER_MEMORY_QUEUE = "scrapy.squeues.FifoMemoryQueue"
SCHEDULER_DISK_QUEUE = "scrapy.squeues.MarshalFifoDiskQueue"

# --- Components -----------------------------------------------------------------------------------
# Stores, proxies, metrics and the shared crawl's components are added by this add-on where their
# settings are there.
ADDONS = {"moviecrawler.addon.ConfiguredParts": 0}
# Nor are cookies' middleware and its libraries imported where COOKIES_ENABLED is off; the add-on
# lists it otherwise.
DOWNLOADER_MIDDLEWARES_BASE = {
    path: order
    for path, order in default_settings.DOWNLOADER_MIDDLEWARES_BASE.items()
    if path != "scrapy.downloadermiddlewares.cookies.CookiesMiddleware"
}
DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    "moviecrawler.middlewares.offsite.StrictOffsiteMiddleware": 50,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "moviecrawler.middlewares.robots.CautiousRobotsTxtMiddleware": 100,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "moviecrawler.middlewares.retry.BackoffRetryMiddleware": 550,
    "moviecrawler.frontier.budget_middleware.BudgetMiddleware": 555,
    # Sees decompressed bodies, and before a retry can be made of a refusal.
    "moviecrawler.middlewares.blocks.SiteBlockMiddleware": 560,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
    "moviecrawler.middlewares.compression.GzipMiddleware": 640,
}
ITEM_PIPELINES = {
    "moviecrawler.pipelines.validate.ValidatePipeline": 100,
    "moviecrawler.pipelines.sqlite.SqlitePipeline": 300,
}
SPIDER_MIDDLEWARES = {
    # It looks for copies of a page's meta in all that the page yields; the spiders make none.
    "scrapy.spidermiddlewares.metacopy.MetaCopyDetectionMiddleware": None,
}
EXTENSIONS = {
    "scrapy.extensions.throttle.AutoThrottle": None,
    "scrapy.extensions.logstats.LogStats": None,
    "moviecrawler.extensions.clock.ClockCheck": 0,
    "moviecrawler.extensions.completion.ItemCompletion": 0,
    "moviecrawler.extensions.outcomes.TitleOutcomes": 0,
    "moviecrawler.extensions.throttle.SiteThrottle": 0,
    "moviecrawler.extensions.coverage.CoverageWatch": 0,
    "moviecrawler.extensions.alerts.Alerts": 10,
    "moviecrawler.extensions.metrics.Metrics": 20,
    "moviecrawler.extensions.progress.Progress": 30,
    "moviecrawler.extensions.summary.Summary": 40,
}

# --- What is watched ------------------------------------------------------------------------------
# Whether alerts are sent, by the actions whose settings have a value. All of Spidermon's settings
# may be in the environment, and suites of a user's own are run by its own extension.
SPIDERMON_ENABLED = True
SPIDERMON_SLACK_SENDER_NAME = BOT_NAME
SPIDERMON_SENTRY_PROJECT_NAME = BOT_NAME
SPIDERMON_SENTRY_ENVIRONMENT_TYPE = "production"
globals().update(
    {name: value for name, value in os.environ.items() if name.startswith("SPIDERMON_") and value}
)

# --- What is shown --------------------------------------------------------------------------------
LOG_LEVEL = os.environ.get("LOG_LEVEL") or "INFO"
# `scrapy version -v` says them; to look them up takes a twentieth of a small crawl.
LOG_VERSIONS: list[str] = []
LOG_FORMATTER = "moviecrawler.extensions.logformatter.TerseLogFormatter"
LOGSTATS_INTERVAL = 15.0
