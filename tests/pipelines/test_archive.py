"""The archive.

Other tools read its records too, damage is noticed, and nothing is lost or doubled.
"""

import asyncio
import gzip
from datetime import date, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from warcio.archiveiterator import ArchiveIterator

from moviecrawler.basics.errors import ArchiveError, ConfigurationError
from moviecrawler.items import Entry, ListRow, RawPage
from moviecrawler.pipelines.archive import (
    ArchivePipeline,
    ArchiveStore,
    archived_files,
    open_archive,
)
from moviecrawler.pipelines.s3 import Bucket
from moviecrawler.pipelines.store import Limits
from moviecrawler.pipelines.warc import (
    _MAX_BLOCK_BYTES,
    Answer,
    read_record,
    read_records,
    write_record,
)
from tests.runs import BEGIN, crawler_of
from tests.services.s3 import objects
from tests.waiting import until

HTML = b"<html>a lamp</html>\r\n\r\n"
ANSWER = Answer(
    site="imdb",
    site_id="tt0000001",
    url="https://www.imdb.com/title/tt0000001/?ref_=%C3%A9",
    status=200,
    headers=[
        ("Content-Type", "text/html; charset=utf-8"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=\xe9"),
        ("Content-Encoding", "gzip"),
    ],
    body=gzip.compress(HTML),
    fetched_at=BEGIN + timedelta(microseconds=7),
    archive_id="urn:uuid:00000000-0000-4000-8000-000000000001",
    attempts=2,
    found=ListRow(
        list_name="top",
        list_rank=1,
        entry=Entry(site_id="tt0000001", title="Lámpa\r\n\u2028 映画"),
    ),
)
PLAIN = replace(ANSWER, headers=ANSWER.headers[:-1], body=HTML)


def page(number: int, **changes: Any) -> RawPage:
    """Return the raw page of a number."""
    archive_id = f"urn:uuid:00000000-0000-4000-8000-{number:012}"
    return write_record(replace(ANSWER, site_id=f"tt{number:07}", archive_id=archive_id, **changes))


@given(st.binary(), st.text(st.characters(exclude_categories=["Cs"])))
def test_any_body_and_text_come_back(body: bytes, text: str) -> None:
    answer = replace(ANSWER, body=body, found=ListRow(list_name=text, list_rank=1))
    records = [write_record(answer).record] * 2
    assert list(read_records(BytesIO(b"".join(records)))) == records
    assert read_record(records[0]) == answer
    assert (
        read_record(write_record(replace(ANSWER, found=None, status=599, headers=[])).record).status
        == 599
    )


@pytest.mark.promise("A page is archived as it was sent, and other tools can read it.")
@pytest.mark.parametrize("answer", [ANSWER, PLAIN], ids=["gzip", "plain"])
def test_another_tool_reads_the_same(answer: Answer) -> None:
    record = next(ArchiveIterator(BytesIO(write_record(answer).record), check_digests="raise"))
    assert record.content_stream().read() == HTML
    assert record.rec_headers.get_header("WARC-Target-URI") == ANSWER.url
    assert record.rec_headers.get_header("WARC-Date") == "2026-03-01T12:00:00.000007Z"
    assert record.http_headers.get_statuscode() == "200"
    # Gzip has a checksum of its own.
    assert record.digest_checker.passed is (True if answer is PLAIN else None)


OF_EARLIER_VERSION = Path(__file__).with_name("record_of_an_earlier_version.warc").read_bytes()
"""A record as the version before queue.sqlite3 wrote it."""


def test_a_record_of_an_earlier_version_is_read() -> None:
    (record,) = read_records(BytesIO(OF_EARLIER_VERSION))
    assert read_record(record) == Answer(
        site="imdb",
        site_id="tt0000001",
        url="https://www.imdb.com/title/tt0000001/",
        status=404,
        headers=[("Content-Type", "text/html"), ("Content-Length", "4")],
        body=b"none",
        fetched_at=BEGIN,
        archive_id="urn:uuid:00000000-0000-0000-0000-000000000001",
        attempts=2,
        found=ListRow(list_name="top", list_rank=3),
    )


RECORD = write_record(PLAIN).record
LENGTH = b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: %b\r\n\r\nabc\r\n\r\n"


def damaged(place: int) -> bytes:
    """Return the record with one bit of it changed."""
    record = bytearray(RECORD)
    record[place] ^= 1
    return bytes(record)


@pytest.mark.parametrize(
    ("contents", "sentence"),
    [
        *((RECORD + RECORD[:-cut], "the WARC file ends early") for cut in (1, 4, 100)),
        (RECORD + RECORD[:-300], "no WARC record where one should begin: b'WARC/1.1"),
        (LENGTH % (b"9" * 41), "a record has a length of 9{40} bytes"),
        (LENGTH % b"-1", "a record has a length of -1 bytes"),
        (LENGTH % str(_MAX_BLOCK_BYTES).encode(), "the WARC file ends early"),
        (LENGTH % str(_MAX_BLOCK_BYTES + 1).encode(), "a record has a length of"),
        *((LENGTH % length, "no WARC record where one") for length in (b"9" * 5000, b"1e3")),
        (b"x" * 41, "no WARC record where one should begin: b'x{40}'$"),
        (damaged(0), "no WARC record where one should begin: b'VARC"),
        (damaged(20), "no WARC record where one should begin: b'WARC/1.1"),
        (damaged(-10), "the body is not the one that was archived"),
        (
            RECORD.replace(b"WARC-JSON-Metadata", b"WARC-JSON-Something"),
            "a record is not one that this project wrote: KeyError: 'warc-json-metadata'",
        ),
    ],
    ids=lambda case: repr(case)[-40:],
)
def test_a_file_that_is_cut_damaged_or_of_another_program_is_noticed(
    contents: bytes, sentence: str
) -> None:
    with pytest.raises(ArchiveError, match=sentence):
        list(map(read_record, read_records(BytesIO(contents))))


def test_a_record_with_a_line_that_is_no_header_is_told_with_its_beginning() -> None:
    with pytest.raises(ArchiveError, match=r"ValueError: 'S{40}' is not a header$"):
        read_record(RECORD.replace(b"Set-Cookie: a=1", b"S" * 41))


def test_records_of_other_kinds_are_passed_over() -> None:
    other = b"WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    assert list(read_records(BytesIO(other + RECORD))) == [RECORD]


def archive(bucket: Bucket, folder: Path, *pages: RawPage, **limits: Any) -> dict[str, Any]:
    """Archive pages as one crawl does, and return the stats."""
    crawler = crawler_of(folder)
    assert crawler.stats is not None

    async def crawl() -> None:
        pipeline = ArchivePipeline(
            crawler, ArchiveStore(bucket), Limits(**{"batch_seconds": 0.02, **limits})
        )
        await pipeline.open_spider()
        for raw in pages:
            assert await pipeline.process_item(raw) is raw
        if not limits:
            await until(
                lambda: not (folder / "spool").exists() or not list((folder / "spool").iterdir())
            )
        await pipeline.close_spider()

    asyncio.run(crawl())
    return crawler.stats.get_stats()


def test_sites_and_days_have_files_of_their_own(
    s3_url: str, bucket_name: str, tmp_path: Path
) -> None:
    bucket = Bucket(bucket_name, "pages", s3_url)
    yesterday = BEGIN - timedelta(hours=13)
    archive(bucket, tmp_path, page(1), page(2, fetched_at=yesterday), page(3, site="metacritic"))
    source = open_archive(f"s3://{bucket_name}/pages/", s3_url)
    assert len(archived_files(source, "imdb", date.min, date.max)) == 2
    assert len(archived_files(source, "imdb", date(2026, 3, 1), date(2026, 3, 1))) == 1
    (old,) = archived_files(source, "imdb", date.min, date(2026, 2, 28))
    assert old.startswith("raw/site=imdb/date=2026-02-28/")
    assert len(archived_files(source, "metacritic", date.min, date.max)) == 1


def test_pages_that_could_not_be_archived_are_spooled_and_loaded(
    s3_url: str, bucket_name: str, tmp_path: Path
) -> None:
    down = Bucket(bucket_name, endpoint_url="http://127.0.0.1:1")
    stats = archive(down, tmp_path, page(1), page(2), close_seconds=0.2)
    assert stats["store/archive/spooled"] == 2
    assert len(list((tmp_path / "spool").iterdir())) == 1
    stats = archive(Bucket(bucket_name, endpoint_url=s3_url), tmp_path, page(3))
    assert stats["store/archive/durable"] == 3
    records = [
        record
        for key, data in objects(s3_url, bucket_name).items()
        if key.endswith(".warc")
        for record in read_records(BytesIO(data))
    ]
    assert sorted(records) == sorted(raw.record for raw in (page(1), page(2), page(3)))


def test_what_is_no_archive_is_told_and_a_folder_of_no_day_is_passed_over(tmp_path: Path) -> None:
    for source, sentence in (
        (str(tmp_path), "holds no archive"),
        ("s3://[raw", "'s3://\\[raw' names no bucket"),
    ):
        with pytest.raises(ConfigurationError, match=sentence):
            open_archive(source)
    for day in ("2026-02-28", "2026-02-30", "2026-13-01"):
        folder = tmp_path / "raw" / "site=imdb" / f"date={day}"
        folder.mkdir(parents=True)
        (folder / "a.warc").write_bytes(b"")
    files = archived_files(open_archive(str(tmp_path)), "imdb", date.min, date.max)
    assert [*files] == ["raw/site=imdb/date=2026-02-28/a.warc"]
