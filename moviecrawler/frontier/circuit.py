"""Whether a site may be asked: not once it has refused us. Nothing here waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.frontier.queue import Site


class Circuit:
    """Knows which sites have refused us. That of the site `shared` is of all workers; those of others, this process' own.

    A site that has refused this process alone is asked nothing for the rest of the crawl. `report` sends a refusal of the shared
    site (reason, ms) or, without one, an answer to the probe to Redis.
    """

    def __init__(self, shared: str = "", report: Callable[[tuple[str, int] | None], None] = lambda _: None) -> None:
        self.half_open = False
        """Whether a request has to ask whether it is the probe."""
        self.probing = False
        """Whether this worker has the probe: the one request that finds out whether the site answers again."""
        self.reporting = False
        """Whether Redis does not know yet what this worker knows."""
        self._shared = shared
        self._report = report
        self._reasons: dict[str, str] = {}

    def update(self, site: Site) -> None:
        """Take note of what Redis says of the shared site."""
        if not self.reporting:
            self.half_open = site.half_open
            self.probing = site.probing or (self.probing and site.blocked > 0)
            self._reasons.pop(self._shared, None)
            if site.blocked and not site.spent and not self.probing:
                self._reasons[self._shared] = site.reason

    def refusal(self, site: str) -> str | None:
        """Return why a site may not be asked, in one sentence; None when it may."""
        return self._reasons.get(site)

    def refused(self, site: str, reason: str, pause: float) -> None:
        """Let no request to a site through; the shared one, for `pause` seconds."""
        if site not in self._reasons:
            self._reasons[site] = reason
            if site == self._shared:
                self.probing = False
                self._report((reason, round(pause * 1000)))

    def answered(self, site: str) -> None:
        """Let all workers ask the site again when it was this worker that tried; else it is what was in flight when it refused us."""
        if site == self._shared and self.probing:
            self.probing = False
            self._report(None)
