"""Plots as SVG: where lines and labels go. Pure; nothing in them is styled but by classes of the style sheet."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH, HEIGHT = 720, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 190, 12, 28
_BETWEEN_LABELS = 16
_STYLES = 6
"""Classes of lines in the style sheet, each of another colour and another dash."""
_DAY = 86_400.0
_SHORTEST = _DAY
"""Seconds that a plot covers at least."""
_TICKS = 4


@dataclass(slots=True)
class Line:
    """Values from a time on (s since 1970), each until the next; None where there was none."""

    name: str
    points: Sequence[tuple[float, float | None]]


@dataclass(slots=True, kw_only=True)
class Drawn:
    """A line as it is drawn."""

    name: str
    style: int
    path: str
    """The `d` of a path."""
    dots: list[tuple[float, float]]
    """Where the values begin; few lines have many."""
    end: tuple[float, float]
    label_y: float


@dataclass(slots=True, kw_only=True)
class Plot:
    """A plot of steps."""

    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM
    lines: list[Drawn] = field(default_factory=list)
    across: list[tuple[float, str]] = field(default_factory=list)
    """Heights of the grid's lines, and their labels."""
    along: list[tuple[float, str]] = field(default_factory=list)
    """Places on the time axis, and their labels."""


def plot(lines: Sequence[Line], now: float, low: float, high: float, *, since: float | None = None) -> Plot:
    """Return a plot of lines up to now, for values between two."""
    lines = [line for line in lines if any(value is not None for _, value in line.points)]
    first = since if since is not None else min((at for line in lines for at, _ in line.points), default=now)
    first = min(first, now - _SHORTEST)
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM

    def x(at: float) -> float:
        return round(_LEFT + (right - _LEFT) * min(1.0, max(0.0, (at - first) / (now - first))), 1)

    def y(value: float) -> float:
        return round(bottom - (bottom - _TOP) * (min(high, max(low, value)) - low) / (high - low), 1)

    drawn = []
    for place, line in enumerate(lines):
        steps = [*line.points, (now, line.points[-1][1])]
        path, at_work = [], False
        for (at, value), (until, _) in pairwise(steps):
            if value is None:
                at_work = False
                continue
            path.append(f"{'V' if at_work else f'M{x(at)} '}{y(value)}H{x(until)}")
            at_work = True
        last = next(value for _, value in reversed(line.points) if value is not None)
        end = (right if line.points[-1][1] is not None else x(line.points[-1][0]), y(last))
        dots = [(x(at), y(value)) for at, value in line.points if value is not None]
        drawn.append(
            Drawn(name=line.name, style=place % _STYLES, path="".join(path), dots=dots[:200], end=end, label_y=end[1])
        )
    _spread(drawn, bottom)
    return Plot(
        lines=drawn,
        across=[
            (y(low + (high - low) * part / _TICKS), f"{low + (high - low) * part / _TICKS:g}")
            for part in range(_TICKS + 1)
        ],
        along=[(x(at), label) for at, label in _dates(first, now)],
    )


def _spread(lines: list[Drawn], bottom: float) -> None:
    """Move labels apart that would stand on each other."""
    ordered = sorted(lines, key=lambda line: line.label_y)
    for before, line in pairwise(ordered):
        line.label_y = max(line.label_y, before.label_y + _BETWEEN_LABELS)
    floor = bottom
    for line in reversed(ordered):
        line.label_y = min(line.label_y, floor)
        floor = line.label_y - _BETWEEN_LABELS


def _dates(first: float, last: float) -> list[tuple[float, str]]:
    """Return a few days' beginnings between two times, with their names."""
    days = max(1, round((last - first) / _DAY / _TICKS))
    day = datetime.fromtimestamp(first, UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    found = []
    while day.timestamp() <= last:
        found.append((day.timestamp(), f"{day:%Y-%m-%d}"))
        day += timedelta(days=days)
    return found


@dataclass(slots=True, kw_only=True)
class Spark:
    """A small plot of shares, day by day."""

    width: int
    height: int
    path: str
    dots: list[tuple[float, float]]
    """Days that have none beside them."""


def spark(shares: Sequence[float | None], width: int = 150, height: int = 24) -> Spark:
    """Return the plot of parts of 1, of which some may be unknown.

    >>> spark([1.0, 0.5], width=12, height=12).path
    'M2 2L10 6'
    """
    space = 2
    step = (width - 2 * space) / max(1, len(shares) - 1)
    places = [
        None
        if value is None
        else (round(space + step * place, 1), round(height - space - (height - 2 * space) * value, 1))
        for place, value in enumerate(shares)
    ]
    path, dots = [], []
    for place, here in enumerate(places):
        if here is None:
            continue
        joins = place > 0 and places[place - 1] is not None
        goes_on = place + 1 < len(places) and places[place + 1] is not None
        path.append(f"{'L' if joins else 'M'}{here[0]:g} {here[1]:g}")
        if not joins and not goes_on:
            dots.append(here)
    return Spark(width=width, height=height, path="".join(path), dots=dots)
