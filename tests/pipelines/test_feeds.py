"""Scrapy's own feeds have titles, whatever else a crawl yields."""

import csv
import json
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests import crawling
from tests.services.replica import IDS


@pytest.mark.promise("Scrapy's own feeds have a title a row, and no misses unless these are named.")
def test_a_feed_has_titles_alone_and_in_csv_the_columns_of_the_file(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    """The first item is a miss, whose fields would be the columns of Scrapy's own CSV."""
    named = {
        "out.csv": {},
        "out.jsonl": {},
        "some.csv": {"fields": ["title", "directors", "imdb_votes"]},
        "misses.csv": {"item_classes": ["moviecrawler.items.Miss"]},
        "both.csv": {"item_classes": ["moviecrawler.items.Miss", "moviecrawler.items.Movie"]},
    }
    feeds = {
        str(tmp_path / name): {"format": Path(name).suffix[1:], **options}
        for name, options in named.items()
    }
    ended = crawling.crawl(
        "imdb",
        f"ids=tt0900001,{IDS[0]}",
        "via=pages",
        data=tmp_path,
        replica=replica,
        CONCURRENT_REQUESTS="1",
        FEEDS=json.dumps(feeds),
    )
    assert ended.code == 0, ended.log

    def rows(name: str) -> list[dict[str, str]]:
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    assert rows("out.csv") == rows("movies.csv")
    (movie,) = map(json.loads, (tmp_path / "out.jsonl").read_text("utf-8").splitlines())
    assert (movie["site_id"], movie["scores"][0]["kind"]) == (IDS[0], "imdb")
    (some,) = rows("some.csv")
    assert list(some) == ["title", "directors", "imdb_votes"]
    assert some["title"] == movie["title"]
    (miss,) = rows("misses.csv")
    assert (miss["site_id"], miss["outcome"]) == ("tt0900001", "absent")
    assert len(rows("both.csv")) == 2
    assert {row["title"] for row in rows("both.csv")} == {"", movie["title"]}
