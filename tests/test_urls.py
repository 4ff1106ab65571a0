"""Which title an id, a path or a URL names."""

import re

import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import Site
from moviecrawler.sites.ids import id_in_url, parse_title_id, part_of_series
from tests import written

STAND_IN = "http://replica:8000/"


@pytest.mark.parametrize(("site", "path", "site_id"), written.rows(__file__, "urls.txt"))
def test_only_a_seasons_and_an_episodes_own_path_names_them(
    site: Site, path: str, site_id: str | None
) -> None:
    assert id_in_url(site, path) == site_id
    if site_id is not None and path.strip("/").count("/") == site_id.count("/") and "?" not in path:
        assert parse_title_id(site, path) == site_id


@pytest.mark.parametrize(
    ("site", "text", "site_id"),
    [
        *written.rows(__file__, "titles.txt"),
        ("imdb", "tt0111161\n/", None),
        ("metacritic", "movie/dune\n/", None),
        ("metacritic", "movie/\x1b[2J", None),
        ("metacritic", "movie/" + "x" * 301, None),
    ],
)
def test_what_people_write_is_the_id_as_the_site_writes_it_or_is_refused(
    site: Site, text: str, site_id: str | None
) -> None:
    if site_id is None:
        with pytest.raises(ConfigurationError, match=f"is not a title of {site}"):
            parse_title_id(site, text, STAND_IN)
        return
    assert parse_title_id(site, text, STAND_IN) == site_id
    part = part_of_series(site, site_id)
    of_series = re.match("(tv/[^/]+)/", site_id)
    assert (part and part.series_id) == (of_series and of_series[1])
