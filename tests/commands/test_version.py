from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from tests.crawling import scrapy


def test_version_says_scrapys_and_ours(tmp_path: Path) -> None:
    finished = scrapy("version", data=tmp_path)
    assert finished.output == f"Scrapy {version('scrapy')}\nmoviecrawler {version('moviecrawler')}\n"
