"""`scrapy crawl`, which checks its arguments and settings before it starts."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.exceptions import UsageError
from scrapy.settings import SETTINGS_PRIORITIES

from moviecrawler.basics.errors import ConfigurationError, MovieCrawlerError
from moviecrawler.basics.texts import printable
from moviecrawler.commands.base import BaseCommand
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping, Sequence

    from scrapy.crawler import AsyncCrawlerProcess, Crawler
    from scrapy.settings import Settings
    from scrapy.spiderloader import SpiderLoaderProtocol

    from moviecrawler.catalogue.id_lists import Film
    from moviecrawler.sites import Site

logger = logging.getLogger(__name__)

_ALL = "all"
_WORST_FIRST = (2, 1, 3, 0)
"""Exit codes."""
_MAX_UNKNOWN = 10
"""Titles without an id on a site that the summary names."""


class Command(BaseCommand, CrawlCommand):
    """Scrapy's command, with an exit code for what became of the requested titles."""

    # Scrapy sets both before a command runs.
    crawler_process: AsyncCrawlerProcess
    settings: Settings
    requires_crawler_process = True
    arguments = "[options] SPIDER"

    def short_desc(self) -> str:
        return f"Crawl a site: {', '.join(SITES)}; or all of them: {_ALL}"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. Choose the titles with -a:"
            " list=NAME (a wrong name prints all names), ids=ID,ID,... (or URLs),"
            " file=PATH (ids or URLs, one a line, or a CSV with a column of them),"
            " or lane=due (those that are due in the catalogue);"
            " limit=N ends after N titles, and skip_newer_than=7d leaves out titles whose record is"
            " younger; imdb also takes via=auto, via=pages or via=datasets, with the last one"
            " episodes=yes (those of the series, too), and credits=full (the page of all credits)."
            f" `{_ALL}` takes ids and URLs of any site, fetches each title from all sites where its"
            " id is known, also from the file that wikidata=PATH names, and takes no list."
            " Exit code 0: each requested title is stored, or its site has none;"
            " 1: one is not, or the site is blocking us or can't be reached;"
            " 2: wrong usage; 3: unfinished and in order: the same command continues."
        )

    @staticmethod
    def arguments_of_all(spiders: SpiderLoaderProtocol) -> set[str]:
        """Return the names of the arguments that `all` takes."""
        return {"wikidata"}.union(*(_arguments_of(spiders, site) for site in SITES)) - {"list"}

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Have a terminal show one line, and warnings, in place of the log."""
        super().process_options(args, opts)
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
        known = self.crawler_process.spider_loader.list()
        if args[0] not in {*known, _ALL}:
            raise UsageError(
                f"no spider {args[0]!r}; there are {', '.join(sorted(known))} and {_ALL}",
                print_help=False,
            )
        self._tasks: dict[Crawler, object] = {}
        try:
            if args[0] == _ALL:
                self._crawl_all(opts.spargs)
            else:
                self._crawl_one(args[0], opts.spargs)
        except ConfigurationError as error:
            raise UsageError(printable(str(error)), print_help=False) from error
        except MovieCrawlerError as error:
            self.fail(str(error))

    def _crawl_one(self, name: str, arguments: Mapping[str, str]) -> None:
        from moviecrawler.spiders.base import MovieSpider

        crawler = self._checked(name, arguments)
        self._start([(crawler, arguments)])
        if issubclass(crawler.spidercls, MovieSpider) and crawler.spider is not None:
            self.exitcode = min(self.exitcode, conclude(crawler), key=_WORST_FIRST.index)

    def _crawl_all(self, arguments: Mapping[str, str]) -> None:
        """Crawl all sites in this process, and write one summary."""
        from moviecrawler.extensions.summary import Summary, joint_lines
        from moviecrawler.frontier.account import exit_code

        plan = _PlanForAll(self.settings, self.crawler_process.spider_loader, arguments)
        chosen = [
            (self._checked(site, own), own)
            for site in SITES
            if (own := plan.next_arguments(site)) is not None
        ]
        Summary.is_joint = True
        plan.follow(self, [crawler for crawler, _ in chosen])
        self._start(chosen)
        crawlers = [crawler for crawler in self._tasks if crawler.spider is not None]
        if lines := joint_lines(crawlers, plan.describe_unknown()):
            print("\n  ".join(lines), file=sys.stderr)
        codes = [exit_code(crawler.stats.get_stats()) for crawler in crawlers]
        self.exitcode = min([self.exitcode, *codes], key=_WORST_FIRST.index)

    def _checked(self, name: str, arguments: Mapping[str, str]) -> Crawler:
        """Return the crawler of a spider. Raises ConfigurationError."""
        from moviecrawler.addon import check
        from moviecrawler.spiders.base import MovieSpider

        crawler = self.crawler_process.create_crawler(name)
        check(crawler.settings, crawler.spidercls)
        if issubclass(crawler.spidercls, MovieSpider):
            crawler.spidercls.parse_arguments(crawler.settings, arguments)
        return crawler

    def _start(self, crawls: Sequence[tuple[Crawler, Mapping[str, str]]]) -> None:
        """Run crawls until all have ended."""
        from moviecrawler.extensions.progress import ProgressLine

        crawls[0][0].signals.connect(leave_out_modules, signals.engine_started)
        self._line = ProgressLine() if self._has_line else None
        for crawler, arguments in crawls:
            self.begin(crawler, arguments)
        self.crawler_process.start()
        for crawler, task in self._tasks.items():
            if not isinstance(task, asyncio.Task):
                continue  # of another reactor than movie spiders need
            if not task.done():
                self.fail(f"{crawler.spidercls.name}: interrupted before it began")
            elif error := task.exception():
                logger.debug("It did not begin", exc_info=error)
                self.fail(f"{crawler.spidercls.name}: {type(error).__name__}: {error}")

    def begin(self, crawler: Crawler, arguments: Mapping[str, str]) -> None:
        """Begin a crawl, or have it begin when the event loop runs."""
        if self._line is not None:
            self._line.follow(crawler)
        self._tasks[crawler] = self.crawler_process.crawl(crawler, **arguments)


class _PlanForAll:
    """What `all` requests from each site."""

    def __init__(
        self, settings: Settings, spiders: SpiderLoaderProtocol, arguments: Mapping[str, str]
    ) -> None:
        """Read the arguments. Raises ConfigurationError."""
        from moviecrawler.catalogue.id_lists import read_films

        known = Command.arguments_of_all(spiders)
        if "list" in arguments:
            raise ConfigurationError(
                f"list is {arguments['list']!r}, which is a list of one site: crawl that site, or "
                "leave list out for the usual list of each"
            )
        if unknown := sorted(arguments.keys() - known):
            raise ConfigurationError(
                f"unknown argument {unknown[0]!r}; {_ALL} takes {', '.join(sorted(known))}"
            )
        self._settings = settings
        self._arguments = {
            site: {
                name: value
                for name, value in arguments.items()
                if name != "ids" and name in _arguments_of(spiders, site)
            }
            for site in SITES
        }
        self._wikidata = arguments.get("wikidata")
        self._is_by_films = not arguments.keys().isdisjoint({"ids", "file"})
        if self._wikidata is not None and not self._is_by_films:
            raise ConfigurationError("wikidata is given without file or ids; name titles, or none")
        self._films: list[Film] = []
        if self._is_by_films:
            homes = {site: settings[profile.home_setting] for site, profile in SITES.items()}
            self._films = read_films(homes, arguments.get("ids"), arguments.get("file"))
            self._find_ids()
        self._requested: dict[Site, list[str]] = {site: [] for site in SITES}

    def _find_ids(self) -> None:
        from moviecrawler.catalogue.known_ids import find_ids

        find_ids(self._settings, self._films, self._wikidata)

    def next_arguments(self, site: Site) -> dict[str, str] | None:
        """Return the arguments of a site's next crawl; None when no new id is known there."""
        from moviecrawler.spiders.arguments import KNOWN_IDS

        arguments = self._arguments[site]
        if not self._is_by_films:
            return arguments
        known = dict.fromkeys(film.ids[site] for film in self._films if site in film.ids)
        requested = self._requested[site]
        new = [site_id for site_id in known if site_id not in requested]
        if not new:
            return None
        is_first = not requested
        requested += new
        # The first run goes by the name of its file.
        if is_first and "file" in arguments:
            return {**arguments, KNOWN_IDS: ",".join(new)}
        others = {name: value for name, value in arguments.items() if name != "file"}
        return {**others, "ids": ",".join(new)}

    def follow(self, command: Command, crawlers: list[Crawler]) -> None:
        """Crawl the ids that pages of these crawls give for their titles on other sites."""
        if not self._is_by_films:
            return
        running: set[Crawler] = set()

        def engine_stopped(sender: Crawler) -> None:
            running.discard(sender)
            if running or sender.stats.get_value("finish_reason") == "shutdown":
                return
            with suppress(MovieCrawlerError):  # the ids that were known before are crawled
                self._find_ids()
            for site in self._requested:
                if arguments := self.next_arguments(site):
                    crawler = command._checked(site, arguments)  # noqa: SLF001 - of this module
                    follow(crawler)
                    command.begin(crawler, arguments)

        def follow(crawler: Crawler) -> None:
            running.add(crawler)
            crawler.signals.connect(engine_stopped, signals.engine_stopped, weak=False)

        for crawler in crawlers:
            follow(crawler)

    def describe_unknown(self) -> str:
        """Return the titles that were not requested from a site, as their ids there are unknown."""
        parts = []
        for site in self._requested:
            unknown = [film for film in self._films if site not in film.ids]
            names = [next(iter(film.ids.values()), film.location) for film in unknown]
            if names:
                shown = ", ".join(names[:_MAX_UNKNOWN])
                more = f" and {len(names) - _MAX_UNKNOWN:,} more" if names[_MAX_UNKNOWN:] else ""
                logger.info("Without an id on %s: %s", site, ", ".join(names))
                parts.append(f"{len(names):,} on {site}: {shown}{more}")
        return "; ".join(parts)


def _arguments_of(spiders: SpiderLoaderProtocol, name: str) -> Collection[str]:
    arguments: Collection[str] = spiders.load(name).arguments  # type: ignore[attr-defined]
    return arguments


def _has_line(settings: Settings, opts: argparse.Namespace) -> bool:
    """Return whether a crawl shows its progress in a line: on a terminal that shows no log."""
    from moviecrawler.extensions.progress import is_terminal

    is_level_given = (settings.getpriority("LOG_LEVEL") or 0) >= SETTINGS_PRIORITIES["cmdline"]
    outputs = [*(opts.output or ()), *(opts.overwrite_output or ())]
    is_quiet = opts.nolog or not settings.getbool("LOG_ENABLED")
    prints_items = any(output.startswith("-") for output in outputs)
    return is_terminal() and not (is_level_given or is_quiet or prints_items)


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
