"""Stores movies and misses as MongoDB documents, one for each site and title."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from bson.errors import BSONError
from pymongo import ASCENDING, DeleteOne, IndexModel, InsertOne, MongoClient, ReplaceOne
from pymongo.errors import BulkWriteError, OperationFailure, PyMongoError
from pymongo.uri_parser import parse_uri
from scrapy.exceptions import NotConfigured

from moviecrawler.basics.clock import latest
from moviecrawler.basics.errors import ConfigurationError, RejectedError, TransientStoreError
from moviecrawler.items import ListPage, Miss, Movie
from moviecrawler.matching.merging import merged
from moviecrawler.pipelines.base import BatchingPipeline
from moviecrawler.pipelines.store import Store, time_of
from moviecrawler.sites.fields import SUBFIELDS, column_of, columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pymongo.collection import Collection
    from scrapy.settings import BaseSettings

    from moviecrawler.pipelines.store import Record

    _Write = InsertOne["Document"] | ReplaceOne["Document"] | DeleteOne

Document = dict[str, Any]
"""As pymongo types it."""

_OPTIONS = {
    "appName": "moviecrawler",
    "serverSelectionTimeoutMS": 5_000,
    "connectTimeoutMS": 5_000,
    "socketTimeoutMS": 30_000,
    "wTimeoutMS": 20_000,
    # A batch is reported durable once it is on the disks of most servers.
    "w": "majority",
    "journal": True,
}
"""Options of the URL take precedence."""
_INDEXES = [
    IndexModel([("imdb_id", ASCENDING)]),
    IndexModel([("site", ASCENDING), ("scraped_at", ASCENDING)]),
]
"""The indexes of `movies`."""
_OLD_NAMES = sorted(
    name
    for field, (_, kinds) in SUBFIELDS.items()
    for kind in kinds
    for name in (f"{field}.{kind}", f"{field}.{kind}.count")
    if column_of(name) != name
)
"""Names of unknown fields that an older version wrote."""
_DUPLICATE_KEY = 11000
_DOCUMENT_ERRORS = frozenset({2, 9, 52, 56, 57, 121, 10334, 17280, 17419, 17420})
"""Codes of write errors: bad value, bad field names, failed validation, document or index key too
large."""


class MongoPipeline(BatchingPipeline):
    """Writes the collections `movies`, `misses` and `lists` of MONGO_URL's database."""

    @classmethod
    def store_from_settings(cls, settings: BaseSettings) -> MongoStore:
        """Read MONGO_URL and FRESHNESS_MARGIN (seconds)."""
        if not settings.get("MONGO_URL"):
            # Without a reason, of which Scrapy would warn: a store that is not configured is not
            # a mistake.
            raise NotConfigured
        return MongoStore(settings["MONGO_URL"], settings.getfloat("FRESHNESS_MARGIN", 3600))


class MongoStore(Store):
    """The collections `movies`, `misses` and `lists`.

    The `_id` of a document is `<site>/<site_id>`, that of a list's page
    `<site>/<list_name>/<page_offset>`.

    A movie's document is read, merged with the new one, and replaced only if its `rev` is
    unchanged: no process undoes another's write.
    """

    name = "mongo"

    def __init__(self, url: str, margin: float = 0) -> None:
        """Parse the URL. Raises ConfigurationError for a malformed one."""
        self._url = url
        self._margin = margin
        self._client: MongoClient[Document] | None = None
        try:
            parsed = parse_uri(url)
        except (PyMongoError, ValueError):
            # The error's own text may quote the password.
            raise ConfigurationError(
                "MONGO_URL is malformed; set it to mongodb://user:password@host:27017/database, "
                "with characters such as @ and / in the password percent-encoded"
            ) from None
        self._database: str = parsed["database"] or "moviecrawler"
        self._options: Document = {
            name: value for name, value in _OPTIONS.items() if name not in parsed["options"]
        }

    def open(self) -> None:
        """Connect, and create the indexes."""
        self.close()
        with _errors_translated():
            try:
                self._client = MongoClient(self._url, tz_aware=True, **self._options)
                self._collection("movies").create_indexes(_INDEXES)
                self._name_columns()
            except OperationFailure as error:
                if error.timeout:
                    raise
                raise ConfigurationError(
                    f"MONGO_URL: the server refuses us: {_message(error)}"
                ) from error

    def write(self, records: Sequence[Record]) -> None:
        """Merge the records into the stored documents."""
        with _errors_translated():
            # Misses first: a movie from a list makes its document newer than the miss, although its
            # page was not read.
            if misses := [record.item for record in records if isinstance(record.item, Miss)]:
                self._write_misses(misses)
            if movies := [record.item for record in records if isinstance(record.item, Movie)]:
                self._write_movies(movies)
            self._write_lists(
                [item for record in records if isinstance(item := record.item, ListPage)]
            )

    def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _collection(self, name: str) -> Collection[Document]:
        assert self._client is not None  # noqa: S101 - `open` comes first
        return self._client[self._database][name]

    def _name_columns(self) -> None:
        """Name unknown fields by their columns where an older version did not, once."""
        done = {"_id": "unknown_fields name columns"}
        if self._collection("state").find_one(done):
            return
        columns = ("site", "unknown_fields", "rev")
        old = self._collection("movies").find({"unknown_fields": {"$in": _OLD_NAMES}}, columns)
        for document in old:
            names = columns_of(document["site"], document["unknown_fields"])
            unchanged = {"_id": document["_id"], "rev": document["rev"]}
            change = {"$set": {"unknown_fields": names}, "$inc": {"rev": 1}}
            self._collection("movies").update_one(unchanged, change)
        self._collection("state").replace_one(done, done, upsert=True)

    def _write_movies(self, movies: Sequence[Movie]) -> None:
        found = {
            document["_id"]: document
            for document in self._collection("movies").find(_by_keys(movies))
        }
        stored = {key: msgspec.convert(document, Movie) for key, document in found.items()}
        newest: dict[str, Movie] = {}
        for movie in movies:
            key = _key(movie)
            now = replace(movie, scraped_at=_milliseconds(time_of(movie)))
            before = newest.get(key) or stored.get(key)
            newest[key] = (
                now if before is None else merged(now, before, self._margin, latest()) or before
            )
        writes: list[_Write] = []
        for key, movie in newest.items():
            if key not in stored:
                writes.append(InsertOne(_document(movie, 1)))
            elif movie != stored[key]:
                rev = found[key]["rev"]
                writes.append(ReplaceOne({"_id": key, "rev": rev}, _document(movie, rev + 1)))
        if self._bulk("movies", writes) < len(writes):
            raise TransientStoreError(
                "another process wrote the same titles meanwhile; they are compared again"
            )
        # A movie from a list does not show that its page exists.
        ended = [
            _older_miss(movie, site_id)
            for movie in movies
            if movie.source != "list"
            for site_id in movie.ids
        ]
        self._bulk("misses", [DeleteOne(miss) for miss in ended])

    def _write_misses(self, misses: Sequence[Miss]) -> None:
        read = {
            movie["_id"]: movie["scraped_at"]
            for movie in self._collection("movies").find(_by_keys(misses), ("scraped_at", "source"))
            if movie["source"] != "list" and movie["scraped_at"] <= latest()
        }
        new = [
            miss
            for miss in misses
            if (at := read.get(_key(miss))) is None or _milliseconds(miss.checked_at) >= at
        ]
        # If a newer miss is stored, the filter finds nothing and the upsert fails with a duplicate
        # key, which `_bulk` ignores.
        self._bulk(
            "misses",
            [
                ReplaceOne(_older_miss(miss, miss.site_id), _document(miss, 1), upsert=True)
                for miss in new
            ],
        )

    def _write_lists(self, pages: Sequence[ListPage]) -> None:
        """Store pages of lists, each in the place of that of an earlier pass."""
        writes = []
        for page in pages:
            key = f"{page.site}/{page.list_name}/{page.page_offset}"
            document = {"_id": key, **msgspec.to_builtins(page, builtin_types=(datetime,))}
            # As with misses, a newer one makes the upsert fail with a duplicate key.
            replaced = [{"pass_at": {"$lte": page.pass_at}}, {"pass_at": {"$gt": latest()}}]
            older = {"_id": key, "$or": replaced}
            writes.append(ReplaceOne(older, document, upsert=True))
        self._bulk("lists", writes)

    def _bulk(self, name: str, writes: Sequence[_Write]) -> int:
        """Return how many documents the writes found or inserted."""
        if not writes:
            return 0
        try:
            result: Mapping[str, Any] = (
                self._collection(name).bulk_write(writes, ordered=False).bulk_api_result
            )
        except (BSONError, OverflowError, ValueError) as error:
            raise RejectedError(str(error)) from error
        except BulkWriteError as error:
            result = error.details
            for each in result["writeErrors"]:
                if each["code"] in _DOCUMENT_ERRORS:
                    raise RejectedError(each["errmsg"]) from error
            if any(each["code"] != _DUPLICATE_KEY for each in result["writeErrors"]):
                raise
        return int(result["nInserted"] + result["nMatched"])


@contextmanager
def _errors_translated() -> Iterator[None]:
    try:
        yield
    except PyMongoError as error:
        raise TransientStoreError(_message(error)) from error


def _message(error: PyMongoError) -> str:
    """Return the error's message without the description of all servers that follows it."""
    return str(error).partition(" (configured timeouts")[0].partition(", full error")[0]


def _document(item: Movie | Miss, rev: int) -> Document:
    return {"_id": _key(item), "rev": rev, **msgspec.to_builtins(item, builtin_types=(datetime,))}


def _older_miss(item: Movie | Miss, site_id: str) -> Document:
    """Return a filter for the miss of an id that an item is of.

    It finds a miss that is not newer than the item, or is from the future.
    """
    times = [{"checked_at": {"$lte": time_of(item)}}, {"checked_at": {"$gt": latest()}}]
    return {"_id": f"{item.site}/{site_id}", "$or": times}


def _key(item: Movie | Miss) -> str:
    return f"{item.site}/{item.site_id}"


def _by_keys(items: Sequence[Movie | Miss]) -> Document:
    return {"_id": {"$in": sorted({_key(item) for item in items})}}


def _milliseconds(time: datetime) -> datetime:
    """Round a time down to milliseconds, as MongoDB stores it.

    It can then be compared with stored times.
    """
    return time.replace(microsecond=time.microsecond // 1000 * 1000)
