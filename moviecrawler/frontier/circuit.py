"""Whether a site may be asked: not once it has refused us."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Circuit:
    """Knows which sites have refused this process: each is asked nothing for the rest of the crawl. Nothing here waits."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def refusal(self, site: str) -> str | None:
        """Return why a site may not be asked, in one sentence: its first refusal's; None when it may."""
        return self._reasons.get(site)

    def refused(self, site: str, reason: str, pause: float) -> None:  # noqa: ARG002 - no crawl lasts as long
        """Let no request to a site through for `pause` seconds."""
        self._reasons.setdefault(site, reason)

    def answered(self, site: str) -> None:
        """Take note that a site has answered as it should, as may what was in flight when it refused us."""


class SharedCircuit(Circuit):
    """The circuit of the spider's site is shared by all workers; other sites', such as IMDb's datasets, are this process' own.

    `reason` is what Redis said last. `report` sends a refusal (reason, ms) or, without one, an answer to the probe to Redis.
    """

    def __init__(self, site: str, report: Callable[[tuple[str, int] | None], None]) -> None:
        super().__init__()
        self.reason: str | None = None
        self.probing = False
        """Whether this worker has the one request that may try whether the site answers again."""
        self.reporting = False
        """Whether Redis does not know yet what this worker knows."""
        self._site = site
        self._report = report

    def update(self, *, shut: int, reason: str, spent: bool, probing: bool) -> None:
        """Take note of what Redis says."""
        if not self.reporting:
            self.probing = probing or (self.probing and shut > 0)
            self.reason = reason if shut and not spent and not self.probing else None

    def refusal(self, site: str) -> str | None:
        """Return the last refusal's reason."""
        return self.reason if site == self._site else super().refusal(site)

    def refused(self, site: str, reason: str, pause: float) -> None:
        """Stop the site for all workers."""
        if site != self._site:
            super().refused(site, reason, pause)
        elif self.reason is None:
            self.reason, self.probing = reason, False
            self._report((reason, round(pause * 1000)))

    def answered(self, site: str) -> None:
        """Let all workers ask the site again when it was this worker that tried."""
        if site == self._site and self.probing:
            self.probing = False
            self._report(None)
