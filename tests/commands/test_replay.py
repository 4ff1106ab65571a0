"""`scrapy replay` gives what the crawls gave, and asks no site."""

import gzip
import re
import signal
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from msgspec.structs import replace

from moviecrawler.items import Movie
from moviecrawler.pipelines.warc import read_record, read_records, write_record
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites import SITES
from tests.crawling import Finished, change, counts, scrapy
from tests.limited import BATCH_ITEMS, IMPATIENT, SMALL_FILES
from tests.processes import crawl_command, environment, start
from tests.services.mongo import documents
from tests.services.replica import ForkedReplica
from tests.services.s3 import CREDENTIALS, S3Server, objects, s3_client, s3_movies
from tests.tables import sqlite_movies
from tests.waiting import wait_for

TABLES = ("movies.csv", "people.csv", "credits.csv", "scores.csv", "misses.csv")
TITLES = 20
LIMIT = 6
CRAWLS = {
    "imdb": ("list=top", "ids=tt9999999"),
    "metacritic": ("list=sitemap", f"limit={LIMIT}"),
    "rottentomatoes": ("list=sitemap", f"limit={LIMIT}"),
}


@dataclass(frozen=True)
class Crawled:
    """What three crawls left behind, and how to run more."""

    replica: ReplicaProcess
    endpoint: str
    bucket: str
    mongo: str
    data: Path

    def run(self, *arguments: str, data: Path, **settings: str) -> Finished:
        """Run `scrapy`, with access to the bucket."""
        return scrapy(*arguments, data=data, replica=self.replica, **self.services, **settings)

    @property
    def services(self) -> dict[str, str]:
        """The settings that give access to the bucket."""
        return {"S3_ENDPOINT_URL": self.endpoint, **CREDENTIALS}

    @property
    def movies(self) -> list[Movie]:
        """What the crawls have stored."""
        return Finished(0, "", "", self.data).movies

    def download(self, folder: Path) -> list[Path]:
        """Copy the archive into a folder, and return its WARC files of IMDb."""
        for key, content in objects(self.endpoint, self.bucket, "raw/").items():
            (folder / key).parent.mkdir(parents=True, exist_ok=True)
            (folder / key).write_bytes(content)
        return sorted(folder.glob("raw/site=imdb/**/*.warc"))


@pytest.fixture(scope="module")
def crawled(
    own_s3: S3Server, mongo_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Crawled]:
    """Return crawls that were archived."""
    data = tmp_path_factory.mktemp("crawled")
    name = f"test-{uuid.uuid4().hex}"
    with (
        ForkedReplica(titles=TITLES, seed=3, light=True) as replica,
        pytest.MonkeyPatch.context() as patch,
    ):
        for variable, value in CREDENTIALS.items():
            patch.setenv(variable, value)
        crawled = Crawled(replica, own_s3.url, name, f"{mongo_server}/{name}", data)
        s3_client(own_s3.url).create_bucket(Bucket=name)
        for spider, arguments in CRAWLS.items():
            command = crawl_command(spider, *arguments, ITEM_PIPELINES=SMALL_FILES)
            ended = crawled.run(
                *command, data=data, S3_BUCKET=crawled.bucket, MONGO_URL=crawled.mongo
            )
            assert ended.code == 0, ended.log
        yield crawled


@pytest.mark.promise("A page is archived as it was sent, and other tools can read it.")
def test_pages_are_archived_as_they_were_sent(crawled: Crawled, tmp_path: Path) -> None:
    answers = {
        answer.site_id: answer
        for path in crawled.download(tmp_path)
        for answer in map(read_record, read_records(BytesIO(path.read_bytes())))
    }
    assert answers.pop("tt9999999").status == 404
    list_page = answers.pop(None)
    (site_id, page), *_ = answers.items()
    for answer in (list_page, page):
        headers = dict(answer.headers)
        assert (headers["Content-Encoding"], headers["Content-Length"]) == (
            "gzip",
            str(len(answer.body)),
        )
        assert "Transfer-Encoding" not in headers
        with urlopen(answer.url) as response:
            assert gzip.decompress(answer.body) == response.read()
    assert page.found is not None
    assert (page.found.list_name, page.attempts) == ("top", 1)
    (movie,) = (movie for movie in sqlite_movies(crawled.data) if movie.site_id == site_id)
    assert movie.fetch is not None
    assert (movie.fetch.archive_id, movie.scraped_at) == (page.archive_id, page.fetched_at)


def asked(replica: ReplicaProcess) -> object:
    return [counts(replica, site) for site in SITES]


def test_a_replay_into_empty_stores_gives_the_same_rows(crawled: Crawled, tmp_path: Path) -> None:
    before = asked(crawled.replica)
    mongo = f"{crawled.mongo}_replayed"
    ended = crawled.run("replay", f"s3://{crawled.bucket}", data=tmp_path, MONGO_URL=mongo)
    assert ended.code == 0, ended.log
    assert asked(crawled.replica) == before
    for table in TABLES:
        assert sorted((tmp_path / table).read_text().splitlines()) == sorted(
            (crawled.data / table).read_text().splitlines()
        ), table
    assert ended.misses == {"tt9999999": "absent"}
    assert {movie.site for movie in ended.movies} == {"imdb", "metacritic", "rottentomatoes"}
    for collection in ("movies", "misses"):
        assert documents(mongo, collection) == documents(crawled.mongo, collection)
    # Once more into the same stores changes nothing.
    rows = {table: (tmp_path / table).read_text() for table in TABLES}
    ended = crawled.run("replay", f"s3://{crawled.bucket}", data=tmp_path, MONGO_URL=mongo)
    assert ended.code == 0, ended.log
    assert {table: (tmp_path / table).read_text() for table in TABLES} == rows
    assert documents(mongo, "movies") == documents(crawled.mongo, "movies")


def test_a_folder_is_an_archive_too_and_one_site_can_be_chosen(
    crawled: Crawled, tmp_path: Path
) -> None:
    crawled.download(tmp_path)
    ended = crawled.run("replay", "--site", "metacritic", str(tmp_path), data=tmp_path)
    assert ended.code == 0, ended.log
    assert len(ended.movies) == LIMIT
    assert {movie.site for movie in ended.movies} == {"metacritic"}
    ended = crawled.run("replay", "--from", "2999-01-01", str(tmp_path), data=tmp_path)
    assert (ended.code, "holds no pages of that site and time" in ended.log) == (2, True)


def test_a_bucket_that_is_not_there_is_told(crawled: Crawled, tmp_path: Path) -> None:
    ended = crawled.run("replay", "s3://no-such-bucket", data=tmp_path)
    assert ended.code == 2
    assert "no-such-bucket" in ended.output + ended.log
    assert "Traceback" not in ended.log


ONE_FILE = ("-s", "FRONTIER_MAX_PAGES=1")
"""Has a replay end, in order, when it has read one file."""


@pytest.mark.promise("A replay asks no site, and goes on where it was broken off.")
def test_a_replay_that_was_broken_off_goes_on(crawled: Crawled, tmp_path: Path) -> None:
    files = crawled.download(tmp_path)
    command = ("replay", "--site", "imdb", str(tmp_path))
    ended = crawled.run(*command, *ONE_FILE, data=tmp_path)
    assert ended.code == 3
    assert ended.stat("frontier/run/open") == len(files) - 1
    read = ended.stat("titles/requested")
    assert 0 < read <= BATCH_ITEMS
    # One of another site is none of it.
    assert crawled.run("replay", "--site", "metacritic", str(tmp_path), data=tmp_path).code == 0
    ended = crawled.run(*command, data=tmp_path)
    assert ended.code == 0
    assert ended.stat("titles/requested") == TITLES + 1 - read
    assert len(ended.movies) == TITLES + LIMIT
    # It is over, so that the same command begins the next one.
    assert crawled.run(*command, data=tmp_path).stat("titles/requested") == TITLES + 1


def test_a_replay_that_was_killed_goes_on(crawled: Crawled, tmp_path: Path) -> None:
    for path in crawled.download(tmp_path):
        for number in range(30):
            path.with_stem(f"{path.stem}-{number}").write_bytes(path.read_bytes())
    command = ["replay", "--site", "imdb", str(tmp_path)]
    process = start(command, env=environment(tmp_path, None), cwd=tmp_path)
    wait_for(lambda: sqlite_movies(tmp_path))
    process.kill()
    process.wait()
    ended = crawled.run(*command, data=tmp_path)
    assert ended.code == 0
    assert len(ended.movies) == TITLES


def test_workers_with_one_redis_share_the_files(
    crawled: Crawled, tmp_path: Path, redis_url: str
) -> None:
    source = f"s3://{crawled.bucket}"
    requested = 0
    for number, arguments in enumerate([ONE_FILE, ()]):
        folder = tmp_path / str(number)
        ended = crawled.run("replay", source, *arguments, data=folder, REDIS_URL=redis_url)
        assert ended.code == (0 if number else 3), ended.log
        requested += ended.stat("titles/requested")
    assert requested == len(crawled.movies) + 1
    ended = crawled.run("progress", "--all", data=tmp_path, REDIS_URL=redis_url)
    assert re.search(r"replay +finished .*  archive-s3-test-", ended.output)


def test_a_replay_into_other_stores_or_a_database_that_was_moved_away_begins_anew(
    crawled: Crawled, tmp_path: Path
) -> None:
    mongo = f"{crawled.mongo}_2"
    command = ("replay", f"s3://{crawled.bucket}")
    assert crawled.run(*command, *ONE_FILE, data=tmp_path).code == 3
    assert crawled.run(*command, data=tmp_path, MONGO_URL=mongo).code == 0
    assert documents(mongo, "movies") == documents(crawled.mongo, "movies")
    for path in (*tmp_path.glob("*.csv"), *tmp_path.glob("movies.sqlite3*")):
        path.unlink()
    ended = crawled.run(*command, data=tmp_path)
    assert ended.code == 0
    assert len(ended.movies) == len(crawled.movies)


def test_a_file_whose_items_were_not_stored_is_read_again(crawled: Crawled, tmp_path: Path) -> None:
    command = ("replay", f"s3://{crawled.bucket}")
    assert crawled.run(*command, *ONE_FILE, data=tmp_path).code == 3
    with closing(sqlite3.connect(tmp_path / "movies.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        options = ("-s", f"ITEM_PIPELINES={IMPATIENT}")
        ended = crawled.run(*command, *options, data=tmp_path, FRONTIER_PATIENCE="1")
    assert ended.code == 1
    assert ended.stat("store/sqlite/spooled") > 0
    assert ended.stat("frontier/run/open") > 0
    ended = crawled.run(*command, data=tmp_path)
    assert ended.code == 0
    assert len(ended.movies) == len(crawled.movies)


@pytest.mark.promise(
    "The exit code is 0 only when every requested title was stored or stated absent."
)
@pytest.mark.parametrize(
    ("changes", "log"),
    [
        ({"body": gzip.compress(b"<html>a page of something else" * 99)}, ""),
        ({"body": b"\x1f\x8b cut"}, "the body is damaged"),
    ],
    ids=["unreadable", "damaged"],
)
def test_pages_that_give_no_title_fail_and_are_told(
    crawled: Crawled, tmp_path: Path, changes: dict[str, Any], log: str
) -> None:
    total = 0
    for path in crawled.download(tmp_path):
        answers = [*map(read_record, read_records(BytesIO(path.read_bytes())))]
        pages = [answer for answer in answers if answer.site_id and answer.status == 200]
        total += len(pages)
        path.write_bytes(b"".join(write_record(replace(page, **changes)).record for page in pages))
    ended = crawled.run("replay", "--site", "imdb", str(tmp_path), data=tmp_path)
    assert ended.code == 1
    assert ended.stat("frontier/run/failed") == total == TITLES
    assert log in ended.log
    assert f"replay: {TITLES} titles asked for: {TITLES} failed" in ended.log


@pytest.mark.promise("A replay asks no site, and goes on where it was broken off.")
def test_no_page_keeps_others_from_being_read_nor_has_a_site_asked(
    crawled: Crawled, tmp_path: Path
) -> None:
    movies = [movie for movie in crawled.movies if movie.site == "imdb"]
    stored = {movie.site_id for movie in movies}
    pages = {}
    for path in crawled.download(tmp_path):
        for record in read_records(BytesIO(path.read_bytes())):
            answer = read_record(record)
            if answer.site_id in stored:
                pages[path] = answer
    file, *_, other = pages
    page = pages[file]
    damaged = bytearray(other.read_bytes())
    damaged[-200] ^= 1
    other.write_bytes(damaged)
    content = file.read_bytes()
    strange = [replace(page, url="no address")]
    begin = content.index(b"WARC/1.1", 8)
    file.write_bytes(
        content[:begin]
        + b"".join(write_record(answer).record for answer in strange)
        + content[begin:]
    )
    endless = file.with_name("00000000T000000-endless.warc")
    endless.write_bytes(b"WARC/1.1\r\nContent-Length: %b\r\n\r\n" % (b"9" * 40))
    foreign = file.with_name("00000000T000001-foreign.warc")
    foreign.write_bytes(
        write_record(page).record.replace(b"WARC-JSON-Metadata", b"Of-Another-Tool")
    )

    before = asked(crawled.replica)
    ended = crawled.run("replay", "--site", "imdb", str(tmp_path), data=tmp_path)
    assert asked(crawled.replica) == before
    assert ended.code == 1
    assert ended.log.count(f"{file.name}: the page of {page.site_id} can't be read") == 1
    assert f"{endless.name} failed: it can't be read to its end" in ended.log
    assert f"{foreign.name} failed: a page can't be read" in ended.log
    assert "the body is damaged" in ended.log
    assert len({movie.site_id for movie in movies} - {movie.site_id for movie in ended.movies}) == 1
    assert ended.stat("frontier/run/failed") == 2
    assert ended.stat("frontier/run/unread") == 2
    assert ended.stat("downloader/request_count") == 0


@pytest.mark.promise(
    "A crawl that is killed loses nothing that was stored, and leaves nothing half written."
)
def test_a_crawl_that_is_killed_while_it_archives_leaves_only_whole_files(
    crawled: Crawled, tmp_path: Path
) -> None:
    settings = {"S3_BUCKET": crawled.bucket, "S3_PREFIX": "killed"}
    env = environment(tmp_path, crawled.replica, **crawled.services, **settings)
    change(crawled.replica, latency=200)
    options = ("-s", "CONCURRENT_REQUESTS=3", "-s", f"ITEM_PIPELINES={SMALL_FILES}")
    process = start(["crawl", "imdb", *options], env=env, cwd=tmp_path)
    wait_for(lambda: objects(crawled.endpoint, crawled.bucket, "killed/raw/"))
    process.kill()
    assert process.wait() == -signal.SIGKILL
    change(crawled.replica, latency=0)
    for key, content in objects(crawled.endpoint, crawled.bucket, "killed/raw/").items():
        assert not key.endswith(".warc") or list(map(read_record, read_records(BytesIO(content))))
    assert crawled.run("crawl", "imdb", data=tmp_path, **settings).code == 0
    assert len(s3_movies(crawled.endpoint, crawled.bucket, "killed")) == TITLES


def test_a_refusal_is_not_archived(
    crawled: Crawled, replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, faults={"challenge": 1.0})
    before = objects(crawled.endpoint, crawled.bucket, "raw/")
    refused = Crawled(replica, crawled.endpoint, crawled.bucket, crawled.mongo, tmp_path)
    ended = refused.run("crawl", "metacritic", data=tmp_path, S3_BUCKET=crawled.bucket)
    assert ended.code == 1
    assert "metacritic is blocking us" in ended.log
    assert objects(crawled.endpoint, crawled.bucket, "raw/") == before
