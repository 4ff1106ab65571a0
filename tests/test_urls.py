"""Which title an id, a path or a URL names."""

import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import Site
from moviecrawler.sites.ids import id_in_url, parse_title_id


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
        (
            "metacritic",
            "/tv/salt-road/season-02/episode-07-salt/",
            "tv/salt-road/season-2/episode-07-salt",
        ),
        ("metacritic", "/tv/salt-road/season-0-salt/", "tv/salt-road/season-0-salt"),
        ("rottentomatoes", "/tv/salt_road/s1", "tv/salt_road/s01"),
        ("rottentomatoes", "/tv/salt_road/s001/e5.2", "tv/salt_road/s01/e05.2"),
        ("rottentomatoes", "/tv/s1/s1/e0", "tv/s1/s01/e00"),
        ("rottentomatoes", "/tv/salt_road/s010/e0100", "tv/salt_road/s10/e100"),
        ("rottentomatoes", "/tv/salt_road/S01", "tv/salt_road/s01"),
        ("rottentomatoes", "/tv/salt_road/S1/E05/reviews", "tv/salt_road/s01/e05"),
        ("rottentomatoes", "/tv/salt_road/season-1", None),
        ("rottentomatoes", "/tv/salt_road/Season_1/", None),
        ("rottentomatoes", "/tv/salt_road/specials", None),
        ("rottentomatoes", "/tv/salt_road?season=s02", "tv/salt_road/s02"),
        ("rottentomatoes", "/tv/salt_road?season=2", None),
        ("rottentomatoes", "/tv/salt_road/s01?season=2", "tv/salt_road/s01"),
        ("rottentomatoes", "/m/salt_road?season=s01", None),
        ("metacritic", "/tv/salt-road/Season-02/", "tv/salt-road/season-2"),
        ("metacritic", "/tv/salt-road/SPECIALS/", "tv/salt-road/specials"),
        ("metacritic", "/tv/salt-road/s01/", None),
        ("metacritic", "/tv/salt-road/season1/", None),
        ("metacritic", "/tv/salt-road/?season=season-2", "tv/salt-road/season-2"),
        (
            "metacritic",
            "/tv/salt-road/critic-reviews/?x=1&season=season-0",
            "tv/salt-road/specials",
        ),
        ("metacritic", "/tv/salt-road/?season=2", None),
        ("metacritic", "/tv/salt-road/?season=", None),
        ("metacritic", "/tv/salt-road/?seasons=2", "tv/salt-road"),
        ("imdb", "/title/tt0900001/episodes/?season=2", None),
        ("imdb", "/title/tt00900001/", "tt0900001"),
        ("imdb", "/title/tt0000000001/", "tt0000001"),
        ("imdb", "/title/tt10900001/", "tt10900001"),
    ],
)
def test_only_a_seasons_and_an_episodes_own_path_names_them(
    site: Site, path: str, site_id: str | None
) -> None:
    assert id_in_url(site, path) == site_id
    if site_id is not None and path.strip("/").count("/") == site_id.count("/") and "?" not in path:
        assert parse_title_id(site, path) == site_id


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
    ("site", "text", "site_id"),
    [
        ("imdb", "tt00900001", "tt0900001"),
        ("imdb", "https://m.imdb.com/title/tt000900001", "tt0900001"),
        ("metacritic", "https://www.metacritic.com/tv/x/?season=season-2", "tv/x/season-2"),
        ("rottentomatoes", "tv/x/S01", "tv/x/s01"),
        ("rottentomatoes", "https://www.rottentomatoes.com/tv/x/S01/E2", "tv/x/s01/e02"),
    ],
)
def test_what_people_write_is_the_id_as_the_site_writes_it(
    site: Site, text: str, site_id: str
) -> None:
    assert parse_title_id(site, text) == site_id


@pytest.mark.parametrize(
    ("site", "text"),
    [
        ("imdb", "https://www.imdb.com/title/tt0900001/episodes/?season=2"),
        ("metacritic", "https://www.metacritic.com/tv/x/?season=two"),
        ("rottentomatoes", "https://www.rottentomatoes.com/tv/x/season-2"),
    ],
)
def test_a_season_that_is_written_in_another_way_is_not_its_series(site: Site, text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"is not a title of {site}"):
        parse_title_id(site, text)


@pytest.mark.parametrize(
    "text",
    [
        "movie/dune",
        "/movie/dune/",
        "HTTP://m.METACRITIC.com/movie/dune?x#y",
        "http://replica:8000/movie/dune",
    ],
)
def test_ids_and_urls_of_the_site_or_of_its_stand_in_name_titles(text: str) -> None:
    assert parse_title_id("metacritic", text, "http://replica:8000/") == "movie/dune"
