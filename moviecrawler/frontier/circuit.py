"""Whether a site may be asked: not once it has refused us."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Circuit:
    """Knows which sites have refused this process: each is asked nothing for the rest of the run.

    Called in the event loop; nothing here waits.
    """

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def refusal(self, site: str) -> str | None:
        """Return why a site may not be asked, in one sentence: its first refusal's; None when it may."""
        return self._reasons.get(site)

    def refused(self, site: str, reason: str, pause: float) -> None:  # noqa: ARG002 - no run lasts as long
        """Let no request to a site through for `pause` seconds."""
        self._reasons.setdefault(site, reason)

    def answered(self, site: str) -> None:
        """Take note that a site has answered as it should, as may what was in flight when it refused us."""


class SharedCircuit(Circuit):
    """That of the spider's site is shared by all nodes; other sites', such as IMDb's datasets, are this process' own.

    `reason` is what Redis said last: that a site has refused another node is known here with the next exchange, and no request
    is handed out meanwhile.
    """

    def __init__(self, site: str, changed: Callable[[], None]) -> None:
        super().__init__()
        self.reason: str | None = None
        self.probing = False
        """Whether this worker has the one request that may try whether the site answers again."""
        self.pending_refusal: tuple[str, int] | None = None
        """Reason and pause (ms) that are not in Redis yet."""
        self.pending_answer = False
        """Whether the site answers again, and Redis does not know yet."""
        self._site = site
        self._changed = changed

    def refusal(self, site: str) -> str | None:
        """Return the last refusal's reason."""
        return self.reason if site == self._site else super().refusal(site)

    def refused(self, site: str, reason: str, pause: float) -> None:
        """Stop the site for all nodes."""
        if site != self._site:
            super().refused(site, reason, pause)
        elif self.reason is None:
            self.reason, self.probing = reason, False
            self.pending_refusal = reason, round(pause * 1000)
            self._changed()

    def answered(self, site: str) -> None:
        """Open the site to all nodes again when it was this worker that tried."""
        if site == self._site and self.probing:
            self.probing = False
            self.pending_answer = True
            self._changed()
