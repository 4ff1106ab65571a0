"""A site's figures on the overview."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moviecrawler.catalogue.figures import SiteFigures
    from moviecrawler.dashboard.counts import Counts
    from moviecrawler.dashboard.sources import Frontier
    from moviecrawler.frontier.runs import RunReport, SiteState
    from moviecrawler.items import Site


@dataclass(slots=True, kw_only=True)
class Card:
    """A site's figures. None is unknown."""

    site: Site
    counts: SiteFigures | None
    state: SiteState | None
    runs: list[RunReport]
    rate: float | None
    """Requests per second that its crawls finish."""
    open_requests: int
    """Requests of its crawls that are queued or held."""
    seconds_left: float | None
    """Time until its crawls are done, at this rate."""
    stopped: str | None
    """Why it is not crawled now; None when it is."""
    stopped_until: float | None
    """Seconds since 1970."""
    trying: bool
    """Whether the next request will show if the site answers again."""


def card(site: Site, counts: Counts | None, frontier: Frontier | None) -> Card:
    """Return a site's figures."""
    state = None if frontier is None else frontier.sites[site]
    site_counts = None if counts is None else counts.sites.get(site)
    runs = [] if frontier is None else [run for run in frontier.runs if run.site == site]
    rate = None
    if frontier is not None:
        at_work = [frontier.rates[run.site, run.run] for run in runs if run.workers]
        rate = sum(found.per_second or 0 for found in at_work) if at_work else 0.0
    to_go = sum(run.to_go for run in runs)
    stopped, until, trying = None, None, False
    if state is not None and frontier is not None and state.refusal is not None:
        trying = (state.stopped_until or 0) <= frontier.now
        stopped, until = state.refusal, state.stopped_until
    elif site_counts is not None and site_counts.paused_until is not None and site_counts.paused_because is not None:
        stopped, until = site_counts.paused_because, site_counts.paused_until.timestamp()
    return Card(
        site=site,
        counts=site_counts,
        state=state,
        runs=runs,
        rate=rate,
        open_requests=to_go,
        seconds_left=to_go / rate if rate and to_go else None,
        stopped=stopped,
        stopped_until=until,
        trying=trying,
    )
