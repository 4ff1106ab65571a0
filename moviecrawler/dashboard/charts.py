"""Makes the chart of a title's scores, as SVG that its template frames. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, Protocol

from moviecrawler.dashboard.rendering import score_name, site_name
from moviecrawler.sites import SCORE_SITES, SCORES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

WIDTH = 600
HEIGHT = 120
"""SVG units; the page stretches a chart."""
_STEP = 10
"""The lowest and the highest value of a chart of scores are multiples of it."""


class Curve(NamedTuple):
    """One score's values over time."""

    name: str
    path: str
    """An SVG path with a step for each change."""
    latest: float | None
    """In the score's own scale."""


class Chart(NamedTuple):
    """Scores over time, out of 100."""

    curves: list[Curve]
    lowest: int
    highest: int
    begins: datetime
    middle: datetime


class Change(Protocol):
    """A row of title_history.sql."""

    site: str
    kind: str
    since: datetime
    value: float | None
    normalised: float | None
    """Out of 100."""


def history_chart(changes: Sequence[Change], now: datetime) -> Chart | None:
    """Return the chart of a title's score history; None without a value.

    `changes` come in any order.
    """
    values = [row.normalised for row in changes if row.normalised is not None]
    if not values:
        return None
    lowest = _STEP * math.floor(min(values) / _STEP)
    highest = max(_STEP * math.ceil(max(values) / _STEP), lowest + _STEP)
    begins = min(row.since for row in changes)
    seconds = max((now - begins).total_seconds(), 1)
    rows_of: defaultdict[tuple[str, str], list[Change]] = defaultdict(list)
    for row in sorted(changes, key=lambda row: row.since):
        rows_of[row.kind, row.site].append(row)
    order = {kind: number for number, kind in enumerate(SCORES)}
    curves = []
    for kind, site in sorted(rows_of, key=lambda name: order.get(name[0], len(order))):
        rows = rows_of[kind, site]
        path = ""
        in_gap = True
        for row in rows:
            x = WIDTH * (row.since - begins).total_seconds() / seconds
            if row.normalised is not None:
                y = HEIGHT * (highest - row.normalised) / (highest - lowest)
                path += f"M{x:.1f} {y:.1f}" if in_gap else f"H{x:.1f}V{y:.1f}"
            elif not in_gap:
                path += f"H{x:.1f}"
            in_gap = row.value is None
        is_own = site == SCORE_SITES.get(kind)
        name = score_name(kind) if is_own else f"{score_name(kind)} on {site_name(site)}"
        curves.append(Curve(name, path if in_gap else f"{path}H{WIDTH}", rows[-1].value))
    return Chart(curves, lowest, highest, begins, begins + (now - begins) / 2)
