"""A store that is away is a sentence on the page: never an error, and never a long wait."""

import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from scrapyd.config import Config
from twisted.application.service import Application

from moviecrawler.basics.errors import AwayError
from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import NodeInfo
from moviecrawler.dashboard.pages import PageRequest
from moviecrawler.dashboard.site import MENU, Root
from moviecrawler.dashboard.sources import Sources
from tests.dashboard.operated import text_of
from tests.frontier.passes import make_pass
from tests.services.postgres import PostgresServer, new_database
from tests.services.redis import RedisServer
from tests.waiting import wait_for

WITHIN = 60.0
"""Seconds on a machine that does other things, too; a client without a time-out waits for
minutes."""


@pytest.fixture
def node_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[[str], str]]:
    """Return what makes a node's dashboard, without its process, and returns the text of a page."""

    def make(redis_url: str, *, redis: str = "", database: str = "") -> Callable[[str], str]:
        monkeypatch.setenv("REDIS_URL", redis)
        monkeypatch.setenv("DATABASE_URL", database)
        monkeypatch.setattr("moviecrawler.settings.DATA_DIR", str(tmp_path))
        monkeypatch.setattr("moviecrawler.database.short_transactions._AWAY_SECONDS", 0.1)
        options = NodeOptions(
            redis_url=redis_url, eggs_dir=str(tmp_path / "eggs"), logs_dir=str(tmp_path / "logs")
        )
        config = Config({})
        node = Node(options)
        config.node = node
        here = NodeInfo(
            id="a", name="a", url="", slots=6, started_at=0, draining=False, memory=1, processes={}
        )
        node.state.beat(here, [])
        root = Root(config, Application("test"))  # type: ignore[no-untyped-call]

        def text(path: str) -> str:
            began = time.monotonic()
            answer = root.children[path[1:].encode()].answer(PageRequest())
            assert time.monotonic() - began < WITHIN
            assert answer.code == 200, (path, answer.content)
            return text_of(answer.content.decode())

        return text

    return make


def test_stores_that_go_and_come_back(node_of: Callable[..., Callable[[str], str]]) -> None:
    with PostgresServer() as postgres, RedisServer() as redis:
        page = node_of(redis.url, redis=redis.url, database=new_database(postgres.url))
        assert "The database lacks tables of this version; the next crawl makes them" in page(
            "/titles"
        )
        postgres.stop()
        page("/")
        assert "Some data can't be shown. The database can't be reached" in page("/titles")
        postgres.start()
        wait_for(lambda: "lacks tables" in page("/titles"))
        redis.stop()
        for path in MENU:
            text = page(path)
            if path != "/titles":
                assert "Some data can't be shown. Redis at REDIS_URL can't be used" in text, path
                assert "Redis can't be reached" in text, path
            for claim in ("deployed:", "No node is up", "No run has", "No job", "May be crawled"):
                assert claim not in text, "what is unknown is not none"
        assert "Running – Unknown." in page("/crawls")
        assert "things need attention. " in page("/")
        redis.start()
        wait_for(lambda: "Not all" not in page("/crawls"))


def test_database_that_takes_too_long_is_not_asked_by_each_page_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/x")
    figures = MagicMock(side_effect=[AwayError("the database took too long to answer"), []])
    monkeypatch.setattr("moviecrawler.dashboard.sources.figures", figures)
    sources = Sources(MagicMock())
    for _ in range(2):
        with pytest.raises(AwayError, match="too long"):
            sources.counts()
    sources._count_again_at = 0.0
    sources._database = MagicMock()
    assert sources.counts() is not None


def test_node_without_stores_says_what_is_not_set_and_shows_the_runs_of_its_machine(
    node_of: Callable[..., Callable[[str], str]], redis_url: str, tmp_path: Path
) -> None:
    page = node_of(redis_url)
    assert "No run has begun." in page("/crawls")
    make_pass(tmp_path, "", {"a": "stored", "b": "dead", "c": ""})
    text = {path: page(path) for path in MENU}
    assert "! 2 things need attention. 1 request to IMDb became a dead letter." in text["/"]
    assert "IMDb weekly ! no worker 75 % 3 of 4 1 0 – – " in text["/crawls"]
    assert "DATABASE_URL is not set in this node’s environment" in text["/"]
    assert "REDIS_URL is not set in this node’s environment" in text["/crawls"]
    assert "DATABASE_URL is not set in the node's environment" in text["/titles"]
    assert "Due –" in text["/"]
