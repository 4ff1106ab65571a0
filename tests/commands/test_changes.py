"""`scrapy changes` prints what has changed since a day, or since the last crawl."""

import csv
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.items import Movie, Score
from moviecrawler.replica.process import ReplicaProcess
from tests import crawling
from tests.runs import RENT, STREAM, make_movie
from tests.services.replica import IDS
from tests.stored import Stored

TODAY = datetime.now(UTC).replace(microsecond=0)
LONG_AGO = TODAY - timedelta(days=9)
HEADER = ["Title", "Year", "What", "Before", "Now"]


def rated(number: int, value: float | None, day: datetime, **fields: Any) -> Movie:
    scores = [] if value is None else [Score(kind="imdb", value=value, count=9_000)]
    return replace(
        make_movie(number, title=f"Film {number}", year=2001, scores=scores),
        scraped_at=day,
        **fields,
    )


def write(database: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [rated(number, 7.0, LONG_AGO, offers=[STREAM, RENT]) for number in (1, 2, 3)]
    now = [
        rated(1, 7.5, TODAY, offers=[STREAM, replace(RENT, price=1.5)]),
        rated(2, 5.0, TODAY, offers=[RENT, replace(RENT, quality="4K")]),
        rated(3, 7.0, TODAY, offers=[STREAM, RENT], runtime_minutes=99),
        rated(4, 6.0, TODAY),
        rated(5, None, TODAY, runtime_minutes=99),
        rated(6, 8.0, TODAY),
        rated(7, None, TODAY),
    ]
    before += [rated(number, None, LONG_AGO) for number in (4, 5)]
    for day, movies in ((LONG_AGO, before), (TODAY, now)):
        monkeypatch.setattr("moviecrawler.database.records.utc_now", lambda day=day: day)
        database.write(*movies)


@pytest.mark.promise("scrapy changes tells scores, titles and offers that are others than before.")
def test_what_is_another_than_before_is_told_and_nothing_else(
    database: Stored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(database, monkeypatch)

    def changes(*arguments: str) -> crawling.Finished:
        return crawling.scrapy("changes", *arguments, data=tmp_path, DATABASE_URL=database.url)

    day = f"{TODAY:%Y-%m-%d}" if TODAY.hour else f"{TODAY - timedelta(days=1):%Y-%m-%d}"
    table = changes("--since", day)
    assert table.code == 0, table.log
    header, _, *lines = table.output.splitlines()
    assert header.split() == HEADER
    assert [" ".join(line.split()) for line in lines] == [
        "Film 2 2001 IMDb rating down 7.0 5.0",
        "Film 1 2001 IMDb rating up 7.0 7.5",
        "Film 4 2001 IMDb rating new score – 6.0",
        "Film 6 2001 new title",
        "Film 7 2001 new title",
        "Film 2 2001 new offer: Vudu, rent, US, 4K",
        "Film 2 2001 offer ended: Netflix, subscription, US",
    ]
    printed = changes("--since", day, "--format", "csv").output
    rows = list(csv.DictReader(printed.splitlines()))
    found = json.loads(changes("--since", day, "--format", "json").output)
    assert [row["change"] for row in rows] == [row["change"] for row in found]
    assert list(rows[0]) == list(found[0])
    fall: dict[str, Any] = {
        "change": "down",
        "title": "Film 2",
        "imdb_id": "tt0000002",
        "score": "imdb",
    }
    fall |= {"before": 7, "now": 5, "at": TODAY.isoformat()}
    assert found[0].items() >= fall.items()
    later = f"{TODAY + timedelta(days=2):%Y-%m-%d}"
    nothing = changes("--since", later)
    assert (nothing.code, nothing.output) == (0, f"nothing has changed since {later} 00:00 UTC\n")


def test_without_a_day_the_changes_are_those_of_the_last_crawl(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    assert "say since when, with --since" in crawling.scrapy("changes", data=tmp_path).log
    for film in IDS[:2]:
        ended = crawling.crawl("imdb", f"ids={film}", "via=pages", data=tmp_path, replica=replica)
        assert ended.code == 0, ended.log
    (change,) = json.loads(crawling.scrapy("changes", "--format", "json", data=tmp_path).output)
    assert (change["change"], change["imdb_id"]) == ("new title", IDS[1])
