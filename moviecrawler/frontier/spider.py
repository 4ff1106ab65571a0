"""What the frontier needs of a spider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy import Request

    from moviecrawler.items import Site


class SharedSpider(Protocol):
    """A spider whose crawl many workers may share."""

    name: str
    allowed_domains: list[str]
    """Hosts that a request which was read from the queue may be for."""
    seed_key: str
    """What its arguments are: the same for all workers of a run."""

    @property
    def site(self) -> Site:
        """The site that it crawls."""

    @property
    def plan(self) -> Any:
        """What its arguments ask for: `plan.limit` is the most titles that all workers together ask for, or None."""

    def start(self) -> AsyncIterator[Request]:
        """Yield the requests that its arguments name."""

    def seed_request(self, seed: bytes) -> Request:
        """Return the request for a title that was pushed from outside. Raises ConfigurationError."""

    def title_request(self, site_id: str, found: Any) -> Request:
        """Return the request for a title's page."""
