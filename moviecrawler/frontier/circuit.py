"""The circuits: whether a site may be asked, which it may not once it has refused us. Nothing here waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.frontier.queue import SiteReply


class Circuit:
    """Knows which sites have refused us. All workers share the circuit of the site `shared`; the others are this process' own.

    A circuit of this process stays open for the rest of the crawl. `report` sends Redis a refusal of the shared site (reason, ms),
    or with None an answer to the probe.
    """

    def __init__(self, shared: str = "", report: Callable[[tuple[str, int] | None], None] = lambda _: None) -> None:
        self.half_open = False
        """Whether the next request may be the probe, which Redis decides."""
        self.probing = False
        """Whether this worker has the probe: the one request that finds out whether the site answers again."""
        self.reporting = False
        """Whether a report of this worker is still on its way to Redis."""
        self._shared = shared
        self._report = report
        self._reasons: dict[str, str] = {}

    def update(self, site: SiteReply) -> None:
        """Take over what Redis says of the shared site."""
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
        """Open the circuit of a site; that of the shared one, for `pause` seconds."""
        if site not in self._reasons:
            self._reasons[site] = reason
            if site == self._shared:
                self.probing = False
                self._report((reason, round(pause * 1000)))

    def answered(self, site: str) -> None:
        """Close the circuit of the shared site if the answer is to the probe, not to a request sent before the refusal."""
        if site == self._shared and self.probing:
            self.probing = False
            self._report(None)
