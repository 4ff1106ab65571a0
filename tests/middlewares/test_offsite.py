"""No host is asked but the site's own, wherever an answer sends us."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.test import get_crawler

from moviecrawler import settings
from moviecrawler.middlewares.offsite import StrictOffsiteMiddleware
from moviecrawler.spiders.metacritic import MetacriticSpider
from tests import written
from tests.crawling import scrapy
from tests.processes import FAST
from tests.scripted_site import Site, Told

OPTIONS = [part for name, value in FAST.items() for part in ("-s", f"{name}={value}")]


def elsewhere(site: Site, path: str) -> Told:
    """Return a redirect to the same machine by another name."""
    return Told(302, headers={"Location": f"http://localhost:{site.port}{path}"})


@pytest.mark.promise("Only the site's hosts are asked.")
def test_what_is_redirected_to_another_host_has_failed_and_the_host_is_not_asked(
    tmp_path: Path,
) -> None:
    with Site() as other, Site() as site:
        site.answers["/movie/a/"] = elsewhere(other, "/movie/a/")
        for name in ("/title.basics.tsv.gz", "/title.ratings.tsv.gz"):
            site.answers[name] = elsewhere(other, name)
        arguments = ("crawl", "metacritic", "-a", "ids=movie/a,movie/b", *OPTIONS)
        finished = scrapy(*arguments, data=tmp_path, METACRITIC_URL=site.url)
        assert finished.misses == {"movie/a": "failed", "movie/b": "absent"}
        arguments = ("crawl", "imdb", "-a", "ids=tt0111161", "-a", "via=datasets", *OPTIONS)
        finished = scrapy(
            *arguments, "-s", "ROBOTSTXT_OBEY=0", data=tmp_path, IMDB_DATASETS_URL=site.url
        )
        assert finished.misses["tt0111161"] == "failed"
        assert not other.asked


@pytest.mark.promise("Only the site's hosts are asked.")
@pytest.mark.parametrize(("home", "url", "end"), written.rows(__file__, "offsite.txt"))
@pytest.mark.parametrize("dont_filter", [False, True])
def test_only_the_sites_hosts_are_asked_and_by_https_where_the_settings_say_so(
    home: str, url: str, end: str, dont_filter: bool, tmp_path: Path
) -> None:
    own = {name: value for name, value in vars(settings).items() if name.isupper()}
    crawler = get_crawler(
        MetacriticSpider, {**own, "METACRITIC_URL": home, "DATA_DIR": str(tmp_path)}
    )
    crawler.spider = MetacriticSpider.from_crawler(crawler)
    middleware = StrictOffsiteMiddleware.from_crawler(crawler)
    middleware.spider_opened(crawler.spider)
    request = Request(url, dont_filter=dont_filter)
    with nullcontext() if end == "requested" else pytest.raises(IgnoreRequest):
        middleware.process_request(request)
