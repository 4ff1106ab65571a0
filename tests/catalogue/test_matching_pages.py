"""Whether a page that was fetched is that of the title it was fetched for.

And under which names to look for it.
"""

from dataclasses import replace
from typing import Any

import pytest

from moviecrawler.items import Credit, Movie
from moviecrawler.matching.facts import IdSource, TitleFacts
from moviecrawler.matching.slugs import slug_key, title_slug_keys
from moviecrawler.matching.titles import verify

WANTED = TitleFacts(
    imdb_id="tt0000007",
    title="Salt Harbour",
    kind="movie",
    year=2001,
    runtime_minutes=104,
    directors=["Mara Levin"],
)


def page(
    title: str = "Salt Harbour", year: int | None = 2001, director: str | None = None, **more: Any
) -> Movie:
    directors = [Credit(name=director, role="director", position=1)] if director else []
    values = {
        "site": "rottentomatoes",
        "site_id": "m/salt_harbour",
        "url": "",
        "kind": "movie",
        **more,
    }
    return Movie(**values, title=title, year=year, credits=directors)


OF_IMDB: dict[str, Any] = {"site": "imdb", "site_id": "tt0000007", "imdb_id": "tt0000007"}
SHORT = replace(WANTED, kind="short", runtime_minutes=9)
SPECIAL = replace(WANTED, kind="other")
LONG = replace(
    WANTED, title="The Long Night of the Keeper", runtime_minutes=None, directors=[], votes=500
)


@pytest.mark.parametrize(
    ("wanted", "found", "evidence", "decision"),
    [
        (WANTED, page(), "joined", "accepted"),
        (WANTED, page(year=None), "joined", "review"),
        (WANTED, page(year=None, director="Mara Levin"), "joined", "accepted"),
        (WANTED, page(year=None), "wikidata", "accepted"),
        (WANTED, page(year=None, director="Ines Quarrie"), "wikidata", "accepted"),
        (WANTED, page(year=1961, director="Ines Quarrie"), "wikidata", "review"),
        (WANTED, page("Havn av salt"), "joined", "refused"),
        (WANTED, page("Havn av salt"), "wikidata", "accepted"),
        (WANTED, page("Havn av salt", 1961, "Ines Quarrie"), "wikidata", "refused"),
        (WANTED, page("Havn av salt", 1961), "given", "review"),
        (WANTED, page(imdb_id="tt0000008", director="Mara Levin"), "given", "refused"),
        (WANTED, page("Havn av salt", imdb_id="tt0000007"), "page", "accepted"),
        (WANTED, page("The Keeper Arrives", 1997, imdb_id="tt0000007"), "page", "review"),
        (WANTED, page(kind="series"), "wikidata", "refused"),
        (WANTED, page(director="Ines Quarrie"), "joined", "review"),
        (WANTED, page(director="Ines Quarrie", runtime_minutes=61), "joined", "refused"),
        (replace(WANTED, kind=None), page(kind="series"), None, "accepted"),
        *(
            (SPECIAL, page(kind=kind), None, "accepted")
            for kind in ("movie", "series", "video", "other")
        ),
        *((SPECIAL, page(kind=kind), None, "refused") for kind in ("game", "episode", "music")),
        (SHORT, page(runtime_minutes=14), None, "accepted"),
        (WANTED, page("Havn av salt", **OF_IMDB), None, "accepted"),
        (
            WANTED,
            page("Havn av salt", site="imdb", site_id="tt0000008", imdb_id="tt0000008"),
            None,
            "refused",
        ),
        # That a site lists it is no reason.
        *(
            (LONG, page(LONG.title or "", 2002, runtime_minutes=92), how, "review")
            for how in ("joined", "list", "sitemap")
        ),
    ],
)
def test_a_page_is_judged_by_all_that_is_known(
    wanted: TitleFacts, found: Movie, evidence: IdSource | None, decision: str
) -> None:
    judged = verify(wanted, found, evidence)
    assert judged.decision == decision, judged


def test_a_page_that_fits_a_namesake_as_well_is_for_a_person_to_decide() -> None:
    namesake = TitleFacts(imdb_id="tt0000008", title="Salt Harbour", kind="movie", year=2001)
    wanted = replace(WANTED, rivals=[namesake])
    judged = verify(wanted, page(), "joined")
    assert (judged.decision, judged.reasons[-1]) == ("review", "but it may be tt0000008 as well")
    assert verify(wanted, page(), "wikidata").accepted
    assert verify(wanted, page(director="Mara Levin", runtime_minutes=104), "joined").accepted
    assert verify(replace(WANTED, rivals=[replace(namesake, year=2004)]), page(), "joined").accepted


def wanted(title: str, year: int | None = 2011, **more: Any) -> TitleFacts:
    return TitleFacts(**{"imdb_id": None, "kind": "movie", **more}, title=title, year=year)


@pytest.mark.parametrize(
    ("title", "site_ids"),
    [
        (
            "The Thing",
            [
                "m/the_thing",
                "m/thing",
                "m/the-thing",
                "m/the_thing_2011",
                "m/1021244-the_thing",
                "movie/the-thing-2011",
            ],
        ),
        ("Spider-Man: No Way Home", ["m/spider_man_no_way_home", "movie/spiderman-no-way-home"]),
        ("Schindler's List", ["m/schindlers_list", "movie/schindlers-list"]),
        ("1917", ["m/1917", "m/1917_2019"]),
        ("Brewick: The Long Night", ["m/brewick", "movie/the-long-night"]),
        ("Amélie", ["m/amelie", "m/am%C3%A9lie"]),
        ("Иди и смотри", ["m/idi_i_smotri"]),
    ],
)
def test_a_title_finds_its_names_on_a_site_however_irregular(
    title: str, site_ids: list[str]
) -> None:
    keys = title_slug_keys(wanted(title))
    for site_id in site_ids:
        site = "rottentomatoes" if site_id.startswith("m/") else "metacritic"
        assert slug_key(site, site_id) in keys, (site_id, keys)


def test_films_and_series_of_one_name_have_different_keys_and_a_name_without_letters_has_none() -> (
    None
):
    film = slug_key("rottentomatoes", "m/fargo")
    series = slug_key("rottentomatoes", "tv/fargo")
    assert series != film == slug_key("metacritic", "movie/fargo")
    assert slug_key("metacritic", "tv/fargo/season-2") == "part fargo"
    assert slug_key("rottentomatoes", "tv/rocky-ii") == "series rocky2"
    for kind in (None, "other"):
        assert title_slug_keys(wanted("Fargo", kind=kind)) == {series, film}
    assert film not in title_slug_keys(wanted("Fargo", kind="series"))
    assert title_slug_keys(wanted("!!!")) == set()
