"""What becomes of titles whose pages were fetched: when they are due again, and which pages are theirs."""

from __future__ import annotations

from datetime import date
from typing import Any

from moviecrawler.catalogue.claims import MOST_CLAIMS, claim_unfound, release
from moviecrawler.catalogue.figures import figures, reviews
from moviecrawler.catalogue.outcomes import Judged, decide
from moviecrawler.catalogue.rows import Sighting
from moviecrawler.catalogue.store import pause
from moviecrawler.items import Credit
from tests.catalogue.catalogued import DAY, LEASE, NOW, Catalogued, judged, outcome, page, row, wikidata

OLD, YOUNG = date(1999, 3, 31), NOW.date()

DUE: list[tuple[str, date | None, int, bool, int]] = [
    # Young titles are due after 14 days, others after 90, and what airs after 7.
    ("ok", YOUNG - 179 * DAY, 0, False, 14),
    ("ok", YOUNG - 180 * DAY, 0, False, 90),
    ("ok", YOUNG, 0, False, 14),
    ("ok", YOUNG + 400 * DAY, 0, False, 14),
    ("ok", None, 0, False, 90),
    ("ok", OLD, 3, True, 7),
    # Failures wait twice as long each time, up to the regular interval.
    *(
        ("error", OLD, failures, False, days)
        for failures, days in ((0, 1), (1, 2), (2, 4), (3, 8), (6, 64), (7, 90), (5_000, 90))
    ),
    ("error", YOUNG, 5, False, 14),
    ("error", OLD, 8, True, 7),
    ("absent", YOUNG, 0, False, 90),
    ("blocked", OLD, 3, False, 0),  # says nothing of a title: it stays due as it was
]


def test_a_title_is_due_again(store: Catalogued) -> None:
    ids = [f"tt{1_000_000 + number}" for number in range(len(DUE))]
    shows = [{"kind": "series"} if airs else {} for _, _, _, airs, _ in DUE]
    store.bring_in(*(row(number, year=None, **fields) for number, fields in enumerate(shows)))
    for imdb_id, (_, _, failures, airs, _) in zip(ids, DUE, strict=True):
        changed = "UPDATE title_sites SET failures = %s, next_due = %s WHERE site_id = %s"
        store.sql(changed, failures, NOW, imdb_id)
        if airs:
            added = "INSERT INTO imdb_episodes (imdb_id, series_imdb_id, season, year) VALUES (%s, %s, 1, %s)"
            store.sql(added, f"{imdb_id}1", imdb_id, NOW.year)
    store.claim_ids(100)
    store.record(*(outcome(i, ended, released=released) for i, (ended, released, *_) in zip(ids, DUE, strict=True)))
    found = {imdb_id: store.state(imdb_id) for imdb_id in ids}
    assert [found[imdb_id].next_due - NOW for imdb_id in ids] == [days * DAY for *_, days in DUE]
    assert [found[imdb_id].state for imdb_id in ids] == [ended for ended, *_ in DUE]
    assert [found[imdb_id].failures for imdb_id in ids] == [
        {"error": failures + 1, "blocked": failures}.get(ended, 0) for ended, _, failures, *_ in DUE
    ]
    assert {each.claimed_by for each in found.values()} == {None}
    # A title whose page tells no date is as old as the catalogue says.
    store.bring_in(row(80, year=NOW.year))
    store.record(outcome("tt1000080"))
    assert store.state("tt1000080").next_due == NOW + 14 * DAY


def test_an_id_that_wikidata_names_is_checked_against_its_page(store: Catalogued) -> None:
    store.bring_in(row(1, title="The Quiet Mill", original_title="Der stille Müller"))
    store.bring_in(wikidata(1, "m/mill"))
    (found,) = store.claims_of(site="rottentomatoes")
    assert (found.ids, found.evidence) == (["m/mill"], "wikidata")
    assert found.wanted is not None
    assert (found.wanted.title, found.wanted.original_title) == ("The Quiet Mill", "Der stille Müller")
    store.write(page("rottentomatoes", "m/mill", "The Quiet Mill"))
    reasons = ["named by Wikidata", "same title"]
    store.record(judged("m/mill", found.title_id, score=4.0, reasons=reasons))
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.site_id, stored.id_verified) == ("ok", "m/mill", True)
    assert store.sql("SELECT t.imdb_id FROM records r JOIN titles t USING (title_id) WHERE r.site_id = 'm/mill'") == [
        ("tt1000001",)
    ]
    assert store.sql("SELECT decision, reasons FROM title_matches") == [("accepted", reasons)]


def test_a_checked_id_joins_records_of_different_titles_and_years(store: Catalogued) -> None:
    store.bring_in(row(1, title="비밀의 정원", year=2001))
    store.write(page("rottentomatoes", "m/secret", "The Secret Garden", year=2002))
    store.write(page("imdb", "tt1000001", "비밀의 정원", imdb_id="tt1000001", year=2001))
    assert store.sql("SELECT count(*) FROM scoreboard") == [(2,)]
    store.record(judged("m/secret", store.title_id()))
    assert store.sql("SELECT imdb_id, rottentomatoes_id FROM scoreboard") == [("tt1000001", "m/secret")]
    # And it stays so when the page is fetched again.
    store.write(page("rottentomatoes", "m/secret", "The Secret Garden", year=2002, scraped_at=NOW + DAY))
    assert store.sql("SELECT imdb_id, rottentomatoes_id FROM scoreboard") == [("tt1000001", "m/secret")]


def test_a_title_that_only_the_catalogue_knows_gets_the_record_that_names_its_id(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune"))
    store.write(page("metacritic", "movie/dune", "Dune", imdb_id="tt1000001"))
    store.write(page("metacritic", "movie/other", "Other", imdb_id="tt1000002"))
    assert store.sql(
        "SELECT t.imdb_id, s.state::text, s.id_source::text FROM title_sites s JOIN titles t USING (title_id)"
        " WHERE s.site_id = 'movie/dune'"
    ) == [("tt1000001", "never", "joined")]
    store.record(outcome("movie/dune", site="metacritic", got_id="movie/dune"))
    assert store.state("tt1000001", "metacritic").state == "ok"
    # The id on a page may be that of a pilot or a dub: with another title and year it joins nothing.
    store.bring_in(row(3, title="Something Else", year=1950))
    store.write(page("metacritic", "movie/wrong", "Pilot", imdb_id="tt1000003"))
    assert store.state("tt1000003", "metacritic").site_id is None


def test_a_page_that_is_another_titles_is_not_tried_again(store: Catalogued) -> None:
    store.bring_in(row(1))
    lead = wikidata(1, "m/wrong")
    assert store.bring_in(lead).ids == 1
    store.write(page("rottentomatoes", "m/wrong", "Wrong", year=1950))
    store.record(judged("m/wrong", store.title_id(), decision="refused"))
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.site_id, stored.next_due) == ("absent", None, NOW + 90 * DAY)
    assert store.bring_in(lead, now=NOW + 89 * DAY).ids == 0
    # After 90 days it may be right: a site may have put another film there.
    store.sql("UPDATE title_sites SET site_id = NULL WHERE site_id = 'm/wrong'")
    assert store.bring_in(lead, now=NOW + 91 * DAY).ids == 1


def test_a_doubtful_page_waits_for_a_person(store: Catalogued) -> None:
    store.bring_in(row(1), row(2))
    store.write(page("rottentomatoes", "m/one", "One"), page("rottentomatoes", "m/two", "Two"))
    store.record(
        judged("m/one", store.title_id(), decision="review"),
        judged("m/two", store.title_id("tt1000002"), decision="review"),
    )
    assert {(found.imdb_id, found.site_id) for found in reviews(store, 10)} == {
        ("tt1000001", "m/one"),
        ("tt1000002", "m/two"),
    }
    assert decide(store, "tt1000001", "rottentomatoes", None, accept=True, now=NOW) == ["m/one"]
    assert decide(store, "tt1000002", "rottentomatoes", "m/two", accept=False, now=NOW) == ["m/two"]
    assert decide(store, "tt1000002", "rottentomatoes", "m/two", accept=False, now=NOW) == []
    assert reviews(store, 10) == []
    assert store.state("tt1000001", "rottentomatoes").site_id == "m/one"
    assert store.bring_in(wikidata(2, "m/two"), now=NOW + 1000 * DAY).ids == 0  # what a person refused stays refused


def test_a_lead_without_a_page_is_looked_for_in_the_lists(store: Catalogued) -> None:
    store.bring_in(row(1, title="The Quiet Mill"))
    store.bring_in(wikidata(1, "m/10012345-quiet"))
    (found,) = store.claims_of(site="rottentomatoes")
    store.record(judged("m/10012345-quiet", found.title_id, None, outcome="absent"))
    assert store.state("tt1000001", "rottentomatoes").site_id is None
    store.list_names("rottentomatoes", "m/the_quiet_mill", source="sitemap")
    assert [(each.ids, each.evidence) for each in store.unfound()] == [(["m/the_quiet_mill"], "sitemap")]


def test_listed_ids_are_tried_by_year_and_never_another_titles(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021), row(2, title="Dune", year=1984))
    store.list_names("rottentomatoes", "m/dune", "m/dune_2021", Sighting("m/1000086-dune", "Dune", 1984))
    assert [found.ids[0] for found in store.unfound()] == ["m/dune_2021", "m/1000086-dune"]
    release(store, "w")
    store.write(page("rottentomatoes", "m/dune_2021", "Dune", year=2021))
    store.record(judged("m/dune_2021", store.title_id()))
    assert [found.ids for found in store.unfound()] == [["m/1000086-dune", "m/dune"]]


def test_a_title_whose_listed_ids_kill_workers_is_put_off(store: Catalogued) -> None:
    store.bring_in(row(1, title="Quiet Mill"))
    store.list_names("metacritic", "movie/quiet-mill")
    for number in range(MOST_CLAIMS):
        at = NOW + number * LEASE
        assert len(store.unfound("metacritic", 1, now=at)) == 1
    last = NOW + MOST_CLAIMS * LEASE
    assert claim_unfound(store, "metacritic", 1, worker="w", lease=LEASE, now=last) == ([], True)
    stored = store.state("tt1000001", "metacritic")
    assert (stored.claimed_by, stored.claims) == (None, 0)
    assert stored.next_due == last + 7 * DAY


def listed(site_id: str, title_id: Any, ended: Any = "absent", decision: Any = None, **fields: Any) -> Judged:
    return judged(site_id, title_id, decision, outcome=ended, evidence="list", **fields)


def test_what_a_page_was_found_to_be_is_kept_while_other_ids_are_tried(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021))
    store.list_names("rottentomatoes", "m/dune", "m/dune_1984", "m/dune_2021", "m/dune_2022")
    (found,) = store.unfound()
    leads: Any = {"got_id": "m/dune_1984", "decision": "review", "score": 1.0, "reasons": ["same title"]}
    doubtful = listed("m/dune", found.title_id, **leads, others_follow=True)
    store.record(doubtful, listed("m/dune_2021", found.title_id, others_follow=True))
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.claimed_by) == ("never", "w")
    store.record(listed("m/dune_2022", found.title_id, "error"))
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.claimed_by) == ("error", None)
    assert dict(store.sql("SELECT site_id, reasons FROM title_matches")) == {
        "m/dune_1984": ["same title"],
        "m/dune": ["but it leads to m/dune_1984"],
        "m/dune_2021": ["but the site has no such page"],
    }
    assert [each.site_id for each in reviews(store, 5)] == ["m/dune_1984"]
    # None of them is asked for again, until the 90 days are over.
    (again,) = store.unfound(now=NOW + DAY)
    assert not {"m/dune", "m/dune_1984", "m/dune_2021"} & set(again.ids)
    release(store, "w")
    later = NOW + 91 * DAY
    (again,) = store.unfound(now=later)
    assert set(again.ids) == {"m/dune", "m/dune_1984", "m/dune_2021", "m/dune_2022"}


def test_a_listed_page_that_a_person_accepts_is_fetched_then(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021))
    store.list_names("rottentomatoes", "m/dune")
    (found,) = store.unfound()
    store.record(listed("m/dune", found.title_id, got_id="m/dune", decision="review"))
    assert store.claims_of(site="rottentomatoes") == []
    assert decide(store, "tt1000001", "rottentomatoes", None, accept=True, now=NOW) == ["m/dune"]
    (again,) = store.claims_of(site="rottentomatoes")
    assert (again.ids, again.wanted) == (["m/dune"], None)
    assert store.state("tt1000001", "rottentomatoes").id_source == "given"


def test_a_page_is_decided_on_for_the_title_that_it_was_fetched_for_alone(store: Catalogued) -> None:
    store.bring_in(row(1, title="Dune", year=2021, site_ids={"rottentomatoes": "m/dune"}))
    gone = 10**6  # a title that was merged into another while it was claimed
    store.record(listed("m/dune_1984", gone, "ok", got_id="m/dune", decision="refused", reasons=["but directors"]))
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.state, stored.site_id) == ("never", "m/dune")
    assert store.sql("SELECT count(*) FROM title_matches") == [(0,)]


def test_a_renamed_page_keeps_its_title_and_its_history(store: Catalogued) -> None:
    director = [Credit(name="A B", role="director", position=1)]
    store.write(page("imdb", "tt1000001", "Dune", imdb_id="tt1000001", credits=director))
    store.write(page("rottentomatoes", "m/dune_old", "Dune", credits=director))
    store.write(page("rottentomatoes", "m/dune_new", "Dune", credits=director, scraped_at=NOW + DAY))
    store.record(outcome("m/dune_old", site="rottentomatoes", got_id="m/dune_new", at=NOW + DAY))
    assert store.sql("SELECT imdb_id, rottentomatoes_id FROM scoreboard") == [("tt1000001", "m/dune_new")]
    stored = store.state("tt1000001", "rottentomatoes")
    assert (stored.site_id, stored.state, stored.last_success) == ("m/dune_new", "ok", NOW + DAY)
    assert store.sql("SELECT site_id FROM records WHERE site = 'rottentomatoes'") == [("m/dune_new",)]


def test_the_figures_count_each_title_once(store: Catalogued) -> None:
    store.bring_in(*(row(number, year=2026 if number == 1 else 1990) for number in range(1, 7)))
    store.claim_ids(1)
    store.record(
        outcome("tt1000001", at=NOW - 20 * DAY),
        outcome("tt1000002", at=NOW - 3 * DAY),
        outcome("tt1000003", "absent"),
        outcome("tt1000004", "error"),
        outcome("tt1000005", "blocked"),
    )
    pause(store, "imdb", NOW + DAY, "imdb refused us")
    imdb, metacritic, _ = figures(store, NOW, date(2026, 5, 1))
    counted = (imdb.known, imdb.never, imdb.ok, imdb.absent, imdb.error, imdb.blocked)
    assert counted == (6, 1, 2, 1, 1, 1)
    assert (imdb.due, imdb.overdue, imdb.unread, imdb.fresh, imdb.old) == (3, 1, 3, 1, 1)
    assert imdb.oldest == NOW - 20 * DAY
    assert imdb.paused_because == "imdb refused us"
    assert (metacritic.known, metacritic.unfound) == (0, 6)
