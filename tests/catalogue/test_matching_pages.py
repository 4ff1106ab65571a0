"""Whether a page that was fetched is that of the title it was fetched for, and under which names to look for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from moviecrawler.catalogue.comparing import compare
from moviecrawler.catalogue.matching import join, title_of, verify
from moviecrawler.catalogue.normalise import similar
from moviecrawler.catalogue.rows import IdSource, TitleFacts
from moviecrawler.catalogue.slugs import slug_key, title_slug_keys
from moviecrawler.items import Credit, Movie, OtherTitle, Score

WANTED = TitleFacts(
    imdb_id="tt0000007", title="Salt Harbour", kind="movie", year=2001, runtime_minutes=104, directors=["Mara Levin"]
)


def page(title: str = "Salt Harbour", year: int | None = 2001, director: str | None = None, **more: Any) -> Movie:
    directors = [Credit(name=director, role="director", position=1)] if director else []
    values = {"site": "rottentomatoes", "site_id": "m/salt_harbour", "url": "", "kind": "movie", **more}
    return Movie(**values, title=title, year=year, credits=directors)


@pytest.mark.parametrize(
    ("found", "evidence", "decision"),
    [
        (page(), "joined", "accepted"),
        (page(year=None), "joined", "review"),
        (page(year=None), "list", "review"),
        (page(year=None), "sitemap", "review"),
        (page(year=None, director="Mara Levin"), "joined", "accepted"),
        (page(year=None), "wikidata", "accepted"),
        (page(year=None, director="Ines Quarrie"), "wikidata", "accepted"),
        (page(year=1961, director="Ines Quarrie"), "wikidata", "review"),
        (page(year=2003, director="Ines Quarrie"), "wikidata", "review"),
        (page("Havn av salt"), "joined", "refused"),
        (page("Havn av salt"), "wikidata", "accepted"),
        (page("Havn av salt", 2005), "wikidata", "review"),
        (page("Havn av salt", 1961, "Ines Quarrie"), "wikidata", "refused"),
        (page("Havn av salt", 1961), "given", "review"),
        (page("Havn av salt", 2002), "given", "accepted"),
        (page("Brewick", 1961), "joined", "refused"),
        (page(imdb_id="tt0000008", director="Mara Levin"), "given", "refused"),
        (page(imdb_id="tt0000008", director="Mara Levin"), "wikidata", "refused"),
        (page("Havn av salt", imdb_id="tt0000007"), "page", "accepted"),
        (page("The Keeper Arrives", 1997, imdb_id="tt0000007"), "page", "review"),
        (page(kind="series"), "wikidata", "refused"),
        (page(runtime_minutes=61), "joined", "review"),
        (page(director="Ines Quarrie"), "joined", "review"),
        (page(director="Ines Quarrie", runtime_minutes=61), "joined", "refused"),
        (page(year=1961, runtime_minutes=104), "joined", "review"),
        (page(year=1961, runtime_minutes=61), "joined", "refused"),
    ],
)
def test_a_page_is_judged_by_all_that_is_known(found: Movie, evidence: IdSource, decision: str) -> None:
    judged = verify(WANTED, found, evidence)
    assert judged.decision == decision, judged


def test_that_a_site_lists_a_title_is_no_reason_for_it() -> None:
    wanted = TitleFacts(imdb_id="tt0000007", title="The Long Night of the Keeper", kind="movie", year=2001, votes=500)
    found = page("The Long Night of the Keeper", 2002, runtime_minutes=92)
    for evidence in ("joined", "list", "sitemap"):
        assert verify(wanted, found, evidence).decision == "review"


def test_a_page_that_fits_a_namesake_as_well_is_for_a_person_to_decide() -> None:
    namesake = TitleFacts(imdb_id="tt0000008", title="Salt Harbour", kind="movie", year=2001)
    wanted = replace(WANTED, rivals=[namesake])
    judged = verify(wanted, page(), "joined")
    assert (judged.decision, judged.reasons[-1]) == ("review", "but it may be tt0000008 as well")
    assert verify(wanted, page(), "wikidata").accepted
    assert verify(wanted, page(director="Mara Levin", runtime_minutes=104), "joined").accepted
    assert verify(replace(WANTED, rivals=[replace(namesake, year=2004)]), page(), "joined").accepted


def test_where_the_id_came_from_is_among_the_reasons() -> None:
    assert verify(WANTED, page(), "wikidata").reasons == ["named by Wikidata", "same title", "same year"]
    assert verify(WANTED, page(), "wikidata").score == 4
    assert verify(WANTED, page(runtime_minutes=103), "joined").reasons == ["same title", "same year", "same runtime"]
    assert verify(WANTED, page(runtime_minutes=61), None).reasons[-1] == "but runtimes of 104 and 61 min"
    refused = verify(WANTED, page(imdb_id="tt0000008"), None)
    assert (refused.score, refused.reasons) == (0, ["but IMDb ids tt0000007 and tt0000008"])


def test_a_stored_record_is_judged_as_a_title_that_is_looked_for() -> None:
    film = page(director="Mara Levin", site="imdb", site_id="tt0000007", runtime_minutes=104)
    for found in (page(), page(year=1961), page("Havn av salt"), page(director="Ines Quarrie", runtime_minutes=61)):
        assert compare(title_of(film), title_of(found)) == verify(WANTED, found, None)


def test_a_further_title_is_as_good_as_a_title_of_the_same_year() -> None:
    abroad, known = page("Havn av salt"), replace(WANTED, other_titles=["El puerto", "Havn av Salt"])
    assert verify(WANTED, abroad, None).decision == "refused"
    assert verify(known, abroad, None).decision == "accepted"
    as_equal = verify(WANTED, page(year=2004), None)
    assert verify(known, page("Havn av salt", 2004), None).score == as_equal.score


def test_a_page_of_imdb_is_judged_by_its_id() -> None:
    own = page("Havn av salt", 2009, site="imdb", site_id="tt0000007", imdb_id="tt0000007")
    assert verify(WANTED, replace(own, year=2001), None).accepted
    moved = replace(own, site_id="tt0000008", imdb_id="tt0000008")
    assert verify(WANTED, moved, None).decision == "refused"


def test_a_title_of_unknown_kind_may_be_any() -> None:
    assert verify(replace(WANTED, kind=None), page(kind="series"), None).accepted


def test_a_special_is_a_film_here_and_a_series_there_but_no_game() -> None:
    special = replace(WANTED, kind="other")
    for kind in ("movie", "series", "video", "other"):
        assert verify(special, page(kind=kind), None).accepted
    for kind in ("game", "episode", "music"):
        assert verify(special, page(kind=kind), None).decision == "refused"
    assert title_slug_keys(special) == {slug_key("m/salt_harbour"), slug_key("tv/salt_harbour")}


def test_a_minute_of_a_short_film_is_no_other_runtime() -> None:
    short = replace(WANTED, kind="short", runtime_minutes=9)
    assert verify(short, page(runtime_minutes=14), None).accepted
    assert not verify(short, page(runtime_minutes=15), None).accepted


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("theatre of brewick", "theater of brewick", True),
        ("der untergang", "untergang", True),
        ("lord of the rings", "lord of rings", True),
        ("spider man", "spiderman", True),
        ("painter in oslo", "panther in oslo", False),
        ("sunrise in oslo", "sunset in oslo", False),
        ("men in oslo", "man in oslo", False),
        ("oslo 2", "oslo 3", False),
        ("oslo", "oslo nights", False),
        ("the", "a", False),
    ],
)
def test_spellings_are_told_from_other_words(one: str, other: str, expected: bool) -> None:
    assert similar(one, other) is similar(other, one) is expected


# --- Slugs ------------------------------------------------------------------------------------------------------------


def wanted(title: str, year: int | None = 2011, **more: Any) -> TitleFacts:
    return TitleFacts(**{"imdb_id": None, "kind": "movie", **more}, title=title, year=year)


def test_another_title_of_imdb_is_as_good_as_the_first_one() -> None:
    known = wanted("Sol og vind", other_titles=["Soleil et vent", "Sun and Wind"], votes=5_000)
    for title in ("Sol og vind", "Sun & Wind"):
        verdict = verify(known, page(title, 2011, director=None, runtime_minutes=None), "list")
        assert (verdict.decision, verdict.score) == ("accepted", 2.25), title
    assert verify(known, page("Sun and Rain", 2011), "list").decision != "accepted"
    # So is one of a stored record, which is found by it among all.
    film = Movie(site="imdb", site_id="tt9000001", url="u", title="Sol og vind", kind="movie", year=2011)
    film.other_titles = [OtherTitle(title="Sun and Wind", country="US")]
    film.scores = [Score(kind="imdb", value=7.0, count=5_000)]
    (joined,) = join([film, page("Sun & Wind", 2011, director=None, runtime_minutes=None)])
    assert joined.movies.keys() == {"imdb", "rottentomatoes"}


def test_a_title_without_letters_is_looked_for_nowhere() -> None:
    assert title_slug_keys(wanted("!!!")) == set()


@pytest.mark.parametrize(
    ("title", "site_ids"),
    [
        ("The Thing", ["m/the_thing", "m/thing", "m/the-thing", "m/the_thing_2011", "m/1021244-the_thing", "movie/the-thing-2011"]),
        ("Rocky II", ["m/rocky_ii", "m/rocky-2", "movie/rocky-ii"]),
        ("Spider-Man: No Way Home", ["m/spider_man_no_way_home", "movie/spiderman-no-way-home"]),
        ("Schindler's List", ["m/schindlers_list", "movie/schindlers-list"]),
        ("Blade Runner 2049", ["m/blade_runner_2049"]),
        ("Wonder Woman 1984", ["m/wonder_woman_1984"]),
        ("1917", ["m/1917", "m/1917_2019"]),
        ("Brewick: The Long Night", ["m/brewick", "movie/the-long-night"]),
        ("Amélie", ["m/amelie", "m/am%C3%A9lie"]),
        ("Иди и смотри", ["m/idi_i_smotri"]),
        ("Fast & Furious", ["movie/fast-and-furious"]),
    ],
)  # fmt: skip
def test_a_title_finds_its_names_on_a_site_however_irregular(title: str, site_ids: list[str]) -> None:
    keys = title_slug_keys(wanted(title))
    for site_id in site_ids:
        assert slug_key(site_id) in keys, (slug_key(site_id), keys)


def test_films_and_series_of_one_name_have_different_keys() -> None:
    assert slug_key("tv/fargo") != slug_key("m/fargo") == slug_key("movie/fargo")
    assert slug_key("tv/fargo/season-2") != slug_key("tv/fargo")
    assert title_slug_keys(wanted("Fargo", kind=None)) == {slug_key("tv/fargo"), slug_key("m/fargo")}
    assert slug_key("m/fargo") not in title_slug_keys(wanted("Fargo", kind="series"))
