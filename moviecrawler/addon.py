"""The add-on that makes a Scrapy project one that crawls the sites, and what checks its settings.

Its line in ADDONS adds the spiders, the settings of `options.py`, and the check of their values.
"""

from __future__ import annotations

import codecs
import functools
import logging
import math
import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings, default_settings
from scrapy.utils.misc import load_object
from w3lib.url import file_uri_to_path

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.options import (
    SETTINGS,
    add_settings,
    check_settings,
    shown_value,
    spider_modules,
)
from moviecrawler.pipelines.base import check_stores
from moviecrawler.pipelines.files import check_data_dir
from moviecrawler.proxies.site_pools import SitePools
from moviecrawler.spiders.components import leave_out_stores, list_components

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

    from scrapy import Spider
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_SIMILARITY = 0.87
"""As `difflib` reckons it: DATABASE_URI is so near to DATABASE_URL, and no name of scrapy-redis' is
to one of ours."""

_LEVELS = ("CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG")
_LEVEL_SETTINGS = ("LOG_LEVEL", "DEFAULT_DROPITEM_LOG_LEVEL", "RETRY_GIVE_UP_LOG_LEVEL")
_OURS = frozenset(name for options in SETTINGS for name in options.defaults())
_SCRAPYS = frozenset(name for name in vars(default_settings) if name.isupper())
_EARLY_CLASSES = ("SPIDER_LOADER_CLASS", "TWISTED_REACTOR")
_CONTRACT = "moviecrawler.spiders.contracts.GoldenContract"
_REACTOR = default_settings.TWISTED_REACTOR


class MovieCrawlerAddon:
    """Scrapy add-on: `ADDONS = {"moviecrawler.addon.MovieCrawlerAddon": 0}`."""

    def __init__(self, spidercls: type[Spider], *, is_crawl: bool) -> None:
        self._spidercls = spidercls
        self._is_crawl = is_crawl

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Add our settings and spiders to those of a project.

        Raises ConfigurationError for a misspelt name, or a wrong value of a setting of Scrapy's.
        """
        check_names(settings)
        check_scrapys_own(settings)
        add_settings(settings)
        list_components(settings, "SPIDER_CONTRACTS", {_CONTRACT: 20})
        # The project's own come last, and so replace ours of the same name.
        modules = [*spider_modules(), *settings.getlist("SPIDER_MODULES")]
        priority = max(settings.getpriority("SPIDER_MODULES") or 0, SETTINGS_PRIORITIES["addon"])
        settings.set("SPIDER_MODULES", list(dict.fromkeys(modules)), priority=priority)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Look whether the spider's own `start` will run.

        `scrapy fetch`, `view` and `parse` put one of their own in its place, and `scrapy shell`
        makes the spider later.
        """
        begins_itself = not crawler.spidercls.start.__module__.startswith("scrapy.commands.")
        return cls(crawler.spidercls, is_crawl=begins_itself and crawler.spider is not None)

    def update_settings(self, settings: BaseSettings) -> None:
        """Check the names of settings, and all settings of a movie spider.

        Without a crawl it needs no stores. Raises ConfigurationError for the first wrong value.
        """
        # Scrapy imports this module for every command.
        from moviecrawler.spiders.base import MovieSpider  # noqa: PLC0415

        check_names(settings)
        warn_unknown_settings(settings)
        if issubclass(self._spidercls, MovieSpider) and not self._is_crawl:
            logger.info("No store is opened, as this is not a crawl")
            leave_out_stores(settings)
        check(settings, self._spidercls)


def check(settings: BaseSettings, spidercls: type[Spider]) -> None:
    """Check the settings of a spider's crawl, and all of ours if it is one of the sites.

    Nothing is connected. Raises ConfigurationError for the first setting that can't be right.
    """
    from moviecrawler.spiders.base import MovieSpider  # noqa: PLC0415 - as above

    check_scrapys_own(settings)
    _check_feeds(settings)
    _check_components(settings)
    if not issubclass(spidercls, MovieSpider):
        return
    # None: the program that runs the crawl has installed one.
    if settings["TWISTED_REACTOR"] not in {None, _REACTOR}:
        raise ConfigurationError(
            f"TWISTED_REACTOR is {settings['TWISTED_REACTOR']!r}; remove it, as movie spiders need "
            f"{_REACTOR}"
        )
    check_settings(settings)
    check_data_dir(settings["DATA_DIR"])
    check_stores(settings)
    spidercls.check_settings(settings)
    SitePools.from_settings(settings)
    if settings.get("ALERT_URLS"):
        # Imports Apprise.
        from moviecrawler.extensions.messengers import messengers_of  # noqa: PLC0415

        messengers_of("", settings["ALERT_URLS"])


# --- Names ----------------------------------------------------------------------------------------


def check_names(settings: BaseSettings) -> None:
    """Raise ConfigurationError for a name that nothing reads, and that is nearly one of ours.

    A variable of the environment may be another program's: it passes when the setting that seems to
    be meant has a variable, too. In another project than this one, its own settings pass.
    """
    is_our_project = all(_has_priority(settings, name, "project") for name in _OURS)
    for name, meant in _misspelt(settings.keys(), _OURS):
        if is_our_project or _has_priority(settings, name, "cmdline"):
            raise ConfigurationError(f"Unknown setting {name}; did you mean {meant}?")
    for name, meant in _misspelt(os.environ.keys(), _OURS):
        if meant not in os.environ:
            raise ConfigurationError(
                f"Unknown variable {name}; did you mean {meant}? Rename or unset it; if "
                f"another program needs it, set {meant}, which may be empty"
            )


def warn_unknown_settings(settings: BaseSettings) -> None:
    """Log a warning of each name that may be another part's, and is nearly one of ours or Scrapy's.

    The names that `check_names` refuses are not among them.
    """
    for name, meant in _misspelt(settings.keys(), _OURS | _SCRAPYS):
        logger.warning("Unknown setting %s; did you mean %s?", name, meant)


def _misspelt(names: Iterable[str], known: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield each name that is unknown and nearly a known one, with that."""
    letters = {name.replace("_", ""): name for name in known}
    for name in sorted(set(names) - _OURS - _SCRAPYS):
        if meant := letters.get(name.replace("_", "").upper()) or _closest(name, known):
            yield name, meant


@functools.cache  # it takes ms
def _closest(name: str, known: frozenset[str]) -> str:
    return "".join(get_close_matches(name, known, 1, _SIMILARITY))


def _has_priority(settings: BaseSettings, name: str, least: str) -> bool:
    return (settings.getpriority(name) or 0) >= SETTINGS_PRIORITIES[least]


# --- Scrapy's own settings ------------------------------------------------------------------------


def check_scrapys_own(settings: BaseSettings) -> None:
    """Raise ConfigurationError for the first of Scrapy's settings with a value that can't be right.

    Names of log levels may be in any case, and so may true and false.
    """
    # To read a default warns of those that Scrapy will drop.
    for name in filter(settings.getpriority, _OURS | _SCRAPYS):
        value = settings[name]
        if isinstance(value, str) and value.lower() in {"true", "false"}:
            settings.set(name, value.lower(), priority=settings.getpriority(name) or 0)
    for name in _LEVEL_SETTINGS:
        level = str(settings[name]).upper()
        if level in _LEVELS and level != settings[name]:
            settings.set(name, level, priority=settings.getpriority(name) or 0)
    for name in sorted(_SCRAPYS):
        default = getattr(default_settings, name)
        if settings.getpriority(name) and (form := _wrong_form(settings, name, default)):
            value = shown_value(name, settings[name])
            raise ConfigurationError(f"{name} is {value}; set it to {form}")


def _wrong_form(settings: BaseSettings, name: str, default: object) -> str:
    """Return what to set a setting of Scrapy's to if its value can't be right; otherwise ""."""
    value = settings[name]
    try:
        if name in _LEVEL_SETTINGS and value not in _LEVELS:
            return ", ".join(_LEVELS)
        if name in _CHECKS and value is not None:
            _CHECKS[name](value)
        elif isinstance(default, bool):
            settings.getbool(name)
        elif isinstance(default, int | float):
            _check_number(name, value, default)
        elif isinstance(default, dict | BaseSettings):
            settings.getdict(name)
        elif isinstance(default, list) and default and isinstance(default[0], int):
            [int(number) for number in settings.getlist(name)]
        elif name in _EARLY_CLASSES and value is not None:
            load_object(value)
    except (AttributeError, ImportError, LookupError, NameError, TypeError, ValueError) as error:
        return _form(default, error)
    except OSError as error:
        return f"a file that can be written ({error.strerror})"
    return ""


def _check_number(name: str, value: str | float, default: float) -> None:
    number = float(value)
    may_be_negative = "PRIORITY" in name or "INDENT" in name
    is_whole = isinstance(default, int) and not name.endswith(("_DELAY", "_TIMEOUT", "_INTERVAL"))
    if not math.isfinite(number) or (number < 0 and not may_be_negative):
        raise ValueError("it is out of bounds")
    if is_whole:
        int(value)


def _check_file(value: str | Path) -> None:
    if value:
        with Path(value).open("a", encoding="utf-8"):
            pass


def _check_feeds(settings: BaseSettings) -> None:
    """Raise ConfigurationError for a file that can't be written: Scrapy would crawl without it."""
    for uri in map(str, settings.getdict("FEEDS")):
        scheme = urlsplit(uri).scheme
        if scheme in {"", "file"} and "%(" not in uri:
            path = Path(file_uri_to_path(uri) if scheme else uri)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                _check_file(path)
            except OSError as error:
                raise ConfigurationError(
                    f"the feed {path} can't be written ({error.strerror}); name another file"
                ) from error


def _check_log_format(value: str) -> None:
    logging.Formatter(value).format(logging.makeLogRecord({}))


def _check_agent(value: str) -> None:
    if not value.isprintable():
        raise ValueError("a header has one line")


_CHECKS: dict[str, Callable[[str], object]] = {
    "LOG_ENCODING": codecs.lookup,
    "LOG_FILE": _check_file,
    "LOG_FORMAT": _check_log_format,
    "USER_AGENT": _check_agent,
}
"""What raises an error for a wrong value of a setting that its type does not check."""


def _form(default: object, error: Exception) -> str:
    """Return what a value of one of Scrapy's settings looks like."""
    if isinstance(default, bool):
        return "0 or 1"
    if isinstance(default, int | float):
        return f"a number such as {default}"
    if isinstance(default, dict | BaseSettings):
        return "a JSON object"
    if isinstance(default, list):
        return "numbers, separated by commas"
    return f"one such as {default} ({error})" if default else f"another value ({error})"


_COMPONENTS = (
    "DOWNLOADER_MIDDLEWARES",
    "EXTENSIONS",
    "ITEM_PIPELINES",
    "SPIDER_MIDDLEWARES",
)
_CLASSES = ("DUPEFILTER_CLASS", "LOG_FORMATTER", "REQUEST_FINGERPRINTER_CLASS", "STATS_CLASS")


def _check_components(settings: BaseSettings) -> None:
    """Raise ConfigurationError for the first component that can't be loaded."""
    for name in _COMPONENTS:
        for component, order in settings.getdict(name).items():
            if not isinstance(order, int | float | None):
                raise ConfigurationError(
                    f"{name} has {order!r} for {component}; give a number, or null to leave it out"
                )
            if order is not None:
                _check_class(name, component)
    for name in _CLASSES:
        _check_class(name, settings[name])


def _check_class(name: str, component: str | type) -> None:
    try:
        load_object(component)
    except (AttributeError, ImportError, NameError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{name} names {component!r}, which can't be imported: {error}"
        ) from None
