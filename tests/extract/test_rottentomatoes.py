from __future__ import annotations

import json
import re

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import rottentomatoes
from moviecrawler.extract.pages import read_page
from moviecrawler.extract.rottentomatoes_sections import part_of, read_consensus
from moviecrawler.items import Movie
from tests.extract.golden import body_of, changed, movie_of
from tests.extract.limits import processor_time


def page(case: str) -> bytes:
    return body_of(f"rottentomatoes/{case}")


def card() -> bytes:
    """Return a page of today that names its scores in its scorecard alone."""
    return page("2026-scorecard").replace(b'"aggregateRating"', b'"otherRating"')


def test_json_ld_serves_where_the_scorecard_is_silent() -> None:
    whole = movie_of(rottentomatoes.movie(page("2026-scorecard")))
    movie = movie_of(rottentomatoes.movie(page("2026-scorecard").replace(b'"criticsScore"', b'"scoreOfCritics"')))
    shown = [[(score.kind, score.value, score.count) for score in read.scores] for read in (whole, movie)]
    assert shown[0] == shown[1]
    assert "scores.tomatometer.average" in movie.silent  # which JSON-LD has not


@pytest.mark.parametrize("case", ["2026-scorecard", "2026-trimmed-json-ld"])
def test_url_names_only_a_page_that_does_not_name_itself(case: str) -> None:
    own = "https://www.rottentomatoes.com/m/dust_road_2021"
    asked = "https://www.rottentomatoes.com/m/dust_road" if case == "2026-scorecard" else own
    assert movie_of(read_page(page(case), asked)).url == own


def test_part_of_a_series_is_not_taken_for_the_series() -> None:
    body = page("2026-tv").replace(b"/tv/night_ferry", b"/tv/night_ferry/s01")
    with pytest.raises(ExtractionError, match="is no TVSeries"):
        rottentomatoes.tv(body, "https://www.rottentomatoes.com/tv/night_ferry/s01")


@pytest.mark.parametrize(
    ("part", "silent"),
    [
        (b'id="media-scorecard-json"', {"scores.tomatometer", "scores.popcornmeter"}),
        (b'data-qa="item-label"', {"languages", "release_date"}),
        (b'"criticsScore"', {"scores.tomatometer"}),
        (b'"audienceScore"', {"scores.popcornmeter"}),
    ],
)
def test_page_without_a_part_is_silent_of_what_stands_there(part: bytes, silent: set[str]) -> None:
    whole = movie_of(rottentomatoes.movie(card()))
    body = card().replace(part, part.replace(b"a", b"o").replace(b"i", b"y"))
    movie = movie_of(rottentomatoes.movie(body))
    assert silent <= set(movie.silent) - set(whole.silent)
    for field in {"title", "year", "scores"} - {name.partition(".")[0] for name in silent}:
        assert getattr(movie, field) == getattr(whole, field)


@pytest.mark.parametrize("score", ['"183"', '"-1"', "83.5", '"eighty"', "[83]", "true", '""', "null", '"--"'])
def test_score_that_is_none_beside_its_reviews_is_silent(score: str) -> None:
    body = re.sub(rb'"scorePercent":"83%",?', b"", card().replace(b'"score":"83"', b'"score":' + score.encode()))
    movie = movie_of(rottentomatoes.movie(body))
    assert [found.kind for found in movie.scores] == ["popcornmeter", "tomatometer_top", "popcornmeter_verified"]
    assert "scores.tomatometer" in movie.silent


def test_words_behind_the_share_of_the_audience_are_none_of_it() -> None:
    body = page("2019-mop-ratings")
    assert movie_of(rottentomatoes.movie(changed(body, b"98%", b"98%\n liked it"))) == movie_of(
        rottentomatoes.movie(body)
    )


@pytest.mark.parametrize(
    ("lines", "part"),
    [(["as The Keeper", "(Voice)"], "The Keeper"), (["as The Keeper,", "A Crow"], "The Keeper / A Crow")],
)
def test_whom_somebody_plays_is_told_without_notes_and_commas(lines: list[str], part: str) -> None:
    assert part_of(lines) == part


def test_chart_is_the_longest_table_with_ranks_in_its_rows() -> None:
    body = page("2021-chart")
    beside = b'<table><tr><td>1.</td><td><a href="/m/lamp">The Lamp</a></td></tr></table>'
    changed_ = changed(body, b'<table class="table">', beside + b"<table>")
    assert read_page(changed(changed_, b"</body>", beside + b"</body>")) == read_page(body)


@pytest.mark.parametrize(
    ("movies", "series", "ids"), [(b"null", None, ["tv/lamps"]), (b"[]", None, ["tv/lamps"]), (b"[]", b"[]", [])]
)
def test_search_of_2018_that_finds_no_movie_has_its_series_once(
    movies: bytes, series: bytes | None, ids: list[str]
) -> None:
    body = re.sub(rb'(?<="movies":)\[.*\](?=,"tvCount")', movies, page("2018-search"))
    listing = read_page(re.sub(rb'(?<="tvSeries":)\[.*\]', series, body) if series else body).listing
    assert listing is not None
    assert [entry.site_id for entry in listing.entries] == ids


def test_panel_of_another_generation_beside_the_own_is_not_read() -> None:
    body = page("2015-info-table")
    older = b"""<div id="tomatometer_score"><span class="percent">11</span></div><p id="tomatometer_data">Reviews Counted: 7</p>
    <a class="fan_side"><span class="meter numeric">12</span><p class="critic_stats">liked it<br/>User Ratings: 8</p></a>"""
    assert read_page(changed(body, b"<body>", b"<body>" + older)) == read_page(body)


def test_title_that_nobody_has_reviewed_states_that_it_has_no_score() -> None:
    movie = movie_of(rottentomatoes.movie(page("2026-unscored")))
    assert movie.scores == []
    assert not {"scores.tomatometer", "scores.popcornmeter"} & set(movie.silent)


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


def sections(old: bytes, new: bytes) -> Movie:
    """Return what a page with all sections says when a part of it is another."""
    return movie_of(rottentomatoes.movie(changed(page("2026-sections"), old, new)))


def test_paragraph_behind_the_section_of_the_consensus_is_none() -> None:
    movie = sections(b"<p>Warm &amp; <em>quiet</em>, The Lamp\n glows.</p></div>", b"</div>")
    assert movie.consensus is None
    assert "consensus" in movie.silent


def test_consensus_that_is_never_closed_is_looked_for_in_linear_time() -> None:
    for begin, sign in ((b"<span", b'data-qa="critics-consensus"'), (b"<div", b'id="critics-consensus"')):
        with processor_time():
            assert read_consensus(begin + (b" " + sign) * 20_000) is None


def test_offers_whose_markup_is_another_are_not_stated_absent() -> None:
    assert "offers" in sections(b"where-to-watch-meta", b"watch-tile").silent
    nowhere = re.search(rb"<where-to-watch-meta.*</where-to-watch-meta>", page("2026-sections"), re.DOTALL)
    assert nowhere is not None
    movie = sections(nowhere[0], b"<p>Not available</p>")
    assert movie.offers == []
    assert "offers" not in movie.silent


@pytest.mark.parametrize(
    ("old", "new", "ids"),
    [
        (b'"rtId": "770900001"', b'"rtId": 770900001', {"ems", "rottentomatoes"}),
        (b'"rtId": "770900001"', b'"rtId": "' + b"7" * 600 + b'"', {"ems"}),
        (b'{"emsId": "6263201f', b'{"emsId": "' + b"x" * 600 + b"6263201f", {"ems", "rottentomatoes"}),
    ],
)
def test_ids_are_of_the_form_that_the_site_gives(old: bytes, new: bytes, ids: set[str]) -> None:
    movie = sections(old, new)
    assert set(movie.external_ids) == ids
    assert set(movie.external_ids.values()) <= {"6263201f-baf8-3312-a482-000000000001", "770900001"}


def shown(body: bytes) -> tuple[object, ...]:
    """Return the popcornmeter of a page, its count, and how many liked it and didn't."""
    score = movie_of(rottentomatoes.movie(body)).score("popcornmeter")
    assert score is not None
    return score.value, score.count, score.liked, score.disliked


def test_facts_beside_the_popcornmeter_are_of_the_side_that_has_its_value() -> None:
    body = card()
    scorecard = json.loads(re.search(rb'id="media-scorecard-json"[^>]*>(.*?)</script>', body, re.DOTALL)[1])  # type: ignore[index]
    unscored = scorecard["audienceScore"] | {"score": None, "scorePercent": "", "likedCount": 2, "notLikedCount": 1}
    scorecard["audienceScore"] = {key: unscored[key] for key in ("score", "likedCount", "notLikedCount", "title")}
    scorecard["overlay"]["audienceAll"] = {"score": "58", "likedCount": 1160, "notLikedCount": 840, "certified": False}
    scorecard["overlay"]["audienceVerified"] = {"certified": False, "title": "Popcornmeter"}
    new = json.dumps(scorecard).encode()
    body = re.sub(
        rb'(id="media-scorecard-json"[^>]*>).*?(</script>)', lambda m: m[1] + new + m[2], body, flags=re.DOTALL
    )
    assert shown(body) == (58, 2000, 1160, 840)


@pytest.mark.parametrize(("verified", "disliked"), [("89", 10), ("95", 44)])
def test_facts_of_2021_to_2024_are_of_the_part_of_the_audience_whose_score_is_shown(
    verified: str, disliked: int
) -> None:
    sides = {
        "audienceScoreVerified": {"value": verified, "notLikedCount": 10},
        "audienceScoreAll": {"value": "89", "notLikedCount": 44},
    }
    body = page("2024-score-details").replace(b'"modal":{', b'"modal":{' + json.dumps(sides).encode()[1:-1] + b",")
    value, _, _, unliked = shown(body)
    assert (value, unliked) == (89, disliked)


@pytest.mark.parametrize("nothing", [b"null", b'""', b"[]"])
@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        (b"rating", b'"PG-13"', "certificate"),
        (b"runTime", b'"2h 35m"', "runtime_minutes"),
        (b"genres", b'["Sci-Fi","Adventure"]', "genres"),
        (b"directors", b'["Ulla Verne"]', "credits.director"),
    ],
)
def test_page_of_reviews_without_a_value_does_not_say_that_there_is_none(
    key: bytes, value: bytes, field: str, nothing: bytes
) -> None:
    body = page("2026-reviews")
    assert field not in movie_of(read_page(body)).silent
    movie = movie_of(read_page(changed(body, b'"%b":%b' % (key, value), b'"%b":%b' % (key, nothing))))
    assert field in movie.silent
