"""A store that is away is said once, what is unknown is a dash, and no page waits for it."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from scrapyd.config import Config
from twisted.application.service import Application

from moviecrawler.basics.errors import UnavailableError
from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import NodeInfo
from moviecrawler.dashboard.pages import PageRequest
from moviecrawler.dashboard.site import MENU, Root
from moviecrawler.dashboard.sources import PageReads, Sources
from moviecrawler.database.connection import Database
from moviecrawler.database.short_transactions import ShortTransactions
from tests.page_texts import text_of
from tests.passes import make_pass
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
        monkeypatch.setattr("moviecrawler.database.short_transactions._UNAVAILABLE_SECONDS", 0.1)
        monkeypatch.setattr("moviecrawler.dashboard.sources._MIN_PAUSE_SECONDS", 0.1)
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
            first, _, rest = path[1:].partition("/")
            request = PageRequest(path=tuple(filter(None, rest.split("/"))))
            answer = root.children[first.encode()].respond(request)
            assert time.monotonic() - began < WITHIN
            return text_of(answer.content.decode())

        return text

    return make


def test_stores_that_go_and_come_back(node_of: Callable[..., Callable[[str], str]]) -> None:
    with PostgresServer() as postgres, RedisServer() as redis:
        page = node_of(redis.url, redis=redis.url, database=new_database(postgres.url))
        lacks = "The database lacks tables of this version; the next crawl makes them"
        wait_for(lambda: lacks in page("/titles"))
        wait_for(lambda: "1 thing needs attention; " in page("/"))
        postgres.stop()
        away = "Some data is unavailable. The database can't be reached"
        wait_for(lambda: away in page("/titles"))
        redis.stop()
        for path in MENU:
            text = page(path)
            assert text.count("Redis can't be reached") == (path != "/titles"), "it is said once"
            for claim in ("eployed", "No node", "No run", "No job", " 0 "):
                assert claim not in text, "what is unknown is not none"
        assert "Runs – Jobs – " in page("/crawls")
        assert "2 things need attention; some data is unavailable" in page("/")
        for path in ("/crawls/moviecrawler/x", "/runs/imdb/x", "/schedule"):
            text = page(path)
            assert text.count("Redis") == 1
            assert "no such" not in text
        postgres.start()
        redis.start()
        wait_for(lambda: lacks in page("/titles"))
        wait_for(lambda: "Jobs No jobs yet." in page("/crawls"))


def test_page_does_not_wait_for_what_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moviecrawler.dashboard.sources._PAGE_SECONDS", 0.2)
    sources = Sources(MagicMock())
    answers = threading.Event()
    try:
        reads = PageReads(sources)
        waiting = [reads.start("Redis", answers.wait) for _ in range(20)]
        other = reads.start("The queue", int)
        assert [wait() for wait in waiting] == [None] * 20
        assert other() == 0, "each store has threads of its own"
        cause = reads.causes["Redis"]
        assert cause.sentence == "Redis has not replied within 0.2 s"
        later = PageReads(sources)
        assert later.start("Redis", answers.wait)() is None
        assert later.causes["Redis"].since == cause.since
    finally:
        answers.set()
    wait_for(lambda: PageReads(sources).start("Redis", int)() == 0)
    assert sources.unavailable_since == {}
    sources.close()


def test_figures_are_counted_anew_in_time_and_old_ones_shown_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://127.0.0.1:1/x")
    figures = MagicMock(
        side_effect=[UnavailableError("the database took too long to answer"), [], []]
    )
    monkeypatch.setattr("moviecrawler.dashboard.sources.figures", figures)
    sources = Sources(MagicMock())
    for _ in range(2):
        with pytest.raises(UnavailableError, match="too long"):
            sources.counts()
    sources._count_again_at = 0.0
    sources._database = MagicMock()
    cursor = sources._database.transaction.return_value.__enter__.return_value
    cursor.fetchall.side_effect = [[], [[7]], [], [[8]]]
    first = sources.counts()
    assert first.titles == 7
    sources._count_again_at = 0.0
    assert sources.counts() is first
    wait_for(lambda: sources.counts().titles == 8)
    sources.close()


def test_node_without_stores_says_what_is_not_set_and_shows_the_runs_of_its_machine(
    node_of: Callable[..., Callable[[str], str]], redis_url: str, tmp_path: Path
) -> None:
    page = node_of(redis_url)
    assert "No runs yet." in page("/crawls")
    make_pass(tmp_path, "", {"a": "stored", "b": "dead", "c": ""})
    text = {path: page(path) for path in MENU}
    assert "2 things need attention IMDb: 1 dead letter of run weekly" in text["/"]
    assert "IMDb weekly no worker 4 requested: 1 stored, 1 dead, 1 read, 1 to go" in text["/crawls"]
    assert "DATABASE_URL is not set in this node’s environment" in text["/"]
    assert "REDIS_URL is not set in this node’s environment" in text["/crawls"]
    assert "DATABASE_URL is not set in the node's environment" in text["/titles"]
    assert "Due –" in text["/"]


def test_a_database_that_is_away_is_not_connected_to_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    transactions = ShortTransactions("postgresql://127.0.0.1:1/movies")
    with pytest.raises(UnavailableError, match="can't be reached"), transactions.transaction():
        pass
    monkeypatch.setattr(Database, "open", MagicMock(side_effect=AssertionError))
    with pytest.raises(UnavailableError, match="can't be reached"), transactions.transaction():
        pass
