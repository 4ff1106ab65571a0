"""Movies as MongoDB documents, one a site and title: what was read, and how its page was fetched."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import bson
import msgspec
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument
from pymongo import ASCENDING, DeleteOne, IndexModel, InsertOne, MongoClient, ReplaceOne
from pymongo.errors import BulkWriteError, OperationFailure, PyMongoError
from pymongo.uri_parser import parse_uri
from scrapy.exceptions import NotConfigured

from moviecrawler.catalogue.merging import merged
from moviecrawler.clock import latest
from moviecrawler.errors import ConfigurationError, RejectedError, TransientStoreError
from moviecrawler.items import Miss, Movie
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.store import Store, time_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pymongo.collection import Collection
    from scrapy.settings import BaseSettings

    from moviecrawler.pipelines.store import Record

Document = dict[str, Any]
Operation = InsertOne[Document] | ReplaceOne[Document] | DeleteOne

_DATABASE = "moviecrawler"
"""Where the URL names none."""
_OPTIONS = {
    "appName": "moviecrawler",
    "serverSelectionTimeoutMS": 5_000,
    "connectTimeoutMS": 5_000,
    "socketTimeoutMS": 30_000,
    "wTimeoutMS": 20_000,
    # A batch is reported as durable when it is on the disks of most of the servers.
    "w": "majority",
    "journal": True,
}
"""What the URL names itself takes precedence."""
_INDEXES = {
    "movies": [
        IndexModel([("imdb_id", ASCENDING)]),
        IndexModel([("site", ASCENDING), ("scraped_at", ASCENDING)]),
        IndexModel([("site", ASCENDING), ("list_name", ASCENDING), ("list_rank", ASCENDING)]),
    ],
    "misses": [IndexModel([("site", ASCENDING), ("checked_at", ASCENDING)])],
}
_OVERTAKEN = "another process wrote the same titles meanwhile; they are compared again"
_DUPLICATE_KEY = 11000
_DOCUMENT_TO_BLAME = frozenset({2, 9, 52, 56, 57, 121, 10334, 17280, 17419, 17420})
"""Codes of write errors: bad value, bad field names, failed validation, document or index key too large."""


class _Stored(NamedTuple):
    movie: Movie
    state: Document
    """A filter that finds the stored document only while it is unchanged."""


class MongoPipeline(BatchingPipeline):
    """Writes movies to the collection `movies` of MONGO_URL's database, and misses to `misses`."""

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> MongoStore:
        """Read MONGO_URL and FRESHNESS_MARGIN (seconds)."""
        if not settings.get("MONGO_URL"):
            raise NotConfigured  # without a reason, which Scrapy would warn of: not to ask for a store is no mistake
        return MongoStore(settings["MONGO_URL"], settings.getfloat("FRESHNESS_MARGIN", 3600))


class MongoStore(Store):
    """The collections `movies` and `misses`, with a document a site and title, whose `_id` is `<site>/<site_id>`.

    A document has the fields of its item; those of a movie include `fetch`, how its page was fetched. It is
    read before it is replaced, and replaced only while it is what was read: so of several processes none undoes
    another's work.
    """

    name = "mongo"

    def __init__(self, url: str, margin: float = 0) -> None:
        """Take the URL, and the seconds by which a movie must be newer than the stored one to take its place.

        Raises ConfigurationError for a URL that can't be right.
        """
        self._url = url
        self._margin = margin
        self._client: MongoClient[Document] | None = None
        self._largest = 0  # bytes of a document
        try:
            given = parse_uri(url)
        except (PyMongoError, ValueError):
            # The error's own text may quote the password.
            raise ConfigurationError(
                "MONGO_URL can't be right; set it to mongodb://user:password@host:27017/database, "
                "with characters such as @ and / in the password percent-encoded"
            ) from None
        self._database: str = given["database"] or _DATABASE
        self._options: dict[str, Any] = {
            name: value for name, value in _OPTIONS.items() if name not in given["options"]
        }

    def open(self) -> None:
        """Connect, and make the indexes."""
        self.close()
        try:
            self._client = MongoClient(self._url, tz_aware=True, **self._options)
            self._largest = self._client.admin.command("hello")["maxBsonObjectSize"]
            for name, indexes in _INDEXES.items():
                self._collection(name).create_indexes(indexes)
        except OperationFailure as error:
            if error.timeout:
                raise TransientStoreError(_sentence(error)) from error
            raise ConfigurationError(f"MONGO_URL: the server refuses us: {_sentence(error)}") from error
        except PyMongoError as error:
            raise TransientStoreError(_sentence(error)) from error

    def write(self, records: Sequence[Record]) -> None:
        """Store the newest of each title."""
        movies = [record.item for record in records if isinstance(record.item, Movie)]
        misses = [record.item for record in records if isinstance(record.item, Miss)]
        with _errors_translated():
            if (
                misses
            ):  # before a list's row of the same title makes its document newer, which is no reading of its page
                self._write_misses(misses)
            if movies:
                self._write_movies(movies)
                self._end_misses(movies)

    def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _collection(self, name: str) -> Collection[Document]:
        assert self._client is not None  # noqa: S101 - `open` comes first
        return self._client[self._database][name]

    def _write_movies(self, movies: Sequence[Movie]) -> None:
        movies = [_with_milliseconds(movie) for movie in movies]
        stored = {
            document["_id"]: _Stored(msgspec.convert(document, Movie), {"rev": document["rev"]})
            for document in self._collection("movies").find(_any_of(movies))
        }
        newest: dict[str, Movie] = {}
        for movie in movies:
            key = _key(movie)
            before = newest.get(key) or (stored[key].movie if key in stored else None)
            now_known = movie if before is None else merged(movie, before, self._margin, latest())
            if now_known is not None:
                newest[key] = now_known
        self._write_bulk(
            "movies",
            [
                self._operation(key, movie, stored[key].state if key in stored else None)
                for key, movie in newest.items()
                if key not in stored or movie != stored[key].movie
            ],
        )

    def _end_misses(self, movies: Sequence[Movie]) -> None:
        """Remove the misses of titles that have been read since; a list's row is no such reading."""
        pages = sorted((movie for movie in movies if movie.source != "list"), key=time_of)
        read = {_key(movie): time_of(movie) for movie in pages}  # the latest of each
        ended: list[Operation] = [
            DeleteOne({"_id": miss["_id"], "checked_at": miss["checked_at"]})
            for miss in self._collection("misses").find({"_id": {"$in": list(read)}}, ("checked_at",))
            if miss["checked_at"] <= read[miss["_id"]] or miss["checked_at"] > latest()
        ]
        if ended:
            self._collection("misses").bulk_write(ended, ordered=False)

    def _write_misses(self, misses: Sequence[Miss]) -> None:
        read = {
            movie["_id"]: movie["scraped_at"]
            for movie in self._collection("movies").find(_any_of(misses), ("scraped_at", "source"))
            if movie["source"] != "list"
        }
        found = self._collection("misses").find(_any_of(misses), ("checked_at",))
        stored: dict[str, datetime] = {miss["_id"]: miss["checked_at"] for miss in found}
        newest: dict[str, Miss] = {}
        for miss in misses:
            key = _key(miss)
            times = (read.get(key), stored.get(key), newest[key].checked_at if key in newest else None)
            if all(time is None or _milliseconds(miss.checked_at) >= time or time > latest() for time in times):
                newest[key] = miss
        self._write_bulk(
            "misses",
            [
                self._operation(key, miss, {"checked_at": stored[key]} if key in stored else None)
                for key, miss in newest.items()
            ],
        )

    def _operation(self, key: str, item: Movie | Miss, known: Document | None) -> Operation:
        """Return the write of an item: in place of the document that is as `known`, or the first of its title."""
        rev = (known or {}).get("rev", 0) + 1
        document = {"_id": key, "rev": rev, **msgspec.to_builtins(item, builtin_types=(datetime,))}
        try:
            encoded = bson.encode(document)
        except (BSONError, OverflowError, ValueError) as error:
            raise RejectedError(f"{key} is no BSON document: {error}") from error
        if len(encoded) > self._largest:
            raise RejectedError(f"{key} has {len(encoded):,} bytes; a document can have {self._largest:,}")
        raw: Any = RawBSONDocument(encoded)
        return InsertOne(raw) if known is None else ReplaceOne({"_id": key, **known}, raw)

    def _write_bulk(self, name: str, operations: list[Operation]) -> None:
        if not operations:
            return
        try:
            result = self._collection(name).bulk_write(operations, ordered=False)
        except BulkWriteError as error:
            errors = {each["code"]: each for each in error.details["writeErrors"]}
            blamed = next((each for code, each in errors.items() if code in _DOCUMENT_TO_BLAME), None)
            if blamed is not None:
                raise RejectedError(blamed["errmsg"]) from error
            if errors.keys() == {_DUPLICATE_KEY}:
                raise TransientStoreError(_OVERTAKEN) from error
            raise
        if result.inserted_count + result.matched_count < len(operations):
            raise TransientStoreError(_OVERTAKEN)


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except PyMongoError as error:
        raise TransientStoreError(_sentence(error)) from error


def _sentence(error: PyMongoError) -> str:
    """Return what went wrong, without the description of all servers that follows it."""
    return str(error).partition(" (configured timeouts")[0].partition(", full error")[0]


def _key(item: Movie | Miss) -> str:
    return f"{item.site}/{item.site_id}"


def _any_of(items: Sequence[Movie | Miss]) -> Document:
    return {"_id": {"$in": sorted({_key(item) for item in items})}}


def _with_milliseconds(movie: Movie) -> Movie:
    return replace(movie, scraped_at=_milliseconds(time_of(movie)))


def _milliseconds(time: datetime) -> datetime:
    """Return a time as MongoDB keeps it, so that it can be compared with what is stored."""
    return time.replace(microsecond=time.microsecond // 1000 * 1000)
