from __future__ import annotations

from pathlib import Path

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import rottentomatoes

PAGES = Path(__file__).parents[1] / "pages" / "rottentomatoes"
CASES = sorted(path.parent.name for path in PAGES.glob("*/meta.json"))


def page(case: str) -> bytes:
    (path,) = (PAGES / case).glob("page.*")
    return path.read_bytes()


def read(body: bytes) -> object:
    kind = rottentomatoes.kind_of(body)
    if kind is None:
        raise ExtractionError("page", None, "unknown")
    return rottentomatoes.READERS[kind](body, None)


@pytest.mark.parametrize("case", CASES)
def test_page_cut_anywhere_is_whole_or_refused(case: str) -> None:
    body = page(case)
    whole = read(body)
    for end in range(0, len(body), max(1, len(body) // 100)):
        try:
            assert read(body[:end]) == whole
        except ExtractionError:
            continue


def test_canonical_url_wins_over_the_one_that_was_asked_for() -> None:
    movie = rottentomatoes.movie(page("2026-scorecard"), "https://www.rottentomatoes.com/m/dust_road").movie
    assert movie is not None
    assert movie.url == "https://www.rottentomatoes.com/m/dust_road_2021"


def test_url_names_a_page_that_does_not_name_itself() -> None:
    url = "https://www.rottentomatoes.com/m/dust_road_2021"
    movie = rottentomatoes.movie_trimmed(page("2026-trimmed-json-ld"), url).movie
    assert movie is not None
    assert movie.site_id == "m/dust_road_2021"


def test_part_of_a_series_is_not_taken_for_the_series() -> None:
    season = page("2026-tv").replace(b"/tv/night_ferry", b"/tv/night_ferry/s01")
    with pytest.raises(ExtractionError, match="part of a series"):
        rottentomatoes.tv(season, "https://www.rottentomatoes.com/tv/night_ferry/s01")


@pytest.mark.parametrize(
    ("removed", "field"),
    [(b'id="media-scorecard-json"', "scores"), (b'data-qa="item-label"', "details"), (b'"criticsScore"', None)],
)
def test_page_without_a_part_that_all_have_is_refused(removed: bytes, field: str | None) -> None:
    body = page("2026-scorecard").replace(removed, removed.replace(b"a", b"o").replace(b"i", b"y"))
    if field is None:
        body = body.replace(b'"audienceScore"', b'"otherScore"')
    with pytest.raises(ExtractionError) as raised:
        rottentomatoes.movie(body, None)
    assert raised.value.field == (field or "scores")


@pytest.mark.parametrize("score", ['"183"', '"-1"', "83.5", '"eighty"', "[83]", "true"])
def test_score_that_is_none_is_refused(score: str) -> None:
    body = page("2026-scorecard").replace(b'"score":"83"', b'"score":' + score.encode())
    with pytest.raises(ExtractionError, match="tomatometer"):
        rottentomatoes.movie(body, None)


@pytest.mark.parametrize("score", ['""', "null", '"--"', '"- -"'])
def test_score_that_is_left_empty_is_no_score(score: str) -> None:
    body = page("2026-scorecard").replace(b'"score":"83"', b'"score":' + score.encode())
    movie = rottentomatoes.movie(body, None).movie
    assert movie is not None
    assert [found.kind for found in movie.scores] == ["popcornmeter"]


def test_pages_of_others_are_not_claimed() -> None:
    others = [
        b"",
        b"{}",
        b'{"data": {"items": []}}',
        b"<html><head><title>Just a moment...</title></head></html>",
        b'<html><head><link rel="canonical" href="https://www.imdb.com/title/tt0111161/"></head></html>',
        b'<html><head><link rel="canonical" href="https://[www.rottentomatoes.com/m/x"></head></html>',
    ]
    assert [rottentomatoes.kind_of(body) for body in others] == [None] * len(others)
