"""Crawls of IMDb's datasets.

They show when datasets are read, and what becomes of damaged files and of a pass that is broken
off.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from scrapy.http import Response

from moviecrawler.database.sqlite import open_sqlite
from moviecrawler.datasets.passes import DatasetPass
from moviecrawler.spiders.imdb import ImdbSpider
from tests.answers import spider_of
from tests.crawling import Finished, scrapy
from tests.dataset_files import put
from tests.file_server import FileServer
from tests.processes import crawl_command, environment, start
from tests.scripted_site import Site, Told
from tests.stored import board_of
from tests.tables import sqlite_movies
from tests.waiting import wait_for

RATINGS = {"tt0900001": "8.7|30000", "tt0900002": "6.1|1000", "tt0900003": "5.0|2000"}
ASKED = [*RATINGS, "tt0900009"]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FileServer]:
    """Return a server of the datasets, and of a robots.txt of IMDb's that allows no page."""
    folder = tmp_path / "files"
    folder.mkdir()
    rows = {
        "title.basics": r"{}|movie|Kettle|\N|1999|\N|118|Drama",
        "title.crew": r"{}|nm0900001|\N",
        "title.principals": '{}|1|nm0900002|actress|["Vera"]',
        "title.akas": r"{}|1|Kessel|DE|de|\N",
    }
    paths = [put(folder, name, *map(row.format, RATINGS)) for name, row in rows.items()]
    paths += [
        put(folder, "title.ratings", *(f"{one}|{rating}" for one, rating in RATINGS.items())),
        put(folder, "title.episode", "tt0900008|tt0900007|1|1"),
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
    host: FileServer, tmp_path: Path
) -> None:
    first = crawl(host, tmp_path / "data")
    assert (first.code, first.misses) == (0, {"tt0900009": "absent"})
    found = {movie.site_id: movie.scores[0] for movie in first.movies}
    assert {one: f"{score.value}|{score.count}" for one, score in found.items()} == RATINGS
    host.clear_log()
    again = crawl(host, tmp_path / "data")
    assert (again.code, len(again.movies)) == (0, 3)
    fetched = [asked.headers for asked in host.asked if asked.path.endswith(".gz")]
    assert ["If-None-Match" in headers for headers in fetched] == [True] * 7


@pytest.mark.promise(
    "Where robots.txt forbids IMDb's pages, its datasets are read, and charts marked as computed."
)
@pytest.mark.parametrize("is_allowed", [True, False])
def test_robots_txt_decides_before_the_first_page(
    host: FileServer, tmp_path: Path, is_allowed: bool
) -> None:
    rules = b"User-agent: *\nDisallow: /title/\nDisallow: /chart/\n"
    if not is_allowed:
        host.answers["/robots.txt"] = Told(200, rules)
    found = crawl(host, tmp_path / "data", "ids=tt0900001,tt0900002", IMDB_URL=host.url)
    pages = [path for path in host.pages if path.startswith("/title/")]
    if is_allowed:  # the server has no such pages
        assert (len(pages), found.misses) == (2, {"tt0900001": "absent", "tt0900002": "absent"})
    else:
        expected = "IMDb's pages are not accessible (by robots.txt); reading its datasets instead"
        assert expected in found.log
        assert (found.code, pages, len(found.movies)) == (0, [], 2)


@pytest.mark.promise(
    "Where robots.txt forbids IMDb's pages, its datasets are read, and charts marked as computed."
)
@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "robots.txt can't be fetched: DownloadConnectionRefusedError: "),
        (Told(503), "robots.txt can't be fetched: HTTP status 503"),
        (Told(403), "imdb is blocking us (status 403)"),
        (Told(429, headers={"Retry-After": "7200"}), "imdb is blocking us (status 429)"),
    ],
    ids=["away", "broken", "refused", "too many"],
)
def test_where_robots_txt_can_not_be_had_the_datasets_are_read_and_the_reason_is_told(
    host: FileServer, tmp_path: Path, told: Told | None, why: str
) -> None:
    with Site() as site:
        if told is not None:
            site.answers["/robots.txt"] = told
        url = site.url if told is not None else "http://127.0.0.1:9"
        found = crawl(host, tmp_path / "data", "ids=tt0900001", IMDB_URL=url)
    assert f"IMDb's pages are not accessible ({why}" in found.log
    assert "reading its datasets instead" in found.log
    assert (found.code, len(found.movies), site.pages) == (0, 1, [])


@pytest.mark.promise(
    "IMDb's datasets are read with all that they tell, and a damaged row or file erases nothing."
)
def test_a_damaged_file_erases_nothing_is_named_and_is_fetched_anew(
    host: FileServer, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    before = crawl(host, data).movies
    whole = host.files["/title.principals.tsv.gz"]
    on_disk = data / "datasets" / "title.principals.tsv.gz"
    on_disk.write_bytes(whole[:-20])
    wrong_checksum = whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]
    for body, reason in (
        (whole, "damaged or cut short: "),
        (wrong_checksum, "principals.tsv.gz is not a complete gzip file"),
    ):
        host.files["/title.principals.tsv.gz"] = body
        broken = crawl(host, data)
        assert (broken.code, set(broken.misses.values())) == (1, {"failed"})
        assert reason in broken.log
        assert "fetched anew next time" in broken.log
        assert broken.movies == before
        assert not on_disk.exists()
    host.files["/title.principals.tsv.gz"] = whole
    mended = crawl(host, data)
    assert (mended.code, len(mended.movies)) == (0, 3)


BASICS = [rf"{site_id}|movie|Kettle|\N|1999|\N|118|Drama" for site_id in RATINGS]
CHARTED = [f"{site_id}|8.0|{90_000 - n}" for n, site_id in enumerate(RATINGS)]


def test_titles_whose_rows_are_the_same_are_read_again_only_if_the_store_lacks_them(
    host: FileServer, tmp_path: Path
) -> None:
    data = tmp_path / "data"

    def read_again() -> set[str]:
        """Crawl once more, and return the titles that were written."""
        before = {movie.site_id: movie.scraped_at for movie in sqlite_movies(data)}
        found = crawl(host, data, "via=datasets", "list=all", FRESHNESS_MARGIN="0")
        assert (found.code, "3 titles asked for: 3 stored" in found.log) == (0, True), found.log
        after = {movie.site_id: movie.scraped_at for movie in sqlite_movies(data)}
        return {str(site_id) for site_id in after if after[site_id] != before.get(site_id)}

    assert read_again() == set(RATINGS)
    assert read_again() == set()
    parts = [
        rf'tt090000{n}|1|nm0900002|actress|["{part}"]' for n, part in ((1, "Vera"), (2, "Ida"))
    ]
    serve(host, tmp_path, "title.principals", *parts)
    assert read_again() == {"tt0900002", "tt0900003"}
    serve(host, tmp_path, "name.basics", "nm0900001|Aino", "nm0900002|Berta")
    assert read_again() == {"tt0900001", "tt0900002"}
    with closing(open_sqlite(data)) as connection:
        connection.execute("DELETE FROM records WHERE site_id = 'tt0900001'")
        connection.execute(
            "UPDATE records SET scraped_at = '2026-01-01T00:00:00+00:00'"
            " WHERE site_id = 'tt0900003'"
        )
    assert read_again() == {"tt0900001", "tt0900003"}


@pytest.mark.parametrize("named", ["ids=tt0900007", "list=toptv"])
def test_seasons_have_the_mean_of_the_episodes_of_a_series_that_is_asked_for(
    host: FileServer, tmp_path: Path, named: str
) -> None:
    series = r"tt0900007|tvSeries|Ebb|\N|1999|\N|45|Drama"
    episodes = [rf"tt090000{n}|tvEpisode|Tide|\N|1999|\N|45|Drama" for n in (8, 9)]
    serve(host, tmp_path, "title.basics", series, *episodes)
    rated = ("tt0900007|8.7|30000", "tt0900008|8.0|300", "tt0900009|6.0|100")
    serve(host, tmp_path, "title.ratings", *rated)
    parts = ("tt0900008|tt0900007|1|1", "tt0900009|tt0900007|1|2")
    serve(host, tmp_path, "title.episode", *parts)
    found = crawl(host, tmp_path / "data", "via=datasets", named, "episodes=yes")
    assert (found.code, found.misses) == (0, {}), found.log
    [season] = board_of(tmp_path / "data", "season")
    assert (season.series_title, season.scores["imdb"], season.imdb_votes) == ("Ebb", 7.5, 400)


def serve(server: FileServer, folder: Path, name: str, *rows: str | bytes) -> None:
    server.files[f"/{name}.tsv.gz"] = put(folder / "files", name, *rows).read_bytes()


@pytest.mark.promise(
    "IMDb's datasets are read with all that they tell, and a damaged row or file erases nothing."
)
@pytest.mark.parametrize("list_name", ["all", "top"])
@pytest.mark.parametrize(
    ("row", "outcome"),
    [
        (r"tt0900001|movie|\N|\N|1999|\N|118|Drama", "absent"),
        (r"tt0900001|movie|Kettle|\N|soon|\N|118|Drama", "failed"),
        ("tt0900001|movie|Kett\rle|\\N|1999|\\N|118|Drama", "failed"),
        ("tt0900001|movie|Kettle|\\N|1999|\\N|118|Dra\rma", "failed"),
        ("tt0900001|mov\0ie|Kettle|\\N|1999|\\N|118|Drama", "failed"),
    ],
    ids=["untitled", "year", "return", "last-cell", "type"],
)
def test_a_damaged_row_of_a_list_is_a_miss_and_costs_no_other_title(
    host: FileServer, tmp_path: Path, list_name: str, row: str, outcome: str
) -> None:
    serve(host, tmp_path, "title.basics", row, *BASICS[1:])
    serve(host, tmp_path, "title.ratings", *CHARTED)
    found = crawl(host, tmp_path / "data", "via=datasets", f"list={list_name}")
    assert found.misses == {"tt0900001": outcome}
    assert {movie.site_id for movie in found.movies} == {"tt0900002", "tt0900003"}
    assert found.code == (0 if outcome == "absent" else 1), found.log
    if list_name == "top":
        assert found.ranks.items() >= {"tt0900002": 2, "tt0900003": 3}.items()


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("title.basics", [BASICS[0].replace("tt09", "#tt09"), *BASICS[1:]]),
        ("title.basics", [BASICS[0].replace("tt09", "tt\r09"), *BASICS[1:]]),
        ("title.ratings", [CHARTED[0].replace("tt09", "tt\r09"), *CHARTED[1:]]),
    ],
    ids=["basics", "return", "ratings"],
)
def test_a_row_without_a_readable_id_is_counted_and_its_list_is_not_whole(
    host: FileServer, tmp_path: Path, name: str, rows: list[str]
) -> None:
    serve(host, tmp_path, "title.ratings", *CHARTED)
    serve(host, tmp_path, name, *rows)
    found = crawl(host, tmp_path / "data", "via=datasets", "list=top")
    assert found.code == 1
    assert (found.stat("extraction/errors/dataset"), found.stat("lists/missed")) == (1, 1)
    told = "failed: 1 rows of IMDb's title.basics and title.ratings have no readable id"
    assert told in found.log
    assert {movie.site_id for movie in found.movies} == {"tt0900002", "tt0900003"}


def test_a_title_that_may_be_in_a_chart_and_whose_rating_is_damaged_has_failed(
    host: FileServer, tmp_path: Path
) -> None:
    rows = [CHARTED[0], "tt0900002|8.0|many", "tt0900003|nan|24999"]
    serve(host, tmp_path, "title.ratings", *rows)
    found = crawl(host, tmp_path / "data", "via=datasets", "list=top")
    assert (found.code, found.misses) == (1, {"tt0900002": "failed"})
    assert [found.ranks[str(movie.site_id)] for movie in found.movies] == [1]


def test_a_chart_with_none_of_its_titles_is_told(host: FileServer, tmp_path: Path) -> None:
    found = crawl(host, tmp_path / "data", "via=datasets", "list=toptv")
    assert (found.code, found.stat("lists/missed")) == (1, 1)
    assert "IMDb's datasets have no title of the list toptv" in found.log


def test_datasets_that_can_not_be_had_are_failures_of_all_that_was_asked(
    host: FileServer, tmp_path: Path
) -> None:
    del host.files["/title.crew.tsv.gz"]
    found = crawl(host, tmp_path / "data", "via=datasets", "list=top", f"ids={','.join(ASKED)}")
    assert (found.code, found.misses) == (1, dict.fromkeys(ASKED, "failed"))
    assert "title.crew.tsv.gz: HTTP status 404" in found.log
    assert "Error: " not in (tmp_path / "data" / "misses.csv").read_text("utf-8")


async def test_what_nobody_foresaw_is_counted_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spider = spider_of(ImdbSpider, via="datasets", ids="tt0900001")
    monkeypatch.setattr(DatasetPass, "titles", lambda *_: (1 // 0 for _ in ASKED))
    (miss,) = [
        item async for item in spider.read_datasets(Response("https://datasets.imdbws.com/"), None)
    ]
    assert "IMDb's datasets: ZeroDivisionError: " in str(miss)
    assert spider.crawler.stats.get_value("extraction/errors/dataset") == 1


@pytest.mark.parametrize("moment", ["fetching", pytest.param("reading", marks=pytest.mark.long)])
def test_a_pass_hears_sigterm_within_seconds_and_leaves_its_titles_to_be_done(
    host: FileServer, tmp_path: Path, moment: str
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    if moment == "fetching":
        host.stalls.add("/title.akas.tsv.gz")
        host.files["/title.akas.tsv.gz"] += bytes(1 << 20)
        under_way = "title.akas.tsv.gz.part"
    else:
        names = (rf"nm{number:07}|Aino {number}" for number in range(3_000_000))
        host.files["/name.basics.tsv.gz"] = put(
            tmp_path / "files", "name.basics", *names
        ).read_bytes()
        under_way = "name.basics.tsv.gz"
    command = crawl_command("imdb", "via=datasets", f"ids={','.join(ASKED)}")
    with start(
        command, env=environment(data, None, IMDB_DATASETS_URL=host.url), cwd=data
    ) as process:
        wait_for((data / "datasets" / under_way).exists)
        began = time.monotonic()
        process.terminate()
        process.wait(60)
        assert time.monotonic() - began < 30
    misses = data / "misses.csv"
    ended = misses.read_text("utf-8").splitlines()[1:] if misses.exists() else []
    # The title that is in no file may be a miss before the other files are read.
    assert [line for line in ended if not line.startswith("imdb,tt0900009,")] == []
