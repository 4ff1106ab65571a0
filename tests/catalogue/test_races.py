"""What happens to a title, or to the database, while a worker fetches its page."""

from datetime import timedelta
from typing import Any

import pytest

from moviecrawler.frontier.serialisation import DueTitle
from tests.catalogued import (
    DAY,
    NOW,
    Catalogued,
    judged,
    outcome,
    page,
    row,
    wikidata,
)
from tests.runs import led_from

SITE: Any = "rottentomatoes"


def ended(found: DueTitle, how: Any = "ok", **fields: Any) -> Any:
    """Return the outcome of the first id of a title that was due."""
    if found.evidence is None:
        return outcome(found.ids[0], how, site=SITE, title_id=found.title_id, **fields)
    return judged(
        found.ids[0], found.title_id, None, outcome=how, evidence=found.evidence, **fields
    )


def compared(found: DueTitle, site_id: str, decision: Any, **fields: Any) -> Any:
    return judged(
        found.ids[0], found.title_id, decision, evidence=found.evidence, page_id=site_id, **fields
    )


def linked(store: Catalogued, number: int, site_id: str, score: float = 2.5) -> None:
    """Have a page be read and found to be a title's."""
    store.write(page(SITE, site_id, f"Title {number}"))
    store.record(judged(site_id, store.title_id(f"tt{1_000_000 + number}"), score=score))


@pytest.mark.parametrize("how", ["refused", "absent", "error"])
@pytest.mark.parametrize("source", ["wikidata", "list"])
def test_what_came_of_an_old_id_says_nothing_of_the_one_that_an_import_has_brought(
    store: Catalogued, source: str, how: str
) -> None:
    store.bring_in(row(1, title="Old"))
    if source == "list":
        store.list_names(SITE, "m/old")
    else:
        store.bring_in(wikidata(1, "m/old"))
    (found,) = store.unfound() or store.due(site=SITE)
    store.bring_in(wikidata(1, "m/new", "given", 4.0))
    store.record(compared(found, "m/old", "refused") if how == "refused" else ended(found, how))
    stored = store.state("tt1000001", SITE)
    assert (stored.site_id, stored.state, stored.failures) == ("m/new", "never", 0)
    assert [each.ids for each in store.due(site=SITE)] == [["m/new"]]


def test_a_record_that_is_moved_while_it_is_fetched_takes_its_outcome_along(
    store: Catalogued,
) -> None:
    store.bring_in(row(1))
    linked(store, 1, "m/one")
    (found,) = store.due(site=SITE, now=NOW + 100 * DAY)
    (moved,) = store.sql("SELECT move_record('rottentomatoes', 'm/one')")[0]
    store.record(ended(found, page_id="m/one", at=NOW + 100 * DAY))
    columns = "state::text, site_id, last_success"
    statement = (
        f"SELECT {columns} FROM title_sites"  # noqa: S608 - ours
        " WHERE site = 'rottentomatoes' AND title_id = %s"
    )
    assert store.sql(statement, moved) == [("ok", "m/one", NOW + 100 * DAY)]
    # The title that it was moved from has none again.
    assert store.sql(statement, found.title_id) == [("never", None, None)]


def test_an_id_whose_record_a_person_has_placed_is_given_to_no_other_title(
    store: Catalogued,
) -> None:
    store.bring_in(row(1))
    store.write(page(SITE, "m/one", "Title 1"))
    (moved,) = store.sql("SELECT move_record('rottentomatoes', 'm/one')")[0]
    store.bring_in(wikidata(1, "m/one"))
    store.list_names(SITE, "m/one")
    assert [found.title_id for found in store.due(site=SITE)] == [moved]
    store.record(judged("m/one", store.title_id(), evidence="list"))
    assert store.sql("SELECT title_id FROM title_sites WHERE site_id = 'm/one'") == [(moved,)]
    assert store.sql(
        "SELECT decision::text FROM title_matches WHERE site_id = 'm/one' AND title_id <> %s", moved
    ) == [("review",)]


@pytest.mark.parametrize(
    ("known", "found", "owner"),
    [(3.5, 2.5, 1), (2.5, 6.5, 2)],
    ids=["a better page", "a page that names its title"],
)
def test_an_id_is_of_the_title_whose_page_shows_it_best(
    store: Catalogued, known: float, found: float, owner: int
) -> None:
    store.bring_in(row(1), row(2))
    linked(store, 1, "m/new", score=known)
    store.bring_in(wikidata(2, "m/alias"))
    (due,) = store.due(site=SITE)
    if owner != 1:
        store.write(page(SITE, "m/new", "Title 2", imdb_id="tt1000002", scraped_at=NOW + DAY))
    store.record(compared(due, "m/new", "accepted", score=found))
    ids = [store.state(f"tt100000{number}", SITE).site_id for number in (1, 2)]
    assert ids == ["m/new" if number == owner else None for number in (1, 2)]
    if owner == 1:
        decided = store.sql(
            "SELECT site_id, decision::text FROM title_matches WHERE title_id = %s", due.title_id
        )
        assert dict(decided) == {"m/new": "review", "m/alias": "refused"}
        assert store.state("tt1000002", SITE).state == "never"


def test_a_page_that_moves_to_an_id_of_another_title_is_that_titles(
    store: Catalogued,
) -> None:
    store.bring_in(row(1), row(2))
    linked(store, 1, "m/old")
    linked(store, 2, "m/new")
    later = NOW + 100 * DAY
    one, two = sorted(store.due(site=SITE, now=later), key=lambda found: found.title_id)
    store.write(page(SITE, "m/new", "Title 2", scraped_at=later, fetch=led_from("m/old")))
    store.record(ended(one, page_id="m/new", at=later), ended(two, page_id="m/new", at=later))
    assert store.sql("SELECT count(*) FROM records WHERE site = 'rottentomatoes'") == [(2,)]
    found = store.sql(
        "SELECT site_id, state::text, last_success FROM title_sites"
        " WHERE site = 'rottentomatoes' ORDER BY title_id"
    )
    # The page is the second title's, and the first one has none.
    assert found == [(None, "never", None), ("m/new", "ok", later)]


def test_a_title_that_is_boosted_while_it_is_fetched_is_served_by_that_page(
    store: Catalogued,
) -> None:
    store.bring_in(row(1))
    store.boost("tt1000001")
    store.record(outcome("tt1000001", at=NOW + timedelta(minutes=1)))
    assert store.state("tt1000001").boost_due is None
    assert store.due_ids(now=NOW + DAY) == []


def test_signs_that_no_database_takes_lose_no_outcome(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune"))
    store.list_names(SITE, "m/dune")
    (found,) = store.unfound()
    hostile = "Du\0ne \ud800 \x1b[31m"
    refusal = compared(found, "m/du\0ne", "refused", outcome="absent", reasons=[hostile])
    store.record(refusal, outcome("tt1000001"))
    assert store.state("tt1000001").state == "ok"
    assert dict(store.sql("SELECT decision::text, count(*) FROM title_matches GROUP BY 1")) == {
        "refused": 1
    }
    store.list_names("imdb", hostile, trending=True)
    store.list_names(SITE, hostile)
