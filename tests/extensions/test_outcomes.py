from __future__ import annotations

from datetime import UTC, datetime

import pytest
from scrapy import Spider
from scrapy.utils.test import get_crawler

from moviecrawler.extensions.outcomes import TitleOutcomes
from moviecrawler.items import Miss, Movie

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def movie(source: str = "page") -> Movie:
    return Movie(site="imdb", site_id="tt0000001", url="https://x.example/", title="A", kind="movie", source=source)  # type: ignore[arg-type]


@pytest.fixture
def outcomes() -> TitleOutcomes:
    return TitleOutcomes.from_crawler(get_crawler(Spider))


def counted(outcomes: TitleOutcomes) -> dict[str, int]:
    return {
        name.removeprefix("titles/"): n for name, n in outcomes.stats.get_stats().items() if name.startswith("titles/")
    }


def test_movie_is_stored_when_every_store_has_it(outcomes: TitleOutcomes) -> None:
    outcomes.store_opened("csv")
    outcomes.store_opened("postgres")
    item = movie()
    outcomes.item_settled(item, "csv", "durable")
    assert not counted(outcomes)
    outcomes.item_settled(item, "postgres", "durable")
    assert counted(outcomes) == {"stored": 1}
    assert not outcomes.told


@pytest.mark.parametrize(
    ("one", "other", "title"),
    [("durable", "rejected", "rejected"), ("spooled", "durable", "spooled"), ("spooled", "rejected", "rejected")],
)
def test_worst_outcome_is_the_titles(outcomes: TitleOutcomes, one: str, other: str, title: str) -> None:
    outcomes.store_opened("csv")
    outcomes.store_opened("postgres")
    item = movie()
    outcomes.item_settled(item, "csv", one)  # type: ignore[arg-type]
    outcomes.item_settled(item, "postgres", other)  # type: ignore[arg-type]
    assert counted(outcomes) == {title: 1}


def test_equal_movies_are_two(outcomes: TitleOutcomes) -> None:
    outcomes.store_opened("csv")
    outcomes.item_settled(movie(), "csv", "durable")
    outcomes.item_settled(movie(), "csv", "durable")
    assert counted(outcomes) == {"stored": 2}


def test_without_a_store_a_movie_counts_when_it_is_scraped(outcomes: TitleOutcomes) -> None:
    outcomes.item_scraped(movie())
    assert counted(outcomes) == {"stored": 1}


def test_miss_counts_as_its_outcome_and_its_list_row_not_at_all(outcomes: TitleOutcomes) -> None:
    outcomes.store_opened("csv")
    miss = Miss(
        site="imdb", site_id="tt0000001", url="https://x.example/", outcome="absent", reason="404", checked_at=NOW
    )
    for item in (miss, movie("list")):
        outcomes.item_scraped(item)
        outcomes.item_settled(item, "csv", "durable")
    assert counted(outcomes) == {"absent": 1}


def test_dropped_movie_is_rejected(outcomes: TitleOutcomes) -> None:
    outcomes.item_dropped(movie())
    assert counted(outcomes) == {"rejected": 1}
