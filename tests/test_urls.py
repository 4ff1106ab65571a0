"""When two URLs are of one page, and when they are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviecrawler.errors import ConfigurationError
from moviecrawler.items import Site
from moviecrawler.sites import SITES
from moviecrawler.urls import id_in_url, normalised, parse_title_id

HOSTS = st.sampled_from(
    [
        *(profile.home for profile in SITES.values()),
        "HTTP://m.IMDb.com:80",
        "https://backend.metacritic.com",
        "http://127.0.0.1:8000",
        "http://[::1]:443",
    ]
)
ESCAPED = st.integers(0, 255).map(lambda byte: f"%{byte:02x}")
TEXT = st.lists(st.one_of(st.characters(codec="utf-8"), ESCAPED), max_size=12).map("".join)
PARAMETERS = st.lists(st.tuples(TEXT | st.sampled_from(["ref_", "utm_source", "page"]), TEXT).map("=".join), max_size=4)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://www.imdb.com/title/tt0000001/", "http://www.imdb.com/title/tt0000001/"),
        ("https://www.imdb.com/title/tt0000001/", "https://www.imdb.com/title/tt0000001/reference/"),
        ("https://www.imdb.com/title/tt0000001/", "https://www.imdb.com/de/title/tt0000001/"),
        ("https://www.metacritic.com/movie/a/", "https://backend.metacritic.com/movie/a/"),
        ("https://www.metacritic.com/movie/a/", "https://www.metacritic.com/movie/A/"),
        ("https://www.metacritic.com/browse/?page=1", "https://www.metacritic.com/browse/?page=2"),
        ("https://www.metacritic.com/x?a=1&a=2", "https://www.metacritic.com/x?a=1"),
        ("https://www.metacritic.com/x?a=", "https://www.metacritic.com/x"),
        ("https://www.metacritic.com/x?a=1%26b%3D2", "https://www.metacritic.com/x?a=1&b=2"),
        ("https://www.metacritic.com/x?reference=1", "https://www.metacritic.com/x"),
        ("https://www.rottentomatoes.com/m/a%2Fb", "https://www.rottentomatoes.com/m/a/b"),
        ("https://www.rottentomatoes.com/m/caf%E9", "https://www.rottentomatoes.com/m/caf%E8"),
        ("https://www.rottentomatoes.com/?q=caf%E9", "https://www.rottentomatoes.com/?q=caf%E8"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8001/"),
    ],
)
def test_different_pages_stay_different(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@given(host=HOSTS, path=TEXT, parameters=PARAMETERS, fragment=TEXT)
def test_normalising_twice_is_normalising_once(host: str, path: str, parameters: list[str], fragment: str) -> None:
    once = normalised(f"{host}/{path}?{'&'.join(parameters)}#{fragment}")
    assert normalised(once) == once


@given(host=HOSTS, path=TEXT, parameters=PARAMETERS, data=st.data())
def test_order_of_the_query_and_where_a_visitor_came_from_make_no_other_page(
    host: str, path: str, parameters: list[str], data: st.DataObject
) -> None:
    path = path.replace("?", "").replace("#", "")
    parameters = [parameter.replace("#", "") for parameter in parameters]
    other = data.draw(st.permutations([*parameters, "utm_campaign=x", "GCLID=y"]))
    plain = f"{host}/{path}"
    assert normalised(f"{plain}/?{'&'.join(other)}#top") == normalised(f"{plain}?{'&'.join(parameters)}")


@pytest.mark.parametrize(
    ("site", "path", "site_id"),
    [
        ("rottentomatoes", "/tv/s01_the_beginning", "tv/s01_the_beginning"),
        ("rottentomatoes", "/tv/s01/s01/reviews", "tv/s01/s01"),
        ("rottentomatoes", "/m/s01", "m/s01"),
        ("rottentomatoes", "/tv/salt_road/s00", "tv/salt_road/s00"),
        ("rottentomatoes", "/tv/salt_road/s2023/e10", "tv/salt_road/s2023/e10"),
        ("rottentomatoes", "/tv/salt_road/s01extra", None),
        ("rottentomatoes", "/tv/salt_road/s01/e05-part-2", None),
        ("rottentomatoes", "/tv/salt_road/s01.1/e05a/reviews", None),
        ("rottentomatoes", "/tv/salt_road/s01/extras", "tv/salt_road/s01"),
        ("metacritic", "/tv/season-of-the-salt/", "tv/season-of-the-salt"),
        ("metacritic", "/tv/specials/specials/", "tv/specials/specials"),
        ("metacritic", "/movie/season-1/", "movie/season-1"),
        ("metacritic", "/tv/salt-road/season-2023/critic-reviews/", "tv/salt-road/season-2023"),
        ("metacritic", "/tv/salt-road/season-of-the-salt/", None),
        ("metacritic", "/tv/salt-road/seasons/", "tv/salt-road"),
        ("metacritic", "/tv/salt-road/season-0/", "tv/salt-road/specials"),
        ("metacritic", "/tv/salt-road/season-02/episode-07-salt/", "tv/salt-road/season-2/episode-07-salt"),
        ("metacritic", "/tv/salt-road/season-0-salt/", "tv/salt-road/season-0-salt"),
        ("rottentomatoes", "/tv/salt_road/s1", "tv/salt_road/s01"),
        ("rottentomatoes", "/tv/salt_road/s001/e5.2", "tv/salt_road/s01/e05.2"),
        ("rottentomatoes", "/tv/s1/s1/e0", "tv/s1/s01/e00"),
        ("rottentomatoes", "/tv/salt_road/s010/e0100", "tv/salt_road/s10/e100"),
    ],
)
def test_only_a_seasons_and_an_episodes_own_path_names_them(site: Site, path: str, site_id: str | None) -> None:
    assert id_in_url(site, path) == site_id
    if site_id is not None and path.strip("/").count("/") == site_id.count("/"):
        assert parse_title_id(site, path) == site_id


@pytest.mark.parametrize("text", ["", "tt0111161", "/title/tt0111161/", "https:///title/", "https://[", "http://a:b/"])
def test_what_is_no_url_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no URL|Invalid|could not be cast|Port"):
        normalised(text)


@pytest.mark.parametrize(
    ("site", "text"),
    [
        ("imdb", "tt０１１１１６１"),
        ("imdb", "https://www.imdb.com/title/tt０１１１１６１/"),
        ("imdb", "tt0111161\n/"),
        ("metacritic", "movie/dune\n/"),
        ("metacritic", "movie/.."),
        ("metacritic", "tv/the-wire/season-１"),
        ("metacritic", "movie/\x1b[2J"),
        ("metacritic", "movie/" + "x" * 301),
        ("rottentomatoes", "m/."),
        ("rottentomatoes", "https://www.metacritic.com/tv/the-wire/"),
        ("metacritic", "https://www.themoviedb.org/movie/238-the-godfather"),
        ("metacritic", "https://www.metacritic.com.example.org/movie/dune"),
        ("metacritic", "http://127.0.0.1:8001/movie/dune"),
        ("metacritic", "https://["),
    ],
)
def test_what_names_no_title_of_the_site_is_refused(site: Site, text: str) -> None:
    with pytest.raises(ConfigurationError, match="is not a title of"):
        parse_title_id(site, text, "http://127.0.0.1:8000")


@pytest.mark.parametrize(
    "text", ["movie/dune", "/movie/dune/", "HTTP://m.METACRITIC.com/movie/dune?x#y", "http://replica:8000/movie/dune"]
)
def test_ids_and_urls_of_the_site_or_of_its_stand_in_name_titles(text: str) -> None:
    assert parse_title_id("metacritic", text, "http://replica:8000/") == "movie/dune"
