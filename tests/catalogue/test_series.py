"""Series and their seasons in the catalogue: when they are due, and where."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from moviecrawler.catalogue.claims import claim_unfound
from moviecrawler.catalogue.figures import due, figures
from moviecrawler.catalogue.outcomes import ToldBySeries
from moviecrawler.catalogue.store import boost, fetched_since, hasten_series
from moviecrawler.items import Score
from tests.catalogue.catalogued import DAY, NOW, Catalogued, outcome, page, row

if TYPE_CHECKING:
    from datetime import datetime

    from moviecrawler.catalogue.rows import ImportRow

THIS_YEAR = NOW.year
AIRING_EVERY, AIRING_AHEAD = 7 * DAY, timedelta(hours=12)


def show(number: int = 1, **fields: Any) -> ImportRow:
    return row(number, **{"kind": "series", "year": 2001, "tells_end_year": True, **fields})


def episodes(store: Catalogued, *years: int | None, of: str = "tt1000001") -> None:
    columns = "imdb_id, series_imdb_id, season, episode, title, year"
    for number, year in enumerate(years, 1):
        added = f"INSERT INTO imdb_episodes ({columns}) VALUES (%s, %s, 1, %s, 'x', %s)"  # noqa: S608 - constants
        store.sql(added, f"{of}{number}", of, number, year)


def named(store: Catalogued, site: Any, *numbers: int, at: datetime = NOW, year: int | None = None) -> list[str]:
    """Store a series of a site, with what its page says of its seasons; return their ids."""
    form, kind = ("season-{}", "metascore") if site == "metacritic" else ("s{:02}", "tomatometer")
    series = page(site, "tv/salt", "Salt", kind="series", imdb_id="tt1000001", year=2001, scraped_at=at)
    seasons = [page(site, f"tv/salt/{form.format(number)}", f"Season {number}") for number in numbers]
    for number, season in zip(numbers, seasons, strict=True):
        season.kind, season.series_id, season.series_title, season.season = "season", "tv/salt", "Salt", number
        season.year, season.source, season.scraped_at = year or 2001 + number, "list", at
        season.scores = [Score(kind=kind, value=70, count=9)]  # type: ignore[arg-type]
    store.write(series, *seasons)
    return [str(season.site_id) for season in seasons]


def told(store: Catalogued, site: Any, *ids: str, at: datetime = NOW, year: int = 2002, **fields: Any) -> None:
    """Write what the catalogue is told when a series' page has told of seasons."""
    released = date(year, 12, 31)
    store.record(*(ToldBySeries(site=site, at=at, asked_id=site_id, released=released, **fields) for site_id in ids))


def of_season(store: Catalogued, site: str, site_id: str) -> Any:
    with store.transaction() as cursor:
        cursor.execute("SELECT * FROM title_sites WHERE site = %s AND site_id = %s", (site, site_id))
        return cursor.fetchone()


RUNNING: list[tuple[dict[str, Any], list[int | None], bool]] = [
    ({}, [THIS_YEAR], True),
    ({}, [THIS_YEAR - 2, None], True),
    ({}, [THIS_YEAR - 3], False),
    ({}, [], False),
    ({"year": THIS_YEAR - 1}, [], True),
    ({"end_year": THIS_YEAR}, [THIS_YEAR], True),  # its last season
    ({"end_year": THIS_YEAR - 1}, [THIS_YEAR - 1], False),
    ({"end_year": THIS_YEAR - 1}, [THIS_YEAR], True),  # it has begun again
    ({"kind": "movie"}, [THIS_YEAR], False),
]


def test_a_series_that_runs_is_due_after_7_days_and_others_as_films_are(store: Catalogued) -> None:
    ids = [f"tt{1_000_000 + number}" for number in range(len(RUNNING))]
    store.bring_in(*(show(number, **series) for number, (series, _, _) in enumerate(RUNNING)))
    for imdb_id, (_, years, _) in zip(ids, RUNNING, strict=True):
        episodes(store, *years, of=imdb_id)
    store.record(*(outcome(imdb_id, released=date(2001, 12, 31)) for imdb_id in ids))
    # Lane 2 takes it a little before, so that its week is kept whatever else waits, and without a boost.
    ahead = NOW + AIRING_EVERY - AIRING_AHEAD
    for imdb_id, (_, _, runs) in zip(ids, RUNNING, strict=True):
        found = store.state(imdb_id)
        assert (found.next_due, found.boost_due) == ((NOW + 7 * DAY, ahead) if runs else (NOW + 90 * DAY, None))
    assert store.claim_ids(now=ahead) == [imdb_id for imdb_id, (_, _, runs) in zip(ids, RUNNING, strict=True) if runs]


def test_a_series_that_runs_is_lane_2s_as_long_as_it_does(store: Catalogued) -> None:
    store.bring_in(show(), show(2))
    episodes(store, THIS_YEAR)
    store.record(outcome("tt1000001"), outcome("tt1000002"))
    store.boost("tt1000001", weight=3.0, now=NOW + DAY)
    store.record(outcome("tt1000001", "error", at=NOW + DAY))
    assert store.state("tt1000001").boost == 3
    store.record(outcome("tt1000001", at=NOW + 2 * DAY))
    found = store.state("tt1000001")
    assert (found.boost, found.boost_due) == (0, NOW + 9 * DAY - AIRING_AHEAD)
    seen = {site.site: site for site in figures(store, NOW + 2 * DAY, (NOW - 180 * DAY).date())}["imdb"]
    assert (seen.series, seen.boosted, seen.airing) == (2, 0, 1)
    (listed,) = due(store, "imdb", 9, NOW + 9 * DAY)
    assert (listed.queue, listed.name, listed.kind) == ("airing", "Title 1", "series")
    store.sql("DELETE FROM imdb_episodes")
    store.bring_in(show(end_year=THIS_YEAR - 1), source="again")
    store.record(outcome("tt1000001", at=NOW + 9 * DAY))
    found = store.state("tt1000001")
    assert (found.boost_due, found.next_due) == (None, NOW + 99 * DAY)


def test_a_series_of_which_an_import_says_that_it_runs_again_is_fetched_within_its_week(store: Catalogued) -> None:
    store.bring_in(show(end_year=2009), show(2, end_year=2009))
    assert store.sql("SELECT end_year FROM titles") == [(2009,), (2009,)]
    store.record(outcome("tt1000001"), outcome("tt1000002"))
    store.bring_in(show(), show(2, end_year=2009), source="again")
    assert store.sql("SELECT end_year FROM titles ORDER BY imdb_id") == [(None,), (2009,)]
    episodes(store, THIS_YEAR)
    assert hasten_series(store, NOW + DAY) == 1
    assert hasten_series(store, NOW + DAY) == 0
    assert store.claim_ids(now=NOW + 7 * DAY - AIRING_AHEAD) == ["tt1000001"]


def test_seasons_are_on_the_sites_that_named_them_and_nowhere_else(store: Catalogued) -> None:
    store.bring_in(show(popularity=77))
    named(store, "metacritic", 1, 2)
    named(store, "rottentomatoes", 2, 0)
    found = store.sql(
        "SELECT p.season, s.site::text, s.site_id FROM titles p JOIN title_sites s USING (title_id)"
        " JOIN titles t ON t.title_id = p.series_title_id WHERE t.imdb_id = 'tt1000001' ORDER BY 1, 2"
    )
    assert found == [
        (0, "rottentomatoes", "tv/salt/s00"),
        (1, "metacritic", "tv/salt/season-1"),
        (2, "metacritic", "tv/salt/season-2"),
        (2, "rottentomatoes", "tv/salt/s02"),
    ]
    assert claim_unfound(store, "rottentomatoes", 9, worker="w", lease=DAY, now=NOW) == ([], False)


def test_a_season_that_its_series_page_tells_of_is_not_fetched_until_that_stays_away(store: Catalogued) -> None:
    store.bring_in(show(end_year=2005))
    season, silent = named(store, "metacritic", 1, 2)
    store.record(outcome("tv/salt", site="metacritic", released=date(2001, 12, 31)))
    assert store.claim_ids(site="metacritic") == []  # what the page tells is still on its way
    told(store, "metacritic", season)
    found = of_season(store, "metacritic", season)
    assert (found.state, found.last_success) == ("ok", NOW)
    assert found.next_due == NOW + (90 + 14) * DAY
    # Nobody was told of the other one: the worker died.
    assert store.claim_ids(site="metacritic", now=NOW + DAY) == [silent]
    assert fetched_since(store, "metacritic", NOW - DAY) == 1  # the page of the series

    later = NOW + 90 * DAY
    store.record(outcome("tv/salt", site="metacritic", at=later, released=date(2001, 12, 31)))
    told(store, "metacritic", season, at=later)
    told(store, "metacritic", season, at=NOW)  # which comes late
    assert of_season(store, "metacritic", season).last_success == later
    assert season not in store.claim_ids(site="metacritic", now=later + 103 * DAY)
    overdue = later + 104 * DAY
    assert season in store.claim_ids(site="metacritic", now=overdue)
    # Its series' page comes while its own is fetched: the claim stays.
    told(store, "metacritic", season, at=overdue)
    assert of_season(store, "metacritic", season).claimed_by == "w"
    store.record(outcome(season, site="metacritic", at=overdue + timedelta(seconds=1), released=date(2002, 12, 31)))
    found = of_season(store, "metacritic", season)
    assert (found.claimed_by, found.next_due) == (None, overdue + 90 * DAY + timedelta(seconds=1))


def test_a_season_of_which_a_score_is_not_told_has_its_own_page_fetched(store: Catalogued) -> None:
    store.bring_in(show(end_year=2005))
    (season,) = named(store, "metacritic", 1)
    told(store, "metacritic", season, lacks_scores=True)
    assert store.claim_ids(site="metacritic")[-1] == season
    store.record(outcome(season, site="metacritic", released=date(2002, 12, 31)))
    told(store, "metacritic", season, at=NOW + DAY, lacks_scores=True)
    found = of_season(store, "metacritic", season)
    assert (found.last_success, found.next_due) == (NOW, NOW + 90 * DAY)
    told(store, "metacritic", season, at=NOW + 2 * DAY)  # the site has begun to tell all
    assert of_season(store, "metacritic", season).next_due == NOW + (2 + 104) * DAY


def test_the_newest_season_of_a_series_that_runs_is_due_with_it(store: Catalogued) -> None:
    store.bring_in(show())
    first, second = named(store, "rottentomatoes", 1, 2, year=THIS_YEAR)
    told(store, "rottentomatoes", first, second, year=2010)
    assert of_season(store, "rottentomatoes", first).next_due == NOW + 104 * DAY
    assert of_season(store, "rottentomatoes", second).next_due == NOW + 14 * DAY
    store.claims_of(site="rottentomatoes", now=NOW + 14 * DAY)
    at = NOW + 14 * DAY
    store.record(outcome(second, site="rottentomatoes", at=at, released=date(2010, 12, 31)))
    found = of_season(store, "rottentomatoes", second)
    # Lane 2 fetches the page of the series, which tells of it.
    assert (found.next_due, found.boost_due) == (at + 7 * DAY, None)


def test_a_new_season_of_a_series_that_rested_has_it_fetched_weekly(store: Catalogued) -> None:
    store.bring_in(show())
    (first,) = named(store, "rottentomatoes", 1)
    store.record(outcome("tv/salt", site="rottentomatoes", released=date(2001, 12, 31)))
    told(store, "rottentomatoes", first)
    assert store.state("tt1000001", "rottentomatoes").boost_due is None
    at = NOW + 90 * DAY
    # The outcome of the page may be written before that of what it tells of.
    store.record(outcome("tv/salt", site="rottentomatoes", at=at, released=date(2001, 12, 31)))
    _, new = named(store, "rottentomatoes", 1, 2, at=at, year=at.year)
    told(store, "rottentomatoes", new, at=at, year=at.year)
    found = store.state("tt1000001", "rottentomatoes")
    assert (found.next_due, found.boost_due) == (at + 7 * DAY, at + 7 * DAY - AIRING_AHEAD)


def test_a_season_is_as_popular_as_its_series_and_boosted_by_its_own_id(store: Catalogued) -> None:
    store.bring_in(show(popularity=77))
    ids = named(store, "metacritic", 1, 2)
    assert of_season(store, "metacritic", ids[0]).popularity == 77
    store.bring_in(show(popularity=33), source="again")
    assert of_season(store, "metacritic", ids[0]).popularity == 33
    told(store, "metacritic", *ids, at=NOW - 8 * DAY)
    assert boost(store, [("metacritic", ids[1]), ("metacritic", "tv/salt/season-9")], 1.0, NOW) == [
        ("metacritic", "tv/salt/season-9")
    ]
    named_first = [(each.queue, each.name) for each in due(store, "metacritic", 5, NOW)]
    assert named_first[0] == ("boosted", "Title 1, season 2")
    assert store.claim_ids(1, site="metacritic") == [ids[1]]
