"""Ids that a site has given up: nothing is deleted, and a title's newest record is shown."""

from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scrapy.settings import Settings

from moviecrawler.basics.errors import TransientStoreError
from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.dashboard.sql import read_sql
from moviecrawler.database.aliases import valid_aliases
from moviecrawler.database.connection import Database
from moviecrawler.database.sqlite import FILE
from moviecrawler.items import Credit, Movie, Score
from tests.runs import BEGIN, led_from, make_miss, title
from tests.services.postgres import execute
from tests.stored import Stored, groups, write

DAY = timedelta(days=1)
SITE: Any = "rottentomatoes"
FARROW = [Credit(name="Odile Farrow", role="director", position=1)]


def film(site_id: str, value: float, day: float = 0, site: Any = SITE, **fields: Any) -> Movie:
    """Return the film that all these tests are about, as its page was so many days later."""
    kind: Any = {"imdb": "imdb", "metacritic": "metascore"}.get(site, "tomatometer")
    given: dict[str, Any] = {
        "credits": FARROW,
        "year": 2001,
        "scores": [Score(kind=kind, value=value, count=50)],
        "scraped_at": BEGIN + day * DAY,
    }
    return title(site, site_id, **{**given, **fields})


def renamed(old_id: str, site_id: str, value: float, day: float, **fields: Any) -> Movie:
    """Return the film as its page was when the old id led there for good."""
    return film(site_id, value, day, fetch=led_from(old_id), **fields)


def aliases(place: Stored, now: datetime, site: Any = SITE) -> dict[str, str]:
    """Return what a crawl follows at a time."""
    settings = Settings({"DATA_DIR": str(place.folder), "DATABASE_URL": place.url})
    return valid_aliases(settings, site, now)


def shown(place: Stored) -> list[tuple[Any, ...]]:
    return [
        (row.imdb_id, row.site_ids["rottentomatoes"], row.scores["tomatometer"])
        for row in place.board()
    ]


@pytest.mark.promise(
    "A page of another title is never stored as the one that was asked for, and deletes nothing."
)
def test_a_title_under_a_new_id_is_one_row_and_its_old_record_stays(database: Stored) -> None:
    old = film("m/salt", 80)
    database.write(film("tt0000001", 7, site="imdb"), old)
    assert shown(database) == [("tt0000001", "m/salt", 80)]
    database.write(renamed("m/salt", "m/salt_harbour", 90, 1))
    assert shown(database) == [("tt0000001", "m/salt_harbour", 90)]
    assert {movie.site_id: movie.scores for movie in database.movies()}["m/salt"] == old.scores
    assert aliases(database, BEGIN + DAY) == {"m/salt": "m/salt_harbour"}
    # It stays so when either is written again, in whatever order.
    database.write(film("m/salt_harbour", 91, 2), film("tt0000001", 7.1, 2, site="imdb"))
    database.write(replace(old, source="list", scraped_at=BEGIN + 3 * DAY))
    assert shown(database) == [("tt0000001", "m/salt_harbour", 91)]


def test_the_order_in_which_old_and_new_records_come_does_not_matter(database: Stored) -> None:
    database.write(renamed("m/salt", "m/salt_harbour", 90, 1))
    database.write(film("m/salt", 80), film("tt0000001", 7, site="imdb"))
    assert shown(database) == [("tt0000001", "m/salt_harbour", 90)]


def test_a_page_of_its_own_ends_an_alias_and_an_older_one_does_not(database: Stored) -> None:
    database.write(film("m/salt", 80), renamed("m/salt", "m/salt_harbour", 90, 5))
    database.write(film("m/salt", 81, 4))  # an archived page
    assert aliases(database, BEGIN + 6 * DAY) == {"m/salt": "m/salt_harbour"}
    other = film("m/salt", 20, 5, title="Salt", credits=[], year=2025)
    database.write(other)
    assert aliases(database, BEGIN + 6 * DAY) == {}
    assert set(shown(database)) == {(None, "m/salt", 20), (None, "m/salt_harbour", 90)}
    # Nor does an older redirect make it anew, but one that is as new.
    for day, made in ((4.9, {}), (5, {"m/salt": "m/salt_harbour"})):
        database.write(renamed("m/salt", "m/salt_harbour", 90, day))
        assert aliases(database, BEGIN + 6 * DAY) == made


@pytest.mark.parametrize(("days", "is_followed"), [(89.9, True), (90, False)])
def test_an_alias_is_followed_for_90_days(days: float, is_followed: bool, database: Stored) -> None:
    database.write(renamed("m/salt", "m/salt_harbour", 90, 0))
    assert bool(aliases(database, BEGIN + days * DAY)) == is_followed
    # Asked again, it is as good as new.
    database.write(renamed("m/salt", "m/salt_harbour", 91, 90))
    assert aliases(database, BEGIN + 179 * DAY) == {"m/salt": "m/salt_harbour"}
    assert len(database.board()) == 1


def test_without_a_database_of_this_version_there_are_no_aliases(tmp_path: Path) -> None:
    settings = Settings({"DATA_DIR": str(tmp_path)})
    assert valid_aliases(settings, SITE, BEGIN) == {}
    (tmp_path / FILE).touch()
    assert valid_aliases(settings, SITE, BEGIN) == {}
    (tmp_path / FILE).write_bytes(b"no database" * 1_000)
    with pytest.raises(TransientStoreError, match="file is not a database"):
        valid_aliases(settings, SITE, BEGIN)


def test_a_title_that_was_renamed_twice_is_one_row(database: Stored) -> None:
    database.write(film("m/a", 70), film("tt0000001", 7, site="imdb"))
    database.write(renamed("m/a", "m/b", 80, 1))
    database.write(renamed("m/b", "m/c", 90, 2))
    assert shown(database) == [("tt0000001", "m/c", 90)]
    assert len(database.movies()) == 4


def test_of_two_ids_that_have_led_to_each_other_the_last_one_counts(database: Stored) -> None:
    database.write(renamed("m/b", "m/a", 70, 1))
    database.write(renamed("m/a", "m/b", 80, 2))
    assert aliases(database, BEGIN + 3 * DAY) == {"m/a": "m/b"}
    assert shown(database) == [(None, "m/b", 80)]


def test_two_records_that_name_one_imdb_id_are_one_row_with_the_newest(database: Stored) -> None:
    first = film("movie/salt", 60, 0, "metacritic", imdb_id="tt0000001")
    second = film("movie/salt-2001", 61, 1, "metacritic", imdb_id="tt0000001")
    other = film("movie/pilot", 9, 2, "metacritic", imdb_id="tt0000001", title="X", year=1950)
    database.write(film("tt0000001", 7, site="imdb", imdb_id="tt0000001"), second)
    database.write(first)
    database.write(other)  # a page may name the id of another title
    found = {row.site_ids["metacritic"]: row.scores["imdb"] for row in database.board()}
    assert found == {"movie/salt-2001": 7, "movie/pilot": None}
    database.write(replace(first, scraped_at=BEGIN + 5 * DAY))
    found = {row.site_ids["metacritic"]: row.scores["imdb"] for row in database.board()}
    assert found == {"movie/salt": 7, "movie/pilot": None}
    if database.url:  # only the shown one is fetched when it is due
        ids = execute(database.url, "SELECT site_id FROM title_sites WHERE site = 'metacritic'")
        assert set(ids) == {("movie/salt",), ("movie/pilot",)}


def test_the_miss_of_the_requested_id_ends_with_the_page_that_it_leads_to(stored: Stored) -> None:
    stored.write(make_miss(1, site=SITE, site_id="m/salt", url="https://example.com/m/salt"))
    stored.write(renamed("m/salt", "m/salt_harbour", 90, 1))
    assert stored.misses() == 0


# --- Postgres -------------------------------------------------------------------------------------


def test_a_title_keeps_its_number_its_history_and_its_place_by_hand(database_url: str) -> None:
    write(database_url, film("tt0000001", 7, site="imdb"), film("m/salt", 80))
    other = film("tt0000002", 6, site="imdb", title="Undertow", year=1950, credits=[])
    write(database_url, other)
    target = execute(database_url, "SELECT title_id FROM records WHERE site_id = 'tt0000002'")[0][0]
    execute(database_url, f"SELECT move_record('rottentomatoes', 'm/salt', {target})")
    write(database_url, renamed("m/salt", "m/salt_harbour", 90, 1))
    assert groups(database_url) == {"tt0000001", "m/salt m/salt_harbour tt0000002"}
    found = execute(
        database_url,
        "SELECT site_id, title_id, placed_by_hand FROM records WHERE site = 'rottentomatoes'",
    )
    assert set(found) == {("m/salt", None, False), ("m/salt_harbour", target, True)}
    with closing(Database(database_url)) as store, store.transaction() as cursor:
        cursor.execute(read_sql("title_history.sql"), {"id": target, "history": 9})
        history = [row.value for row in cursor.fetchall() if row.site == SITE]
    assert history == [90, 80]
    assert execute(database_url, "SELECT count(*) FROM titles") == [(2,)]


def test_seasons_under_a_new_name_replace_those_of_before(database_url: str) -> None:
    def season(series: str, **fields: Any) -> Movie:
        of_series = {"kind": "season", "series_id": series, "season": 1, "credits": []}
        return film(f"{series}/s01", 50, **{**of_series, **fields})

    write(database_url, film("tv/salt", 80, kind="series"), season("tv/salt"))
    write(
        database_url,
        renamed("tv/salt", "tv/salt_harbour", 90, 1, kind="series"),
        season("tv/salt_harbour", day=1, fetch=led_from("tv/salt/s01"), scores=[]),
    )
    assert groups(database_url) == {
        "tv/salt tv/salt_harbour",
        "tv/salt/s01 tv/salt_harbour/s01",
    }
    found = execute(database_url, "SELECT rottentomatoes_id, tomatometer FROM season_scores")
    assert found == [("tv/salt_harbour/s01", None)]


@pytest.mark.parametrize("knows_both", [False, True])
def test_the_catalogue_goes_on_with_the_id_to_which_imdb_has_merged(
    knows_both: bool, database_url: str
) -> None:
    rows = [
        ImportRow(imdb_id=imdb_id, title="Salt Harbour", kind="movie", year=2001)
        for imdb_id in ("tt0000001", "tt0000002")
    ]
    with closing(Database(database_url)) as store:
        load(store, "imdb", "1", rows[: 1 + knows_both], 1, BEGIN)
    moved = film("tt0000002", 7, 1, "imdb", imdb_id="tt0000002", fetch=led_from("tt0000001"))
    write(database_url, moved)
    for query in (
        "SELECT imdb_id FROM titles",
        "SELECT site_id FROM title_sites WHERE site = 'imdb'",
    ):
        assert execute(database_url, query) == [("tt0000002",)]


def test_a_record_that_belongs_to_a_newer_one_is_not_moved(database_url: str) -> None:
    write(database_url, film("m/salt", 80), renamed("m/salt", "m/salt_harbour", 90, 1))
    with pytest.raises(Exception, match="m/salt of rottentomatoes belongs to a newer record"):
        execute(database_url, "SELECT move_record('rottentomatoes', 'm/salt')")
