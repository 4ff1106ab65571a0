"""Full credits, which a site has on a page of their own beside each title's page."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from scrapy import Request

from moviecrawler.basics.errors import ConfigurationError, ExtractionError
from moviecrawler.frontier.leases import META
from moviecrawler.politeness.gate import Closed
from moviecrawler.sites.ids import title_url
from moviecrawler.spiders.datasets import DatasetSpider
from moviecrawler.spiders.results import fetched_at, outcome_of, with_credits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from scrapy.http import Response
    from scrapy.settings import BaseSettings
    from twisted.python.failure import Failure

    from moviecrawler.items import Movie
    from moviecrawler.spiders.arguments import Plan
    from moviecrawler.spiders.results import Result

FULL = "full"
_KEPT_META = (META, "proxy_pool", "max_retry_times")
"""What the request for full credits has of that for the title: it goes on under its lease."""


class FullCreditsSpider(DatasetSpider):
    """A spider that fetches each title's page of full credits, too, with `credits=full`."""

    credits_path: ClassVar[str]
    """The path of that page below the title's own."""
    arguments: ClassVar[Mapping[str, str]] = {
        **DatasetSpider.arguments,
        "credits": "Whether the page of each title's full credits is fetched, too",
    }

    @classmethod
    def parse_arguments(cls, settings: BaseSettings, arguments: Mapping[str, str]) -> Plan:
        """Return what the arguments request."""
        plan = super().parse_arguments(settings, arguments)
        if "credits" in arguments and arguments.get("via") == "datasets":
            raise ConfigurationError(
                f"credits is {FULL!r}, which IMDb's datasets don't have; use via=pages"
            )
        return plan

    @property
    def via(self) -> str:
        """Title pages, when full credits are requested."""
        return "pages" if "credits" in self.given else super().via

    @classmethod
    def choices(cls) -> dict[str, Sequence[str]]:
        """Return the values of arguments that are known in advance, by the argument's name."""
        return {**super().choices(), "credits": [FULL]}

    def complete(self, movie: Movie, response: Response) -> Movie | Request:
        """Return the request for a title's full credits, with `credits=full`.

        It goes on under the lease of the title, whose page is fetched again when this one is not:
        the title ends once, with both.
        """
        if "credits" not in self.given:
            return movie
        known = {"site_id": str(movie.site_id), "found": None, "due": None, "movie": movie}
        meta = {name: response.meta[name] for name in _KEPT_META if name in response.meta}
        return Request(
            title_url(self.site, str(movie.site_id), self.home) + self.credits_path,
            callback=self.parse_credits,
            errback=self.credits_failed,
            cb_kwargs=known,
            meta={"expects": "page", "site": self.site, **meta},
            dont_filter=True,
        )

    def parse_credits(
        self, response: Response, site_id: str, movie: Movie, **_: object
    ) -> Iterator[Result]:
        """Yield a title with its full credits."""
        try:
            full = self._read_requested(response, site_id)[0]
        except ExtractionError as error:
            self.report_unread(site_id, error, response)
            yield from self._without_full_credits(movie, "failed", str(error), response)
            return
        yield with_credits(movie, full)

    def credits_failed(self, failure: Failure) -> Iterator[Result]:
        """Yield a title whose full credits could not be fetched."""
        request: Request = failure.request  # type: ignore[attr-defined]
        if not isinstance(failure.value, Closed):
            movie = request.cb_kwargs["movie"]
            yield from self._without_full_credits(movie, *outcome_of(failure), request)

    def _without_full_credits(
        self, movie: Movie, outcome: str, reason: str, page: Request | Response
    ) -> Iterator[Result]:
        """Yield a title as its own page has it, and a Miss unless the site has no such page."""
        yield movie
        if outcome != "absent":
            why = f"full credits: {reason}"
            yield from self.title_missed(str(movie.site_id), outcome, why, fetched_at(page))
