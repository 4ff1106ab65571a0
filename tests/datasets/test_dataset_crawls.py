"""Crawls of IMDb's datasets.

They show when datasets are read, and what becomes of damaged files and of a pass that is broken
off.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy.http import Response

from moviecrawler.spiders.imdb import ImdbSpider
from tests.catalogue.files import FileServer
from tests.crawling import Finished, crawl_command, environment, scrapy
from tests.datasets.rows import put
from tests.processes import start
from tests.spiders.answers import spider_of
from tests.waiting import wait_for

RATINGS = {"tt0900001": ("8.7", 30_000), "tt0900002": ("6.1", 1_000), "tt0900003": ("5.0", 2_000)}
ASKED = [*RATINGS, "tt0900009"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FileServer]:
    """Serves the datasets, and a robots.txt of IMDb's that allows no page."""
    folder = tmp_path / "files"
    folder.mkdir()
    paths = [
        put(
            folder,
            "title.ratings",
            *(f"{site_id}|{rating}|{votes}" for site_id, (rating, votes) in RATINGS.items()),
        ),
        put(
            folder,
            "title.basics",
            *(rf"{site_id}|movie|Kettle|\N|1999|\N|118|Drama" for site_id in RATINGS),
        ),
        put(folder, "title.crew", *(rf"{site_id}|nm0900001|\N" for site_id in RATINGS)),
        put(
            folder,
            "title.principals",
            *(rf'{site_id}|1|nm0900002|actress|["Vera"]' for site_id in RATINGS),
        ),
        put(folder, "title.akas", *(rf"{site_id}|1|Kessel|DE|de|\N" for site_id in RATINGS)),
        put(folder, "title.episode"),
        put(folder, "name.basics", "nm0900001|Aino", "nm0900002|Berit"),
    ]
    with FileServer() as serving:
        serving.files = {f"/{path.name}": path.read_bytes() for path in paths}
        yield serving


def crawl(server: FileServer, data: Path, *arguments: str, **settings: str) -> Finished:
    command = crawl_command(
        "imdb", *(arguments or ("via=datasets", f"ids={','.join(ASKED)}")), RETRY_TIMES="0"
    )
    return scrapy(*command, data=data, replica=None, IMDB_DATASETS_URL=server.url, **settings)


def test_titles_of_the_datasets_are_stored_and_the_others_are_misses(
    server: FileServer, tmp_path: Path
) -> None:
    first = crawl(server, tmp_path / "data")
    assert (first.code, first.misses) == (0, {"tt0900009": "absent"})
    assert {
        movie.site_id: (str(movie.scores[0].value), movie.scores[0].count) for movie in first.movies
    } == RATINGS
    server.asked.clear()
    again = crawl(server, tmp_path / "data")
    assert (again.code, len(again.movies)) == (0, 3)
    fetched = [asked.headers for asked in server.asked if asked.path.endswith(".gz")]
    assert [headers.keys() & {"if-none-match"} for headers in fetched] == [{"if-none-match"}] * 7


@pytest.mark.promise(
    "Where robots.txt forbids IMDb's pages, its datasets are read, and charts marked as computed."
)
@pytest.mark.parametrize("is_allowed", [True, False])
def test_robots_txt_decides_before_the_first_page(
    server: FileServer, tmp_path: Path, is_allowed: bool
) -> None:
    rules = b"User-agent: *\nDisallow: /title/\nDisallow: /chart/\n"
    server.replies["/robots.txt"] = lambda _: None if is_allowed else (200, {}, rules)
    found = crawl(server, tmp_path / "data", "ids=tt0900001,tt0900002", IMDB_URL=server.url)
    pages = [path for path in server.paths if path.startswith("/title/")]
    if is_allowed:  # the server has no such pages
        assert (len(pages), found.misses) == (2, {"tt0900001": "absent", "tt0900002": "absent"})
    else:
        assert (
            "IMDb's pages can't be had (by robots.txt); reading its datasets instead" in found.log
        )
        assert (found.code, pages, len(found.movies)) == (0, [], 2)


def test_where_robots_txt_can_not_be_fetched_the_reason_says_so(
    server: FileServer, tmp_path: Path
) -> None:
    found = crawl(server, tmp_path / "data", "ids=tt0900001", IMDB_URL="http://127.0.0.1:9")
    assert "robots.txt can't be fetched: " in found.log
    assert "disallowed" not in found.log
    assert (found.code, len(found.movies)) == (0, 1)


@pytest.mark.promise(
    "IMDb's datasets are read with all that they tell, and a damaged row or file erases nothing."
)
def test_a_damaged_file_erases_nothing_is_named_and_is_fetched_anew(
    server: FileServer, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    before = crawl(server, data).movies
    whole = server.files["/title.principals.tsv.gz"]
    on_disk = data / "datasets" / "title.principals.tsv.gz"
    on_disk.write_bytes(whole[:-20])
    wrong_checksum = whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]
    for body, reason in (
        (whole, "damaged or cut short: "),
        (wrong_checksum, "principals.tsv.gz is no whole gzip file"),
    ):
        server.files["/title.principals.tsv.gz"] = body
        broken = crawl(server, data)
        assert (broken.code, set(broken.misses.values())) == (1, {"failed"})
        assert reason in broken.log
        assert "fetched anew next time" in broken.log
        assert broken.movies == before
        assert not on_disk.exists()
    server.files["/title.principals.tsv.gz"] = whole
    mended = crawl(server, data)
    assert (mended.code, len(mended.movies)) == (0, 3)


def test_a_title_whose_row_is_damaged_has_failed(server: FileServer, tmp_path: Path) -> None:
    path = put(
        tmp_path / "files",
        "title.basics",
        "tt0900001|movie",
        "tt0900001|movie",
        r"tt0900002|movie|Ox|\N|soon|\N|118|Drama",
    )
    server.files["/title.basics.tsv.gz"] = path.read_bytes()
    found = crawl(server, tmp_path / "data")
    assert found.misses == {
        **dict.fromkeys(("tt0900001", "tt0900002"), "failed"),
        **dict.fromkeys(("tt0900003", "tt0900009"), "absent"),
    }
    assert (found.code, found.stat("extraction/errors/dataset")) == (1, 3)
    assert "have 3 damaged rows, the first in title.basics of tt0900001: " in found.log


def test_datasets_that_can_not_be_had_are_failures_of_all_that_was_asked(
    server: FileServer, tmp_path: Path
) -> None:
    del server.files["/title.crew.tsv.gz"]
    found = crawl(server, tmp_path / "data", "via=datasets", "list=top", f"ids={','.join(ASKED)}")
    assert (found.code, found.misses) == (1, dict.fromkeys(ASKED, "failed"))
    assert "title.crew.tsv.gz: HTTP status 404" in found.log
    assert "Error: " not in (tmp_path / "data" / "misses.csv").read_text("utf-8")


async def test_what_nobody_foresaw_is_counted_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spider = spider_of(ImdbSpider, via="datasets", ids="tt0900001")
    monkeypatch.setattr(spider, "_movies", lambda *_: (1 // 0 for _ in ASKED))
    (miss,) = [
        item async for item in spider.read_datasets(Response("https://datasets.imdbws.com/"), None)
    ]
    assert "IMDb's datasets: ZeroDivisionError: " in str(miss)
    assert spider.crawler.stats.get_value("extraction/errors/dataset") == 1


@pytest.mark.parametrize("moment", ["fetching", pytest.param("reading", marks=pytest.mark.long)])
def test_a_pass_hears_sigterm_within_seconds_and_leaves_its_titles_to_be_done(
    server: FileServer, tmp_path: Path, moment: str
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    if moment == "fetching":
        server.stalls.add("/title.akas.tsv.gz")
        server.files["/title.akas.tsv.gz"] += bytes(1 << 20)
        under_way = "title.akas.tsv.gz.part"
    else:
        names = (rf"nm{number:07}|Aino {number}" for number in range(3_000_000))
        server.files["/name.basics.tsv.gz"] = put(
            tmp_path / "files", "name.basics", *names
        ).read_bytes()
        under_way = "name.basics.tsv.gz"
    command = crawl_command("imdb", "via=datasets", f"ids={','.join(ASKED)}")
    with start(
        command, env=environment(data, None, IMDB_DATASETS_URL=server.url), cwd=data
    ) as process:
        wait_for((data / "datasets" / under_way).exists)
        began = time.monotonic()
        process.terminate()
        process.wait(60)
        assert time.monotonic() - began < 30
    assert (
        not (data / "misses.csv").exists()
        or len((data / "misses.csv").read_text("utf-8").splitlines()) <= 1
    )
