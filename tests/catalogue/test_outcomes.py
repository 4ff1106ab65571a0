"""What becomes of titles whose pages were fetched.

When they are due again, and which pages are theirs.
"""

from datetime import date
from typing import Any

import pytest

from moviecrawler.catalogue.figures import reviews
from moviecrawler.catalogue.outcomes import decide
from moviecrawler.catalogue.rows import ListedTitle
from moviecrawler.items import Fetched
from tests.catalogued import DAY, NOW, Catalogued, judged, outcome, page, row, wikidata

SITE: Any = "rottentomatoes"
OLD = date(1999, 3, 31)
YOUNG = NOW.date()


@pytest.mark.promise(
    "What is due is fetched: boosted titles first, unread and stale ones in fixed shares."
)
@pytest.mark.parametrize(
    ("ended", "released", "failures", "days"),
    [
        # Young titles are due after 14 days, others after 90.
        ("ok", YOUNG - 179 * DAY, 0, 14),
        ("ok", YOUNG - 180 * DAY, 0, 90),
        ("ok", YOUNG, 0, 14),
        ("ok", YOUNG + 400 * DAY, 0, 14),
        ("ok", None, 5, 90),
        # Failures wait twice as long each time, up to the regular interval.
        ("error", OLD, 0, 1),
        ("error", OLD, 1, 2),
        ("error", OLD, 2, 4),
        ("error", OLD, 3, 8),
        ("error", OLD, 6, 64),
        ("error", OLD, 7, 90),
        ("error", OLD, 5_000, 90),
        ("error", YOUNG, 5, 14),
        ("absent", YOUNG, 2, 90),
        ("put off", OLD, 3, 1 / 24),  # says nothing of a title
    ],
)
def test_a_title_is_due_again(
    store: Catalogued, ended: str, released: date | None, failures: int, days: float
) -> None:
    store.bring_in(row(1, year=None))
    store.sql("UPDATE title_sites SET failures = %s, next_due = %s", failures, NOW)
    store.record(outcome("tt1000001", ended, released=released))
    found = store.state("tt1000001")
    assert found.next_due - NOW == days * DAY
    assert found.state == {"put off": "never"}.get(ended, ended)
    assert found.failures == {"error": failures + 1, "put off": failures}.get(ended, 0)


def test_a_title_whose_page_tells_no_date_is_as_old_as_the_catalogue_says(
    store: Catalogued,
) -> None:
    store.bring_in(row(1, year=NOW.year))
    store.record(outcome("tt1000001", "error"), outcome("tt1000001"))  # of which the last counts
    assert store.state("tt1000001").next_due == NOW + 14 * DAY


@pytest.mark.promise("An id is checked against its page before it counts.")
def test_an_id_that_wikidata_names_is_checked_against_its_page(store: Catalogued) -> None:
    store.bring_in(row(1, title="비밀의 정원", original_title="Bimirui jeongwon", year=2001))
    store.bring_in(wikidata(1, "m/secret"))
    (found,) = store.due(site=SITE)
    assert (found.ids, found.evidence) == (["m/secret"], "wikidata")
    assert found.expected is not None
    assert (found.expected.title, found.expected.original_title) == (
        "비밀의 정원",
        "Bimirui jeongwon",
    )
    store.write(page(SITE, "m/secret", "The Secret Garden", year=2002))
    store.write(page("imdb", "tt1000001", "비밀의 정원", imdb_id="tt1000001", year=2001))
    assert store.sql("SELECT count(*) FROM scoreboard") == [(2,)]
    store.record(judged("m/secret", found.title_id, score=4.0, reasons=["named by Wikidata"]))
    stored = store.state("tt1000001", SITE)
    assert (stored.state, stored.site_id, stored.id_verified) == ("ok", "m/secret", True)
    assert store.sql("SELECT decision, reasons FROM title_matches") == [
        ("accepted", ["named by Wikidata"])
    ]
    # It stays so when the page is fetched again.
    for later in (NOW, NOW + DAY):
        store.write(page(SITE, "m/secret", "The Secret Garden", year=2002, scraped_at=later))
        assert store.sql("SELECT imdb_id, rottentomatoes_id FROM scoreboard") == [
            ("tt1000001", "m/secret")
        ]


def test_a_title_that_only_the_catalogue_knows_gets_the_record_that_names_its_id(
    store: Catalogued,
) -> None:
    store.bring_in(row(1, title="Dune"), row(3, title="Something Else", year=1950))
    store.write(page("metacritic", "movie/dune", "Dune", imdb_id="tt1000001"))
    store.write(page("metacritic", "movie/other", "Other", imdb_id="tt1000002"))
    stored = store.state("tt1000001", "metacritic")
    assert (stored.site_id, stored.state, stored.id_source) == ("movie/dune", "never", "joined")
    store.record(outcome("movie/dune", site="metacritic", page_id="movie/dune"))
    assert store.state("tt1000001", "metacritic").state == "ok"
    # The id on a page may be that of a pilot or a dub: with another title and year it joins
    # nothing.
    store.write(page("metacritic", "movie/wrong", "Pilot", imdb_id="tt1000003"))
    assert store.state("tt1000003", "metacritic").site_id is None


@pytest.mark.promise("An id is checked against its page before it counts.")
@pytest.mark.parametrize("ended", ["refused", "absent"])
def test_a_page_that_is_another_titles_is_not_tried_again_and_the_lists_are_searched(
    store: Catalogued, ended: str
) -> None:
    store.bring_in(row(1, title="The Quiet Mill"))
    lead = wikidata(1, "m/wrong")
    assert store.bring_in(lead).ids == 1
    (found,) = store.due(site=SITE)
    decision, how = (None, "absent") if ended == "absent" else ("refused", "ok")
    store.record(judged("m/wrong", found.title_id, decision, outcome=how))
    stored = store.state("tt1000001", SITE)
    assert (stored.state, stored.site_id, stored.next_due) == ("never", None, NOW)
    assert store.unfound() == []  # so it waits for a week, or for the next sitemap
    store.list_names(SITE, "m/the_quiet_mill", source="sitemap")
    assert [(each.ids, each.evidence) for each in store.unfound()] == [
        (["m/the_quiet_mill"], "sitemap")
    ]
    assert store.bring_in(lead, now=NOW + 89 * DAY).ids == 0
    # After 90 days it may be right: a site may have put another film there.
    assert store.bring_in(lead, now=NOW + 91 * DAY).ids == 1


@pytest.mark.promise("What can't be decided waits for a person.")
def test_an_id_for_which_another_titles_page_came_is_reviewed_and_tried_again_in_14_days(
    store: Catalogued,
) -> None:
    store.bring_in(row(1), row(2))
    title_id = store.due()[0].title_id
    wrong = outcome("tt1000001", "error", other_id="tt1000009", title_id=title_id)
    store.record(wrong)
    found = store.state("tt1000001")
    assert (found.state, found.failures) == ("error", 1)
    assert (found.site_id, found.next_due) == ("tt1000001", NOW + 14 * DAY)
    decisions = "SELECT site_id, decision, reasons FROM title_matches"
    reviewed = ("tt1000001", "review", ["but its page is that of tt1000009"])
    assert store.sql(decisions) == [reviewed]
    assert [each.imdb_id for each in reviews(store, 10)] == ["tt1000001"]
    # With its own page the review is over.
    store.record(outcome("tt1000001", at=NOW + 14 * DAY, title_id=title_id))
    assert store.sql(decisions) == []
    assert store.state("tt1000001").state == "ok"
    # A person may decide that it is not the title's.
    store.record(wrong)
    assert decide(store, "tt1000001", "imdb", None, accept=False, now=NOW) == ["tt1000001"]
    assert store.state("tt1000001").site_id is None
    # When it was not due, nobody is asked.
    store.record(outcome("tt1000002", "error", other_id="tt1000009"))
    assert len(store.sql(decisions)) == 1
    assert store.state("tt1000002").next_due == NOW + 14 * DAY


def test_after_the_page_of_another_title_the_next_listed_id_is_tried(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune"))
    store.list_names(SITE, "m/dune", "m/dune_2000")
    (found,) = store.unfound()
    first, second = found.ids
    wrong = {"decision": None, "outcome": "error", "other_id": "m/other", "evidence": "list"}
    store.record(judged(first, found.title_id, **wrong, has_more_ids=True))
    assert store.state("tt1000001", SITE).state == "never"
    store.record(judged(second, found.title_id, **wrong))
    state = store.state("tt1000001", SITE)
    assert (state.state, state.next_due) == ("error", NOW + 14 * DAY)
    found = store.sql("SELECT site_id, decision FROM title_matches ORDER BY 1")
    assert found == [("m/dune", "review"), ("m/dune_2000", "review")]


@pytest.mark.promise("What can't be decided waits for a person.")
def test_a_doubtful_page_waits_for_a_person(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune"), row(2, title="Two"))
    store.list_names(SITE, "m/dune")
    (found,) = store.unfound()
    doubtful = judged("m/two", store.title_id("tt1000002"), decision="review")
    store.record(listed("m/dune", found.title_id, decision="review"), doubtful)
    assert {(each.imdb_id, each.site_id) for each in reviews(store, 10)} == {
        ("tt1000001", "m/dune"),
        ("tt1000002", "m/two"),
    }
    assert store.due(site=SITE) == []
    assert decide(store, "tt1000001", SITE, None, accept=True, now=NOW) == ["m/dune"]
    assert decide(store, "tt1000002", SITE, "m/two", accept=False, now=NOW) == ["m/two"]
    assert decide(store, "tt1000002", SITE, "m/two", accept=False, now=NOW) == []
    store.record(doubtful)
    assert reviews(store, 10) == []
    # What a person accepts is fetched then, and needs no check; what a person refused stays
    # refused.
    (again,) = store.due(site=SITE)
    assert (again.ids, again.expected, store.state("tt1000001", SITE).id_source) == (
        ["m/dune"],
        None,
        "given",
    )
    assert store.bring_in(wikidata(1, "m/else", "given")).ids == 0
    assert store.bring_in(wikidata(2, "m/two"), now=NOW + 1000 * DAY).ids == 0
    store.list_names(SITE, "m/two")
    assert store.unfound(now=NOW + 1000 * DAY) == []


def test_listed_ids_are_tried_by_year_and_never_another_titles(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021), row(2, title="Dune", year=2018))
    store.list_names(SITE, "m/1000086-dune", "m/dune_2021", ListedTitle("m/dune", 2018))
    store.list_names(SITE, "m/dune", source="sitemap")  # which tells no year
    assert [found.ids[0] for found in store.unfound()] == ["m/dune_2021", "m/dune"]
    store.write(page(SITE, "m/dune_2021", "Dune", year=2021))
    store.record(judged("m/dune_2021", store.title_id()))
    (left,) = store.unfound()  # whose namesake is no rival any more
    assert (left.ids, left.expected and left.expected.rivals) == (["m/dune", "m/1000086-dune"], [])


def listed(
    site_id: str, title_id: Any, ended: Any = "absent", decision: Any = None, **fields: Any
) -> Fetched:
    return judged(site_id, title_id, decision, outcome=ended, evidence="list", **fields)


def test_what_a_page_was_found_to_be_is_kept_while_other_ids_are_tried(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021))
    store.list_names(SITE, "m/dune", "m/dune_1984", "m/dune_2021", "m/dune_2022")
    (found,) = store.unfound()
    leads: Any = {
        "page_id": "m/dune_1984",
        "decision": "review",
        "score": 1.0,
        "reasons": ["same title"],
    }
    doubtful = listed("m/dune", found.title_id, **leads, has_more_ids=True)
    store.record(doubtful, listed("m/dune_2021", found.title_id, has_more_ids=True))
    stored = store.state("tt1000001", SITE)
    assert (stored.state, stored.next_due.year) == ("never", 1970)
    store.record(listed("m/dune_2022", found.title_id, "error"))
    stored = store.state("tt1000001", SITE)
    assert (stored.state, stored.next_due) == ("error", NOW + DAY)
    assert dict(store.sql("SELECT site_id, reasons FROM title_matches")) == {
        "m/dune_1984": ["same title"],
        "m/dune": ["but it leads to m/dune_1984"],
        "m/dune_2021": ["but the site has no such page"],
    }
    assert [each.site_id for each in reviews(store, 5)] == ["m/dune_1984"]
    # None of them is asked for again, until the 90 days are over.
    for days, ids in (
        (1, {"m/dune_2022"}),
        (91, {"m/dune", "m/dune_1984", "m/dune_2021", "m/dune_2022"}),
    ):
        (again,) = store.unfound(now=NOW + days * DAY)
        assert set(again.ids) == ids
