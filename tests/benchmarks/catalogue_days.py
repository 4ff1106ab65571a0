"""Thirty days of a site's catalogue in Postgres, in seconds.

usage: python -m tests.benchmarks.catalogue_days [TITLES]

No queue starves, and titles stay as fresh as the budget allows. A queue is fed with 32 titles at a
time, while fewer than 64 are open, until the day's budget is spent. Workers fetch 25 of them at a
time: 2 % of the pages fail, and one worker in fifty dies, so that what it held is fetched next. A
tenth of the titles are young, a hundredth are series that run; half of the others were fetched
within the last 90 days. 20 titles are boosted each day; on day 10 nothing can be reached. The
program fails when a promise is broken.
"""

import random
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

from moviecrawler.catalogue.due import select_due
from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.outcomes import write_outcomes
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.store import boost_named
from moviecrawler.database.connection import Database
from moviecrawler.frontier.serialisation import DueTitle
from moviecrawler.items import Fetched
from tests.benchmarks.harness import figure, numbers
from tests.services.postgres import PostgresServer, execute, new_database

START = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)
DAYS = 30
AWAY_ON = 10
BATCH = 32
MAX_OPEN = 64
IMDB_ID = "tt1%06d"
FETCHED = """
UPDATE title_sites
SET state = 'ok', last_success = %s - (title_id * 7 %% 90) * interval '1 day',
    next_due = %s + (90 - title_id * 7 %% 90) * interval '1 day'
WHERE site = 'imdb' AND title_id %% 2 = 0
"""
FOUND = """
SELECT count(*), count(*) FILTER (WHERE last_success IS NULL),
    count(*) FILTER (WHERE kind = 'series' AND last_success < %s - interval '8 days'),
    count(*) FILTER (WHERE last_success IS NOT NULL AND next_due < %s - interval '10 days')
FROM title_sites s JOIN titles t USING (title_id) WHERE site = 'imdb'
"""


def title(number: int, titles: int) -> ImportRow:
    is_series = number % 100 == 0
    popularity = 90.0 * (1 - number / titles)
    year = 2026 if is_series or number % 10 == 1 else 1990
    kind: Any = "series" if is_series else "movie"
    return ImportRow(
        imdb_id=IMDB_ID % number,
        title=f"Title {number}",
        kind=kind,
        year=year,
        popularity=popularity,
    )


def main() -> None:
    (titles,) = numbers(20_000, least=(2_000,))
    # A day: what fresh and stale ones need, and as much again for those that are unread.
    batches = titles // 1_000
    luck = random.Random(1)  # noqa: S311 - repeatable
    pages = 0
    waited = timedelta()
    queue: list[DueTitle] = []
    with PostgresServer() as server:
        url = new_database(server.url)
        with closing(Database(url)) as database:
            load(
                database,
                "days",
                "1",
                [title(number, titles) for number in range(titles)],
                titles,
                START,
            )
            execute(url, FETCHED, START, START)
            for day in range(DAYS):
                begin = START + day * DAY
                asked = {IMDB_ID % number: begin for number in luck.sample(range(titles), 20)}
                with database.transaction() as cursor:
                    boost_named(cursor, [("imdb", name) for name in asked], 1.0, begin)
                for turn in range(batches):
                    now = begin + turn * timedelta(minutes=10)
                    while len(queue) < MAX_OPEN:
                        open_titles = [each.title_id for each in queue]
                        found = select_due(
                            database, "imdb", BATCH, open_titles=open_titles, now=now
                        )
                        if not found:
                            break
                        queue += found
                    queue.sort(key=lambda each: not each.boosted)
                    if luck.random() < 0.02:
                        continue  # a worker died: what it held is fetched next
                    taken = queue[:25]
                    del queue[:25]
                    weights = [0, 0, 1] if day == AWAY_ON else [98, 2, 0]
                    ends: Any = luck.choices(["ok", "error", "put off"], weights, k=len(taken))
                    told = [
                        Fetched(
                            site="imdb",
                            outcome=end,
                            at=now,
                            requested_id=each.ids[0],
                            title_id=each.title_id,
                        )
                        for each, end in zip(taken, ends, strict=True)
                    ]
                    with database.transaction() as cursor:
                        cursor.execute("SELECT lock_titles()")
                        write_outcomes(cursor, told, Counter())
                    pages += len(taken)
                    waits = [now - asked.pop(each.ids[0]) for each in taken if each.ids[0] in asked]
                    waited = max([waited, *waits])
        last = START + DAYS * DAY
        rows: Any = execute(url, FOUND, last, last)
    ((known, unread, late, overdue),) = rows
    print(
        f"{pages:,} pages in {DAYS} days; {unread:,} of {known:,} titles are unread; "
        f"boosted titles waited {waited} at most"
    )
    print(
        f"{late:,} of {titles // 100:,} series that run are older than 8 days; "
        f"{overdue:,} titles are overdue by more than 10 days"
    )
    figure("days that a boosted title waited", waited / DAY, at_most=1)
    figure("unread titles, of all", unread / titles, at_most=0.45)
    figure("running series older than 8 days, of all titles", late / titles, at_most=1 / 2_000)
    figure("titles overdue by 10 days, of those read", overdue / (known - unread), at_most=0.1)


if __name__ == "__main__":
    main()
