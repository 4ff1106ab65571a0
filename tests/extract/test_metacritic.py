"""What Metacritic's readers refuse: absent titles, failed or renamed parts, values that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import metacritic
from tests.conftest import PROJECT

PAGES = PROJECT / "tests" / "pages" / "metacritic"
URL = "https://backend.metacritic.com/composer/metacritic/pages/movies/the-lantern-keeper-re-release/web"


def composer() -> Any:
    return json.loads((PAGES / "composer-too-few-ratings" / "page.json").read_bytes())


def read(answer: Any) -> Any:
    return metacritic.detail(json.dumps(answer).encode(), URL).movie


@pytest.mark.parametrize(
    ("body", "absent"),
    [
        (b'{"errors": [{"code": 404}]}', True),
        (b'{"components": [{"meta": {"componentName": "product"}, "errors": [{"code": 404}]}]}', True),
        (b'{"components": [{"meta": {"componentName": "user-reviews"}, "errors": [{"code": 404}]}]}', False),
        (b'{"errors": [{"code": 500}]}', False),
        (b"{}", False),
        (b"{", False),
        (b"<html></html>", False),
        (b"", False),
    ],
)
def test_absent_title_is_told_from_failures(body: bytes, *, absent: bool) -> None:
    assert metacritic.is_absent(body) is absent


@pytest.mark.parametrize(
    "body", [b"", b"<html></html>", b'{"errors": [{"code": 404}]}', b"{}", b"[]", b'{"components": []}']
)
def test_answer_without_a_title_is_refused(body: bytes) -> None:
    with pytest.raises(ExtractionError):
        metacritic.detail(body, URL)


@pytest.mark.parametrize("name", ["product", "user-score-summary"])
def test_renamed_component_is_refused(name: str) -> None:
    answer = composer()
    next(c for c in answer["components"] if c["meta"]["componentName"] == name)["meta"]["componentName"] = "renamed"
    with pytest.raises(ExtractionError):
        read(answer)


def test_renamed_critic_summary_is_refused_unless_the_product_has_it() -> None:
    answer = composer()
    product, critics = answer["components"][:2]
    critics["meta"]["componentName"] = "renamed"
    assert read(answer).score("metascore").value == 88
    del product["data"]["item"]["criticScoreSummary"]
    with pytest.raises(ExtractionError, match="critic-score-summary"):
        read(answer)


@pytest.mark.parametrize(
    ("component", "field", "value"),
    [
        (1, "score", 101),
        (1, "score", "88"),
        (1, "score", -1),
        (1, "max", 10),
        (1, "reviewCount", 0),
        (0, "imdbId", "tt12"),
        (0, "premiereYear", 15),
        (0, "releaseDate", "2003-13-40"),
        (0, "duration", 200_000),
        (0, "title", ""),
        (0, "title", 7),
    ],
)
def test_value_that_cannot_be_is_refused(component: int, field: str, value: Any) -> None:
    answer = composer()
    answer["components"][component]["data"]["item"][field] = value
    with pytest.raises(ExtractionError):
        read(answer)


def test_score_that_could_not_be_fetched_is_no_missing_score() -> None:
    answer = composer()
    del answer["components"][2]["data"]
    answer["components"][2]["errors"] = [{"code": 500}]
    with pytest.raises(ExtractionError, match="500"):
        read(answer)
    answer["components"][2]["errors"] = [{"code": 404}]
    assert read(answer).score("metacritic_user") is None


def test_nothing_is_the_year_0() -> None:
    answer = composer()
    answer["components"][0]["data"]["item"].update(premiereYear=None, duration=0, rating="", imdbId=None)
    movie = read(answer)
    assert (movie.year, movie.runtime_minutes, movie.certificate, movie.imdb_id) == (2003, None, None, None)


@pytest.mark.parametrize("case", sorted(path.name for path in PAGES.iterdir()))
def test_cut_page_is_whole_or_refused(case: str) -> None:
    (path,) = (PAGES / case).glob("page.*")
    body = path.read_bytes()
    kind = metacritic.kind_of(body, None)
    assert kind is not None
    whole = metacritic.READERS[kind](body, None)
    for share in range(50):
        cut = body[: len(body) * share // 50]
        try:
            page = metacritic.READERS[metacritic.kind_of(cut, None) or kind](cut, None)
        except ExtractionError:
            continue
        assert page == whole
