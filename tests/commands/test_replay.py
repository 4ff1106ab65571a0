"""`scrapy replay` gives what the crawls gave, and asks no site."""

import gzip
import signal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from urllib.request import urlopen

import pytest
from msgspec.structs import replace
from scrapy.signalmanager import SignalManager

from moviecrawler.commands.replay import ReplayProgress
from moviecrawler.items import Movie
from moviecrawler.pipelines.warc import read_record, read_records, write_record
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.signals import item_completed
from moviecrawler.sites import SITES
from tests.crawling import Finished, change, counts, crawl_command, environment, scrapy
from tests.pipelines.stored import sqlite_movies
from tests.processes import start
from tests.services.mongo import documents
from tests.services.replica import ForkedReplica
from tests.services.s3 import CREDENTIALS, S3Server, objects, s3_client, s3_movies
from tests.waiting import wait_for

TABLES = ("movies.csv", "people.csv", "credits.csv", "scores.csv", "misses.csv")
TITLES = 20
LIMIT = 6
BATCH = 5
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
            command = crawl_command(spider, *arguments, STORE_BATCH_ITEMS=str(BATCH))
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
    assert (page.found["list_name"], page.attempts) == ("top", 1)
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
    assert not list(tmp_path.glob("replay-*"))
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


def broken_off(
    crawled: Crawled, folder: Path, *arguments: str, **settings: str
) -> tuple[Path, Finished]:
    """Replay a copy of the archive of which a file is cut, and make that whole again.

    Return the file with what became of the replay.
    """
    file = crawled.download(folder)[1]
    whole = file.read_bytes()
    file.write_bytes(whole[:-500])
    ended = crawled.run("replay", *arguments, str(folder), data=folder, **settings)
    assert ended.code == 1
    file.write_bytes(whole)
    return file, ended


@pytest.mark.promise("A replay asks no site, and goes on where it was broken off.")
def test_a_replay_that_was_broken_off_goes_on(crawled: Crawled, tmp_path: Path) -> None:
    file, ended = broken_off(crawled, tmp_path, "--site", "imdb")
    assert f"{file.name} can't be read to its end" in ended.log
    assert len(ended.movies) < TITLES
    assert crawled.run("replay", "--site", "metacritic", str(tmp_path), data=tmp_path).code == 0
    ended = crawled.run("replay", "--site", "imdb", str(tmp_path), data=tmp_path)
    assert ended.code == 0
    assert "An earlier replay has read" in ended.log
    assert 0 < ended.stat("titles/asked") <= BATCH
    assert len(ended.movies) == len(
        [movie for movie in crawled.movies if movie.site != "rottentomatoes"]
    )
    assert not list(tmp_path.glob("replay-*"))


def test_a_replay_into_another_database_or_into_csv_files_that_were_removed_begins_anew(
    crawled: Crawled, tmp_path: Path
) -> None:
    first = f"{crawled.mongo}_1"
    second = f"{crawled.mongo}_2"
    broken_off(crawled, tmp_path, MONGO_URL=first)
    ended = crawled.run("replay", str(tmp_path), data=tmp_path, MONGO_URL=second)
    assert ended.code == 0
    assert documents(second, "movies") == documents(crawled.mongo, "movies")
    for path in (*tmp_path.glob("*.csv"), *tmp_path.glob("movies.sqlite3*")):
        path.unlink()
    ended = crawled.run("replay", str(tmp_path), data=tmp_path, MONGO_URL=first)
    assert ended.code == 0
    assert len(ended.movies) == len(crawled.movies)


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
    # What a crawl of what is due takes for a page of another title, and tries the next id of.
    wanted = {"imdb_id": "tt7654321", "title": "Something Else", "year": 1920}
    due = {
        "title_id": 1,
        "boosted": False,
        "ids": ["tt0000001"],
        "evidence": "guess",
        "wanted": wanted,
    }
    strange = [
        replace(page, url="no address"),
        replace(page, found={}),
        replace(page, due={}),
        replace(page, due=due),
    ]
    begin = content.index(b"WARC/1.1", 8)
    file.write_bytes(
        content[:begin]
        + b"".join(write_record(answer).record for answer in strange)
        + content[begin:]
    )
    endless = file.with_name("00000000T000000-endless.warc")
    endless.write_bytes(b"WARC/1.1\r\nContent-Length: %b\r\n\r\n" % (b"9" * 40))

    before = asked(crawled.replica)
    ended = crawled.run("replay", "--site", "imdb", str(tmp_path), data=tmp_path)
    assert asked(crawled.replica) == before
    assert ended.code == 1
    assert ended.log.count(f"{file.name}: a page can't be read") == 3
    assert f"{endless.name} can't be read to its end" in ended.log
    assert "the body is damaged" in ended.log
    assert len({movie.site_id for movie in movies} - {movie.site_id for movie in ended.movies}) == 1
    assert ended.stat("downloader/request_count") == 0


def test_wrong_setting_ends_a_replay_before_it_reads_anything(
    crawled: Crawled, tmp_path: Path
) -> None:
    ended = crawled.run("replay", f"s3://{crawled.bucket}", data=tmp_path, STORE_BATCH_ITEMS="0")
    assert ended.code == 2
    (line,) = [line for line in ended.log.splitlines() if "STORE_BATCH_ITEMS" in line]
    assert "STORE_BATCH_ITEMS is " in line
    assert not list(tmp_path.glob("*.sqlite3"))


def test_a_file_of_which_an_item_was_lost_is_not_done(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    progress = ReplayProgress(tmp_path / "missing" / "replay.txt")
    manager = SignalManager()
    progress.connect(manager)
    for key, outcomes in (
        ("a.warc", {"durable"}),
        ("b.warc", {"durable", "lost"}),
        ("c.warc", {"spooled"}),
    ):
        item = object()
        progress.begin(key)
        progress.begin(key, item)
        progress.end(key)
        for _, result in manager.send_catch_log(
            item_completed, item=item, request=None, outcomes=frozenset(outcomes)
        ):
            assert result is None
    assert progress.done == {"a.warc", "c.warc"}
    assert (
        caplog.text.count(
            "warc is done, but the next replay reads it again, as that can't be noted: "
        )
        == 2
    )


@pytest.mark.promise(
    "A crawl that is killed loses nothing that was stored, and leaves nothing half written."
)
def test_a_crawl_that_is_killed_while_it_archives_leaves_only_whole_files(
    crawled: Crawled, tmp_path: Path
) -> None:
    settings = {"S3_BUCKET": crawled.bucket, "S3_PREFIX": "killed", "STORE_BATCH_ITEMS": "3"}
    env = environment(tmp_path, crawled.replica, **crawled.services, **settings)
    change(crawled.replica, latency=200)
    process = start(["crawl", "imdb", "-s", "CONCURRENT_REQUESTS=3"], env=env, cwd=tmp_path)
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
    assert "metacritic refused us" in ended.log
    assert objects(crawled.endpoint, crawled.bucket, "raw/") == before
