"""Scrapy's own commands for one page: `parse` and `check`."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from scrapy.exceptions import ContractFail
from scrapy.utils.test import get_crawler

from moviecrawler.options import project_settings
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites.ids import title_url
from moviecrawler.spiders import contracts
from moviecrawler.spiders.imdb import ImdbSpider
from moviecrawler.spiders.metacritic import MetacriticSpider
from tests.crawling import scrapy
from tests.golden import GOLDEN
from tests.services.replica import COLLECTION

QUIET = ["--nolinks", "--nocolour", "-L", "ERROR"]


@pytest.mark.parametrize("callback", [[], ["-c", "parse_title"]])
@pytest.mark.parametrize("site", ["imdb", "metacritic", "rottentomatoes"])
def test_parse_prints_the_item_of_a_page(
    site: str, callback: list[str], replica: ReplicaProcess, tmp_path: Path
) -> None:
    movie = next(iter(COLLECTION.pages(site)))
    url = title_url(movie.site, str(movie.site_id), replica.urls[site])
    given = [f"--spider={site}", url, *callback, *QUIET]
    parsed = scrapy("parse", *given, data=tmp_path, replica=replica)
    assert parsed.code == 0
    assert f"'site_id': {str(movie.site_id)!r}" in parsed.output
    assert "'unknown_fields': " in parsed.output
    assert "Traceback" not in parsed.log


@pytest.mark.promise("scrapy check compares what each spider reads with this project's pages.")
def test_check_reads_the_projects_own_pages_and_asks_no_site(tmp_path: Path) -> None:
    checked = scrapy("check", data=tmp_path)
    assert (checked.code, checked.log.split()[-1]) == (0, "OK"), checked.log
    assert "Ran 3 contracts" in checked.log


def test_a_page_that_is_read_otherwise_fails_its_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = "metacritic/nuxt3-movie"
    shutil.copytree(GOLDEN / case, tmp_path / case)
    expected = tmp_path / case / "expected.json"
    told = json.loads(expected.read_text("utf-8"))
    told["item"]["title"] = "Another Lamp"
    expected.write_text(json.dumps(told))
    monkeypatch.setattr(contracts, "_PAGES", tmp_path)
    settings = project_settings({})
    spiders: list[Any] = [
        get_crawler(spidercls, settings)._create_spider()
        for spidercls in (MetacriticSpider, ImdbSpider)
    ]
    of_metacritic, of_imdb = [contracts.GoldenContract(spider.parse_title) for spider in spiders]
    with pytest.raises(ContractFail, match=r"title is '.*', not 'Another Lamp'"):
        of_metacritic.pre_process(None)
    with pytest.raises(ContractFail, match="there are no pages of imdb"):
        of_imdb.adjust_request_args({})
