"""The archive in a bucket: every page as it was sent, many in one WARC file, with an index of their positions.

raw/site=imdb/date=2026-03-01/20260301T120000-<machine>-<digest>.warc     the pages
raw/site=imdb/date=2026-03-01/20260301T120000-<machine>-<digest>.cdxj     where each page begins, and its length
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.items import RawPage
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.s3 import S3_LIMITS, Bucket, BucketStore, by_folder, object_name, partition
from moviecrawler.pipelines.warc import index_line, write_info

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy.settings import BaseSettings

    from moviecrawler.pipelines.store import Record


class ArchivePipeline(BatchingPipeline):
    """Writes raw pages to S3_BUCKET."""

    item_types = (RawPage,)
    default_limits = S3_LIMITS

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> ArchiveStore:
        """Read the settings of `Bucket`."""
        return ArchiveStore(Bucket.from_settings(settings))

    def encode(self, item: RawPage) -> bytes:
        """Return the page's WARC record."""
        return item.record

    def spooled(self, record: Record) -> bytes:
        """Return the page as JSON, its record in base 64."""
        return msgspec.json.encode(record.item)


class ArchiveStore(BucketStore):
    """WARC files and their indexes in a bucket. A file is only ever overwritten by the same pages."""

    name = "archive"

    def write(self, records: Sequence[Record]) -> None:
        """Write a file for each site and date of the batch. Its index is written last: a file with an index is complete."""
        members = (
            (partition("raw", page.site, page.fetched_at), record) for record in records if (page := record.item)
        )
        for folder, group in by_folder(members):
            pages: list[RawPage] = [record.item for record in group]
            first = min(page.fetched_at for page in pages)
            # The ids are random, so they identify the contents.
            name = object_name(first, "".join(page.archive_id for page in pages).encode())
            parts = [write_info(f"{name}.warc", first)]
            offset = len(parts[0])
            lines = []
            for page in pages:
                lines.append(index_line(page, f"{name}.warc", offset))
                parts.append(page.record)
                offset += len(page.record)
            self._bucket.put(f"{folder}/{name}.warc", b"".join(parts), "application/warc")
            self._bucket.put(f"{folder}/{name}.cdxj", b"".join(sorted(lines)), "text/plain; charset=utf-8")


class Folder:
    """An archive in a local folder, such as a copy of a bucket."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def keys(self, folder: str) -> Iterator[str]:
        """Yield the paths of the files below `folder`, relative to the archive, sorted."""
        for path in sorted((self._path / folder).rglob("*")):
            if path.is_file():
                yield path.relative_to(self._path).as_posix()

    def get(self, key: str) -> bytes:
        """Return a file. Raises OSError."""
        return (self._path / key).read_bytes()


def open_archive(source: str, endpoint_url: str | None = None) -> Bucket | Folder:
    """Return the archive at `s3://bucket/prefix`, or in a folder. Raises ConfigurationError when there is none.

    Raises TransientStoreError when a bucket can't be reached.
    """
    if source.startswith("s3://"):
        try:
            parts = urlsplit(source)
        except ValueError as error:
            raise ConfigurationError(f"{source!r} names no bucket ({error}); give s3://bucket/prefix") from None
        bucket = Bucket(parts.netloc, parts.path, endpoint_url)
        bucket.open()
        return bucket
    if not (Path(source) / "raw").is_dir():
        raise ConfigurationError(
            f"{source!r} holds no archive: it has no folder raw; give the folder above raw, or s3://bucket/prefix"
        )
    return Folder(Path(source))


def archived_files(archive: Bucket | Folder, site: str, begin: date, end: date) -> list[str]:
    """Return the keys of the WARC files with pages of a site from `begin` to `end`, both included, oldest first."""
    found = []
    for key in archive.keys(f"raw/site={site}/"):
        match = _FILE.match(key)
        with suppress(ValueError):  # a date that does not exist: not a folder of ours
            if match and begin <= date.fromisoformat(match[1]) <= end:
                found.append(key)
    return found


_FILE = re.compile(r"raw/site=\w+/date=(\d{4}-\d\d-\d\d)/[^/]+\.warc$")
