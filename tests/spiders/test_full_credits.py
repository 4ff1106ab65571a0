"""IMDb's page of full credits is fetched beside each title's page, and both are one record."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler.items import Movie
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites.imdb.replica import full_cast
from tests.crawling import Finished, scrapy
from tests.processes import crawl_command
from tests.scripted_site import Site, Told
from tests.services.replica import COLLECTION
from tests.stored import Stores
from tests.tables import sqlite_movies

FILMS = [movie for movie in COLLECTION.pages("imdb") if movie.kind == "movie"][:5]
WHOLE, BROKEN, ABSENT, OTHER, ODD = (str(film.site_id) for film in FILMS)


@pytest.fixture
def credited(replica: ReplicaProcess) -> Iterator[Site]:
    """Return the replica, but for some of its pages of full credits."""
    with Site(behind=replica.urls["imdb"]) as credited:
        credited.answers[_credits_path(BROKEN)] = Told(500)
        credited.answers[_credits_path(ABSENT)] = Told(404, b"<html>" + b"Salt. " * 1000)
        credited.answers[_credits_path(ODD)] = Told(200, b"<html><body>" + b"Salt. " * 1000)
        yield credited


def _credits_path(site_id: str) -> str:
    return f"/title/{site_id}/fullcredits/"


def _crawl(site: Site, *ids: str, data: Path, **settings: str) -> Finished:
    named = f"ids={','.join(ids)}"
    command = crawl_command("imdb", named, "credits=full", IMDB_URL=site.url)
    return scrapy(*command, data=data, replica=None, **settings)


def _cast(movies: list[Movie]) -> dict[str, list[str | None]]:
    return {str(movie.site_id): [one.name for one in movie.people("cast")] for movie in movies}


@pytest.mark.promise("A title's full credits are fetched on request, and stored in its record.")
@pytest.mark.promise(
    "Every store holds the same records, and a replay of the archived pages gives them again."
)
def test_full_credits_are_in_each_store_and_those_that_cannot_be_had_are_told(
    credited: Site, stores: Stores, tmp_path: Path
) -> None:
    data = tmp_path / "first"
    credited.answers[_credits_path(OTHER)] = Told(302, headers={"Location": _credits_path(WHOLE)})
    ids = [str(film.site_id) for film in FILMS]
    finished = _crawl(credited, *ids, data=data, **stores.settings)
    own = _cast(FILMS)
    full = {**own, WHOLE: [credit.name for credit in full_cast(FILMS[0])]}
    assert len(full[WHOLE]) > len(own[WHOLE])
    assert finished.code == 1
    assert finished.stat("titles/stored") == 2
    assert finished.stat("titles/failed") == 3
    for movies in (sqlite_movies(data), *stores.movies()):
        assert _cast(movies) == full
    assert len(finished.movies) == len(FILMS)
    reasons = finished.reasons
    assert reasons.keys() == {BROKEN, OTHER, ODD}
    assert reasons[BROKEN] == "full credits: HTTP status 500"
    assert f"the page is that of {WHOLE}" in reasons[OTHER]

    (whole,) = (movie for movie in sqlite_movies(data) if movie.site_id == WHOLE)
    assert whole.people("cast")[-1].character == "Passer-by 30"
    assert whole.plot == FILMS[0].plot

    again = tmp_path / "again"
    replayed = scrapy("replay", stores.archive, data=again, replica=None, **stores.s3)
    assert _cast(sqlite_movies(again)) == full, replayed.log


def test_the_budget_counts_full_credits_and_a_title_of_which_they_wait_is_asked_for_again(
    credited: Site, tmp_path: Path
) -> None:
    budget = '{"imdb": {"per_day": 3}}'
    finished = _crawl(credited, WHOLE, OTHER, data=tmp_path, SITE_BUDGETS=budget)
    assert finished.code == 3
    assert len(credited.pages) == 3
    assert _cast(sqlite_movies(tmp_path)).keys() < {WHOLE, OTHER}
    assert _crawl(credited, WHOLE, OTHER, data=tmp_path).code == 0
    assert {len(cast) for cast in _cast(sqlite_movies(tmp_path)).values()} == {30}
