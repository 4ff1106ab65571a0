"""The archive in a bucket: every page as it was sent, many in one WARC file.

Its key is such as raw/site=imdb/date=2026-03-01/20260301T120000-<digest>.warc
"""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.items import RawPage
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.s3 import S3_LIMITS, Bucket, S3Store, folder_of, object_name

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


class ArchiveStore(S3Store):
    """WARC files in a bucket. A file is only ever overwritten by the same pages."""

    name = "archive"

    def write(self, records: Sequence[Record]) -> None:
        """Write a file for each site and date of the batch."""
        folders: dict[str, list[RawPage]] = defaultdict(list)
        for record in records:
            page = record.item
            folders[folder_of("raw", page.site, page.fetched_at)].append(page)
        for folder, pages in folders.items():
            first = min(page.fetched_at for page in pages)
            # The ids are random, so they identify the contents.
            name = object_name(first, "".join(page.archive_id for page in pages).encode())
            self._bucket.put(
                f"{folder}/{name}.warc", b"".join(page.record for page in pages), "application/warc"
            )


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
    """Return the archive at `s3://bucket/prefix`, or in a folder.

    Raises ConfigurationError when there is none, TransientStoreError when a bucket can't be
    reached.
    """
    if source.startswith("s3://"):
        try:
            parts = urlsplit(source)
        except ValueError as error:
            raise ConfigurationError(
                f"{source!r} names no bucket ({error}); give s3://bucket/prefix"
            ) from None
        bucket = Bucket(parts.netloc, parts.path, endpoint_url)
        bucket.open()
        return bucket
    if not (Path(source) / "raw").is_dir():
        raise ConfigurationError(
            f"{source!r} holds no archive: it has no folder raw; "
            "give the folder above raw, or s3://bucket/prefix"
        )
    return Folder(Path(source))


def archived_files(
    archive: Bucket | Folder, site: str | None, begin: date, end: date
) -> dict[str, str]:
    """Return the keys of the WARC files with pages of a site, or of all sites, oldest first.

    Each has the name of its site. The pages are from `begin` to `end`, both included.
    """
    sites = {}
    for key in archive.keys(f"raw/site={site}/" if site else "raw/"):
        match = _FILE.match(key)
        with suppress(ValueError):  # a date that does not exist: not a folder of ours
            if match and begin <= date.fromisoformat(match["date"]) <= end:
                sites[key] = match["site"]
    return sites


_FILE = re.compile(r"raw/site=(?P<site>\w+)/date=(?P<date>\d{4}-\d\d-\d\d)/[^/]+\.warc$")
