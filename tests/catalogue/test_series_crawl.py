"""Series from an empty database to every score of three sites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.catalogue.series_crawl import TITLES, SeriesCrawl
from tests.crawling import reset

if TYPE_CHECKING:
    from pathlib import Path

SERIES = 20


@pytest.mark.long
def test_every_score_of_series_and_seasons_is_stored_and_nothing_is_fetched_twice(
    database_url: str, redis_url: str, tmp_path: Path
) -> None:
    with ReplicaProcess(titles=TITLES, series=SERIES, light=True) as replica:
        crawl = SeriesCrawl(tmp_path, replica, Collection(1, TITLES, SERIES), database_url, redis_url)
        crawl.import_all()
        crawl.crawl_all()
        assert crawl.differences() == []
        asked = crawl.title_pages()
        assert asked["imdb"] == (SERIES, 0)
        # Rotten Tomatoes' pages of series tell the scores of most of their seasons; Metacritic's lack those of users.
        assert 0 < asked["rottentomatoes"][1] < asked["metacritic"][1] / 2
        reset(replica)
        crawl.import_all()
        crawl.crawl_all()
        assert {pages for pages, _ in crawl.title_pages().values()} == {0}
