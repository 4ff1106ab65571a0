"""The Mongo store's own promises: which reading wins, and what it survives."""

import logging
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec import to_builtins
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.errors import BulkWriteError, WTimeoutError
from scrapy.settings import Settings

from moviecrawler.basics.errors import ConfigurationError, TransientStoreError
from moviecrawler.pipelines.mongo import MongoPipeline, MongoStore
from tests.runs import BEGIN, crawl, make_movie, record_of
from tests.services.mongo import documents

KEY = "imdb/tt0000001"


@pytest.mark.parametrize(("name", "value"), [("certificate", "PG"), ("critic_review_count", 7)])
def test_processes_that_fill_the_same_title_at_once_undo_nothing(
    mongo_url: str, monkeypatch: pytest.MonkeyPatch, name: str, value: Any
) -> None:
    """Older readings leave the time of what they fill."""
    row = make_movie(1, source="dataset", unknown_fields=sorted([name, "countries"]))
    with closing(MongoStore(mongo_url)) as one, closing(MongoStore(mongo_url)) as other:
        one.open()
        other.open()
        one.write([record_of(row)])
        write = one._bulk

        def overtaken(*arguments: Any) -> int:
            monkeypatch.setattr(one, "_bulk", write)
            other.write(
                [record_of(make_movie(1, 600, **{name: value}, unknown_fields=["countries"]))]
            )
            return write(*arguments)

        monkeypatch.setattr(one, "_bulk", overtaken)
        page = record_of(make_movie(1, 900, countries=["Norway"], unknown_fields=[name]))
        with pytest.raises(TransientStoreError, match="compared again"):
            one.write([page])
        one.write([page])
    document = documents(mongo_url, "movies")[KEY]
    assert (document[name], document["countries"], document["scraped_at"]) == (
        value,
        ["Norway"],
        BEGIN,
    )


def test_unknown_fields_of_an_older_version_name_columns(mongo_url: str) -> None:
    for names in (["amounts.budget", "plot"], ["budget", "budget_currency", "plot"]):
        movie = make_movie(1, unknown_fields=names)
        with (
            MongoClient[dict[str, Any]](mongo_url) as client,
            closing(MongoStore(mongo_url)) as store,
        ):
            client.get_default_database()["state"].drop()
            document = {"_id": KEY, "rev": 1, **to_builtins(movie)}
            client.get_default_database()["movies"].replace_one({"_id": KEY}, document, upsert=True)
            store.open()
        found = documents(mongo_url, "movies")[KEY]["unknown_fields"]
        assert found == ["budget", "budget_currency", "plot"]


@pytest.mark.parametrize("by", ["driver", "server"])
def test_what_no_document_can_hold_is_rejected_alone(
    mongo_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    write = Collection.bulk_write

    def refuse(collection: Any, writes: Sequence[Any], **options: Any) -> Any:
        if any("imdb/tt0000002" in repr(each) for each in writes):
            error = {"code": 10334, "errmsg": "object to insert too large"}
            raise BulkWriteError({"writeErrors": [error], "nInserted": 0, "nMatched": 0})
        return write(collection, writes, **options)

    if by == "server":
        monkeypatch.setattr(Collection, "bulk_write", refuse)
    wrong = {"popularity_rank": 2**63} if by == "driver" else {}
    run = crawl(
        MongoStore(mongo_url), tmp_path, make_movie(1), make_movie(2, **wrong), make_movie(3)
    )
    assert run.outcomes() == {
        "tt0000001": "durable",
        "tt0000002": "rejected",
        "tt0000003": "durable",
    }
    assert ("8-byte" if by == "driver" else "too large") in run.rejected()[0]["reason"]
    assert set(documents(mongo_url, "movies")) == {"imdb/tt0000001", "imdb/tt0000003"}


def test_servers_that_are_slow_to_agree_on_an_index_are_waited_for(
    mongo_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a secondary is down, so that a majority acknowledges nothing in time."""
    slow = WTimeoutError("waiting for replication timed out", 64, {"errInfo": {"wtimeout": True}})
    monkeypatch.setattr("pymongo.collection.Collection.create_indexes", Mock(side_effect=slow))
    with (
        closing(MongoStore(mongo_url)) as store,
        pytest.raises(TransientStoreError, match="timed out"),
    ):
        store.open()


def test_a_password_is_never_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = "mongodb://someone:hush%40hush@127.0.0.1:1/movies?serverSelectionTimeoutMS=50"
    crawl(MongoStore(url), tmp_path, make_movie(1), close_seconds=0.3)
    assert "mongo can't be opened" in caplog.text
    assert "hush" not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://someone:hu/sh@host/x",
        "mongodb://someone:hush@host:port/x",
        "http://hush",
        "mongodb://",
    ],
)
def test_a_wrong_url_is_told_before_the_crawl_without_the_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match="MONGO_URL") as caught:
        MongoPipeline.store_from_settings(Settings({"MONGO_URL": url}))
    assert "hu" not in str(caught.value).replace("should", "")
    assert caught.value.__cause__ is None


def test_what_the_url_says_of_time_outs_and_acknowledgement_stands() -> None:
    store = MongoStore("mongodb://host/?socketTimeoutMS=7&w=1")
    assert not {"socketTimeoutMS", "w"} & store._options.keys()
    assert store._options["serverSelectionTimeoutMS"] == 5_000
