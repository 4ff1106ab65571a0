"""`scrapy crawl`, which checks its arguments and settings before it starts."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from moviecrawler.basics.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.basics.texts import printable
from moviecrawler.commands.base import program

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from scrapy.crawler import Crawler
    from scrapy.settings import BaseSettings

    from moviecrawler.catalogue.known_ids import Film

logger = logging.getLogger(__name__)

_ALL = "all"
_WORST_FIRST = (2, 1, 3, 0)
"""Exit codes."""
_MAX_UNKNOWN = 10
"""Titles without an id on a site that the summary names."""


class Command(CrawlCommand):
    """Scrapy's command, with an exit code that says what became of all that was requested."""

    def short_desc(self) -> str:
        from moviecrawler.sites import SITES

        return f"Crawl a site: {', '.join(SITES)}; or all of them: {_ALL}"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. With -a, say which titles:"
            " list=NAME (a wrong name prints all names), ids=ID,ID,... (or URLs),"
            " file=PATH (ids or URLs, one a line, or a CSV with a column of them),"
            " or lane=due (those that the catalogue says are due);"
            " limit=N ends after N titles, and skip_newer_than=7d leaves out titles whose record is"
            " younger; imdb also takes via=auto, via=pages or via=datasets, with the last one"
            " episodes=yes (those of the series, too), and credits=full (the page of all credits)."
            f" `{_ALL}` takes ids and URLs of any site, fetches each title from all sites where its"
            " id is known, also from the file that wikidata=PATH names, and takes no list."
            " Exit code 0: all that was requested is stored, or its site says that there is none;"
            " 1: something is not, or the site refused us or could not be reached;"
            " 2: wrong usage; 3: unfinished and in order, so that the same command goes on."
        )

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Have a terminal show one line, and warnings, in place of the log."""
        super().process_options(args, opts)
        assert self.settings is not None  # noqa: S101 - set by Scrapy before
        self._has_line = _has_line(self.settings, opts)
        if self._has_line:
            from moviecrawler.extensions.progress import LineHandler

            if not self.settings["LOG_FILE"]:
                self.settings.set("LOG_ENABLED", False, priority="cmdline")
            logging.root.addHandler(LineHandler())

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        # This import inspects the whole call stack, which takes 0.04 s here and 0.3 s deep inside
        # the engine's imports.
        import scrapy.core.downloader.contextfactory  # noqa: F401

        if len(args) != 1:
            raise UsageError("name one spider", print_help=False)
        assert self.crawler_process is not None  # noqa: S101 - set by Scrapy before
        known = self.crawler_process.spider_loader.list()
        if args[0] not in {*known, _ALL}:
            raise UsageError(
                f"no spider {args[0]!r}; there are {', '.join(sorted(known))} and {_ALL}",
                print_help=False,
            )
        self._tasks: dict[Crawler, Any] = {}
        try:
            if args[0] == _ALL and _ALL not in known:
                self._crawl_all(opts.spargs)
            else:
                self._crawl_one(args[0], opts.spargs)
        except ConfigurationError as error:
            raise UsageError(printable(str(error)), print_help=False) from error
        except MovieCrawlerError as error:
            self._fail(str(error))

    def _crawl_one(self, name: str, arguments: Mapping[str, str]) -> None:
        from moviecrawler.spiders.base import MovieSpider

        crawler = self._checked(name, arguments)
        self._start([(crawler, arguments)])
        if issubclass(crawler.spidercls, MovieSpider) and crawler.spider is not None:
            self.exitcode = max(self.exitcode, conclude(crawler), key=_badness)

    def _crawl_all(self, arguments: Mapping[str, str]) -> None:
        """Crawl all sites in this process, and write one summary."""
        from moviecrawler.extensions.summary import Summary, joint_lines
        from moviecrawler.frontier.account import exit_code
        from moviecrawler.sites import SITES

        assert self.crawler_process is not None  # noqa: S101 - set by Scrapy before
        plan = _PlanForAll(self.settings, self.crawler_process.spider_loader, arguments)
        chosen = [
            (self._checked(site, given), given)
            for site in SITES
            if (given := plan.arguments_of(site)) is not None
        ]
        Summary.is_joint = True
        plan.follow(self, [crawler for crawler, _ in chosen])
        self._start(chosen)
        crawlers = [crawler for crawler in self._tasks if crawler.spider is not None]
        if lines := joint_lines(crawlers, plan.describe_unknown()):
            print("\n  ".join(lines), file=sys.stderr)
        codes = [exit_code(crawler.stats.get_stats()) for crawler in crawlers]
        self.exitcode = max([self.exitcode, *codes], key=_badness)

    def _checked(self, name: str, arguments: Mapping[str, str]) -> Crawler:
        """Return the crawler of a spider. Raises ConfigurationError."""
        from moviecrawler.addon import check
        from moviecrawler.spiders.base import MovieSpider

        assert self.crawler_process is not None  # noqa: S101 - set by Scrapy before
        crawler = self.crawler_process.create_crawler(name)
        check(crawler.settings, crawler.spidercls)
        if issubclass(crawler.spidercls, MovieSpider):
            crawler.spidercls.parse_arguments(crawler.settings, arguments)
        return crawler

    def _start(self, crawls: Sequence[tuple[Crawler, Mapping[str, str]]]) -> None:
        """Run crawls until all have ended."""
        from moviecrawler.extensions.progress import ProgressLine

        assert self.crawler_process is not None  # noqa: S101 - set by Scrapy before
        crawls[0][0].signals.connect(leave_out_modules, signals.engine_started)
        self._line = ProgressLine() if self._has_line else None
        for crawler, arguments in crawls:
            self.begin(crawler, arguments)
        self.crawler_process.start()
        for crawler, task in self._tasks.items():
            if not isinstance(task, asyncio.Task):
                continue  # of another reactor than movie spiders need
            if not task.done():
                self._fail(f"{crawler.spidercls.name}: interrupted before it began")
            elif error := task.exception():
                logger.debug("It did not begin", exc_info=error)
                self._fail(f"{crawler.spidercls.name}: {type(error).__name__}: {error}")

    def begin(self, crawler: Crawler, arguments: Mapping[str, str]) -> None:
        """Begin a crawl, or have it begin when the event loop runs."""
        assert self.crawler_process is not None  # noqa: S101 - set by Scrapy before
        if self._line is not None:
            self._line.follow(crawler)
        self._tasks[crawler] = self.crawler_process.crawl(crawler, **arguments)

    def _fail(self, sentence: str) -> None:
        print(f"{program()} crawl: {printable(sentence)}", file=sys.stderr)
        self.exitcode = 1


class _PlanForAll:
    """What `all` asks of which site."""

    def __init__(
        self, settings: BaseSettings | None, spiders: Any, arguments: Mapping[str, str]
    ) -> None:
        """Read the arguments. Raises ConfigurationError."""
        from moviecrawler.catalogue.known_ids import find_ids, read_films
        from moviecrawler.sites import SITES

        assert settings is not None  # noqa: S101 - Scrapy has set them
        self._settings = settings
        self._sites = list(SITES)
        self._known = {site: set(spiders.load(site).arguments) for site in SITES}
        if "list" in arguments:
            raise ConfigurationError(
                f"list is {arguments['list']!r}, which is a list of one site: crawl that site, or "
                "leave list out for the usual list of each"
            )
        known = set().union({"wikidata"}, *self._known.values()) - {"list"}
        if unknown := sorted(arguments.keys() - known):
            raise ConfigurationError(
                f"unknown argument {unknown[0]!r}; {_ALL} takes {', '.join(sorted(known))}"
            )
        self._arguments = {n: v for n, v in arguments.items() if n not in {"ids", "wikidata"}}
        self._wikidata = arguments.get("wikidata")
        self._films: list[Film] = []
        self._is_by_films = not arguments.keys().isdisjoint({"ids", "file"})
        if self._is_by_films:
            self._films = read_films(settings, arguments.get("ids"), arguments.get("file"))
            find_ids(settings, self._films, self._wikidata)
        elif "wikidata" in arguments:
            raise ConfigurationError("wikidata is given without file or ids; name titles, or none")
        self._requested = {site: self._ids_of(site) for site in self._sites}

    def _ids_of(self, site: Any) -> list[str]:
        return list(dict.fromkeys(film.ids[site] for film in self._films if site in film.ids))

    def arguments_of(self, site: Any, ids: list[str] | None = None) -> dict[str, str] | None:
        """Return the arguments of a site's spider; None when it is asked for nothing.

        Args:
            site: The site.
            ids: Titles that have become known only now.
        """
        from moviecrawler.spiders.arguments import KNOWN_IDS

        given = {n: v for n, v in self._arguments.items() if n in self._known[site]}
        if not self._is_by_films:
            return given
        known = ",".join(self._requested[site] if ids is None else ids)
        if not known:
            return None
        if ids is not None or "file" not in given:
            given.pop("file", None)
            return {**given, "ids": known}
        return {**given, KNOWN_IDS: known}

    def follow(self, command: Command, crawlers: list[Crawler]) -> None:
        """Crawl what pages have said: the ids that their titles have on other sites."""
        from moviecrawler.catalogue.known_ids import find_ids

        left = set(crawlers)

        def engine_stopped(sender: Crawler) -> None:
            left.discard(sender)
            reason = sender.stats.get_value("finish_reason")
            if left or not self._is_by_films or reason == "shutdown":
                return
            with suppress(MovieCrawlerError):  # what was known before is crawled
                find_ids(self._settings, self._films, self._wikidata)
            for site in self._sites:
                ids = [i for i in self._ids_of(site) if i not in self._requested[site]]
                self._requested[site] += ids
                if given := self.arguments_of(site, ids):
                    crawler = command._checked(site, given)  # noqa: SLF001 - of this module
                    left.add(crawler)
                    crawler.signals.connect(engine_stopped, signals.engine_stopped)
                    command.begin(crawler, given)

        self._handler = engine_stopped  # signals keep none
        for crawler in crawlers:
            crawler.signals.connect(engine_stopped, signals.engine_stopped)

    def describe_unknown(self) -> str:
        """Return the titles that were not requested of a site, as their ids there are unknown."""
        parts = []
        for site in self._sites if self._is_by_films else ():
            unknown = [film for film in self._films if site not in film.ids]
            names = [next(iter(film.ids.values()), film.location) for film in unknown]
            if names:
                shown = ", ".join(names[:_MAX_UNKNOWN])
                more = f" and {len(names) - _MAX_UNKNOWN:,} more" if names[_MAX_UNKNOWN:] else ""
                logger.info("Without an id on %s: %s", site, ", ".join(names))
                parts.append(f"{len(names):,} on {site}: {shown}{more}")
        return "; ".join(parts)


def _has_line(settings: BaseSettings, opts: argparse.Namespace) -> bool:
    """Return whether a crawl shows its progress in a line: on a terminal that shows no log."""
    from moviecrawler.extensions.progress import is_terminal

    is_level_given = (settings.getpriority("LOG_LEVEL") or 0) >= SETTINGS_PRIORITIES["cmdline"]
    outputs = [*(opts.output or ()), *(opts.overwrite_output or ())]
    is_quiet = opts.nolog or not settings.getbool("LOG_ENABLED")
    prints_items = any(output.startswith("-") for output in outputs)
    return is_terminal() and not (is_level_given or is_quiet or prints_items)


def _badness(code: int) -> int:
    return -_WORST_FIRST.index(code)


def conclude(crawler: Crawler) -> int:
    """Write the summary of a crawl that has ended, if it is not written; return the exit code."""
    from moviecrawler.extensions.summary import Summary
    from moviecrawler.frontier.account import exit_code

    summary = crawler.get_extension(Summary)
    if summary is not None:
        summary.write()
    return exit_code(crawler.stats.get_stats())


def leave_out_modules() -> None:
    """Leave what was imported out of each garbage collection.

    To look through it takes 0.2 s at the end of the process alone.
    """
    gc.freeze()
