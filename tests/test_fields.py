"""Which fields a source is silent of."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from moviecrawler.fields import PLAIN_NAMES, silent_beside, silent_in_datasets, told_by
from moviecrawler.items import Credit, Movie, Score, Site


def _row(**values: Any) -> Movie:
    return Movie(
        site="imdb", site_id="tt9100001", url="https://www.imdb.com/title/tt9100001/", title="Harbour", **values
    )


def test_names_are_fields_of_movies() -> None:
    names = {field.name for field in fields(Movie)}
    assert set(PLAIN_NAMES) < names
    assert {name.partition(".")[0] for site in get_args(Site) for name in told_by(site, "movie")} < names


def test_a_row_of_a_list_is_silent_of_all_that_it_has_not() -> None:
    row = _row(
        kind="movie",
        year=1999,
        scores=[Score(kind="imdb", value=7.1)],
        credits=[Credit(name="A", role="cast", position=1)],
    )
    row.silent = silent_beside(row)
    assert row.silent == sorted(set(row.silent))
    assert {"scores.imdb.count", "scores.metascore", "plot", "credits.director", "amounts.budget"} < set(row.silent)
    assert not {"year", "scores.imdb", "credits.cast", "season", "end_year", "scores.tomatometer"} & set(row.silent)


def test_what_is_stated_to_be_absent_is_not_silent() -> None:
    assert "plot" not in silent_beside(_row(kind="movie"), {"plot"})


def test_fields_belong_to_kinds_of_titles() -> None:
    assert {"season", "episode", "series_id"} < set(silent_beside(_row(kind="episode")))
    assert {"end_year", "credits.creator", "imdb_top250_tv_rank"} < set(silent_beside(_row(kind="series")))


def test_datasets_state_what_they_have_columns_for() -> None:
    silent = silent_in_datasets("series")
    assert {"plot", "credits.creator", "scores.metascore"} < set(silent)
    assert not {"year", "end_year", "genres", "scores.imdb"} & set(silent)
