"""Renders templates, and writes figures, times and amounts in them.

All variables are escaped. A missing value is a dash.
"""

from __future__ import annotations

import math
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.filters import do_filesizeformat

from moviecrawler.basics.clock import utc_text
from moviecrawler.basics.service_urls import is_http_url
from moviecrawler.frontier.contract import OUTCOMES
from moviecrawler.sites import SCOREBOARD_KINDS, SCORES, SITES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from moviecrawler.cluster.jobs import Job, Outcome
    from moviecrawler.cluster.state import JobStatus
    from moviecrawler.frontier.contract import Account, RunReport

STATIC = files(__package__).joinpath("static")
NONE = "\N{EN DASH}"
"""Shown for an unknown number, which is not 0."""


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


def score(value: float | None, kind: str) -> str:
    """Return a score of a kind: with one decimal where its scale is 10.

    >>> score(9.0, "imdb"), score(70.0, "metascore"), score(70.0, "of another project")
    ('9.0', '70', '70')
    """
    known = SCORES.get(kind)
    has_decimal = known is not None and known.scale <= 10  # noqa: PLR2004 - the scale of ratings
    return f"{value:.1f}" if has_decimal and value is not None else plain(value)


def site_name(site: str) -> str:
    """Return a site's name; the rows of one that is not installed here have its id.

    >>> site_name("imdb"), site_name("filmograph")
    ('IMDb', 'filmograph')
    """
    return SITES[site].name if site in SITES else site


def score_name(kind: str) -> str:
    """Return the name of a kind of score, also of one that is not known here."""
    return SCORES[kind].name if kind in SCORES else kind


def share(value: float | None) -> str:
    """Return a share in percent, rounded down: only a share of 1 is 100 %.

    >>> share(0.5), share(0.9999), share(1.0)
    ('50 %', '99.9 %', '100 %')
    """
    return NONE if value is None else f"{math.floor(1000 * value) / 10:g} %"


def duration(seconds: float | None) -> str:
    """Return a time in its largest unit and the next one.

    >>> duration(-1), duration(59), duration(60), duration(3601), duration(93784)
    ('0 s', '59 s', '1 min', '1 h', '1 d 2 h')
    >>> duration(None) == duration(math.inf) == NONE
    True
    """
    if seconds is None or math.isinf(seconds):
        return NONE
    left = max(0, round(seconds))
    units = {"d": 86_400, "h": 3600, "min": 60, "s": 1}
    names = list(units)
    largest = next((name for name in names if left >= units[name]), "s")
    shown: list[str] = []
    for name in names[names.index(largest) :][:2]:
        count, left = divmod(left, units[name])
        if count or not shown:
            shown.append(f"{count} {name}")
    return " ".join(shown)


def size(count: float | None) -> str:
    """Return bytes.

    >>> size(2048), size(None) == NONE
    ('2.0 KiB', True)
    """
    return NONE if count is None else do_filesizeformat(count, binary=True)


def when(at: float | datetime | None) -> str:
    """Return a time to the minute, in UTC."""
    return NONE if at is None else utc_text(at)


def counted(count: int | None, one: str, many: str | None = None) -> str:
    """Return a number of things.

    >>> counted(1, "job"), counted(2, "job"), counted(0, "match", "matches")
    ('1 job', '2 jobs', '0 matches')
    """
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


class State(NamedTuple):
    """A state: a word, with a sign and a colour that only repeat it."""

    kind: Literal["good", "warn", "bad", "calm"]
    word: str
    more: str = ""


_RUN_STATES = {
    "running": State("good", "running"),
    "finished": State("calm", "finished"),
    "no worker": State("warn", "no worker"),
    "stopped": State("bad", "paused"),
    "probing": State("warn", "probing"),
    "budget spent": State("calm", "budget exhausted"),
}


def is_failure(outcome: Outcome) -> bool:
    """Return whether a job failed; one that was cancelled, or is unfinished in order, did not."""
    return outcome.result in {"failed", "usage", "gave_up"}


def job_state(status: JobStatus) -> State:
    """Return whether a job is pending or running, or its result."""
    outcome = status.outcome
    if outcome is None:
        return State("good" if status.state == "running" else "calm", status.state)
    word = "wrong usage" if outcome.result == "usage" else outcome.result.replace("_", " ")
    more = outcome.reason if outcome.reason not in {outcome.result, "finished"} else ""
    if is_failure(outcome):
        return State("bad", word, more)
    return State("good" if outcome.result == "ok" else "calm", word, more)


def run_state(run: RunReport) -> State:
    """Return whether a run goes on."""
    state = _RUN_STATES[run.state]
    if run.state != "stopped":
        return state
    site = run.site_state
    return state._replace(more=f"until {when(site.stopped_until)}: {site.refusal}")


def count_outcomes(account: Account) -> dict[str, int]:
    """Return what became of a run's requests, without outcomes that none of them has.

    >>> from moviecrawler.frontier.contract import Account
    >>> count_outcomes(Account(requested=4, stored=1, open=3))
    {'stored': 1, 'to go': 3}
    """
    counts = {outcome: getattr(account, outcome) for outcome in OUTCOMES}
    counts |= {"lost": account.lost, "to go": account.open}
    return {outcome: count for outcome, count in counts.items() if count}


def job_path(job: Job) -> str:
    """Return the path of a job's page."""
    return f"/crawls/{quote(job.project, safe='')}/{quote(job.id, safe='')}"


def run_path(run: RunReport) -> str:
    """Return the path of a run's page."""
    return f"/runs/{run.site}/{quote(run.run, safe='')}"


def resume_path(run: RunReport) -> str:
    """Return the path of the form that goes on with a run; empty when there is nothing to do."""
    is_unfinished = run.account.open or run.requeued
    if run.site == "replay" or not is_unfinished:
        return ""
    return f"/schedule?{urlencode({'run': f'{run.site}/{run.run}'})}"


_ENVIRONMENT = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {
    "duration": duration,
    "number": number,
    "plain": plain,
    "score": score,
    "share": share,
    "size": size,
    "when": when,
}
_ENVIRONMENT.globals |= {
    "count_outcomes": count_outcomes,
    "counted": counted,
    "is_http_url": is_http_url,
    "job_path": job_path,
    "job_state": job_state,
    "resume_path": resume_path,
    "run_path": run_path,
    "run_state": run_state,
    "score_columns": {kind: SCORES[kind].columns for kind in SCOREBOARD_KINDS},
    "score_name": score_name,
    "site_name": site_name,
}


def render(template: str, variables: Mapping[str, object]) -> str:
    """Return a page."""
    return _ENVIRONMENT.get_template(template).render(variables)
