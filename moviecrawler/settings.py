"""Every setting of the crawler: its value, its unit, why it is not Scrapy's default, and who reads it.

Those under "Where" and "Who" are also read from an environment variable of the same name.
"""

from __future__ import annotations

import os
from importlib.metadata import version

from scrapy.settings import default_settings


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
# Which of IMDb's datasets are read, with their sizes at the end of 2025, compressed: basics (214 MB) and ratings (8) in any case; crew (80: directors and
# writers), principals (741: the cast), names (295: of all people), akas (464: other titles), episode (54). Read by ImdbSpider.
IMDB_DATASETS = _env("IMDB_DATASETS", "basics,ratings,crew,principals,names,akas,episode")
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

# --- From where ------------------------------------------------------------------------------------------------------
# Proxies: JSON, or the path of a file with it. As it holds passwords, name a file, or set it in the environment, and not on
# a command line, which everybody on the machine can see. Read by `read_pools`.
PROXY_POOLS = _env("PROXY_POOLS", "")
# Pools in the order in which they are used, for all sites or for some; empty: directly, and a block stops the site. And the
# one pool that this worker keeps to. Read by ProxyOptions, as all that follows.
PROXY_ORDER = _env("PROXY_ORDER", "")
WORKER_POOL = _env("WORKER_POOL", "")
# Attempts of a request, each through another proxy.
PROXY_ATTEMPTS = 3
# Seconds for which a proxy is not used for a site that refuses it; doubled each time up to a week.
PROXY_QUARANTINE = 1800.0
# Requests after which the next proxy of a pool has its turn: of all pools but residential ones, and of those.
PROXY_RUN_DATACENTER = 1
PROXY_RUN_RESIDENTIAL = 25
# What counts as a ban; a class that has scrapy-rotating-proxies' two hooks. Read by `load_policy`.
PROXY_BAN_POLICY = "moviecrawler.proxies.policy.SiteBanPolicy"

# --- Tor -------------------------------------------------------------------------------------------------------------
# Where Tor's HTTPTunnelPort listens, such as http://127.0.0.1:9080, and its ControlPort (127.0.0.1:9051) or ControlSocket (a
# path), which is needed for new identities only. The control port's password is TOR_CONTROL_PASSWORD in the environment. Read by
# TorOptions, like the rest.
TOR_TUNNEL = _env("TOR_TUNNEL", "")
TOR_CONTROL = _env("TOR_CONTROL", "")
# Circuits that a worker uses by turns, each of which is work for three volunteers' machines.
TOR_CIRCUITS = _env("TOR_CIRCUITS", "8")
# Seconds that Tor has at the start of a crawl until a site has been reached through it.
TOR_TIMEOUT = _env("TOR_TIMEOUT", "60")

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

# --- Catalogue -------------------------------------------------------------------------------------------------------
# How `lane=due` takes titles from the catalogue; read by CatalogueOptions, which says more of each.
# Titles that a worker claims at once, and for how many seconds: those of a worker that died are due again after that.
CATALOGUE_BATCH = _env("CATALOGUE_BATCH", "25")
CATALOGUE_LEASE = _env("CATALOGUE_LEASE", "7200")
# The most that boosted titles may take of a site's pages, and those fetched before, while others wait; 0 to 0.9.
CATALOGUE_BOOST_SHARE = _env("CATALOGUE_BOOST_SHARE", "0.5")
CATALOGUE_STALE_SHARE = _env("CATALOGUE_STALE_SHARE", "0.2")
# Seconds that a worker waits for titles to become due when none is, before it ends.
CATALOGUE_IDLE = _env("CATALOGUE_IDLE", "0")
# Whether `lane=due` reads the site's current lists once a day, and its sitemap once a month.
CATALOGUE_LISTS = _env("CATALOGUE_LISTS", "1")

# --- Sharing ---------------------------------------------------------------------------------------------------------
# The Redis that workers of one crawl share; empty: each process crawls for itself. With a password in it, set it in the
# environment only. Read by FrontierScheduler, like the rest by FrontierOptions, which says more of each.
REDIS_URL = _env("REDIS_URL", "")
# Further arguments of redis-py's clients, a JSON object; {"sentinels": [["host", 26379]], "service_name": "mymaster"} when
# Sentinel says where the server is. Read by `redis_parameters`.
REDIS_PARAMS = _env("REDIS_PARAMS", "{}")
# What queue, dupefilter and counters are kept under: crawls of one spider under two names run apart.
FRONTIER_RUN = _env("FRONTIER_RUN", "default")
# When somebody asked for this crawl, in seconds since 1970 by Redis' clock; 0 for when its process began. Whoever was asked before
# a round was over takes part in it, and whoever was asked later begins the next one. A node sets it for its jobs.
FRONTIER_ASKED_AT = _env("FRONTIER_ASKED_AT", "0")
# The name of this machine in `scrapy progress`; empty: its host name.
FRONTIER_NODE = _env("FRONTIER_NODE", "")
# Seconds for which a page that a link leads to is not asked for again, and what remembers it: `set`, exactly, or `bloom`, in less memory, for so
# many URLs and with that share of errors.
FRONTIER_WINDOW = _env("FRONTIER_WINDOW", "604800")
FRONTIER_DUPEFILTER = _env("FRONTIER_DUPEFILTER", "set")
FRONTIER_CAPACITY = _env("FRONTIER_CAPACITY", "10000000")
FRONTIER_ERROR = _env("FRONTIER_ERROR", "0.001")
# Seconds without a sign of life after which what a worker holds goes to others.
FRONTIER_LEASE = _env("FRONTIER_LEASE", "60")
# Times that a request is handed out to workers that die of it, before it is set aside.
FRONTIER_DELIVERIES = _env("FRONTIER_DELIVERIES", "5")
# Requests that a worker takes and acknowledges at once.
FRONTIER_BATCH = _env("FRONTIER_BATCH", "32")
# Seconds that a worker waits for a site that has refused us, for a new day's budget or for Redis, before it ends.
FRONTIER_PATIENCE = _env("FRONTIER_PATIENCE", "600")
# Seconds that it waits for more seeds when the crawl is done.
FRONTIER_IDLE = _env("FRONTIER_IDLE", "0")
# Requests, and seconds, after which it ends, to be started anew; 0 for no limit.
FRONTIER_MAX_PAGES = _env("FRONTIER_MAX_PAGES", "0")
FRONTIER_MAX_SECONDS = _env("FRONTIER_MAX_SECONDS", "0")
# What all workers together may ask of a host, as JSON: {"host": {"per_second": 0.5, "burst": 1, "per_day": 600}}. Those of the
# live sites stand in `LIVE_BUDGETS`, and are replaced host by host.
SITE_BUDGETS = _env("SITE_BUDGETS", "")

# --- Safety ----------------------------------------------------------------------------------------------------------
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
# Bytes after decompression: of a sitemap, which may have 50 MB, or a part of a dataset (DATASET_PART), and of a page, of
# which the largest seen has 3.4 MB. Read by the downloader and FastCompressionMiddleware.
DOWNLOAD_MAXSIZE = 64 * 1024 * 1024
PAGE_MAXSIZE = 16 * 1024 * 1024
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
# Stores, proxies, metrics and the shared crawl's components are added by this add-on where their settings are there.
ADDONS = {"moviecrawler.addon.ConfiguredParts": 0}
# Nor are cookies' middleware and its libraries imported where COOKIES_ENABLED is off; the add-on lists it otherwise.
DOWNLOADER_MIDDLEWARES_BASE = {
    path: order
    for path, order in default_settings.DOWNLOADER_MIDDLEWARES_BASE.items()
    if path != "scrapy.downloadermiddlewares.cookies.CookiesMiddleware"
}
DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
    "moviecrawler.middlewares.hangs.HungPagesMiddleware": 40,
    "moviecrawler.middlewares.offsite.StrictOffsiteMiddleware": 50,
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "moviecrawler.middlewares.robots.CautiousRobotsTxtMiddleware": 100,
    "scrapy.downloadermiddlewares.retry.RetryMiddleware": None,
    "moviecrawler.middlewares.retry.BackoffRetryMiddleware": 550,
    # Sees decompressed bodies, and before a retry can be made of a refusal.
    "moviecrawler.middlewares.blocks.SiteBlockMiddleware": 560,
    "scrapy.downloadermiddlewares.httpcompression.HttpCompressionMiddleware": None,
    "moviecrawler.middlewares.compression.FastCompressionMiddleware": 640,
}
ITEM_PIPELINES = {
    "moviecrawler.pipelines.validate.ValidatePipeline": 100,
    "moviecrawler.pipelines.coverage.CoveragePipeline": 200,
    "moviecrawler.pipelines.csv.CsvPipeline": 300,
}
SPIDER_MIDDLEWARES = {
    # The closest one to the spider.
    "moviecrawler.middlewares.hangs.ReadingMiddleware": 1000,
}
EXTENSIONS = {
    "scrapy.extensions.throttle.AutoThrottle": None,
    "scrapy.extensions.logstats.LogStats": None,
    "moviecrawler.extensions.clock.ClockWatch": 0,
    "moviecrawler.extensions.outcomes.TitleOutcomes": 0,
    "moviecrawler.extensions.throttle.SiteThrottle": 0,
    "moviecrawler.extensions.coverage.CoverageWatch": 0,
    # After what it looks at.
    "moviecrawler.extensions.alarms.Alarms": 10,
    "moviecrawler.extensions.progress.Progress": 30,
    "moviecrawler.extensions.summary.Summary": 40,
}

# --- Alarms ----------------------------------------------------------------------------------------------------------
# What is an alarm; read by AlarmOptions, which says more of each.
# Whether there are alarms. Suites of your own, which Spidermon's other settings name, run beside them.
SPIDERMON_ENABLED = True
# Seconds between two looks, and between two messages about an alarm that stands.
ALARM_EVERY = _env("ALARM_EVERY", "30")
ALARM_REMINDER = _env("ALARM_REMINDER", "21600")
# Seconds without an answer while something is due; shares of unreadable pages and of refusals; the share of titles that is to be
# within its due date.
ALARM_STALLED = _env("ALARM_STALLED", "900")
ALARM_EXTRACTION_ERRORS = _env("ALARM_EXTRACTION_ERRORS", "0.05")
ALARM_BLOCKS = _env("ALARM_BLOCKS", "0.05")
ALARM_FRESHNESS = _env("ALARM_FRESHNESS", "0.9")
# Whether a crawl ends after 30 title pages in a row that cannot be read, or that are silent of every score.
COVERAGE_STOP = _env("COVERAGE_STOP", "1")
# Who is notified, beside the log. URLs may hold passwords and tokens: set them in the environment only.
ALARM_WEBHOOK = _env("ALARM_WEBHOOK", "")
ALARM_SMTP_URL = _env("ALARM_SMTP_URL", "")
ALARM_MAIL_FROM = _env("ALARM_MAIL_FROM", "")
ALARM_MAIL_TO = _env("ALARM_MAIL_TO", "")
# The same by Spidermon's own actions, each of which is used when its recipients, URL or DSN are set; they need moviecrawler[alarms].
# Tokens, URL and DSN are secrets: set them in the environment only.
SPIDERMON_SLACK_RECIPIENTS = _env("SPIDERMON_SLACK_RECIPIENTS", "")
SPIDERMON_SLACK_SENDER_TOKEN = _env("SPIDERMON_SLACK_SENDER_TOKEN", "")
SPIDERMON_SLACK_SENDER_NAME = _env("SPIDERMON_SLACK_SENDER_NAME", "moviecrawler")
SPIDERMON_TELEGRAM_RECIPIENTS = _env("SPIDERMON_TELEGRAM_RECIPIENTS", "")
SPIDERMON_TELEGRAM_SENDER_TOKEN = _env("SPIDERMON_TELEGRAM_SENDER_TOKEN", "")
SPIDERMON_DISCORD_WEBHOOK_URL = _env("SPIDERMON_DISCORD_WEBHOOK_URL", "")
SPIDERMON_SENTRY_DSN = _env("SPIDERMON_SENTRY_DSN", "")
SPIDERMON_SENTRY_PROJECT_NAME = _env("SPIDERMON_SENTRY_PROJECT_NAME", "moviecrawler")
SPIDERMON_SENTRY_ENVIRONMENT_TYPE = _env("SPIDERMON_SENTRY_ENVIRONMENT_TYPE", "production")

# --- Metrics of a single crawl -----------------------------------------------------------------------------------------
# A folder that Prometheus' node exporter reads, and the URL of a push gateway, which may hold a password; seconds between two
# writes. Read by Metrics.
METRICS_FOLDER = _env("METRICS_FOLDER", "")
METRICS_PUSH_URL = _env("METRICS_PUSH_URL", "")
METRICS_EVERY = _env("METRICS_EVERY", "15")

# --- What is shown ---------------------------------------------------------------------------------------------------
LOG_LEVEL = _env("LOG_LEVEL", "INFO")
LOG_FORMATTER = "moviecrawler.logformatter.TerseLogFormatter"
# `auto`: a bar on a terminal, a line every LOGSTATS_INTERVAL seconds otherwise. `json`: a line of figures to standard
# output whenever they change, for a program that draws its own. `off`. Read by Progress.
PROGRESS = _env("PROGRESS", "auto")
LOGSTATS_INTERVAL = 15.0
