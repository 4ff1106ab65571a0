"""Whether a page that was fetched is that of the title it was fetched for.

And under which names to look for it.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moviecrawler.items import Credit, Movie
from moviecrawler.matching.facts import TitleFacts
from moviecrawler.matching.slugs import slug_key, title_slug_keys
from moviecrawler.matching.titles import verify
from tests import written

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


CASES = [
    json.loads(line)
    for line in Path(__file__).with_name("pages.jsonl").read_text("utf-8").splitlines()
]
"""How pages are judged that differ from WANTED, and so may what is wanted."""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_page_is_judged_by_all_that_is_known(case: dict[str, Any]) -> None:
    wanted = replace(WANTED, **case.get("wanted", {}))
    judged = verify(wanted, page(**case["page"]), case["evidence"])
    assert judged.decision == case["decision"], judged


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


@pytest.mark.parametrize(("title", "site_id"), written.rows(__file__, "slugs.txt"))
def test_a_title_finds_its_names_on_a_site_however_irregular(title: str, site_id: str) -> None:
    site = "rottentomatoes" if site_id.startswith("m/") else "metacritic"
    assert slug_key(site, site_id) in title_slug_keys(wanted(title))


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
