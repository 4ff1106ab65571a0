"""The progress of a run in JSON, as `scrapy progress` and `progress.json` give it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from moviecrawler.frontier.contract import RunReport


def figures_of(report: RunReport) -> dict[str, object]:
    """Return the figures of a run by name, with those of its site.

    `done` counts all outcomes but dead letters, and `failed` the dead letters of the pass, also
    those that were dropped since. `account` has each outcome.
    """
    account = report.account
    figures = msgspec.to_builtins(report)
    site = figures.pop("site_state")
    return {
        **site,
        **figures,
        "state": report.state,
        "total": account.requested,
        "done": account.ended - account.dead,
        "failed": account.dead,
        "to_go": account.open,
        "lost": account.lost,
        "per_second": report.per_second,
        "seconds_left": report.seconds_left,
    }
