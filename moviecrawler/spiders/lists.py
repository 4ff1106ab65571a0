"""Titles from a site's lists, and how each of their pages leads to the next ones."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from scrapy import Request

from moviecrawler.basics.clock import utc_now
from moviecrawler.basics.errors import ExtractionError
from moviecrawler.items import ListEntry, ListPage, ListRow
from moviecrawler.politeness.gate import Closed
from moviecrawler.signals import titles_listed
from moviecrawler.sites.ids import id_in_url, title_url
from moviecrawler.spiders.base import LIST_PRIORITY, MovieSpider
from moviecrawler.spiders.results import fetched_at, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from scrapy.http import Response
    from twisted.python.failure import Failure

    from moviecrawler.items import Entry, ListEnd, Listing
    from moviecrawler.spiders.results import Result

MOST_PAGES = 20_000
"""Pages of a list that are read, several times as many as the longest has: a site that names a next
page for ever has no end."""
TRENDING_SIZE = 100
"""Titles of a list of what is popular now that `lane=due` reads."""


class ListSpider(MovieSpider):
    """A spider whose site lists titles, on one page or on several.

    Each page of a list names the next one by a cursor. Where the profile says how many rows a page
    has, the first page leads to all others at once, so that every node soon has work.
    """

    # Subclasses use all arguments.
    def list_url(self, name: str, before: int, cursor: str | None) -> str:  # noqa: ARG002
        """Return the address of a page of a list; by default all lists have one page.

        Args:
            name: The list's name.
            before: Rows on earlier pages; 0 for the first page.
            cursor: The name that the page before gave to this one; None for the first page, and in
                a list whose pages are requested at once.
        """
        return self.home + self.profile.lists[name].path

    def list_request(self, name: str) -> Request:
        """Return the request for the first page of a list."""
        return self.page_request(name, utc_now().isoformat())

    def page_request(
        self, name: str, pass_at: str, before: int = 0, page: int = 0, cursor: str | None = None
    ) -> Request:
        """Return the request for a page of a list, of which there are `page` pages before it."""
        url = self.list_url(name, before, cursor)
        return self.list_page(
            url,
            self.parse_list,
            self.profile.list_form(url).expects,
            name=name,
            pass_at=pass_at,
            before=before,
            page=page,
        )

    def list_page(
        self, url: str, callback: Callable[..., object], expects: str, **known: object
    ) -> Request:
        """Return the request for a page of a list, whose callback gets what is `known` of it."""
        return Request(
            url,
            callback=callback,
            errback=self.list_failed,
            cb_kwargs=known,
            meta={"expects": expects, "site": self.site},
            priority=LIST_PRIORITY,
        )

    def parse_list(
        self, response: Response, name: str, pass_at: str, before: int, page: int
    ) -> Iterator[Result]:
        """Yield the titles of a page of a list, and the requests for further pages."""
        listing = self.read_list(response)
        if listing is None:
            return
        known = self.profile.lists.get(name)
        if known is not None and known.rows is not None:
            yield from self._page_of_rows(response, listing, name, pass_at, before, known.rows)
            return
        listed = before + len(listing.entries)
        ids = [entry.site_id for entry in listing.entries]
        ends: ListEnd | None = None
        if not listing.next or not listing.entries:
            ends = "list"
        elif page >= MOST_PAGES or self.has_enough_titles(listed, ids):
            ends = "reading"
        yield from self.items_of_list(response, listing, name, pass_at, before, listed, ends)
        if ends is None:
            # The dupefilter drops it if the site names it again and again.
            yield self.page_request(name, pass_at, listed, page + 1, listing.next)
        elif ends == "reading" and not self.has_enough_titles(listed, ids):
            self._report_endless(response.url)

    def _page_of_rows(
        self, response: Response, listing: Listing, name: str, pass_at: str, before: int, rows: int
    ) -> Iterator[Result]:
        """Yield the titles of a page and, from the first, the requests for all the other pages."""
        end = before + rows
        ends: ListEnd | None = None
        if listing.total is None:
            reason = "it does not say how many titles it has; its first page is read"
            self.report_failure(response.url, reason)
        else:
            most = TRENDING_SIZE if self.plan.is_due else self.plan.limit or listing.total
            requested = min(listing.total, most)
            last = min(requested, MOST_PAGES * rows)
            if end >= listing.total:
                ends = "list"
            elif end >= last:
                ends = "reading"
            if before == 0:
                # They come before its titles.
                for later in range(rows, last, rows):
                    yield self.page_request(name, pass_at, later)
                if requested > last:
                    self._report_endless(response.url)
        yield from self.items_of_list(response, listing, name, pass_at, before, end, ends)

    def _report_endless(self, url: str) -> None:
        reason = f"it goes on after {MOST_PAGES:,} pages, which are read"
        self.report_failure(url, reason)

    def items_of_list(
        self,
        response: Response,
        listing: Listing,
        name: str,
        pass_at: str,
        before: int,
        next_offset: int,
        ends: ListEnd | None,
    ) -> Iterator[Result]:
        """Yield a page of a list, and the requests of its titles.

        With `lane=due` there are no requests: the catalogue, which gets the entries by a signal,
        decides what is due.

        Args:
            response: The page.
            listing: What it says.
            name: The list's name.
            pass_at: When the pass over the list began.
            before: Entries on earlier pages.
            next_offset: Entries up to the end of this page.
            ends: As in `ListPage`.
        """
        self.report_listed(name, listing.entries)
        ranked = {
            entry.rank or position: entry.site_id
            for position, entry in enumerate(listing.entries, before + 1)
            if id_in_url(self.site, title_url(self.site, entry.site_id)) == entry.site_id
        }
        yield ListPage(
            site=self.site,
            list_name=name,
            pass_at=datetime.fromisoformat(pass_at),
            page_offset=before,
            next_offset=next_offset,
            ends=ends,
            entries=[ListEntry(site_id=ranked[rank], rank=rank) for rank in sorted(ranked)],
            total=listing.total,
            read_at=fetched_at(response),
        )
        if self.plan.is_due:
            return
        for position, entry in enumerate(listing.entries, before + 1):
            found = ListRow(list_name=name, list_rank=entry.rank or position, entry=entry)
            yield from self.title_requests([entry.site_id], found)

    def report_listed(
        self, name: str, entries: Sequence[Entry] = (), ids: Sequence[str] = ()
    ) -> None:
        """Send the signal for what a list page names, or a sitemap, which has nothing but ids."""
        self.crawler.signals.send_catch_log(
            titles_listed, site=self.site, list_name=name, entries=entries, ids=ids
        )

    def has_enough_titles(self, listed: int, more: Iterable[str] = ()) -> bool:
        """Return whether a list need not be read on.

        Args:
            listed: How many of its titles were read, here or by other workers.
            more: Titles that are not requested yet.
        """
        if self.plan.is_due:
            return listed >= TRENDING_SIZE
        # This worker knows only what it has requested itself.
        requested = self.requested_ids.union(more)
        return self.plan.limit is not None and max(len(requested), listed) >= self.plan.limit

    def read_list(self, response: Response) -> Listing | None:
        """Return what a page of a list says; None when it can't be read, which is accounted for."""
        try:
            read = self.profile.reader(self.profile.list_form(response.url).reader)
            return read(response.body, response.url).listing
        except ExtractionError as error:
            self.report_failure(response.url, str(error))
            return None

    def list_failed(self, failure: Failure) -> None:
        """Account for a list page that could not be fetched."""
        if not isinstance(failure.value, Closed):
            url = failure.request.url  # type: ignore[attr-defined]
            outcome, reason = outcome_of(failure)
            self.report_failure(url, reason, outcome)
