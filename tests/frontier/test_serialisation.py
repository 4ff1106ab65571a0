from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moviecrawler.frontier.serialisation import (
    DueTitle,
    Envelope,
    SerialisationError,
    decode,
    encode,
    request_id,
)
from moviecrawler.items import Entry, ListRow
from moviecrawler.matching.facts import TitleFacts
from moviecrawler.spiders.base import BOOST_PRIORITY
from moviecrawler.spiders.imdb import ImdbSpider
from moviecrawler.spiders.replay import ReplaySpider


def envelope(**changes: object) -> bytes:
    fields = {
        "callback": "parse_title",
        "url": "https://www.imdb.com/title/tt0000001/",
        "cb_kwargs": {"site_id": "tt0000001", "found": None},
        "expects": "page",
    } | changes
    return msgspec.json.encode([fields[name] for name in Envelope.__struct_fields__])


def test_request_comes_back_as_it_was(spider: ImdbSpider) -> None:
    entry = Entry(site_id="tt0000001", title="É ☃")
    found = ListRow(list_name="top", list_rank=3, entry=entry)
    request = spider.title_request("tt0000001", found)
    back = decode(encode(request).encode(), spider)
    assert back.to_dict(spider=spider) == request.to_dict(spider=spider)


def test_request_for_a_title_that_is_due_comes_back_as_it_was(spider: ImdbSpider) -> None:
    expected = TitleFacts(title="É ☃", kind="movie", year=1999)
    due = DueTitle(title_id=7, boosted=True, ids=["tt2"], evidence="given", expected=expected)
    request = spider.title_request("tt0000001", None, due)
    back = decode(encode(request).encode(), spider)
    assert back.to_dict(spider=spider) == request.to_dict(spider=spider)
    assert back.priority == BOOST_PRIORITY


@pytest.mark.parametrize("titles", [None, ["tt0000001", "tt0000002"]])
def test_request_for_datasets_comes_back_as_it_was(
    spider: ImdbSpider, titles: list[str] | None
) -> None:
    request = spider.datasets_request(titles)
    back = decode(encode(request).encode(), spider)
    assert back.to_dict(spider=spider) == request.to_dict(spider=spider)
    assert request_id(back) == request_id(request)
    assert request_id(request) != request_id(spider.datasets_request(["tt0000003"]))


def test_request_for_a_file_comes_back_as_it_was_and_none_for_another_file() -> None:
    key = "raw/site=imdb/date=2026-03-01/É 1%41?.warc"
    spider = ReplaySpider(name="replay", files={key: None})
    request = spider.file_request(key)
    back = decode(encode(request).encode(), spider)
    assert back.to_dict(spider=spider) == request.to_dict(spider=spider)
    with pytest.raises(SerialisationError, match="the archive has no file"):
        decode(encode(request).replace("raw/site", "raw/../site").encode(), spider)
    with pytest.raises(SerialisationError, match="is not a page that replay requests"):
        decode(encode(request).replace("archive://raw", "archive://row").encode(), spider)


def test_request_that_an_earlier_version_queued_is_read(spider: ImdbSpider) -> None:
    """It had one more value, the depth."""
    encoded = msgspec.json.decode(encode(spider.title_request("tt0000001")))
    request = decode(msgspec.json.encode([*encoded, 3]), spider)
    assert request.url == spider.title_request("tt0000001").url


def test_list_that_an_earlier_version_queued_belongs_to_a_pass_of_now(spider: ImdbSpider) -> None:
    url = "https://www.imdb.com/chart/top/"
    request = decode(
        envelope(
            callback="parse_list", url=url, cb_kwargs={"name": "top", "offset": 9}, expects="page"
        ),
        spider,
    )
    assert request.cb_kwargs["before"] == 9
    pass_at = datetime.fromisoformat(request.cb_kwargs["pass_at"])
    assert abs(datetime.now(UTC) - pass_at) < timedelta(minutes=1)


@pytest.mark.promise("What is queued is checked JSON without secrets, and never code.")
@pytest.mark.promise("No secret is in a log, a queue or a command line.")
@pytest.mark.parametrize(
    "change",
    [
        {"method": "POST"},
        {"body": b"x"},
        {"cookies": {"session": "secret"}},
        {"url": "https://user:secret@www.imdb.com/"},
        {"url": "https://secret@www.imdb.com/"},
        {"callback": None},
        {"errback": None},
        {"cb_kwargs": {"site_id": object()}},
    ],
)
def test_request_that_would_lose_or_tell_something_is_not_queued(
    spider: ImdbSpider, change: dict[str, Any]
) -> None:
    with pytest.raises(SerialisationError) as caught:
        encode(spider.title_request("tt0000001", None).replace(**change))
    assert "secret" not in str(caught.value)


@pytest.mark.promise("What is queued is checked JSON without secrets, and never code.")
def test_headers_and_unknown_meta_do_not_travel(spider: ImdbSpider) -> None:
    headers = dict.fromkeys(("Authorization", "Proxy-Authorization", "Cookie"), "secret")
    request = spider.title_request("tt0000001", None).replace(headers=headers)
    request.meta.update(
        proxy="http://user:secret@proxy.example:8080", _auth_proxy="secret", cookiejar="secret"
    )
    assert "secret" not in encode(request)
    assert not decode(encode(request).encode(), spider).headers


@pytest.mark.promise("What is queued is checked JSON without secrets, and never code.")
@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x80\x04\x95",
        b"[1]",
        envelope(callback="__init__"),
        envelope(callback="title_failed"),
        envelope(url="https://example.com/"),
        envelope(url="file:///etc/passwd"),
        envelope(url="https://[/"),
        envelope(url="https://www.imdb.com.example.com/"),
        envelope(cb_kwargs=[]),
        envelope(expects="magic"),
        envelope(cb_kwargs={}),
        envelope(cb_kwargs={"site_id": ["tt0000001"], "found": None}),
        envelope(cb_kwargs={"site_id": "tt0000001\x00", "found": None}),
        envelope(cb_kwargs={"site_id": "tt0000002", "found": None}),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": 5}),
        envelope(
            cb_kwargs={
                "site_id": "tt0000001",
                "found": {"list_name": [], "list_rank": 1, "entry": {}},
            }
        ),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": None, "self": None}),
        envelope(cb_kwargs={"site_id": "tt0000001", "found": None, "due": []}),
        envelope(callback="parse_list"),
        envelope(callback="read_datasets", cb_kwargs={"titles": None}),
        envelope(callback="read_datasets", cb_kwargs={"titles": [1]}),
        envelope(callback="read_datasets", cb_kwargs={}),
        envelope(callback="read_file", cb_kwargs={"key": "raw/site=imdb/a.warc"}),
        envelope(callback="parse_list", cb_kwargs={"name": {}}),
        envelope(callback="parse_list", url="https://example.com/", cb_kwargs={"name": "top"}),
    ],
)
def test_forged_request_is_refused(spider: ImdbSpider, payload: bytes) -> None:
    with pytest.raises(SerialisationError):
        decode(payload, spider)


@given(payload=st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_rubbish_is_refused(spider: ImdbSpider, payload: bytes) -> None:
    with pytest.raises(SerialisationError):
        decode(payload, spider)
