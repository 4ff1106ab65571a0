"""Thirty days of a site's catalogue in Postgres, in seconds: no queue starves, and titles stay as fresh as the budget allows.

usage: python -m tests.benchmarks.catalogue_days [TITLES]

Workers claim 25 titles at a time until the day's budget is spent, and say what became of them: 2 % of the pages fail, and one worker in
fifty dies with what it holds. A tenth of the titles are young, a hundredth are series that run; half of the others were fetched within the
last 90 days. 20 titles are boosted each day; on day 10 the site refuses everything. The program fails when a promise is broken.
"""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime, timedelta

from moviecrawler.catalogue.claims import claim, extend
from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.outcomes import Fetched, record
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.store import boost
from moviecrawler.database.connection import Database, open_database
from tests.benchmarks.harness import numbers
from tests.services.postgres import PostgresServer, execute, new_database

START = datetime(2026, 11, 1, tzinfo=UTC)
DAY, LEASE = timedelta(days=1), timedelta(hours=2)
DAYS, REFUSED_ON = 30, 10


def imdb_id(number: int) -> str:
    return f"tt{1_000_000 + number}"


def fill(database: Database, url: str, titles: int) -> None:
    rows = [
        ImportRow(
            imdb_id=imdb_id(number),
            title=f"Title {number}",
            kind="series" if number % 100 == 0 else "movie",
            year=2026 if number % 100 == 0 or number % 10 == 1 else 1990,
            popularity=90.0 * (1 - number / titles),
        )
        for number in range(titles)
    ]
    load(database, "days", "1", rows, titles, START)
    execute(
        url,
        "UPDATE title_sites SET state = 'ok', last_success = %s - (title_id * 7 %% 90) * interval '1 day',"
        " next_due = %s + (90 - title_id * 7 %% 90) * interval '1 day' WHERE site = 'imdb' AND title_id %% 2 = 0",
        START,
        START,
    )


def main() -> None:
    (titles,) = numbers(20_000, least=(2_000,))
    budget = titles // 40  # a day: what fresh and stale ones need, and as much again for those that are unread
    luck = random.Random(1)  # noqa: S311 - repeatable
    got: dict[str, int] = {"boosted": 0, "others": 0}
    waited: list[timedelta] = []
    with PostgresServer() as server:
        url = new_database(server.url)
        with closing(Database(lambda: open_database(url))) as database:
            fill(database, url, titles)
            for day in range(DAYS):
                begin = START + day * DAY
                named = [imdb_id(number) for number in luck.sample(range(titles), 20)]
                boost(database, [("imdb", name) for name in named], 1.0, begin)
                asked = dict.fromkeys(named, begin)
                left, turn = budget, 0
                while left > 0:
                    now = begin + turn * timedelta(minutes=10)
                    worker, turn = f"w{turn}", turn + 1
                    claims = claim(database, "imdb", min(25, left), worker=worker, lease=LEASE, now=now)
                    if not claims:
                        break
                    left -= len(claims)
                    if luck.random() < 0.02:
                        continue  # it died: what it held is due again when its lease ends
                    assert extend(database, worker, now + LEASE, [each.title_id for each in claims])
                    ends = [
                        Fetched(
                            site="imdb",
                            outcome="blocked" if day == REFUSED_ON else "error" if luck.random() < 0.02 else "ok",
                            at=now,
                            asked_id=each.ids[0],
                            title_id=each.title_id,
                        )
                        for each in claims
                    ]
                    record(database, ends)
                    for each in claims:
                        got["boosted" if each.boosted else "others"] += 1
                        if each.ids[0] in asked:
                            waited.append(now - asked.pop(each.ids[0]))
        last = START + DAYS * DAY
        shown = "SELECT count(*) FILTER (WHERE {}), count(*) FROM title_sites s JOIN titles t USING (title_id) WHERE site = 'imdb' AND {}"
        ((unread, all_titles),) = execute(url, shown.format("last_success IS NULL", "true"))
        ((late, running),) = execute(
            url,
            shown.format("last_success < %s - interval '8 days'", "kind = 'series' AND last_success IS NOT NULL"),
            last,
        )
        ((overdue, read),) = execute(
            url, shown.format("next_due < %s - interval '10 days'", "last_success IS NOT NULL"), last
        )
        ((held,),) = execute(url, "SELECT count(*) FROM title_sites WHERE claimed_until > %s", last + LEASE)
    print(
        f"{sum(got.values()):,} pages in {DAYS} days, {got['boosted']:,} of them boosted; {unread:,} of {all_titles:,} titles are unread"
    )
    print(f"boosted titles waited {max(waited)} at most; {late:,} of {running:,} series that run are older than 8 days")
    print(f"{overdue:,} of {read:,} titles that were read are overdue by more than 10 days; {held} claims are left")
    assert max(waited) < DAY, "a boosted title waited"
    assert int(str(unread)) < titles // 2 - titles // 20, "unread titles starve"
    assert int(str(late)) <= int(str(running)) // 20, "series that run starve"
    assert int(str(overdue)) <= int(str(read)) // 10, "stale titles starve"
    assert held == 0


if __name__ == "__main__":
    main()
