"""Series and their seasons in the catalogue: when they are due, and where."""

from datetime import date, datetime, timedelta
from typing import Any

import pytest

from moviecrawler.catalogue.due import search_unfound
from moviecrawler.catalogue.figures import due
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.items import CoveredBySeries, Score
from tests.catalogued import DAY, NOW, Catalogued, outcome, page, row

SITE: Any = "metacritic"
WEEK = 7 * DAY
AHEAD = timedelta(hours=12)


def show(number: int = 1, **fields: Any) -> ImportRow:
    return row(number, **{"kind": "series", "year": 2001, "tells_end_year": True, **fields})


def named(
    store: Catalogued, *numbers: int, at: datetime = NOW, year: int | None = None, site: Any = SITE
) -> list[str]:
    """Store a series of a site, with what its page says of its seasons; return their ids."""
    form, kind = ("season-{}", "metascore") if site == "metacritic" else ("s{:02}", "tomatometer")
    series = page(
        site, "tv/salt", "Salt", kind="series", imdb_id="tt1000001", year=2001, scraped_at=at
    )
    seasons = [
        page(site, f"tv/salt/{form.format(number)}", f"Season {number}") for number in numbers
    ]
    for number, season in zip(numbers, seasons, strict=True):
        season.kind = "season"
        season.series_id = "tv/salt"
        season.series_title = "Salt"
        season.season = number
        season.year = year or 2001 + number
        season.source = "list"
        season.scraped_at = at
        season.scores = [Score(kind=kind, value=70, count=9)]
    store.write(series, *seasons)
    return [str(season.site_id) for season in seasons]


def told(store: Catalogued, *ids: str, at: datetime = NOW, year: int = 2002, **fields: Any) -> None:
    """Write what the catalogue is told when a series' page has told of seasons."""
    released = date(year, 12, 31)
    store.record(
        *(
            CoveredBySeries(site=SITE, at=at, requested_id=site_id, released=released, **fields)
            for site_id in ids
        )
    )


def of_season(store: Catalogued, site_id: str) -> Any:
    with store.transaction() as cursor:
        cursor.execute(
            "SELECT * FROM title_sites WHERE site = %s AND site_id = %s", (SITE, site_id)
        )
        return cursor.fetchone()


@pytest.mark.parametrize(
    ("fields", "years", "is_young"),
    [
        ({}, [NOW.year], True),
        ({}, [2001, NOW.year, None], True),
        ({}, [NOW.year - 1], True),
        ({"end_year": NOW.year - 1}, [NOW.year - 1], False),
        ({}, [NOW.year - 3], False),
        ({}, [], False),
        ({"year": NOW.year}, [], True),
        ({"kind": "movie"}, [], False),
    ],
)
def test_a_series_is_due_after_7_days_while_its_newest_part_is_young_and_then_as_films_are(
    store: Catalogued, fields: dict[str, Any], years: list[int | None], is_young: bool
) -> None:
    store.bring_in(show(**fields))
    for number, year in enumerate(years):
        added = "INSERT INTO imdb_episodes VALUES (%s, 'tt1000001', 1, %s, NULL, %s)"
        store.sql(added, f"tt200000{number}", number, year)
    store.record(outcome("tt1000001", released=None))
    found = store.state("tt1000001")
    expected = (NOW + WEEK, NOW + WEEK - AHEAD) if is_young else (NOW + 90 * DAY, None)
    assert (found.next_due, found.boost_due) == expected
    # It goes before others a little before its week is over, whatever else waits.
    assert store.due_ids(now=NOW + WEEK - AHEAD) == ["tt1000001"] * is_young


def test_a_series_that_rested_is_fetched_every_week_when_its_page_names_a_new_season(
    store: Catalogued,
) -> None:
    store.bring_in(show())
    (first,) = named(store, 1)
    assert first not in store.due_ids(site=SITE)
    named(store, 1, 2, year=NOW.year)
    store.record(outcome("tv/salt", site=SITE, released=date(2001, 12, 31)))
    assert store.state("tt1000001", SITE).next_due == NOW + WEEK


def test_a_series_that_has_ended_and_began_again_is_known_to(store: Catalogued) -> None:
    for end_year in (None, 2009, None):
        store.bring_in(show(end_year=end_year))
        assert store.sql("SELECT end_year FROM titles") == [(end_year,)]


def test_seasons_are_on_the_sites_that_named_them_and_nowhere_else(store: Catalogued) -> None:
    store.bring_in(show(popularity=77))
    named(store, 1, 2)
    named(store, 2, 0, site="rottentomatoes")
    found = store.sql(
        "SELECT p.season, s.site::text, s.site_id FROM titles p JOIN title_sites s USING (title_id)"
        " JOIN titles t ON t.title_id = p.series_title_id"
        " WHERE t.imdb_id = 'tt1000001' ORDER BY 1, 2"
    )
    assert found == [
        (0, "rottentomatoes", "tv/salt/s00"),
        (1, "metacritic", "tv/salt/season-1"),
        (2, "metacritic", "tv/salt/season-2"),
        (2, "rottentomatoes", "tv/salt/s02"),
    ]
    assert search_unfound(store, "rottentomatoes", 9, open_titles=(), now=NOW) == ([], False)


def test_a_season_that_its_series_page_tells_of_is_not_fetched_until_that_stays_away(
    store: Catalogued,
) -> None:
    store.bring_in(show(end_year=2005))
    season, silent = named(store, 1, 2)
    store.record(outcome("tv/salt", site=SITE, released=date(2001, 12, 31)))
    assert store.due_ids(site=SITE) == []  # what the page tells is still on its way
    told(store, season)
    found = of_season(store, season)
    assert (found.state, found.last_success, found.next_due) == ("ok", NOW, NOW + (90 + 14) * DAY)
    # Nobody was told of the other one: the worker died.
    assert store.due_ids(site=SITE, now=NOW + DAY) == [silent]

    later = NOW + 90 * DAY
    told(store, season, at=later)
    told(store, season, at=NOW)  # which comes late
    assert of_season(store, season).last_success == later
    assert season not in store.due_ids(site=SITE, now=later + 103 * DAY)
    overdue = later + 104 * DAY
    assert season in store.due_ids(site=SITE, now=overdue)
    # Its series' page comes while its own is fetched.
    told(store, season, at=overdue)
    store.record(outcome(season, site=SITE, at=overdue, released=date(2002, 12, 31)))
    assert of_season(store, season).next_due == overdue + 90 * DAY


def test_a_season_of_which_a_score_is_not_told_has_its_own_page_fetched(store: Catalogued) -> None:
    store.bring_in(show(end_year=2005))
    (season,) = named(store, 1)
    told(store, season, lacks_scores=True)
    assert store.due_ids(site=SITE)[-1] == season
    store.record(outcome(season, site=SITE, released=date(2002, 12, 31)))
    told(store, season, at=NOW + DAY, lacks_scores=True)
    found = of_season(store, season)
    assert (found.last_success, found.next_due) == (NOW, NOW + 90 * DAY)
    told(store, season, at=NOW + 2 * DAY)  # the site has begun to tell all
    assert of_season(store, season).next_due == NOW + (2 + 104) * DAY


def test_a_season_is_as_popular_as_its_series_and_boosted_by_its_own_id(store: Catalogued) -> None:
    store.bring_in(show(popularity=77))
    ids = named(store, 1, 2)
    assert of_season(store, ids[0]).popularity == 77
    store.bring_in(show(popularity=33), source="again")
    assert of_season(store, ids[0]).popularity == 33
    told(store, *ids, at=NOW - 8 * DAY)
    assert store.boost_named([(SITE, ids[1]), (SITE, "tv/salt/season-9")], 1.0, NOW) == [
        (SITE, "tv/salt/season-9")
    ]
    named_first = [(each.queue, each.title) for each in due(store, SITE, 5, NOW)]
    assert named_first[0] == ("boosted", "Title 1, season 2")
    assert store.due_ids(1, site=SITE) == [ids[1]]
