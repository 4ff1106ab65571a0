"""The project's settings for Scrapy: the declared ones, and Scrapy's own that differ here.

`options.py` declares the former. Each of the latter has the reason why this project differs.
"""

from __future__ import annotations

import os
from importlib.metadata import version

from moviecrawler import options  # names in capitals would be settings

# Each is also read from an environment variable of the same name.
globals().update(options.project_settings(os.environ))

# --- The project ----------------------------------------------------------------------------------
BOT_NAME = "moviecrawler"
SPIDER_MODULES = options.spider_modules()
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
# The rest is for spiders of one's own: the gate of a site (`politeness/`) knows what holds there.
# Seconds between two requests to one host, ± 50 %.
DOWNLOAD_DELAY = options.PACE_OF_OTHER_SPIDERS["DOWNLOAD_DELAY"]
CONCURRENT_REQUESTS_PER_DOMAIN = options.PACE_OF_OTHER_SPIDERS["CONCURRENT_REQUESTS_PER_DOMAIN"]
# A host that answers slower is asked more slowly.
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_START_DELAY = DOWNLOAD_DELAY
AUTOTHROTTLE_TARGET_CONCURRENCY = 1.0

# --- Safety ---------------------------------------------------------------------------------------
# On by default in Scrapy 2.19: runs Python that is sent to it.
REMOTE_CONTROL_ENABLED = False
TELNETCONSOLE_ENABLED = False
DOWNLOAD_VERIFY_CERTIFICATES = True
# Seconds; the slowest page seen took 20.
DOWNLOAD_TIMEOUT = 60
# Bytes after decompression, of a sitemap, which may have 50 MB; of a page, PAGE_MAX_BYTES in
# `middlewares/compression.py`. Read by the downloader and GzipMiddleware.
DOWNLOAD_MAXSIZE = 64 * 1024 * 1024

# --- Components -----------------------------------------------------------------------------------
# Those of a crawl of the sites are set up by `spiders/components.py`. This checks their settings.
ADDONS = {"moviecrawler.addon.ConfiguredParts": 0}

# --- What is shown --------------------------------------------------------------------------------
LOG_LEVEL = os.environ.get("LOG_LEVEL") or "INFO"
