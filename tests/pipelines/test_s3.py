"""What stands in the bucket: keys, lines, and what writing survives."""

import gzip
import hashlib
import json
import re
import traceback
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import boto3
import pytest
from botocore.exceptions import ClientError

from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.pipelines.s3 import Bucket, S3Store
from tests.runs import crawl, make_miss, make_movie, running
from tests.services.https import HttpsFront
from tests.services.s3 import S3Server, objects, s3_movies
from tests.waiting import until


@pytest.fixture
def own_bucket(own_s3: S3Server, s3_url: str) -> str:
    """Return the name of a fresh bucket at the endpoint that can be made to fail."""
    assert s3_url  # for its credentials
    name = f"test-{uuid.uuid4().hex}"
    with closing(boto3.session.Session().client("s3", endpoint_url=own_s3.url)) as s3:
        s3.create_bucket(Bucket=name)
    return name


def test_movies_stand_in_a_partition_of_their_site_and_day(
    s3_url: str, bucket_name: str, tmp_path: Path
) -> None:
    movies = [
        make_movie(1),
        make_movie(2, 24 * 3600),
        make_movie(3, site="metacritic", site_id="movie/lamp"),
    ]
    crawl(S3Store(Bucket(bucket_name, "/some/where/", s3_url)), tmp_path, *movies, make_miss(4))
    found = {
        re.sub("[0-9a-f]{24}", "…", key): data for key, data in objects(s3_url, bucket_name).items()
    }
    assert sorted(found) == [
        "some/where/misses/site=imdb/date=2026-03-01/20260301T120000-….jsonl.gz",
        "some/where/movies/site=imdb/date=2026-02-28/20260228T120000-….jsonl.gz",
        "some/where/movies/site=imdb/date=2026-03-01/20260301T120000-….jsonl.gz",
        "some/where/movies/site=metacritic/date=2026-03-01/20260301T120000-….jsonl.gz",
    ]
    (line,) = gzip.decompress(found[sorted(found)[2]]).splitlines()
    assert json.loads(line)["title"] == "The Lamp of Brewick, Part 1"


def test_a_batch_written_again_replaces_itself_only(
    s3_url: str, bucket_name: str, tmp_path: Path
) -> None:
    bucket = Bucket(bucket_name, endpoint_url=s3_url)
    for _ in range(2):
        crawl(S3Store(bucket), tmp_path, make_movie(1), make_movie(2))
    assert len(objects(s3_url, bucket_name)) == 1
    crawl(S3Store(bucket), tmp_path, make_movie(1), make_movie(3))
    assert len(objects(s3_url, bucket_name)) == 2


_HERE = "127.0.0.1"
_ELSEWHERE = "0.0.0.0"  # noqa: S104 - also this machine, but nothing knows that


@pytest.mark.parametrize(("tls", "host"), [(False, _ELSEWHERE), (False, _HERE), (True, _HERE)])
def test_an_upload_has_a_checksum_and_to_another_machine_without_tls_a_digest(
    own_s3: S3Server, own_bucket: str, monkeypatch: pytest.MonkeyPatch, tls: bool, host: str
) -> None:
    sent: list[list[bytes]] = []
    names = ("Content-MD5", "x-amz-content-sha256")
    with HttpsFront(own_s3.url) as front:
        bucket = Bucket(own_bucket, "some", front.url if tls else own_s3.url.replace(_HERE, host))
        monkeypatch.setenv("AWS_CA_BUNDLE", str(front.certificate))
        bucket.open()
        bucket._client.meta.events.register(
            "before-send.s3.PutObject",
            lambda request, **_: sent.append([request.headers[name] for name in names]),
        )
        bucket.put("small", b"lamp", "text/plain")
        assert bucket.get("small") == b"lamp"
        bucket.close()
    digest = b"UNSIGNED-PAYLOAD" if host == _HERE else hashlib.sha256(b"lamp").hexdigest().encode()
    assert sent == [[b"Jjrdt2ERWKLD23wWSiDMLw==", digest]]


def test_a_server_that_fails_in_any_way_may_be_tried_again(
    own_s3: S3Server, own_bucket: str
) -> None:
    own_s3.failures = ["507 Insufficient Storage"]
    with pytest.raises(TransientStoreError):
        Bucket(own_bucket, endpoint_url=own_s3.url).open()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, ConfigurationError) for status in (301, 403, 404, 499)),
        *((status, TransientStoreError) for status in (408, 409, 429, 500, 599)),
    ],
)
def test_a_status_says_whether_a_later_try_may_work(
    status: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer: Any = {"ResponseMetadata": {"HTTPStatusCode": status}}
    refusal = Mock(side_effect=ClientError(answer, "HeadBucket"))
    monkeypatch.setattr("boto3.session.Session.client", refusal)
    with pytest.raises(error):
        Bucket("lamps").open()


async def test_an_endpoint_that_answers_503_is_asked_again(
    own_s3: S3Server, own_bucket: str, tmp_path: Path
) -> None:
    async with running(S3Store(Bucket(own_bucket, endpoint_url=own_s3.url)), tmp_path) as run:
        await until(lambda: own_s3.requests[-1:] == [f"HEAD /{own_bucket}"])
        own_s3.failures = ["503 Service Unavailable"] * 4  # more than boto3 itself tries
        await run.process(*map(make_movie, range(30)))
    assert run.count("retries") >= 1
    assert set(run.outcomes().values()) == {"durable"}
    assert len(s3_movies(own_s3.url, own_bucket)) == 30


@pytest.mark.parametrize(
    ("environment", "endpoint", "sentence"),
    [
        ({}, None, "the bucket 'no-such-bucket' can't be used"),
        (
            {"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_ACCESS_KEY_ID": ""},
            None,
            "credentials",
        ),
        ({"AWS_PROFILE": "nobody"}, None, "nobody"),
        ({}, "nowhere", "Invalid endpoint: nowhere"),
    ],
    ids=["bucket", "credentials", "profile", "endpoint"],
)
def test_what_is_wrong_is_told_before_the_crawl(
    s3_url: str,
    environment: dict[str, str],
    endpoint: str | None,
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in environment.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    with pytest.raises(ConfigurationError, match=sentence):
        Bucket("no-such-bucket", endpoint_url=endpoint or s3_url).open()


def test_a_password_in_the_endpoint_is_never_told(s3_url: str) -> None:
    assert s3_url  # for its credentials
    bucket = Bucket("lamps", endpoint_url="http://crawler:s3cret@127.0.0.1:9")
    with pytest.raises(TransientStoreError, match=r"http://\*\*\*@127.0.0.1:9/lamps") as caught:
        bucket.open()
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))
