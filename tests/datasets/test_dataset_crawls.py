"""Crawls of IMDb's datasets: what a second one writes, and what becomes of damaged files."""

from __future__ import annotations

import asyncio
import gzip
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import signals
from scrapy.http import Response
from scrapy.utils.test import get_crawler
from twisted.python.failure import Failure

from moviecrawler import settings as project
from moviecrawler.datasets.downloads import DownloadError
from moviecrawler.datasets.joining import read_titles
from moviecrawler.datasets.names import IdSet
from moviecrawler.datasets.stored_facts import Pass, StoredFacts
from moviecrawler.errors import ExtractionError
from moviecrawler.extensions.dataset_facts import DatasetFacts
from moviecrawler.extract.datasets import COLUMNS, Damage
from moviecrawler.frontier.engine import NotSent
from moviecrawler.items import Miss, Movie
from moviecrawler.signals import item_completed
from moviecrawler.spiders import datasets as dataset_spider
from moviecrawler.spiders.imdb import ImdbSpider
from moviecrawler.urls import title_url
from tests.crawling import Finished, crawl_command, scrapy
from tests.datasets.served import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy import Request, Spider
    from scrapy.signalmanager import SignalManager

RATINGS = {"tt0900001": ("8.7", 30_000), "tt0900002": ("6.1", 1_000), "tt0900003": ("5.0", 2_000)}
ASKED = ",".join([*RATINGS, "tt0900009"])


def put(folder: Path, name: str, *rows: str) -> None:
    text = "".join(f"{row}\n" for row in ("|".join(COLUMNS[name]), *rows)).replace("|", "\t")
    (folder / f"{name}.tsv.gz").write_bytes(gzip.compress(text.encode(), 0))


def put_ratings(folder: Path, **changed: tuple[str, int]) -> None:
    rated = {**RATINGS, **changed}
    put(folder, "title.ratings", *(f"{site_id}|{rating}|{votes}" for site_id, (rating, votes) in rated.items()))


def put_all(folder: Path) -> None:
    folder.mkdir()
    put_ratings(folder)
    ids = [*RATINGS, *(f"tt07{number:05}" for number in range(2_000))]  # more than the crawl asks for at first
    put(folder, "title.basics", *(rf"{site_id}|movie|Kettle {site_id}|\N|1999|\N|118|Drama" for site_id in ids))
    put(folder, "title.crew", *(rf"{site_id}|nm0900001|\N" for site_id in RATINGS))
    put(folder, "title.principals", *(rf'{site_id}|1|nm0900002|actress|["Vera"]' for site_id in RATINGS))
    put(folder, "title.akas", *(rf"{site_id}|1|Kessel|DE|de|\N" for site_id in RATINGS))
    put(folder, "title.episode")
    put(folder, "name.basics", "nm0900001|Aino", "nm0900002|Berit")


def crawl(url: str, data: Path) -> Finished:
    # DOWNLOAD_MAXSIZE is less than the largest of the files, of which the server gives no parts.
    command = crawl_command("imdb", "via=datasets", f"ids={ASKED}", DOWNLOAD_MAXSIZE="70000")
    return scrapy(*command, data=data, IMDB_DATASETS_URL=url, FRESHNESS_MARGIN="0")


def test_only_titles_whose_facts_have_changed_are_written_again(tmp_path: Path) -> None:
    files, data = tmp_path / "files", tmp_path / "data"
    data.mkdir()
    put_all(files)
    with serving(files) as url:
        first = crawl(url, data)
        assert (first.code, first.stat("titles/stored"), first.stat("titles/absent")) == (0, 3, 1)
        written = {movie.site_id: movie for movie in first.movies}

        # Nothing has changed: nothing is even read.
        same = crawl(url, data)
        assert "nothing is written" in same.log
        assert (same.code, same.stat("titles/unchanged"), same.stat("titles/absent")) == (0, 3, 1)

        # Votes that hardly moved are no change; a rating is, and so are many votes.
        put_ratings(files, tt0900001=("8.7", 30_200), tt0900002=("6.1", 1_011), tt0900003=("5.1", 2_000))
        changed = crawl(url, data)
        assert (changed.code, changed.stat("titles/unchanged"), changed.stat("titles/stored")) == (0, 1, 2)
        now = {movie.site_id: movie for movie in changed.movies}
        assert now["tt0900001"] == written["tt0900001"]
        assert [now[site_id].scores[0].count for site_id in ("tt0900002", "tt0900003")] == [1_011, 2_000]
        assert now["tt0900003"].scores[0].value == 5.1

        # Whoever removes the CSV files gets them again.
        (data / "movies.sqlite3").unlink()
        assert crawl(url, data).stat("titles/stored") == 3


class Engine:
    """Answers the requests of a spider with the files of a folder, or with what `instead` has for a file."""

    spider: Spider | None = None
    running = True

    def __init__(self, files: Path) -> None:
        self.files = files
        self.instead: dict[str, Exception] = {}

    async def download_async(self, request: Request) -> Response:
        name = request.url.rpartition("/")[2]
        if name in self.instead:
            raise self.instead[name]
        return Response(request.url, body=(self.files / name).read_bytes(), request=request)


def spider_of(folder: Path, **arguments: str) -> ImdbSpider:
    values = {name: value for name, value in vars(project).items() if name.isupper()}
    crawler = get_crawler(ImdbSpider, {**values, "DATA_DIR": str(folder / "data")})
    crawler._engine = Engine(folder / "files")  # type: ignore[assignment]
    if not (folder / "files").exists():
        put_all(folder / "files")
    return ImdbSpider.from_crawler(crawler, via="datasets", **arguments)


async def items_of(spider: ImdbSpider, request: Request | None = None) -> list[Any]:
    """Return all items of a pass over the datasets."""
    if request is None:
        (request,) = [each async for each in spider.start()]
    assert spider.crawler.engine is not None
    first = await spider.crawler.engine.download_async(request)
    items = [item async for item in spider.read_datasets(first)]
    assert spider.pass_done.is_set()  # else `lane=due` would wait for ever
    spider.close_downloads()
    return items


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_damaged_file_gives_nothing_and_is_fetched_anew_and_a_damaged_row_costs_what_it_tells(tmp_path: Path) -> None:
    def read() -> tuple[ImdbSpider, list[Any]]:
        spider = spider_of(tmp_path, ids=ASKED)
        return spider, asyncio.run(items_of(spider))

    _, before = read()
    principals = tmp_path / "files" / "title.principals.tsv.gz"
    whole = principals.read_bytes()
    put_ratings(tmp_path / "files", tt0900001=("1.0", 5))
    for damage in (whole[:-20], whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]):
        principals.write_bytes(damage)
        _, missed = read()
        assert [(type(item), item.outcome) for item in missed] == [(Miss, "failed")] * 4
        assert all("damaged or cut short" in item.reason for item in missed)
        # The others need not be fetched again.
        left = {path.name for path in (tmp_path / "data" / "datasets").glob("*.tsv.gz")}
        assert left == {f"{name}.tsv.gz" for name in COLUMNS if name != "title.principals"}
    principals.write_bytes(whole)
    _, mended = read()
    assert [item.site_id for item in mended] == [item.site_id for item in before]
    assert (before[0].scores[0].value, mended[0].scores[0].value) == (8.7, 1.0)
    put(tmp_path / "files", "title.principals", "tt0900001|1|nm0900002|actress")
    spider, with_row = read()
    assert spider.crawler.stats is not None
    assert spider.crawler.stats.get_value("extraction/errors/dataset") == 1
    assert with_row[0].people("director") == before[0].people("director")
    assert (with_row[0].scores[0].value, with_row[0].people("cast"), "credits.cast" in with_row[0].silent) == (
        1.0,
        [],
        True,
    )


@pytest.mark.parametrize("end", [DownloadError("ended"), RuntimeError("oh"), ExtractionError("dataset", None, "cut")])
def test_a_pass_that_breaks_off_accounts_for_each_title_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Exception
) -> None:
    def breaking(*arguments: Any) -> Iterator[Movie]:
        yield from islice(read_titles(*arguments), 2)
        raise end

    monkeypatch.setattr(dataset_spider, "read_titles", breaking)
    monkeypatch.setattr(dataset_spider, "_AT_A_TIME", 2)
    items = asyncio.run(items_of(spider_of(tmp_path, ids=ASKED)))
    assert sorted(item.site_id for item in items) == sorted(ASKED.split(","))
    assert [type(item) for item in items] == [Movie, Movie, Miss, Miss]
    assert {item.outcome for item in items[2:]} == {"failed"}


def test_titles_that_are_not_read_as_the_crawl_ends_stay_to_be_done(tmp_path: Path) -> None:
    spider = spider_of(tmp_path, ids=ASKED)
    engine: Any = spider.crawler.engine
    engine.spider, engine.running = spider, False
    assert asyncio.run(items_of(spider)) == []
    assert list(spider.datasets_failed(Failure(NotSent()))) == []  # type: ignore[no-untyped-call]


def test_titles_that_could_not_be_compared_with_what_is_stored_have_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> list[Movie]:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(StoredFacts, "changed", locked)
    items = asyncio.run(items_of(spider_of(tmp_path, ids=ASKED)))
    assert sorted((item.site_id, item.outcome) for item in items) == [
        (one, "failed") for one in sorted(ASKED.split(","))
    ]


def test_a_pass_of_which_a_file_can_not_be_had_has_failed_and_the_next_one_reads_all(tmp_path: Path) -> None:
    async def run() -> list[list[Any]]:
        spider = spider_of(tmp_path, ids="tt0900001")
        (request,) = [request async for request in spider.start()]
        assert request.headers["Range"] == b"bytes=0-65535"  # as Scrapy holds the answer until the pass is over
        spider.plan.lane = "due"
        engine: Any = spider.crawler.engine
        engine.instead = {"title.crew.tsv.gz": TimeoutError("slow")}
        found = [await items_of(spider, request)]
        failure = Failure(TimeoutError("slow"))  # type: ignore[no-untyped-call]
        for site_id in ("tt0900002", "tt0900003"):
            spider.pass_done.clear()
            spider.refused_titles = {site_id: None}
            request = spider.begin_pass()
            found.append(
                await items_of(spider, request) if engine.instead == {} else list(spider.datasets_failed(failure))
            )
            assert spider.pass_done.is_set()
            engine.instead = {}
        return found

    on_the_way, at_first, whole = asyncio.run(run())
    assert [(item.site_id, item.outcome) for item in (*on_the_way, *at_first)] == [
        ("tt0900001", "failed"),
        ("tt0900002", "failed"),
    ]
    assert "title.crew.tsv.gz: TimeoutError: slow" in on_the_way[0].reason
    assert [(item.site_id, type(item)) for item in whole] == [("tt0900003", Movie)]


def test_a_title_whose_row_is_damaged_has_failed_and_only_the_first_damage_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spider = spider_of(tmp_path, ids=ASKED)
    put(tmp_path / "files", "title.basics", "tt0900001|movie", r"tt0900002|movie|Kettle|\N|soon|\N|118|Drama")
    items = asyncio.run(items_of(spider))
    assert spider.crawler.stats is not None
    assert spider.crawler.stats.get_value("extraction/errors/dataset") == 2
    assert {item.site_id: item.outcome for item in items} == {
        **dict.fromkeys(("tt0900001", "tt0900002"), "failed"),
        **dict.fromkeys(("tt0900003", "tt0900009"), "absent"),
    }
    assert "2 damaged rows, the first:" in caplog.text
    assert "the rows of tt0900001: 2 columns instead of 8" in caplog.text


def test_a_person_without_a_name_that_can_be_read_has_none(tmp_path: Path) -> None:
    put_all(tmp_path / "files")
    put(tmp_path / "files", "name.basics", r"nm0900001|\N")
    names = tmp_path / "files" / "name.basics.tsv.gz"
    names.write_bytes(names.read_bytes() + gzip.compress(b"nm0900002\tBerit \xff\n"))
    damage = Damage()
    files = {name: tmp_path / "files" / f"{name}.tsv.gz" for name in COLUMNS}
    (movie,) = read_titles(files, IdSet([b"tt0900001"]), damage)
    assert [(credit.person_id, credit.name) for credit in movie.credits] == [("nm0900001", None), ("nm0900002", None)]
    assert (damage.count, "nm0900002" in str(damage.first)) == (1, True)


@pytest.mark.parametrize("fate", ["durable", "rejected", "dropped", "unknown"])
def test_a_pass_is_known_only_when_all_of_it_is_durable(tmp_path: Path, fate: str) -> None:
    def facts_of_crawl() -> tuple[DatasetFacts, SignalManager]:
        crawler = get_crawler(ImdbSpider, {"DATA_DIR": str(tmp_path), "IMDB_VOTES_CHANGE": 0.01, "FRESHNESS_MARGIN": 0})
        return DatasetFacts(crawler), crawler.signals

    facts, manager = facts_of_crawl()
    version, known = facts.pass_of("files", ["asked"])
    assert known is None
    first, *others = movies = facts.changed([movie_of(number) for number in range(3)])
    assert len(movies) == 3
    manager.send_catch_log(item_completed, item=first, outcomes=frozenset({"durable"}))
    for other in others:
        if fate == "dropped":
            manager.send_catch_log(signals.item_dropped, item=other)
        elif fate != "unknown":
            manager.send_catch_log(item_completed, item=other, outcomes=frozenset({"durable", fate}))
    facts.end_pass(version, 3, ["tt0900009"])
    manager.send_catch_log(signals.spider_closed)
    later, manager = facts_of_crawl()
    whole = fate == "durable"
    assert later.pass_of("files", ["asked"])[1] == (Pass(3, ["tt0900009"]) if whole else None)
    assert len(later.changed([movie_of(number) for number in range(3)])) == (0 if whole else 2)
    manager.send_catch_log(signals.spider_closed)


def test_facts_that_could_not_be_kept_keep_no_later_ones_from_it(tmp_path: Path) -> None:
    path = tmp_path / "stored.sqlite3"
    movies = [movie_of(number) for number in range(3)]
    facts = StoredFacts(path, least_change=0.01, margin=timedelta(0))
    with closing(sqlite3.connect(path)) as other, other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON titles WHEN new.site_id = 'tt0900001'"
            " BEGIN SELECT raise(ABORT, 'disk full'); END"
        )
    given = dict(zip((movie.site_id for movie in movies), facts.changed(movies), strict=True))
    for movie in movies[:2]:
        facts.add(given[movie.site_id][1], NOW)
    with pytest.raises(sqlite3.IntegrityError):
        facts.flush()
    facts.add(given["tt0900002"][1], NOW)
    facts.add_pass("files asked", 1, [])
    assert [movie for movie, _ in facts.changed(movies)] == movies[:2]
    assert facts.known_pass("files asked") is not None
    facts.add(given["tt0900001"][1], NOW)
    with pytest.raises(sqlite3.IntegrityError):
        facts.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        facts.changed(movies)


def movie_of(number: int) -> Movie:
    site_id = f"tt090000{number}"
    return Movie(
        site="imdb",
        site_id=site_id,
        url=title_url("imdb", site_id),
        title=f"Kettle {number}",
        kind="movie",
        scraped_at=NOW,
    )
