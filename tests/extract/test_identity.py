"""Whose page it is: the page's own id decides, and another one's only behind lasting redirects."""

import pytest

from moviecrawler.items import Page, Site
from moviecrawler.sites.identity import ALIAS, Identity, Redirect, identify
from moviecrawler.sites.ids import title_url
from moviecrawler.sites.pages import read_page
from moviecrawler.sites.titles import listed_seasons, new_title
from tests import written
from tests.golden import body_of, url_of

WIRE = "tv/the_wire"
SALT = "tv/salt"


def page_of(site: Site, site_id: str, *seasons: str) -> Page:
    """Return a page that states its own id, and lists seasons of its series."""
    movie = new_title(site, site_id, "The Lamp")
    page = Page(site=site, kind="title", movie=movie)
    rows = [new_title(movie.site, one, movie.title) for one in seasons]
    page.seasons = listed_seasons(movie, rows)
    return page


def judge(site: Site, page: Page, way: str) -> Identity:
    """Return whose page it is, by a way to it such as `m/old 301 m/new`."""
    ids = way.split(" ")[::2]
    reasons = [reason if reason == ALIAS else int(reason) for reason in way.split(" ")[1::2]]
    urls = [title_url(site, site_id) for site_id in ids]
    redirects = [Redirect(url, reason) for url, reason in zip(urls, reasons, strict=False)]
    assert page.movie is not None
    return identify(page, page.movie, ids[0], urls[-1], redirects)


def own(page: Page) -> str:
    assert page.movie is not None
    return str(page.movie.site_id)


@pytest.mark.promise(
    "A page of another title is never stored as the one that was asked for, and deletes nothing."
)
@pytest.mark.parametrize(
    ("verdict", "site", "page_id", "way"), written.rows(__file__, "identity.txt")
)
def test_its_own_id_another_spelling_and_lasting_redirects_make_a_page_the_titles(
    verdict: str, site: Site, page_id: str, way: str
) -> None:
    identity = judge(site, page_of(site, page_id), way)
    if verdict == "refused":
        assert identity.refusal == f"the page is that of {page_id}"
    else:
        assert identity == Identity(title_id=page_id, is_alias=verdict == "alias")


def test_a_landing_page_on_the_way_counts_as_another_id() -> None:
    page = page_of("imdb", "tt0000002")
    home = "https://www.imdb.com"
    assert page.movie is not None
    for reasons, is_refused in (((301, 302), True), ((302, 301), True), ((301, 301), False)):
        way = [Redirect(f"{home}/title/tt0000001/", reasons[0]), Redirect(f"{home}/", reasons[1])]
        found = identify(page, page.movie, "tt0000001", f"{home}/title/tt0000002/", way)
        assert (found.refusal is not None) == is_refused


@pytest.mark.parametrize("reason", [301, 302])
def test_a_series_address_may_lead_to_its_only_season_and_back(reason: int) -> None:
    season = page_of("rottentomatoes", f"{WIRE}/s01")
    assert judge("rottentomatoes", season, f"{WIRE} {reason} {WIRE}/s01") == Identity(title_id=WIRE)
    series = page_of("rottentomatoes", WIRE, f"{WIRE}/s01")
    way = f"{WIRE}/s01 {reason} {WIRE}"
    assert judge("rottentomatoes", series, way) == Identity(title_id=WIRE)
    # Without a redirect it is the page of another title.
    assert judge("rottentomatoes", season, WIRE).refusal
    assert judge("rottentomatoes", series, f"{WIRE}/s01").refusal
    # The series may have got another name, too.
    way = f"{SALT} 301 {WIRE} {reason} {WIRE}/s01"
    assert judge("rottentomatoes", season, way) == Identity(title_id=WIRE, is_alias=True)


PARTS = [
    "metacritic/nuxt3-series-seasons",
    "metacritic/nuxt3-season",
    "metacritic/nuxt3-season-unreviewed",
    "metacritic/nuxt3-episode",
    "rottentomatoes/2026-series-tiles",
    "rottentomatoes/2026-season",
    "rottentomatoes/2026-episode",
]


@pytest.mark.promise(
    "A page of another title is never stored as the one that was asked for, and deletes nothing."
)
@pytest.mark.parametrize("case", PARTS)
def test_readers_give_the_id_that_the_page_states_whatever_its_address(case: str) -> None:
    page = read_page(body_of(case), url_of(case))
    others = [other for other in PARTS if other.split("/")[0] == case.split("/", maxsplit=1)[0]]
    for other in others:
        other_id = own(read_page(body_of(other), url_of(other)))
        again = read_page(body_of(case), title_url(page.site, other_id))
        assert own(again) == own(page)
        is_refused = judge(page.site, again, other_id).refusal is not None
        assert is_refused == (other != case)
