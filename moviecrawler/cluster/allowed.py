"""Which settings a job may make. Pure.

This is an allow-list: dozens of Scrapy's settings name classes to load, paths to open or URLs to ask, and projects add more. None of
these names a class, a path or a URL, or lifts what protects the sites (robots.txt, budgets, user agent) or the machine (sizes,
certificates). All others are for those who deploy a project or run its nodes. A crawl checks the values at its start.
"""

from __future__ import annotations

from moviecrawler import options

SCRAPY_JOB_SETTINGS = (
    "AUTOTHROTTLE_DEBUG",
    "AUTOTHROTTLE_ENABLED",
    "AUTOTHROTTLE_MAX_DELAY",
    "AUTOTHROTTLE_START_DELAY",
    "AUTOTHROTTLE_TARGET_CONCURRENCY",
    "CLOSESPIDER_ERRORCOUNT",
    "CLOSESPIDER_ITEMCOUNT",
    "CLOSESPIDER_PAGECOUNT",
    "CLOSESPIDER_PAGECOUNT_NO_ITEM",
    "CLOSESPIDER_TIMEOUT",
    "CLOSESPIDER_TIMEOUT_NO_ITEM",
    "CONCURRENT_REQUESTS",
    "CONCURRENT_REQUESTS_PER_DOMAIN",
    "DEPTH_LIMIT",
    "DNS_TIMEOUT",
    "DOWNLOAD_DELAY",
    "DOWNLOAD_SLOTS",
    "DOWNLOAD_TIMEOUT",
    "LOG_LEVEL",
    "LOGSTATS_INTERVAL",
    "MEMUSAGE_LIMIT_MB",
    "MEMUSAGE_WARNING_MB",
    "RANDOMIZE_DOWNLOAD_DELAY",
    "REDIRECT_MAX_TIMES",
    "RETRY_ENABLED",
    "RETRY_TIMES",
)
"""Scrapy's own settings that a job may make."""
JOB_SETTINGS = frozenset({*SCRAPY_JOB_SETTINGS, *options.JOB_SETTINGS})
"""The names of all settings that a job may make."""
