"""Renders templates, and writes figures, times and amounts in them.

All variables are escaped. A missing value is a dash.
"""

from __future__ import annotations

import math
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.filters import do_filesizeformat

from moviecrawler.basics.clock import utc_text
from moviecrawler.sites import SCOREBOARD_KINDS, SCORES, SITES

if TYPE_CHECKING:
    from datetime import datetime

    from moviecrawler.cluster.jobs import Outcome
    from moviecrawler.sites import ScoreKind

STATIC = files(__package__).joinpath("static")
NONE = "\N{EN DASH}"
"""Stands for an unknown figure, which is not 0."""


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with commas between its thousands.

    >>> number(1234567), number(0.25, 1), number(None) == NONE
    ('1,234,567', '0.2', True)
    """
    return NONE if value is None else f"{value:,.{digits}f}"


def plain(value: float | None) -> str:
    """Return a number with at most two decimals, without trailing zeros.

    >>> plain(9.0), plain(8.75), plain(70)
    ('9', '8.75', '70')
    """
    return NONE if value is None else f"{float(value):.2f}".rstrip("0").rstrip(".")


def score(value: float | None, kind: ScoreKind) -> str:
    """Return a score of a kind: with one decimal where its scale is 10.

    >>> score(9.0, "imdb"), score(70.0, "metascore")
    ('9.0', '70')
    """
    return (
        plain(value)
        if value is None
        or kind not in SCORES  # only other workers know it
        or SCORES[kind].scale > 10  # noqa: PLR2004 - the scale of ratings
        else f"{value:.1f}"
    )


def share(value: float | None) -> str:
    """Return a share in percent, rounded down: only a share of 1 is 100 %.

    >>> share(0.5), share(0.9999), share(1.0)
    ('50 %', '99.9 %', '100 %')
    """
    return NONE if value is None else f"{math.floor(1000 * value) / 10:g} %"


def duration(seconds: float | None) -> str:
    """Return a time in its two largest units.

    >>> duration(-1), duration(0.25), duration(59), duration(3600), duration(93784)
    ('0 s', '0 s', '59 s', '1 h', '1 d 2 h')
    """
    if seconds is None or math.isinf(seconds):
        return NONE
    minutes, left = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    parts = zip((*divmod(hours, 24), minutes, left), ("d", "h", "min", "s"), strict=True)
    return " ".join([f"{count} {unit}" for count, unit in parts if count][:2]) or "0 s"


def size(count: float | None) -> str:
    """Return bytes."""
    return NONE if count is None else do_filesizeformat(count, binary=True)


def when(at: float | datetime | None) -> str:
    """Return a time to the minute, in UTC."""
    return NONE if at is None else utc_text(at)


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a number of things.

    >>> counted(1, "job"), counted(2, "job"), counted(0, "match", "matches")
    ('1 job', '2 jobs', '0 matches')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def is_failure(outcome: Outcome) -> bool:
    """Return whether a job failed; one that was cancelled, or is unfinished in order, did not."""
    return outcome.result in {"failed", "usage", "gave_up"}


def safe_url(url: str) -> str | None:
    """Return a URL if it may be linked to. A URL from a site's page could be a script.

    >>> safe_url("https://www.imdb.com/"), safe_url("javascript:alert(1)"), safe_url("http://[")
    ('https://www.imdb.com/', None, None)
    """
    try:
        return url if urlsplit(url).scheme in {"http", "https"} else None
    except ValueError:
        return None


class _Names(dict[str, str]):
    """Names of sites or of scores; one that only other workers know is called by its id."""

    def __missing__(self, key: str) -> str:
        return key


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined
    )
    made.filters |= {
        write.__name__: write for write in (number, plain, score, share, duration, size, when)
    }
    made.globals.update(
        sites=_Names({site: profile.name for site, profile in SITES.items()}),
        score_names={kind: SCORES[kind].name for kind in SCOREBOARD_KINDS},
        score_columns={kind: SCORES[kind].columns for kind in SCOREBOARD_KINDS},
        finer_names=_Names({kind: form.name for kind, form in SCORES.items()}),
    )
    made.globals.update(counted=counted, safe_url=safe_url, is_failure=is_failure)
    return made


_ENVIRONMENT = _environment()


def render(template: str, **variables: Any) -> str:
    """Return a page."""
    return _ENVIRONMENT.get_template(template).render(**variables)
