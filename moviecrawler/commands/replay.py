"""`scrapy replay`: re-extract archived pages into the enabled stores."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import date
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.commands.base import SITE, BaseCommand, option
from moviecrawler.commands.crawl import conclude
from moviecrawler.options import check_settings
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    import argparse

    from scrapy.settings import BaseSettings

    from moviecrawler.pipelines.archive import Folder
    from moviecrawler.pipelines.s3 import Bucket

_STORES = ("DATABASE_URL", "MONGO_URL", "S3_BUCKET", "S3_PREFIX", "S3_ENDPOINT_URL")
"""The settings of the stores."""


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date; use YYYY-MM-DD") from None


class Command(BaseCommand, ScrapyCommand):
    """Re-extract archived pages with the current code, without contacting the sites.

    The same command continues a replay that was interrupted; when that has finished, it starts the
    next one. Exit code 1 when a page could not be extracted or an item not stored, and 3 when the
    rest is queued and the same command continues.
    """

    requires_crawler_process = True
    arguments = "[--site SITE] [--from DATE] [--to DATE] SOURCE"
    options = (
        option("source", metavar="SOURCE", help="the archive: s3://bucket/prefix, or a folder"),
        SITE,
        option(
            "--from", dest="begin", type=_day, metavar="DATE", help="pages of that day (UTC) on"
        ),
        option("--to", dest="end", type=_day, metavar="DATE", help="pages up to that day (UTC)"),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        from moviecrawler.database.sqlite import FILE
        from moviecrawler.frontier.account import INCOMPLETE
        from moviecrawler.frontier.runs import (
            describe_arguments,
            open_backend,
            run_name,
            with_queue,
        )
        from moviecrawler.pipelines.base import check_stores
        from moviecrawler.pipelines.files import check_data_dir
        from moviecrawler.spiders.base import MovieSpider
        from moviecrawler.spiders.replay import ReplaySpider

        assert self.crawler_process is not None  # noqa: S101 - set by Scrapy before
        crawler = self.crawler_process.create_crawler(ReplaySpider)
        check_settings(crawler.settings)
        folder = check_data_dir(crawler.settings["DATA_DIR"])
        check_stores(crawler.settings)
        open_backend(crawler.settings)  # which connects nothing
        archive, files = self._open(opts)
        described = describe_arguments([], _facts(opts, crawler.settings))
        if not ((folder / FILE).exists() or crawler.settings.get("REDIS_URL")):
            # What an earlier start has stored is gone with the database, so the run begins anew.
            run = run_name("replay", crawler.settings, described)
            with_queue(crawler.settings, lambda queue: queue.drop_run(run))
        loader = self.crawler_process.spider_loader
        readers = [
            spider for name in loader.list() if issubclass(spider := loader.load(name), MovieSpider)
        ]
        self.crawler_process.crawl(
            crawler,
            archive=archive,
            files=files,
            readers=readers,
            described_arguments=described,
        )
        self.crawler_process.start()
        failed = self.crawler_process.bootstrap_failed
        self.exitcode = INCOMPLETE if failed else conclude(crawler) or self.exitcode

    def _open(self, opts: argparse.Namespace) -> tuple[Bucket | Folder, dict[str, None]]:
        """Return the archive, and the keys of its files with the requested pages."""
        from moviecrawler.pipelines.archive import archived_files, open_archive

        days = (opts.begin or date.min, opts.end or date.max)
        try:
            archive = open_archive(opts.source, self.settings.get("S3_ENDPOINT_URL") or None)
            sites = archived_files(archive, opts.site, *days)
        except TransientStoreError as error:
            raise ConfigurationError(str(error)) from error
        unknown = sorted(set(sites.values()).difference(SITES))
        keys = [key for key, site in sites.items() if site in SITES]
        if unknown:
            self.fail(
                f"{opts.source} has pages of {', '.join(unknown)}, which are left out; install "
                "what brings that site"
            )
        if not keys:
            raise ConfigurationError(f"{opts.source} holds no pages of that site and time")
        return archive, dict.fromkeys(keys)


def _facts(opts: argparse.Namespace, settings: BaseSettings) -> dict[str, str]:
    """Return what names the run: other pages, and other stores, have a run of their own."""
    is_bucket = opts.source.startswith("s3://")
    stores = repr([str(settings.get(name) or "") for name in _STORES])  # may hold passwords
    facts = {
        "archive": opts.source if is_bucket else str(Path(opts.source).absolute()),
        "from": opts.begin,
        "site": opts.site,
        "stores": blake2b(stores.encode(), digest_size=4).hexdigest(),
        "to": opts.end,
    }
    return {name: str(fact) for name, fact in facts.items() if fact is not None}
