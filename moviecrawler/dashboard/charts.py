"""Makes the lines of charts, as SVG that the templates frame. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from moviecrawler.sites import SCORE_SITES, SCORES, SITES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

WIDTH = 600
HEIGHT = 120
"""SVG units; the page stretches a chart."""
_STEP = 10
"""The lowest and the highest value of a chart of scores are multiples of it."""


def spark(values: Sequence[float]) -> str:
    """Return the points of a line through values at equal distances.

    0 is at the bottom, and the highest value at the top.

    >>> spark([0, 5, 10])
    '0,120 300,60 600,0'
    """
    most = max([*values, 1])
    steps = max(len(values) - 1, 1)
    return " ".join(
        f"{WIDTH * n / steps:g},{HEIGHT * (1 - value / most):g}" for n, value in enumerate(values)
    )


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


def history_chart(changes: Sequence[Any], now: datetime) -> Chart | None:
    """Return the chart of a title's score history; None without a value.

    `changes` are rows with site, kind, since and value, in any order.
    """
    # The scale of a score that only other workers know is not known here.
    changes = [row for row in changes if row.kind in SCORES]
    values = [_out_of_100(row) for row in changes if row.value is not None]
    if not values:
        return None
    lowest = _STEP * math.floor(min(values) / _STEP)
    highest = max(_STEP * math.ceil(max(values) / _STEP), lowest + _STEP)
    begins = min(row.since for row in changes)
    seconds = max((now - begins).total_seconds(), 1)
    rows_of: defaultdict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(changes, key=lambda row: row.since):
        rows_of[row.kind][row.site].append(row)
    curves = []
    for kind, form in SCORES.items():
        for site, rows in rows_of[kind].items():
            path = ""
            in_gap = True
            for row in rows:
                x = WIDTH * (row.since - begins).total_seconds() / seconds
                if row.value is not None:
                    y = HEIGHT * (highest - _out_of_100(row)) / (highest - lowest)
                    path += f"M{x:.1f} {y:.1f}" if in_gap else f"H{x:.1f}V{y:.1f}"
                elif not in_gap:
                    path += f"H{x:.1f}"
                in_gap = row.value is None
            name = form.name
            if site != SCORE_SITES[kind]:
                name = f"{name} on {SITES[site].name if site in SITES else site}"
            curves.append(Curve(name, path if in_gap else f"{path}H{WIDTH}", rows[-1].value))
    return Chart(curves, lowest, highest, begins)


def _out_of_100(row: Any) -> float:
    return float(100 * row.value / SCORES[row.kind].scale)
