"""Titles that are boosted through a node are due in the catalogue."""

import json
from contextlib import closing
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.settings import Settings
from twisted.web.test.requesthelper import DummyRequest

from moviecrawler.catalogue.loading import load
from moviecrawler.catalogue.rows import ImportRow
from moviecrawler.catalogue.store import open_catalogue
from moviecrawler.cluster.services import Boost
from moviecrawler.database.short_transactions import ShortTransactions
from tests.services.postgres import execute


def boost(url: str, ids: str, weight: str = "") -> dict[str, Any]:
    """Return the answer of `boost.json` by a node with that database."""
    request: Any = DummyRequest([])
    request.path = b"/boost.json"
    request.parse_upload = lambda: None
    request.method = b"POST"
    request.args = {b"id": [ids.encode()], b"weight": [weight.encode()]}
    root: Any = SimpleNamespace(
        node=None, sources=SimpleNamespace(database=ShortTransactions(url)), node_name="node1"
    )
    return dict(json.loads(Boost(root).render(request)))


def test_boosted_titles_are_due_and_what_is_wrong_is_said(database_url: str) -> None:
    rows = [
        ImportRow(
            imdb_id=f"tt100000{number}",
            title=f"Title {number}",
            kind="movie",
            year=2000,
            popularity=1.0,
        )
        for number in range(3)
    ]
    with closing(open_catalogue(Settings({"DATABASE_URL": database_url}))) as store:
        load(store, "test", "1", rows, len(rows), datetime.now(UTC))
    text = boost(database_url, "tt1000001,https://www.imdb.com/title/tt1000002/,tt7654321")
    assert (text["status"], text["named"], text["boosted"]) == ("ok", 3, 2)
    assert boost(database_url, "tt1000002", weight="5")["boosted"] == 1
    due = execute(
        database_url,
        "SELECT imdb_id, boost FROM title_sites JOIN titles USING (title_id)"
        " WHERE site = 'imdb' AND boost_due <= now() + interval '1 minute' ORDER BY boost DESC",
    )
    assert due == [("tt1000002", 6.0), ("tt1000001", 1.0)]


@pytest.mark.parametrize(
    ("ids", "weight", "message"),
    [
        (" , ", "", "'id' parameter is required"),
        ("rubbish", "", "rubbish"),
        ("tt1000001", "-1", "weight is -1.0"),
        ("tt1000001", "nan", "weight is nan"),
        (
            ",".join(f"tt{1_000_000 + number}" for number in range(1001)),
            "",
            "1,001 titles are named; name at most 1,000",
        ),
        (
            ",".join(f"tt{1_000_000 + number}" for number in range(1000)),
            "1e6",
            "write signs such as @",
        ),
        ("tt1000001", "1000001", "weight is 1000001.0; give a number above 0 and up to 1,000,000"),
        ("tt1000001", "0", "weight is 0.0"),
    ],
)
@pytest.mark.parametrize(
    "url", ["postgresql://me:hun@ter2@127.0.0.1:1/x", "host=127.0.0.1 dbname=x password=hun ter2"]
)
def test_what_is_wrong_is_said_without_a_part_of_the_database_s_password(
    url: str, ids: str, weight: str, message: str
) -> None:
    refused = boost(url, ids, weight)
    assert refused["status"] == "error"
    assert message in refused["message"]
    assert "ter2" not in refused["message"]
