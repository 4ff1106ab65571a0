"""`scrapy crawl` with arguments and settings that are wrong.

It prints one sentence, and its exit code is not 0, before the first request.
"""

from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts, scrapy
from tests.limited import IMPATIENT


@pytest.mark.promise(
    "A wrong argument or setting ends a crawl before its first request, in one sentence."
)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "name one spider"),
        (["imbd"], "no spider 'imbd'; there are imdb, metacritic, rottentomatoes"),
        (
            ["imdb", "-s", "IMDB_URL=localhost:8000"],
            "IMDB_URL is 'localhost:8000'; set it to a scheme and host",
        ),
        (["imdb", "-s", "DATA_DIR=/proc/nowhere"], "DATA_DIR is '/proc/nowhere'"),
        (["imdb", "-s", "PROXY_POOLS=http://me:pw@h:1"], "PROXY_POOLS is neither JSON nor a file"),
        (["metacritic", "-a", "list=best"], "list is 'best'"),
        (
            ["imdb", "-O", "/proc/nowhere/out.csv"],
            "the feed /proc/nowhere/out.csv can't be",
        ),
        (
            ["imdb", "-s", "DOWNLOAD_DELAY=abc"],
            "DOWNLOAD_DELAY is 'abc'; set it to a number such as 0",
        ),
        (["imdb", "-s", "COOKIES_ENABLED=maybe"], "COOKIES_ENABLED is 'maybe'; set it to 0 or 1"),
    ],
)
def test_mistake_is_one_sentence_and_sends_nothing(
    arguments: list[str], expected: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    finished = scrapy("crawl", *arguments, data=tmp_path, replica=replica)
    assert finished.code == 2
    last = finished.log.strip().splitlines()[-1]
    assert expected in last
    assert "Traceback" not in finished.log
    assert sum(counts(replica, site)["robots"] for site in replica.urls) == 0


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("DATABASE_URL", "postgresql://me:s3cret@127.0.0.1:1/movies"),
        ("MONGO_URL", "mongodb://me:s3cret@127.0.0.1:1/movies?serverSelectionTimeoutMS=50"),
        ("S3_BUCKET", "no bucket's name"),  # the client's error has two lines
    ],
)
def test_store_that_can_not_be_reached_is_an_error_and_nothing_is_sent(
    name: str, url: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    finished = scrapy("crawl", "imdb", data=tmp_path, replica=replica, **{name: url})
    assert finished.code == 1
    assert "can't be used, so nothing is crawled: " in finished.log
    assert finished.log.strip().splitlines()[-5].startswith("imdb: 0 titles asked for")
    assert "s3cret" not in finished.log
    assert "Traceback" not in finished.log
    assert counts(replica)["robots"] == 0


def test_store_that_may_be_waited_for_loses_nothing(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    settings = {
        "STORE_UNREACHABLE": "wait",
        "FRONTIER_PATIENCE": "1",
        "DATABASE_URL": "postgresql://me:s3cret@127.0.0.1:1/movies",
    }
    given = ("imdb", "-a", "limit=10", "-s", f"ITEM_PIPELINES={IMPATIENT}")
    finished = scrapy("crawl", *given, data=tmp_path, replica=replica, **settings)
    assert finished.code == 1
    assert len(finished.movies) == 10
    (kept,) = (tmp_path / "spool").iterdir()
    lines = kept.read_text("utf-8").splitlines()
    assert len([line for line in lines if '"wire_bytes"' in line]) == 10  # besides the list's
    assert "s3cret" not in finished.log + kept.read_text("utf-8")
