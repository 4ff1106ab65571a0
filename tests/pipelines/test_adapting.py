"""Items of other spiders in the same project are checked like ours, and it is said what they lack."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import attrs
import pytest
from pydantic import BaseModel
from scrapy.exceptions import DropItem
from scrapy.utils.test import get_crawler

from moviecrawler.items import Miss, Movie
from moviecrawler.pipelines.validate import ValidatePipeline
from tests.pipelines.runs import make_movie

LAMP = {
    "site": "imdb",
    "site_id": "tt0000001",
    "url": "https://www.imdb.com/title/tt0000001/",
    "title": "The Lamp of Brewick",
    "kind": "movie",
    "scraped_at": "2026-11-05T12:00:00Z",
}


@attrs.define
class AttrsLamp:
    site: str = "imdb"
    site_id: str = "tt0000001"
    url: str = "https://www.imdb.com/title/tt0000001/"
    title: str = "The Lamp of Brewick"
    kind: str = "movie"
    scraped_at: str = "2026-11-05T12:00:00Z"
    year: int | None = None


class PydanticLamp(BaseModel):
    site: str = "imdb"
    site_id: str = "tt0000001"
    url: str = "https://www.imdb.com/title/tt0000001/"
    title: str = "The Lamp of Brewick"
    kind: str = "movie"
    scraped_at: str = "2026-11-05T12:00:00Z"


@dataclass
class Lantern:
    title: str = "The Lamp of Brewick"


def _process(item: Any, data: Path) -> Any:
    pipeline = ValidatePipeline.from_crawler(get_crawler(settings_dict={"DATA_DIR": str(data)}))
    return asyncio.run(pipeline.process_item(item))


@pytest.mark.parametrize("item", [LAMP, AttrsLamp(), PydanticLamp()], ids=lambda item: type(item).__name__)
def test_an_item_of_any_kind_becomes_a_movie(item: Any, tmp_path: Path) -> None:
    movie = _process(item, tmp_path)
    assert isinstance(movie, Movie)
    assert (movie.site_id, movie.title, movie.year) == ("tt0000001", "The Lamp of Brewick", None)
    assert movie.scraped_at is not None
    assert {"year", "plot", "scores.imdb"} <= set(movie.silent)  # it erases nothing


def test_scores_and_credits_may_be_dicts(tmp_path: Path) -> None:
    scores = [{"kind": "imdb", "value": 7.5, "count": 12}]
    movie = _process(
        {**LAMP, "scores": scores, "credits": [{"name": "Odile", "role": "cast", "position": 1}]}, tmp_path
    )
    assert [(score.kind, score.value, score.count) for score in movie.scores] == [("imdb", 7.5, 12)]
    assert [credit.name for credit in movie.credits] == ["Odile"]


def test_an_item_with_an_outcome_becomes_a_miss(tmp_path: Path) -> None:
    given = {
        "site": "imdb",
        "site_id": "tt0000001",
        "url": LAMP["url"],
        "outcome": "absent",
        "reason": "HTTP status 404",
    }
    miss = _process({**given, "checked_at": "2026-11-05T12:00:00Z"}, tmp_path)
    assert isinstance(miss, Miss)
    assert miss.outcome == "absent"


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (
            Lantern(),
            "site: is missing; an item needs site, site_id, url, title, kind, scraped_at, and this one has title",
        ),
        ({**LAMP, "title": None}, "title: is missing"),
        ({**LAMP, "runtime": 90}, "runtime: is no field of Movie; there are site, site_id"),
        ({**LAMP, "year": "1999"}, "year: Expected `int | null`, got `str`"),
        ({**LAMP, "site": "letterboxd"}, "site: Invalid enum value 'letterboxd'"),
        ({**LAMP, "year": 15}, "year: 15 is not within 1870 to 2100"),
    ],
    ids=str,
)
def test_what_is_wrong_with_an_item_is_said_and_kept(item: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(DropItem) as dropped:
        _process(item, tmp_path)
    assert reason in str(dropped.value)
    line = json.loads((tmp_path / "rejected.jsonl").read_text("utf-8"))
    assert line["reason"] == str(dropped.value)
    assert "The Lamp of Brewick" in str(line["item"]) or isinstance(item, dict)


def test_our_own_items_and_what_is_no_item_pass_as_they_are(tmp_path: Path) -> None:
    movie = make_movie(1)
    assert _process(movie, tmp_path) is movie
    thing = object()
    assert _process(thing, tmp_path) is thing
