"""What no title can have is kept out of every store, and told."""

import asyncio
import json
import threading
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec import convert, to_builtins
from msgspec.json import decode, encode
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.utils.test import get_crawler

from moviecrawler.basics.errors import InvalidItemError
from moviecrawler.items import (
    Amount,
    Award,
    Batch,
    Credit,
    EncodedMovie,
    Fetch,
    ListEntry,
    Movie,
    Offer,
    RelatedTitle,
    Score,
)
from moviecrawler.pipelines.validate import (
    ValidatePipeline,
    check,
    remove_wrong_values,
    right_movie,
)
from moviecrawler.signals import item_rejected
from moviecrawler.sites.fields import ONLY_IN_DATASETS, SUBFIELDS, columns_of
from moviecrawler.sites.ids import title_url
from tests.runs import make_list, make_miss, make_movie

VALUES = json.loads(Path(__file__).with_name("values.json").read_text("utf-8"))
"""Values that a movie can have, and such as it can't have: of its fields, and of its parts, of
which each has one that is right and changes that make it wrong."""
PARTS: dict[str, Any] = {
    "amounts": Amount,
    "awards": Award,
    "credits": Credit,
    "offers": Offer,
    "related": RelatedTitle,
    "scores": Score,
}
WRONG: dict[str, list[Any]] = VALUES["wrong"]
for name, values in VALUES["wrong_parts"].items():
    part, right = PARTS[name], values["right"]
    WRONG[name] = [[part(**right | change)] for change in values["wrong"]]
    WRONG[name] += [[7.5], [part(**right)] * 2]  # none may stand there twice
TOO_MUCH: dict[str, Any] = {
    "title": "a" * 501,
    "plot": "a" * 20_001,
    "series_id": "a" * 301,
    "genres": ["Drama"] * 501,
    "keywords": ["lamp"] * 5_001,
    "credits": [Credit(name="Odile", role="cast", position=1, character="a" * 10_001)],
    "offers": [Offer(provider="a" * 201, kind="rent")],
    "external_ids": {f"{n:b}".translate({48: "a", 49: "b"}): "1" for n in range(101)},
    "fetch": Fetch(url="a" * 4_001, status=200, attempts=1, wire_bytes=1, body_bytes=1),
    # And what JSON can't say.
    "scores": [Score(kind="tomatometer", value=float("nan"))],
    "scraped_at": datetime(2026, 3, 1),  # noqa: DTZ001 - that is what is wrong
}
for name, value in TOO_MUCH.items():
    WRONG.setdefault(name, []).append(value)
WRONG["offers"].append([Offer(provider="TV", kind="rent", url=f"https://{'a' * 3_993}")])
IDENTIFYING = {"site", "site_id", "url", "title", "kind", "source", "scraped_at", "fetch"} | {
    "unknown_fields"
}
"""Fields whose wrong values make an item that is refused."""
WRONG_KIND = {"kind": "season", "series_id": "tt0900001", "season": 1}  # which IMDb has no id of
RIGHT = [*VALUES["right"], {"title": "a" * 500, "plot": "a" * 20_000}]


@pytest.fixture
def crawler(tmp_path: Path) -> Crawler:
    """Return a crawler with a DATA_DIR of its own."""
    return get_crawler(settings_dict={"DATA_DIR": str(tmp_path)})


@pytest.fixture
def pipeline(crawler: Crawler) -> ValidatePipeline:
    """Return the pipeline that validates."""
    return ValidatePipeline.from_crawler(crawler)


@pytest.mark.promise("What no title can have is stored nowhere.")
@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("kind", WRONG_KIND),
        *((field, {field: value}) for field, values in WRONG.items() for value in values),
    ],
    ids=lambda case: repr(case)[:100],
)
def test_what_no_title_can_have_is_refused_by_field_and_value(
    field: str, changes: dict[str, Any]
) -> None:
    with pytest.raises(InvalidItemError) as refused:
        check(make_movie(1, **changes))
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")


@pytest.mark.promise("A value that no store can hold costs its field only, never the title.")
@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field in WRONG for value in WRONG[field] if field not in IDENTIFYING],
    ids=lambda case: repr(case)[:100],
)
def test_a_wrong_value_costs_its_field_only(field: str, value: Any) -> None:
    movie = make_movie(1, **{field: deepcopy(value)})
    unknown_before = set(movie.unknown_fields)
    assert remove_wrong_values(movie)
    check(movie)
    before = to_builtins(make_movie(1))
    after = to_builtins(movie)
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {field, "unknown_fields"}
    kinds = SUBFIELDS.get(field, ("", ()))[1]
    columns = columns_of("imdb", [field, *(f"{field}.{kind}" for kind in kinds)])
    assert set(movie.unknown_fields) - unknown_before <= set(columns)


def test_what_is_wrong_in_a_part_costs_as_little_as_it_can() -> None:
    cast = [Credit(name=f"P {n}", role="cast", position=n, character="Wick") for n in (1, 2)]
    cast[0].character = "a" * 10_001
    people = [Credit(name="Odile", role="director", position=1), *cast]
    scores = [
        Score(kind="imdb", value=7, count=-3, reviews=9),
        Score(kind="metascore", value=101),
    ]
    movie = make_movie(1, credits=people, scores=scores)
    assert [fault.field for fault in remove_wrong_values(movie)] == ["credits", "scores", "scores"]
    assert [credit.character for credit in movie.credits] == [None, None, "Wick"]
    assert movie.scores == [Score(kind="imdb", value=7, reviews=9)]
    assert {"imdb_votes", "metascore"} <= set(movie.unknown_fields)
    movie.credits = [Credit(name="", role="cast", position=n) for n in range(1, 20_000)]
    assert len(remove_wrong_values(movie)) == 1
    movie.credits = [Credit(name="O", role="cast", position=n) for n in range(1, 20_002)]
    assert len(remove_wrong_values(movie)) == 1
    movie.credits = [replace(credit, character="") for credit in cast * 1000]
    assert len(remove_wrong_values(movie)) < 5
    assert movie.credits == []


@pytest.mark.parametrize("changes", RIGHT, ids=lambda case: repr(case)[:100])
def test_what_a_title_can_have_is_let_through(changes: dict[str, Any]) -> None:
    movie = convert(to_builtins(make_movie(1)) | changes, Movie)
    assert right_movie(check(movie)) == movie


@pytest.mark.parametrize("right", VALUES["ids"], ids=lambda right: right["site_id"])
def test_each_site_has_its_own_ids_which_say_what_part_of_a_series_a_title_is(
    right: dict[str, Any],
) -> None:
    site_id = right["site_id"]
    right = {"url": title_url(right["site"], site_id), **right}
    check(make_movie(1, **right))
    wrong: list[dict[str, Any]] = [
        {"site_id": "tt0000001"},
        {"series_id": site_id},
        {"series_id": "tt0900001"},
    ]
    if "kind" in right:
        wrong += [
            {"kind": "series"},
            {"season": 3},
            {"season": None},
            {"series_id": "tv/the-lamps"},
        ]
    for change in wrong:
        with pytest.raises(InvalidItemError, match=r"site_id|kind|season|series_id"):
            check(make_movie(1, **right | change))


def test_what_only_datasets_have_may_be_unknown_of_titles_of_imdb_alone() -> None:
    names: dict[str, Any] = {"unknown_fields": columns_of("imdb", ONLY_IN_DATASETS)}
    check(make_movie(1, **names))
    right = {**VALUES["ids"][0], "imdb_id": None, "scores": []}
    other = {**right, "url": title_url(right["site"], right["site_id"])}
    check(make_movie(1, **other))
    with pytest.raises(InvalidItemError, match=r"^unknown_fields: .* is no field that metacritic"):
        check(make_movie(1, **other, **names))


@pytest.mark.promise("An item that a store can't hold is rejected alone, with its reason.")
def test_what_is_refused_is_kept_with_its_reason_and_counted(
    crawler: Crawler, pipeline: ValidatePipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = set[int]()  # threads that wait for the disk, of which the event loop's is none
    monkeypatch.setattr(
        "moviecrawler.pipelines.files.os.fsync", lambda _: waiting.add(threading.get_ident())
    )
    told: list[tuple[str, str, str | None]] = []

    def note(item: Movie, store: str, reason: str) -> None:
        told.append((store, reason, item.site_id))

    crawler.signals.connect(note, item_rejected)
    good = make_movie(1)
    assert asyncio.run(pipeline.process_item(good)) is good
    for bad in (
        make_movie(2, kind="film"),
        make_movie(3, title="half a \ud83c"),
        make_movie(4, scraped_at=None),
    ):
        with pytest.raises(DropItem):
            asyncio.run(pipeline.process_item(bad))
    lines = [
        json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text("utf-8").splitlines()
    ]
    assert told == [("validate", line["reason"], line["item"]["site_id"]) for line in lines]
    assert lines[0]["reason"] == "kind: 'film' is refused: invalid enum value 'film'"
    assert (lines[0]["item"]["kind"], lines[1]["item"]["title"]) == ("film", "half a \ud83c")
    assert threading.get_ident() not in waiting
    assert waiting
    assert crawler.stats is not None
    counted = {
        name: value
        for name, value in crawler.stats.get_stats().items()
        if name.startswith("items/")
    }
    assert counted == {
        "items/rejected": 3,
        **{f"items/rejected/{name}": 1 for name in ("kind", "title", "scraped_at")},
    }


def test_each_movie_of_a_batch_is_checked(crawler: Crawler, pipeline: ValidatePipeline) -> None:
    given = [make_movie(1), make_movie(2, title="The\0 Lamp"), make_movie(3, year=1), make_movie(4)]
    given[3].kind = "season"
    unchecked = [
        EncodedMovie(site_id=str(movie.site_id), kind="movie", encoded=encode(movie))
        for movie in given
    ]
    batch = Batch(unchecked=unchecked, note_of=Mock(), response=None)
    dropped: list[Movie] = []

    def note(item: Movie) -> None:
        dropped.append(item)

    crawler.signals.connect(note, signals.item_dropped)
    assert asyncio.run(pipeline.process_item(batch)) is batch
    assert [(movie.title, movie.year) for movie in batch.movies] == [
        (given[0].title, 2001),
        ("The Lamp", 2001),
        (given[2].title, None),
    ]
    assert [decode(encoded, type=Movie) for encoded in batch.encoded] == batch.movies
    assert [movie.site_id for movie in dropped] == ["tt0000004"]
    assert crawler.stats is not None
    assert crawler.stats.get_value("item_scraped_count") == 2


def test_a_value_of_any_length_is_told_in_a_short_sentence(
    pipeline: ValidatePipeline, tmp_path: Path
) -> None:
    with pytest.raises(DropItem) as dropped:
        asyncio.run(pipeline.process_item(make_movie(1, site_id="tt" + "1" * 10_000_000 + "x")))
    assert len(str(dropped.value)) < 520
    assert str(dropped.value).endswith("x' is refused: expected `str` of length <= 300")
    line = json.loads((tmp_path / "rejected.jsonl").read_text("utf-8"))
    assert line["reason"] == str(dropped.value)
    assert line["item"]["site_id"].endswith("1… (10,000,003 characters)")
    with pytest.raises(
        DropItem, match=r"^url: 'tt1{242} … 1{100,}x' is not the address of tt0000001 on imdb$"
    ):
        asyncio.run(pipeline.process_item(make_movie(1, url="tt" + "1" * 3000 + "x")))


def test_control_characters_are_taken_out_before_any_store_sees_them(
    pipeline: ValidatePipeline,
) -> None:
    movie = make_movie(
        1,
        title="The\0 Lamp\x9f",
        original_title="La\r\nLampe",
        plot="One.\0\nTwo.",
        genres=["Dra\x07ma"],
        credits=[Credit(name="Odile\0", role="cast", position=1, character="\x1bWick")],
        external_ids={"ems": "1\0-2"},
    )
    assert right_movie(encode(movie)) is None
    asyncio.run(pipeline.process_item(movie))
    assert (movie.title, movie.original_title, movie.plot) == ("The Lamp", "La Lampe", "One.\nTwo.")
    assert (movie.genres, movie.credits[0].name, movie.credits[0].character) == (
        ["Drama"],
        "Odile",
        "Wick",
    )
    assert movie.external_ids == {"ems": "1-2"}
    miss = make_miss(1, reason="HTTP\0 status\n404" + "x" * 1000)
    asyncio.run(pipeline.process_item(miss))
    assert miss.reason.startswith("HTTP status 404x")
    assert len(miss.reason) < 510
    for title in ("The\x7f Lamp", "Thé\x9f Lamp"):
        movie = make_movie(1, title=title)
        asyncio.run(pipeline.process_item(movie))
        assert movie.title in {"The Lamp", "Thé Lamp"}
    empty = make_movie(1, original_title="\0")
    asyncio.run(pipeline.process_item(empty))
    assert empty.original_title is None


@pytest.mark.parametrize(
    "changes",
    [{"site_id": "x" * 301}, {"url": "x" * 4_001}, {"site": "letterboxd"}, {"outcome": "lost"}],
    ids=repr,
)
def test_a_miss_that_can_not_be_is_refused(
    changes: dict[str, Any], pipeline: ValidatePipeline
) -> None:
    with pytest.raises(DropItem, match=next(iter(changes))):
        asyncio.run(pipeline.process_item(make_miss(1, **changes)))


def test_a_list_page_has_as_many_entries_as_a_crawl_may_have_titles() -> None:
    entry = ListEntry(site_id="tt0000001", rank=1)
    check(make_list({}, total=0))
    with pytest.raises(InvalidItemError, match=r"^entries"):
        check(make_list({}, entries=[entry] * 100_001))
