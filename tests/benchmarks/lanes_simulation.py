"""Thirty days of crawling a catalogue at the default budgets, with a clock of its own.

usage: python -m tests.benchmarks.lanes_simulation [TITLES] [DAYS]

100,000 titles on three sites; every day 40 titles are boosted, 100 stand on the lists of what is popular, 50 are new. IMDb
refuses everything for a day and a half. 1,500 are series that run, of which 20 have a season that starts each day. 2 % of the pages fail. Nothing is fetched: `catalogue.lanes` decides, and what
it promises is counted from what was asked for when.
"""

from __future__ import annotations

import time
from datetime import timedelta

from tests.benchmarks.harness import numbers, table
from tests.catalogue.simulated import Figures, Scenario, simulate


def span(time_: timedelta | None) -> str:
    if time_ is None:
        return "not yet"
    return f"{time_.days} d {time_.seconds // 3600} h" if time_ >= timedelta(days=1) else f"{time_.seconds // 3600} h"


def fewest(seen: Figures) -> str:
    return "-" if seen.fewest_unread is None else f"{seen.fewest_unread:,}"


def rows(budget: int, seen: Figures) -> dict[str, str]:
    return {
        "pages a day allowed": f"{budget:,}",
        "most pages on one day": f"{seen.busiest_day:,}",
        "pages for boosted titles": f"{seen.fetched['boosted']:,}",
        "pages for the first time": f"{seen.fetched['unread']:,}",
        "pages again": f"{seen.fetched['stale']:,}",
        "most popular hundredth asked for after": span(seen.popular_read_after),
        "pages again, ahead of a more popular unread title": f"{seen.ahead_of_popular:,}",
        "longest from a boost to the page": span(seen.boost_waited),
        "seasons of series that start to air": f"{seen.premieres:,}",
        "longest from a season's start to its series' page": span(seen.premiere_waited),
        "boosted pages twice in seven days": f"{seen.twice_a_week:,}",
        "fewest first pages a day while more wait": fewest(seen),
        "longest overdue when fetched": span(seen.overdue),
        "longest overdue at the end": span(seen.still_overdue),
        "never asked for, at the end": f"{seen.unread:,}",
    }


def main() -> None:
    titles, days = numbers(100_000, 30, least=(2_000, 1))
    scenario = Scenario(titles=titles, days=days)
    began = time.monotonic()
    seen = simulate(scenario)
    print(f"{titles:,} titles, {days} days, in {time.monotonic() - began:.1f} s\n")
    columns = [rows(scenario.budgets[site], of) for site, of in seen.items()]
    table(["", *seen], [(name, *(column[name] for column in columns)) for name in columns[0]])


if __name__ == "__main__":
    main()
