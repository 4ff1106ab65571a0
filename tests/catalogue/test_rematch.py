"""What a newer matcher says of a database in use is shown first, and done on demand."""

from __future__ import annotations

from typing import Any

import pytest

from moviecrawler.database.rematch import Change, rematch
from moviecrawler.items import Credit
from tests.catalogue.catalogued import NOW, Catalogued, outcome, page, row

IDS = "SELECT s.site_id, s.id_verified FROM title_sites s JOIN titles t USING (title_id) WHERE t.imdb_id = %s AND s.site = %s"
TITLES = "SELECT site_id, dense_rank() OVER (ORDER BY title_id) FROM records ORDER BY site_id"


def rematched(store: Catalogued, *, apply: bool) -> list[Change]:
    return [change for batch in rematch(store, apply=apply) for change in batch]


def as_the_old_matcher_left_it(store: Catalogued, site_id: str, beside: str) -> None:
    """Put a record to another's title, by machine, and take away the keys by which it is found today."""
    store.sql(
        "UPDATE records SET title_id = (SELECT title_id FROM records WHERE site_id = %s), match_keys = '{1}' WHERE site_id = %s",
        beside,
        site_id,
    )


def directed(name: str) -> list[Credit]:
    return [Credit(name=name, role="director", position=1)]


def test_a_wrong_join_is_shown_and_undone_on_demand(store: Catalogued) -> None:
    lamp = page("metacritic", "movie/lamp", "Lamp", credits=directed("Mara Levin"), runtime_minutes=90)
    other = page("rottentomatoes", "m/lamp", "Lamp", credits=directed("Ines Quarrie"), runtime_minutes=140)
    right = page("rottentomatoes", "m/lamp_2", "Lamp (Licht)", credits=directed("Levin, Mara"), runtime_minutes=91)
    store.write(lamp, other, right)
    as_the_old_matcher_left_it(store, "m/lamp_2", "m/lamp_2")
    store.sql("SELECT move_record('rottentomatoes', 'm/lamp_2')")
    store.sql("UPDATE records SET placed_by_hand = false")
    as_the_old_matcher_left_it(store, "m/lamp", "movie/lamp")
    before = store.sql(TITLES)

    shown = rematched(store, apply=False)
    assert store.sql(TITLES) == before
    changed = {change.site_id: (change.was.beside, change.becomes.beside) for change in shown}
    assert changed["m/lamp"] == (["metacritic movie/lamp"], [])
    assert changed["m/lamp_2"] == ([], ["metacritic movie/lamp"])

    assert rematched(store, apply=True) == shown
    titles: dict[Any, Any] = dict(store.sql(TITLES))
    assert titles["m/lamp_2"] == titles["movie/lamp"] != titles["m/lamp"]
    assert rematched(store, apply=True) == []


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_page_that_fits_a_title_no_more_is_looked_for_again(store: Catalogued, by_hand: bool) -> None:
    store.bring_in(row(1, title="Lamp", runtime_minutes=90))
    other = page("rottentomatoes", "m/lamp", "Lamp", year=2009, runtime_minutes=140)
    store.write(other)
    ((title_id,),) = store.sql("SELECT title_id FROM titles WHERE imdb_id = 'tt1000001'")
    accepted: dict[str, Any] = {"site": "rottentomatoes", "title_id": title_id, "evidence": "guess", "got_id": "m/lamp"}
    store.record([outcome("m/lamp", decision="accepted", score=2.0, **accepted)])
    if by_hand:
        store.sql("UPDATE title_matches SET by_hand = true")
    assert store.sql(IDS, "tt1000001", "rottentomatoes") == [("m/lamp", True)]

    shown = rematched(store, apply=False)
    assert store.sql(IDS, "tt1000001", "rottentomatoes") == [("m/lamp", True)]
    assert rematched(store, apply=True) == shown
    if by_hand:
        assert shown == []
        assert store.sql(IDS, "tt1000001", "rottentomatoes") == [("m/lamp", True)]
    else:
        assert [(change.site_id, change.was.imdb_id, change.becomes.imdb_id) for change in shown] == [
            ("m/lamp", "tt1000001", None)
        ]
        assert store.sql(IDS, "tt1000001", "rottentomatoes") == [(None, False)]
        assert store.sql("SELECT decision::text, by_hand FROM title_matches") == [("refused", False)]


def test_what_people_have_placed_stays(store: Catalogued) -> None:
    store.write(
        page("metacritic", "movie/lamp", "Lamp", credits=directed("Mara Levin")),
        page("rottentomatoes", "m/storm", "Storm", credits=directed("Ines Quarrie")),
    )
    store.sql(
        "SELECT move_record('rottentomatoes', 'm/storm', (SELECT title_id FROM records WHERE site_id = 'movie/lamp'))"
    )
    assert rematched(store, apply=True) == []
    assert len({title for _, title in store.sql(TITLES)}) == 1


def test_keys_of_sightings_are_brought_up_to_date(store: Catalogued) -> None:
    store.sql(
        "INSERT INTO sightings (site, site_id, key, source, seen_at) VALUES ('rottentomatoes', 'm/dr_lamp_ii', 'old', 'list', %s)",
        NOW,
    )
    assert rematched(store, apply=False) == []
    assert store.sql("SELECT key FROM sightings") == [("film doctorlamp2",)]
