"""`scrapy replay` gives what the crawls gave, and asks no site."""

from __future__ import annotations

import gzip
import uuid
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest
from msgspec.structs import replace
from scrapy.signalmanager import SignalManager

from moviecrawler.commands.replay import ReplayProgress
from moviecrawler.pipelines.warc import read_record, read_records, write_record
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.signals import item_completed
from tests import crawling
from tests.crawling import Finished, counts, crawl_command, scrapy
from tests.processes import ForkedCommand
from tests.services.mongo import documents, mongo_movies
from tests.services.s3 import CREDENTIALS, S3Server, objects, s3_movies
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.items import Movie

TABLES = ("movies.csv", "people.csv", "credits.csv", "scores.csv", "misses.csv")
CRAWLS = {
    "imdb": ("list=top", "ids=tt9999999"),
    "metacritic": ("list=sitemap", "limit=12"),
    "rottentomatoes": ("list=sitemap", "limit=12"),
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


@pytest.fixture(scope="module", autouse=True)
def credentials() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def crawled(own_s3: S3Server, mongo_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    data = tmp_path_factory.mktemp("crawled")
    with ReplicaProcess(titles=40, seed=3, light=True) as replica:
        crawled = Crawled(
            replica, own_s3.url, f"test-{uuid.uuid4().hex}", f"{mongo_server}/test_{uuid.uuid4().hex}", data
        )
        s3 = boto3.session.Session().client("s3", endpoint_url=own_s3.url)
        s3.create_bucket(Bucket=crawled.bucket)
        s3.close()
        for spider, arguments in CRAWLS.items():
            command = crawl_command(spider, *arguments, STORE_BATCH_ITEMS="10")
            ended = crawled.run(*command, data=data, S3_BUCKET=crawled.bucket, MONGO_URL=crawled.mongo)
            assert ended.code == 0, ended.log
        yield crawled


def asked(replica: ReplicaProcess) -> object:
    return [counts(replica, site) for site in ("imdb", "metacritic", "rottentomatoes")]


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


def test_a_replay_into_the_same_stores_changes_nothing(crawled: Crawled) -> None:
    rows = {table: (crawled.data / table).read_text() for table in TABLES}
    stored = documents(crawled.mongo, "movies")
    ended = crawled.run("replay", f"s3://{crawled.bucket}", data=crawled.data, MONGO_URL=crawled.mongo)
    assert ended.code == 0, ended.log
    assert {table: (crawled.data / table).read_text() for table in TABLES} == rows
    assert documents(crawled.mongo, "movies") == stored


def test_a_folder_is_an_archive_too_and_one_site_can_be_chosen(crawled: Crawled, tmp_path: Path) -> None:
    crawled.download(tmp_path)
    ended = crawled.run("replay", "--site", "metacritic", str(tmp_path), data=tmp_path)
    assert ended.code == 0, ended.log
    assert len(ended.movies) == 12
    assert {movie.site for movie in ended.movies} == {"metacritic"}


def test_a_bucket_that_is_not_there_is_told(crawled: Crawled, tmp_path: Path) -> None:
    ended = crawled.run("replay", "s3://no-such-bucket", data=tmp_path)
    assert ended.code == 2
    assert "no-such-bucket" in ended.output + ended.log
    assert "Traceback" not in ended.log


def broken_off(crawled: Crawled, folder: Path, *arguments: str, **settings: str) -> tuple[Path, Finished]:
    """Replay a copy of the archive of which a file is cut, make that whole again, and return it with what became of the replay."""
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
    assert len(ended.movies) < 40
    ended = crawled.run("replay", "--site", "imdb", str(tmp_path), data=tmp_path)
    assert ended.code == 0
    assert "An earlier replay has read" in ended.log
    assert 0 < ended.stat("titles/asked") <= 10
    assert len(ended.movies) == len([movie for movie in crawled.movies if movie.site == "imdb"])
    assert not list(tmp_path.glob("replay-*"))


def test_a_replay_into_another_database_or_into_csv_files_that_were_removed_begins_anew(
    crawled: Crawled, tmp_path: Path
) -> None:
    first, second = (f"{crawled.mongo}_{number}" for number in (1, 2))
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
def test_no_page_keeps_others_from_being_read_nor_has_a_site_asked(crawled: Crawled, tmp_path: Path) -> None:
    file, *_, other = crawled.download(tmp_path)
    damaged = bytearray(other.read_bytes())
    damaged[-200] ^= 1
    other.write_bytes(damaged)
    content = file.read_bytes()
    answers = [read_record(record) for record in read_records(BytesIO(content))]
    movies = [movie for movie in crawled.movies if movie.site == "imdb"]
    page = next(answer for answer in answers if answer.site_id in {movie.site_id for movie in movies})
    # What a crawl of what is due takes for a page of another title, and tries the next id of.
    wanted = {"imdb_id": "tt7654321", "title": "Something Else", "year": 1920}
    due = {"title_id": 1, "boosted": False, "ids": ["tt0000001"], "evidence": "guess", "wanted": wanted}
    strange = [replace(page, url="no address"), replace(page, found={}), replace(page, due={}), replace(page, due=due)]
    begin = content.index(b"WARC/1.1", 8)
    file.write_bytes(content[:begin] + b"".join(write_record(answer).record for answer in strange) + content[begin:])
    endless = file.with_name("00000000T000000-endless.warc")
    endless.write_bytes(b"WARC/1.1\r\nContent-Length: %b\r\n\r\n" % (b"9" * 40))

    before = asked(crawled.replica)
    ended = crawled.run("replay", "--site", "imdb", str(tmp_path), data=tmp_path)
    assert asked(crawled.replica) == before
    assert ended.code == 1
    assert ended.log.count(f"{file.name}: a page can't be read") == 3
    assert f"{endless.name} can't be read to its end" in ended.log
    assert "the body is not the one that was archived" in ended.log
    assert len({movie.site_id for movie in movies} - {movie.site_id for movie in ended.movies}) == 1
    assert ended.stat("downloader/request_count") == 0


def test_a_replay_of_one_day_leaves_another_that_was_broken_off_where_it_was(crawled: Crawled, tmp_path: Path) -> None:
    broken_off(crawled, tmp_path)
    (progress,) = tmp_path.glob("replay-*")
    done = set(progress.read_text().splitlines())
    assert crawled.run("replay", "--site", "metacritic", str(tmp_path), data=tmp_path).code == 0
    assert set(progress.read_text().splitlines()) == {key for key in done if "site=metacritic" not in key}
    assert {key.split("/")[1] for key in done} == {"site=imdb", "site=metacritic", "site=rottentomatoes"}


def test_a_file_is_done_even_if_that_can_not_be_written_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    progress = ReplayProgress(tmp_path / "replay.txt")
    progress.path.mkdir()  # nothing can be appended to it, as on a full disk
    progress.file_begun("raw/a.warc")
    progress.one_ended("raw/a.warc")
    assert progress.done == {"raw/a.warc"}
    assert "raw/a.warc is done, but the next replay reads it again" in caplog.text


def test_a_file_of_which_an_item_was_lost_is_not_done(tmp_path: Path) -> None:
    progress, manager = ReplayProgress(tmp_path / "replay.txt"), SignalManager()
    progress.connect(manager)
    for key, outcomes in (
        ("raw/a.warc", {"durable"}),
        ("raw/b.warc", {"durable", "lost"}),
        ("raw/c.warc", {"spooled"}),
    ):
        item = object()
        progress.file_begun(key)
        progress.item_sent(key, item)
        progress.one_ended(key)
        for _, result in manager.send_catch_log(item_completed, item=item, request=None, outcomes=frozenset(outcomes)):
            assert result is None
    assert progress.done == {"raw/a.warc", "raw/c.warc"}


def test_a_crawl_that_is_killed_leaves_only_whole_files_and_documents(
    crawled: Crawled, mongo_server: str, tmp_path: Path
) -> None:
    mongo = f"{mongo_server}/test_{uuid.uuid4().hex}"
    prefix = f"killed-{uuid.uuid4().hex}"
    settings = {"S3_BUCKET": crawled.bucket, "S3_PREFIX": prefix, "MONGO_URL": mongo}
    process = ForkedCommand(
        ["crawl", "imdb", "-s", "STORE_BATCH_ITEMS=3"],
        env=crawling.environment(tmp_path, crawled.replica, **crawled.services, **settings),
        cwd=tmp_path,
    )
    wait_for(lambda: process.poll() is not None or objects(crawled.endpoint, crawled.bucket, f"{prefix}/raw/"))
    assert process.poll() is None
    process.kill()
    process.wait()
    for key, content in objects(crawled.endpoint, crawled.bucket, prefix).items():
        if key.endswith(".warc"):
            assert [read_record(record) for record in read_records(BytesIO(content))]
        elif key.endswith(".gz"):
            assert gzip.decompress(content)
    mongo_movies(mongo)
    ended = crawled.run("crawl", "imdb", data=tmp_path, **settings)
    assert ended.code == 0
    titles = {movie.site_id for movie in ended.movies}
    assert {movie.site_id for movie in mongo_movies(mongo)} == titles
    assert {movie.site_id for movie in s3_movies(crawled.endpoint, crawled.bucket, prefix)} == titles


def test_a_refusal_is_not_archived(crawled: Crawled, tmp_path: Path) -> None:
    with ReplicaProcess(titles=5, faults={"challenge": 1.0}, light=True) as replica:
        before = objects(crawled.endpoint, crawled.bucket, "raw/")
        refused = Crawled(replica, crawled.endpoint, crawled.bucket, crawled.mongo, tmp_path)
        ended = refused.run("crawl", "metacritic", data=tmp_path, S3_BUCKET=crawled.bucket)
        assert ended.code == 1
        assert "metacritic refused us" in ended.log
    assert objects(crawled.endpoint, crawled.bucket, "raw/") == before
