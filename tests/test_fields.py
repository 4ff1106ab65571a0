"""Which fields a source does not mention."""

from dataclasses import fields
from typing import Any

from moviecrawler.items import Credit, Movie, Score
from moviecrawler.sites import SITES
from moviecrawler.sites.fields import (
    PLAIN_NAMES,
    unknown_fields_of,
    unknown_in_datasets,
)


def _row(**values: Any) -> Movie:
    return Movie(
        site="imdb",
        site_id="tt9100001",
        url="https://www.imdb.com/title/tt9100001/",
        title="Harbour",
        **values,
    )


def test_names_are_fields_of_movies() -> None:
    names = {field.name for field in fields(Movie)}
    assert set(PLAIN_NAMES) < names
    assert {
        name.partition(".")[0] for profile in SITES.values() for name in profile.published
    } < names


def test_a_row_of_a_list_is_silent_of_all_that_it_has_not() -> None:
    scores = [Score(kind="imdb", value=7.1)]
    people = [Credit(name="A", role="cast", position=1)]
    names = unknown_fields_of(_row(kind="movie", year=1999, scores=scores, credits=people))
    assert names == sorted(unknown := set(names))
    assert {
        "imdb_votes",
        "metascore",
        "plot",
        "directors",
        "budget",
    } < unknown
    assert (
        not {"year", "imdb_rating", "credits.cast", "season", "end_year", "tomatometer"} & unknown
    )


def test_fields_belong_to_kinds_of_titles_and_to_sources() -> None:
    # It is stated to be absent.
    assert "plot" not in unknown_fields_of(_row(kind="movie"), {"plot"})
    assert {"season", "episode", "series_id"} < set(unknown_fields_of(_row(kind="episode")))
    assert {"end_year", "creators", "imdb_top250_tv_rank"} < set(
        unknown_fields_of(_row(kind="series"))
    )
    unknown = set(unknown_in_datasets("series", frozenset({"title.basics", "title.ratings"})))
    assert {"plot", "creators", "metascore"} < unknown
    assert not {"year", "end_year", "genres", "imdb_rating"} & unknown
