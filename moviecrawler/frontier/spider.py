"""What the frontier needs of a spider."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from scrapy import Request

    from moviecrawler.items import Site


class SharedSpider(Protocol):
    """A spider whose crawl many workers may share."""

    name: str
    home: str
    """Scheme and host of its site."""
    allowed_domains: list[str]
    """Hosts that a request which was read from the queue may be for."""
    seed_key: str
    """The same for all workers that were given the same titles and lists."""
    refills: bool
    """Whether every worker runs its `start`, which queues more as the queue runs low, instead of one for all."""
    idle_timeout: float
    """Seconds that it waits for more to do, when there is nothing."""

    @property
    def site(self) -> Site:
        """The site that it crawls."""

    @property
    def plan(self) -> Any:
        """What its arguments ask for: `plan.limit` is the most titles that all workers together ask for, or None."""

    def seed_request(self, seed: bytes) -> Request:
        """Return the request for a title that was pushed from outside. Raises ConfigurationError."""

    def title_addresses(self, site_id: str) -> list[str]:
        """Return where a title may be asked for."""
