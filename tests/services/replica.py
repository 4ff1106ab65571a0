"""One replica for all tests of a process, which each of them finds as it was at the start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader

from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import reset

TITLES = 60
CATALOGUE = Catalogue(1, TITLES)
IDS = [CATALOGUE.imdb_id(index) for index in range(TITLES)]
SPIDERS = SpiderLoader(Settings({"SPIDER_MODULES": ["moviecrawler.spiders"]})).list()
EVERYTHING = {"imdb": [], "metacritic": ["list=new"], "rottentomatoes": ["list=movies_at_home/sort:newest"]}
"""Arguments with which each spider finds all that its site has."""


@pytest.fixture(scope="session")
def running_replica() -> Iterator[ReplicaProcess]:
    """Return a replica as the last test has left it."""
    with ReplicaProcess(titles=TITLES, light=True) as running:
        yield running


@pytest.fixture
def replica(running_replica: ReplicaProcess) -> ReplicaProcess:
    """Return a replica of 60 titles on light pages."""
    reset(running_replica)
    return running_replica
