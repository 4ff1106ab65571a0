"""What a newer matcher says of a database in use is shown first, and done on demand."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.catalogue.store import CatalogueStore
from moviecrawler.database.connection import open_database
from moviecrawler.database.rematch import Change, rematch
from moviecrawler.items import Credit
from tests.catalogue.catalogued import NOW, bring_in, outcome, page, row, write
from tests.services.postgres import execute

if TYPE_CHECKING:
    from collections.abc import Iterator

IDS = "SELECT s.site_id, s.id_verified FROM title_sites s JOIN titles t USING (title_id) WHERE t.imdb_id = %s AND s.site = %s"
TITLES = "SELECT site_id, dense_rank() OVER (ORDER BY title_id) FROM records ORDER BY site_id"


@pytest.fixture
def store(database_url: str) -> Iterator[CatalogueStore]:
    with closing(CatalogueStore(lambda: open_database(database_url))) as store:
        yield store


def rematched(store: CatalogueStore, *, apply: bool) -> list[Change]:
    return [change for batch in rematch(store, apply=apply) for change in batch]


def as_the_old_matcher_left_it(database_url: str, site_id: str, beside: str) -> None:
    """Put a record to another's title, by machine, and take away the keys by which it is found today."""
    execute(
        database_url,
        "UPDATE records SET title_id = (SELECT title_id FROM records WHERE site_id = %s), match_keys = '{1}' WHERE site_id = %s",
        beside,
        site_id,
    )


def directed(name: str) -> list[Credit]:
    return [Credit(name=name, role="director", position=1)]


def test_a_wrong_join_is_shown_and_undone_on_demand(store: CatalogueStore, database_url: str) -> None:
    lamp = page("metacritic", "movie/lamp", "Lamp", credits=directed("Mara Levin"), runtime_minutes=90)
    other = page("rottentomatoes", "m/lamp", "Lamp", credits=directed("Ines Quarrie"), runtime_minutes=140)
    right = page("rottentomatoes", "m/lamp_2", "Lamp (Licht)", credits=directed("Levin, Mara"), runtime_minutes=91)
    write(database_url, lamp, other, right)
    as_the_old_matcher_left_it(database_url, "m/lamp_2", "m/lamp_2")
    execute(database_url, "SELECT move_record('rottentomatoes', 'm/lamp_2')")
    execute(database_url, "UPDATE records SET placed_by_hand = false")
    as_the_old_matcher_left_it(database_url, "m/lamp", "movie/lamp")
    before = execute(database_url, TITLES)

    shown = rematched(store, apply=False)
    assert execute(database_url, TITLES) == before
    changed = {change.site_id: (change.was.beside, change.becomes.beside) for change in shown}
    assert changed["m/lamp"] == (["metacritic movie/lamp"], [])
    assert changed["m/lamp_2"] == ([], ["metacritic movie/lamp"])

    assert rematched(store, apply=True) == shown
    titles: dict[Any, Any] = dict(execute(database_url, TITLES))  # type: ignore[arg-type]
    assert titles["m/lamp_2"] == titles["movie/lamp"] != titles["m/lamp"]
    assert rematched(store, apply=True) == []


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_page_that_fits_a_title_no_more_is_looked_for_again(
    store: CatalogueStore, database_url: str, by_hand: bool
) -> None:
    bring_in(store, row(1, title="Lamp", runtime_minutes=90))
    other = page("rottentomatoes", "m/lamp", "Lamp", year=2009, runtime_minutes=140)
    write(database_url, other)
    ((title_id,),) = execute(database_url, "SELECT title_id FROM titles WHERE imdb_id = 'tt1000001'")
    accepted: dict[str, Any] = {"site": "rottentomatoes", "title_id": title_id, "evidence": "guess", "got_id": "m/lamp"}
    store.record([outcome("m/lamp", decision="accepted", score=2.0, **accepted)])
    if by_hand:
        execute(database_url, "UPDATE title_matches SET by_hand = true")
    assert execute(database_url, IDS, "tt1000001", "rottentomatoes") == [("m/lamp", True)]

    shown = rematched(store, apply=False)
    assert execute(database_url, IDS, "tt1000001", "rottentomatoes") == [("m/lamp", True)]
    assert rematched(store, apply=True) == shown
    if by_hand:
        assert shown == []
        assert execute(database_url, IDS, "tt1000001", "rottentomatoes") == [("m/lamp", True)]
    else:
        assert [(change.site_id, change.was.imdb_id, change.becomes.imdb_id) for change in shown] == [
            ("m/lamp", "tt1000001", None)
        ]
        assert execute(database_url, IDS, "tt1000001", "rottentomatoes") == [(None, False)]
        assert execute(database_url, "SELECT decision::text, by_hand FROM title_matches") == [("refused", False)]


def test_what_people_have_placed_stays(store: CatalogueStore, database_url: str) -> None:
    write(
        database_url,
        page("metacritic", "movie/lamp", "Lamp", credits=directed("Mara Levin")),
        page("rottentomatoes", "m/storm", "Storm", credits=directed("Ines Quarrie")),
    )
    execute(
        database_url,
        "SELECT move_record('rottentomatoes', 'm/storm', (SELECT title_id FROM records WHERE site_id = 'movie/lamp'))",
    )
    assert rematched(store, apply=True) == []
    assert len({title for _, title in execute(database_url, TITLES)}) == 1


def test_keys_of_sightings_are_brought_up_to_date(store: CatalogueStore, database_url: str) -> None:
    execute(
        database_url,
        "INSERT INTO sightings (site, site_id, key, source, seen_at) VALUES ('rottentomatoes', 'm/dr_lamp_ii', 'old', 'list', %s)",
        NOW,
    )
    assert rematched(store, apply=False) == []
    assert execute(database_url, "SELECT key FROM sightings") == [("film doctorlamp2",)]
