"""Every setting of the crawler: its value, its unit, why it is not Scrapy's default, and who reads it.

Those under "Where" and "Who" are also read from an environment variable of the same name.
"""

from __future__ import annotations

import os
from importlib.metadata import version


def _env(name: str, default: str) -> str:
    return os.environ.get(name) or default


# --- The project -----------------------------------------------------------------------------------------------------
BOT_NAME = "moviecrawler"
SPIDER_MODULES = ["moviecrawler.spiders"]
COMMANDS_MODULE = "moviecrawler.commands"

# --- Where: the sites and the stores ---------------------------------------------------------------------------------
# Scheme and host of each site; read by its spider. `scrapy replica` prints the values that point at the replica.
IMDB_URL = _env("IMDB_URL", "https://www.imdb.com")
IMDB_DATASETS_URL = _env("IMDB_DATASETS_URL", "https://datasets.imdbws.com")
METACRITIC_URL = _env("METACRITIC_URL", "https://www.metacritic.com")
METACRITIC_API_URL = _env("METACRITIC_API_URL", "https://backend.metacritic.com")
ROTTENTOMATOES_URL = _env("ROTTENTOMATOES_URL", "https://www.rottentomatoes.com")
# Folder of everything that a crawl leaves behind; read by the stores, the datasets and `scrapy scoreboard`.
DATA_DIR = _env("DATA_DIR", "data")
# Whether movies go to CSV files in DATA_DIR; read by CsvPipeline.
CSV_ENABLED = _env("CSV_ENABLED", "1")
# Where else movies go, each store when its setting is there; read by the stores. With a password in it, set it in the
# environment only: a command line can be seen by everybody on the machine.
DATABASE_URL = _env("DATABASE_URL", "")
MONGO_URL = _env("MONGO_URL", "")
S3_BUCKET = _env("S3_BUCKET", "")
S3_ENDPOINT_URL = _env("S3_ENDPOINT_URL", "")
S3_PREFIX = _env("S3_PREFIX", "")
# Seconds by which a scrape has to be newer to replace a stored one, which until then is as good; read by the stores.
FRESHNESS_MARGIN = _env("FRESHNESS_MARGIN", "3600")

# --- Who: what the sites are told about us ---------------------------------------------------------------------------
# An address or a URL where a site's people can reach the operator; read by the spiders, which add it to USER_AGENT.
CONTACT = _env("CONTACT", "")
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

# --- Politeness ------------------------------------------------------------------------------------------------------
ROBOTSTXT_OBEY = True
# Seconds between two requests to one host, ± 50 %; read by the downloader. SiteThrottle never goes below it.
DOWNLOAD_DELAY = 2.0
CONCURRENT_REQUESTS_PER_DOMAIN = 2
# Metacritic's budget is 600 pages a day, but as an average: a page every 5 s while a crawl lasts. The last two are this
# machine's own: a replica or a proxy of the operator's, which nobody else shares. Read by the downloader and SiteThrottle.
DOWNLOAD_SLOTS = {
    "www.metacritic.com": {"delay": 5.0, "concurrency": 1},
    "backend.metacritic.com": {"delay": 5.0, "concurrency": 1},
    "127.0.0.1": {"delay": 0.0, "concurrency": 16},
    "localhost": {"delay": 0.0, "concurrency": 16},
}
# A site that answers slower is asked more slowly. SiteThrottle replaces Scrapy's extension, which would raise the
# hosts above to DOWNLOAD_DELAY.
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_START_DELAY = DOWNLOAD_DELAY
AUTOTHROTTLE_TARGET_CONCURRENCY = 1.0
# Tries after the first; read by BackoffRetryMiddleware.
RETRY_TIMES = 3
# Only what passes by itself. 429 is not among them: SiteBlockMiddleware stops the site.
RETRY_HTTP_CODES = [408, 500, 502, 503, 504, 522, 524]
# Seconds before the first retry; doubled each time up to the second figure, and drawn at random below that.
RETRY_BACKOFF = 2.0
RETRY_BACKOFF_MAX = 60.0
# Unexpected answers in a row, such as pages of under 2 KB, that stop a site; read by SiteBlockMiddleware.
BLOCK_AFTER_UNEXPECTED = 3

# --- Stores ----------------------------------------------------------------------------------------------------------
# When a store can't be reached at the start: `fail` says so and crawls nothing; `wait` begins, holds the crawl back when the
# store's buffer is full, and keeps what is left at the end in files for the next run. Read by BatchingPipeline.
STORE_UNREACHABLE = _env("STORE_UNREACHABLE", "fail")
# How much each store buffers and when it writes; None for what suits the store. Read by `Limits`, which says what each is.
STORE_BATCH_ITEMS = None
STORE_BATCH_BYTES = None
STORE_BATCH_SECONDS = None
STORE_BUFFER_ITEMS = None
STORE_BUFFER_BYTES = None
STORE_CLOSE_SECONDS = None

# --- Safety ----------------------------------------------------------------------------------------------------------
# On by default in Scrapy 2.19: runs Python that is sent to it.
REMOTE_CONTROL_ENABLED = False
TELNETCONSOLE_ENABLED = False
DOWNLOAD_VERIFY_CERTIFICATES = True
# Seconds; the slowest page seen took 20.
DOWNLOAD_TIMEOUT = 60
# Bytes after decompression. The largest page seen has 3.4 MB, a part of a dataset 16 MB (DATASET_PART).
DOWNLOAD_MAXSIZE = 64 * 1024 * 1024
# Bytes of one ranged request for a dataset, so that 228 MB never stand in memory; read by ImdbSpider.
DATASET_PART = 16 * 1024 * 1024
REDIRECT_MAX_TIMES = 5
# Old answers would pass for fresh ones.
HTTPCACHE_ENABLED = False

# --- Speed -----------------------------------------------------------------------------------------------------------
# Decoding a whole page to look for a tag that these sites don't use costs 2 ms.
METAREFRESH_ENABLED = False
# Scrapy starts this many tasks for every response, to hand what its callback yields to the pipelines: a page yields one
# item, and a store takes it without a wait.
CONCURRENT_ITEMS = 4
# Reads and parses the source of every callback, for a mistake that mypy finds.
WARN_ON_GENERATOR_RETURN_VALUE = False
# In the order asked for, so that a chart is fetched from its top.
SCHEDULER_MEMORY_QUEUE = "scrapy.squeues.FifoMemoryQueue"
SCHEDULER_DISK_QUEUE = "scrapy.squeues.MarshalFifoDiskQueue"

# --- Components ------------------------------------------------------------------------------------------------------
DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "moviecrawler.middlewares.robots.CautiousRobotsTxtMiddleware": 100,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "moviecrawler.middlewares.retry.BackoffRetryMiddleware": 550,
    # Sees decompressed bodies, and before a retry can be made of a refusal.
    "moviecrawler.middlewares.blocks.SiteBlockMiddleware": 560,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
    "moviecrawler.middlewares.compression.FastCompressionMiddleware": 590,
}
ITEM_PIPELINES = {
    "moviecrawler.pipelines.validate.ValidatePipeline": 100,
    "moviecrawler.pipelines.csv.CsvPipeline": 300,
    "moviecrawler.pipelines.postgres.PostgresPipeline": 310,
    "moviecrawler.pipelines.mongo.MongoPipeline": 320,
    "moviecrawler.pipelines.s3.S3Pipeline": 330,
    "moviecrawler.pipelines.archive.ArchivePipeline": 340,
}
SPIDER_MIDDLEWARES = {
    # Before HttpErrorMiddleware, so that it sees a 404 too.
    "moviecrawler.middlewares.archive.ArchiveMiddleware": 10,
}
EXTENSIONS = {
    "scrapy.extensions.throttle.AutoThrottle": None,
    "scrapy.extensions.logstats.LogStats": None,
    "moviecrawler.extensions.outcomes.TitleOutcomes": 0,
    "moviecrawler.extensions.throttle.SiteThrottle": 0,
    "moviecrawler.extensions.progress.Progress": 0,
}

# --- What is shown ---------------------------------------------------------------------------------------------------
LOG_LEVEL = _env("LOG_LEVEL", "INFO")
LOG_FORMATTER = "moviecrawler.logformatter.TerseLogFormatter"
# `auto`: a bar on a terminal, a line every LOGSTATS_INTERVAL seconds otherwise. `json`: a line of figures to standard
# output whenever they change, for a program that draws its own. `off`. Read by Progress.
PROGRESS = _env("PROGRESS", "auto")
LOGSTATS_INTERVAL = 15.0
