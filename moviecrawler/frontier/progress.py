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
    site: dict[str, object] = msgspec.to_builtins(report.site_state)
    return site | {
        "run": report.run,
        "arguments": report.arguments,
        "state": report.state,
        "total": account.requested,
        "done": account.ended - account.dead,
        "failed": account.dead,
        "to_go": account.open,
        "lost": account.lost,
        "account": msgspec.to_builtins(account),
        "dead_letters": report.dead_letters,
        "requeued": report.requeued,
        "workers": report.workers,
        "started_at": report.started_at,
        "ended_at": report.ended_at,
        "now": report.now,
        "per_second": report.per_second,
        "seconds_left": report.seconds_left,
    }
