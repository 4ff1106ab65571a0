"""The project's settings for Scrapy: the declared ones, and Scrapy's own that differ here.

`options.py` declares the former. Each of the latter has the reason why this project differs.
"""

from __future__ import annotations

import os

from moviecrawler import options  # names in capitals would be settings

# Each is also read from an environment variable of the same name.
globals().update(options.project_settings(os.environ))

globals().update(options.SCRAPYS)

# --- The project ----------------------------------------------------------------------------------
BOT_NAME = "moviecrawler"
SPIDER_MODULES = options.spider_modules()
COMMANDS_MODULE = "moviecrawler.commands"
# It checks all settings. Those of a crawl of the sites are set up by `spiders/components.py`.
ADDONS = {"moviecrawler.addon.MovieCrawlerAddon": 0}

# --- Politeness of spiders of one's own -----------------------------------------------------------
# The gate of a site (`politeness/`) sets what applies there.
# Seconds between two requests to one host, ± 50 %.
globals().update(options.PACE_OF_OTHER_SPIDERS)
# A host that answers slower gets requests more slowly.
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_START_DELAY = options.PACE_OF_OTHER_SPIDERS["DOWNLOAD_DELAY"]
AUTOTHROTTLE_TARGET_CONCURRENCY = 1.0

# --- What is shown --------------------------------------------------------------------------------
LOG_LEVEL = os.environ.get("LOG_LEVEL") or "INFO"
