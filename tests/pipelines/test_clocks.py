"""A clock that is wrong stops the start, and what was stored by one gives way."""

import asyncio
import datetime as dt
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import CloseSpider
from scrapy.utils.test import get_crawler

from moviecrawler.clock import utc_now
from moviecrawler.database.embedded import read_embedded
from moviecrawler.extensions.clock import ClockCheck
from moviecrawler.items import Score
from moviecrawler.pipelines.postgres import PostgresStore
from moviecrawler.pipelines.sqlite import SqliteStore
from tests.pipelines.runs import make_movie, record_of
from tests.pipelines.stored import opened
from tests.services.postgres import execute

AHEAD = timedelta(days=400)


@pytest.mark.promise("A clock that is wrong stops the start.")
@pytest.mark.parametrize("service", ["redis_url", "database_url"])
@pytest.mark.parametrize(
    ("minutes", "said"),
    [(3, "3 minutes ahead of"), (-200, "200 minutes behind"), (1, None)],
    ids=str,
)
def test_a_clock_that_differs_from_a_servers_stops_the_start(
    service: str,
    minutes: int,
    said: str | None,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Wrong(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return dt.datetime.now(tz) + timedelta(minutes=minutes)

    settings = {service.upper(): request.getfixturevalue(service)}
    monkeypatch.setattr("moviecrawler.extensions.clock.datetime", Wrong)
    check = ClockCheck.from_crawler(get_crawler(settings_dict=settings))
    if said is None:
        asyncio.run(check.spider_opened())
        return
    with pytest.raises(CloseSpider):
        asyncio.run(check.spider_opened())
    whose = "Redis" if service == "redis_url" else "Postgres"
    why = f"the clock of this machine is {said} that of {whose}, so nothing is crawled"
    assert why in caplog.text


def test_the_history_of_scores_has_nothing_of_the_future(database_url: str, tmp_path: Path) -> None:
    now = utc_now()
    with opened(PostgresStore(database_url)) as store, opened(SqliteStore(tmp_path)) as embedded:
        for when, value in ((now - AHEAD, 6), (now + AHEAD, 7), (now, 7)):
            movie = make_movie(
                1, scraped_at=when, scores=[Score(kind="imdb", value=value, count=10)]
            )
            began = utc_now()
            store.write([record_of(movie)])
            embedded.write([record_of(movie)])
    rows = execute(database_url, "SELECT since, value::integer FROM score_history ORDER BY since")
    assert rows == [(now - AHEAD, 6), (now, 7)]
    assert execute(database_url, "SELECT value::integer FROM scores") == [(7,)]
    with closing(read_embedded(tmp_path)) as connection:
        history = connection.execute(
            "SELECT since, value FROM score_history ORDER BY since"
        ).fetchall()
        ((updated_at,),) = connection.execute("SELECT updated_at FROM movies")
    assert [(datetime.fromisoformat(since), value) for since, value in history] == rows
    # Since then only the time of the reading has changed.
    assert datetime.fromisoformat(updated_at) <= began
