"""`scrapy extract`: print what would be extracted from saved pages."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

from moviecrawler.basics.errors import ConfigurationError, ExtractionError, InvalidItemError
from moviecrawler.commands.base import BaseCommand, option, print_json

if TYPE_CHECKING:
    import argparse

    from moviecrawler.items import Entry, Page


Record = dict[str, object]
"""What is printed of a page."""


class Command(BaseCommand, ScrapyCommand):
    """Print what would be extracted from saved pages, one JSON object per line."""

    arguments = "[--url URL] FILE..."
    options = (
        option("files", nargs="+", metavar="FILE"),
        option(
            "--url",
            help="the URL of the page; default: the canonical URL in it",
        ),
    )

    def execute(self, opts: argparse.Namespace) -> None:
        """Read every file; exit code 1 when one of them could not be read."""
        from moviecrawler.sites.ids import site_of

        if opts.url is not None and (len(opts.files) > 1 or site_of(opts.url) is None):
            raise ConfigurationError(
                "--url takes the address of one page of a site that is known, for one FILE; "
                f"got {opts.url!r}"
            )
        for name in opts.files:
            shown = os.fsencode(name).decode(errors="replace")  # a file's name may be any bytes
            record = _record(name, opts.url)
            print_json({"file": shown, **record})
            if {"block", "error"} & record.keys():
                self.exitcode = 1


def page_record(page: Page) -> Record:
    """Return what is printed of a page.

    A title's page has its `item` as it is stored, with the `seasons` that the page lists. A page of
    a list has its `entries`, with the `rating` and `votes` of each that IMDb shows, its `total` and
    `next`.

    Raises ExtractionError for a title that no store would take.
    """
    from moviecrawler.pipelines.validate import remove_wrong_values

    record: Record = {"site": page.site, "kind": page.kind}
    if page.movie is not None:
        try:
            for movie in (page.movie, *page.seasons):
                remove_wrong_values(movie)
        except InvalidItemError as error:
            raise ExtractionError(error.field, page.movie.url, str(error)) from None
        record |= {"item": page.movie, "seasons": page.seasons}
    if page.listing is not None:
        entries = [_entry_record(entry) for entry in page.listing.entries]
        record |= {"entries": entries, "total": page.listing.total, "next": page.listing.next}
    return record


def _entry_record(entry: Entry) -> Record:
    from msgspec import to_builtins

    from moviecrawler.sites import ID_SITE

    rating = next((score for score in entry.scores if score.kind == ID_SITE), None)
    shown = {"rating": rating.value, "votes": rating.count} if rating else {}
    return {**to_builtins(entry), **shown}


def _record(name: str, url: str | None) -> Record:
    from moviecrawler.politeness.blocks import block_sign
    from moviecrawler.sites.pages import read_page

    try:
        body = Path(name).read_bytes()
        if sign := block_sign(body):
            return {"block": f"no page, but a {sign.kind}: {sign.reason}"}
        return page_record(read_page(body, url))
    except ExtractionError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"can't be read: {error.strerror or error}"}
