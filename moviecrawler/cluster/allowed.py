"""Which settings a job may make, and what may stand in each. Pure.

Scrapy loads classes, opens paths and asks URLs by dozens of its settings, and a project may have any number of its own. So
what may be set is named here; whatever is not belongs to those who deploy a project or run its nodes. Nothing here names a class, a path or a URL,
and nothing lifts what protects the sites (robots.txt, budgets, user agent) or the machine (sizes, certificates).
"""

from __future__ import annotations

import re

import msgspec

from moviecrawler.errors import ConfigurationError

_WHOLE = {
    # Scrapy's
    "CONCURRENT_REQUESTS": (1, 1000),
    "CONCURRENT_REQUESTS_PER_DOMAIN": (1, 1000),
    "CLOSESPIDER_ERRORCOUNT": (0, 10**9),
    "CLOSESPIDER_ITEMCOUNT": (0, 10**9),
    "CLOSESPIDER_PAGECOUNT": (0, 10**9),
    "CLOSESPIDER_PAGECOUNT_NO_ITEM": (0, 10**9),
    "DEPTH_LIMIT": (0, 10**9),
    "MEMUSAGE_LIMIT_MB": (1, 1_000_000),
    "MEMUSAGE_WARNING_MB": (0, 1_000_000),
    "REDIRECT_MAX_TIMES": (0, 20),
    "RETRY_TIMES": (0, 20),
    # Ours
    "BLOCK_AFTER_UNEXPECTED": (1, 10),
    "CATALOGUE_BATCH": (1, 100_000),
    "DATASET_PART": (65_536, 64 * 1024 * 1024),
    "FRONTIER_BATCH": (1, 1000),
    "FRONTIER_CAPACITY": (1, 250_000_000),
    "FRONTIER_DELIVERIES": (2, 99),
    "FRONTIER_MAX_PAGES": (0, 10**9),
    "PROXY_ATTEMPTS": (1, 20),
    "PROXY_RUN_DATACENTER": (1, 10**6),
    "PROXY_RUN_RESIDENTIAL": (1, 10**6),
    "STORE_BATCH_BYTES": (1, 10**9),
    "STORE_BATCH_ITEMS": (1, 10**9),
    "STORE_BUFFER_BYTES": (1, 10**9),
    "STORE_BUFFER_ITEMS": (1, 10**9),
    "TOR_CIRCUITS": (1, 64),
}
"""Whole numbers: the least and the most. The crawl itself checks its own more closely."""
_NUMBERS = {
    # Scrapy's
    "AUTOTHROTTLE_MAX_DELAY": (0, 86_400),
    "AUTOTHROTTLE_START_DELAY": (0, 86_400),
    "AUTOTHROTTLE_TARGET_CONCURRENCY": (0.01, 1000),
    "CLOSESPIDER_TIMEOUT": (0, 10**9),
    "CLOSESPIDER_TIMEOUT_NO_ITEM": (0, 10**9),
    "DNS_TIMEOUT": (0.1, 3600),
    "DOWNLOAD_DELAY": (0, 86_400),
    "DOWNLOAD_TIMEOUT": (0.1, 3600),
    "LOGSTATS_INTERVAL": (0, 86_400),
    # Ours
    "ALARM_BLOCKS": (0, 1),
    "ALARM_EVERY": (0.05, 3600),
    "ALARM_EXTRACTION_ERRORS": (0, 1),
    "ALARM_FRESHNESS": (0, 1),
    "ALARM_REMINDER": (1, 10**7),
    "ALARM_STALLED": (0.1, 10**6),
    "CATALOGUE_BOOST_SHARE": (0, 1),
    "CATALOGUE_IDLE": (0, 10**9),
    "CATALOGUE_LEASE": (1, 10**9),
    "CATALOGUE_STALE_SHARE": (0, 1),
    "FRESHNESS_MARGIN": (0, 10**9),
    "FRONTIER_ERROR": (1e-6, 0.5),
    "FRONTIER_IDLE": (0, 10**9),
    "FRONTIER_LEASE": (1, 86_400),
    "FRONTIER_MAX_SECONDS": (0, 10**9),
    "FRONTIER_PATIENCE": (0, 10**9),
    "FRONTIER_WINDOW": (1, 10**9),
    "METRICS_EVERY": (0.1, 86_400),
    "PROXY_QUARANTINE": (1, 7 * 86_400),
    "RETRY_BACKOFF": (0, 86_400),
    "RETRY_BACKOFF_MAX": (0, 86_400),
    "STORE_BATCH_SECONDS": (0.001, 10**6),
    "STORE_CLOSE_SECONDS": (0.001, 86_400),
    "TOR_TIMEOUT": (0.1, 3600),
}
"""Decimal numbers: the least and the most."""
_SWITCHES = {
    *("AUTOTHROTTLE_DEBUG", "AUTOTHROTTLE_ENABLED", "RANDOMIZE_DOWNLOAD_DELAY", "RETRY_ENABLED"),
    *("CATALOGUE_LISTS", "COVERAGE_STOP", "CSV_ENABLED"),
}
_CHOICES = {
    "FRONTIER_DUPEFILTER": ("set", "bloom"),
    "LOG_LEVEL": ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "PROGRESS": ("auto", "lines", "json", "off"),
    "STORE_UNREACHABLE": ("fail", "wait"),
}
_NAMES = {
    "FRONTIER_RUN": (re.compile(r"[\w.-]{1,64}", re.ASCII), "up to 64 letters, digits, dots, hyphens and underscores"),
    "WORKER_POOL": (re.compile(r"[\w.-]{1,64}", re.ASCII), "the name of a pool"),
    "PROXY_ORDER": (
        re.compile(r"[\w.-]+(\s*,\s*[\w.-]+)*|\{[\w\s.,:\"-]*\}", re.ASCII),
        "names of pools, such as direct,datacenter",
    ),
}
"""Names of what the operator has set up: what they look like, in a regular expression and in words."""
_WHOLE_FORM = re.compile(r"[0-9]{1,18}")
_NUMBER_FORM = re.compile(r"[0-9]{1,18}(\.[0-9]{1,18})?|[0-9]{1,3}e-?[0-9]{1,2}")
_SWITCH_FORM = re.compile(r"0|1|true|false", re.IGNORECASE)

SETTINGS = frozenset({*_WHOLE, *_NUMBERS, *_SWITCHES, *_CHOICES, *_NAMES, "DOWNLOAD_SLOTS"})
"""All that a job may make."""


class _Slot(msgspec.Struct, forbid_unknown_fields=True):
    """How a host is asked, in DOWNLOAD_SLOTS."""

    delay: float | None = None
    concurrency: int | None = None
    randomize_delay: bool | None = None


def check_setting(name: str, value: str) -> None:
    """Raise ConfigurationError for a setting that a job may not make, or not to that value."""
    if name not in SETTINGS:
        raise ConfigurationError(
            f"setting {name[:80]} can't be made by a job; make it in the project's settings.py and deploy that, or in the nodes' "
            "environment. scrapyd/README.md lists those that a job can make"
        )
    expected = _expected(name, value)
    if expected is not None:
        raise ConfigurationError(f"setting {name} is {value[:80]!r}; give {expected}")


def _expected(name: str, value: str) -> str | None:
    """Return what should stand in a setting; None when it does."""
    if name in _WHOLE:
        least, most = _WHOLE[name]
        right = bool(_WHOLE_FORM.fullmatch(value)) and least <= int(value) <= most
        return None if right else f"a whole number from {least:,} to {most:,}"
    if name in _NUMBERS:
        low, high = _NUMBERS[name]
        right = bool(_NUMBER_FORM.fullmatch(value)) and low <= float(value) <= high
        return None if right else f"a number from {low:g} to {high:,}"
    if name in _SWITCHES:
        return None if _SWITCH_FORM.fullmatch(value) else "0 or 1"
    if name in _CHOICES:
        return None if value in _CHOICES[name] else f"one of {', '.join(_CHOICES[name])}"
    if name in _NAMES:
        form, words = _NAMES[name]
        return None if form.fullmatch(value) else words
    try:
        msgspec.json.decode(value, type=dict[str, _Slot])
    except (msgspec.DecodeError, UnicodeError):
        return 'hosts as JSON, such as {"www.example.com": {"delay": 2, "concurrency": 1}}'
    return None
