from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import imdb
from moviecrawler.extract.pages import read_page
from moviecrawler.fields import present_in
from tests.extract.golden import GONE, body_of, edit, movie_of

if TYPE_CHECKING:
    from collections.abc import Callable


FILM = "title-2022-principal-cast"
RATING, COUNT = {"scores.imdb", "imdb_top250_rank"}, {"scores.imdb.count", "imdb_top250_rank"}
"""What a page is silent of that lacks a part of its rating, beside which the Top 250 stands."""


def data_of(case: str) -> Any:
    return json.loads(body_of(f"imdb/{case}").partition(b'type="application/json">')[2].partition(b"</script>")[0])


def page_of(data: Any) -> bytes:
    return f'<html><script id="__NEXT_DATA__" type="application/json">{json.dumps(data)}</script></html>'.encode()


def edited(case: str, *edits: tuple[str, Any]) -> bytes:
    """Return a page whose data is edited, at paths that begin below `pageProps`."""
    data = data_of(case)
    for path, value in edits:
        edit(data["props"]["pageProps"], path, value)
    return page_of(data)


def title_edited(key: str, value: Any) -> bytes:
    """Return a title's page of which one object has a value at a key, and the other hasn't got it."""
    first = key.partition(".")[0]
    return edited(FILM, (f"mainColumnData.{first}", GONE), (f"aboveTheFoldData.{key}", value))


@pytest.mark.parametrize(
    ("key", "value", "field"),
    [
        ("id", GONE, "site_id"),
        ("id", "nm0111161", "site_id"),
        ("titleText", GONE, "title"),
        ("titleType", GONE, "title_type"),
    ],
)
def test_a_page_without_identity_is_refused(key: str, value: Any, field: str) -> None:
    with pytest.raises(ExtractionError) as error:
        imdb.title(title_edited(key, value))
    assert error.value.field == field


def test_a_page_that_names_two_titles_is_refused() -> None:
    with pytest.raises(ExtractionError):
        imdb.title(edited(FILM, ("aboveTheFoldData.id", "tt0900002")))


@pytest.mark.parametrize(
    ("key", "value", "silent"),
    [
        ("ratingsSummary", GONE, RATING),
        ("ratingsSummary.aggregateRating", GONE, RATING),
        ("ratingsSummary.aggregateRating", 93, RATING),
        ("ratingsSummary.aggregateRating", 0.9, RATING),
        ("ratingsSummary.aggregateRating", "8.4", RATING),
        ("ratingsSummary.aggregateRating", None, RATING),  # with thousands of votes
        ("ratingsSummary.voteCount", GONE, COUNT),
        ("ratingsSummary.voteCount", -3, COUNT),
        ("metacritic", GONE, {"scores.metascore"}),
        ("metacritic.metascore.score", 101, {"scores.metascore"}),
        ("genres", GONE, {"genres"}),
        ("cast", GONE, {"credits.cast"}),
        ("plot", GONE, {"plot"}),
        ("plot", {"new": 1}, {"plot"}),
        ("releaseYear.year", 15, {"year"}),
        ("releaseDate.month", 13, {"release_date"}),
        ("runtime.seconds", 0, {"runtime_minutes"}),
        ("meterRanking.currentRank", 0, {"popularity_rank"}),
    ],
)
def test_what_is_gone_or_can_not_be_is_silent_and_all_else_is_read(key: str, value: Any, silent: set[str]) -> None:
    whole, movie = (movie_of(imdb.title(body)) for body in (page_of(data_of(FILM)), title_edited(key, value)))
    assert set(movie.silent) - set(whole.silent) == silent - set(whole.silent)
    beside = {name for name in present_in(whole) if name.startswith("scores.imdb.") and "scores.imdb" in silent}
    assert present_in(whole) - present_in(movie) - beside == silent & present_in(whole)


def test_null_and_empty_lists_under_a_known_key_state_that_there_is_none() -> None:
    none: dict[str, Any] = {"plot": None, "metacritic": None, "genres": {"genres": []}, "writers": []}
    abouts = ("aboveTheFoldData", "mainColumnData")
    body = edited(FILM, *((f"{about}.{key}", value) for about in abouts for key, value in none.items()))
    movie = movie_of(imdb.title(body))
    assert (movie.plot, movie.genres, movie.score("metascore")) == (None, [], None)
    assert not {"plot", "genres", "scores.metascore", "credits.writer"} & set(movie.silent)


@pytest.mark.parametrize(
    ("edits", "is_told"),
    [
        ({"nominations": {"total": "many"}}, True),
        ({"nominationsExcludeWins": {"total": "many"}}, False),
        ({"nominationsExcludeWins": None, "nominations": {"total": 4}}, False),
        ({"nominationsExcludeWins": GONE, "nominations": {"total": "many"}}, False),
        ({"wins": GONE}, False),
    ],
)
def test_awards_are_told_where_wins_and_the_newest_key_of_nominations_are(
    edits: dict[str, Any], *, is_told: bool
) -> None:
    case = "title-2025-traits"
    whole = movie_of(imdb.title(page_of(data_of(case))))
    movie = movie_of(imdb.title(edited(case, *((f"mainColumnData.{key}", value) for key, value in edits.items()))))
    assert (movie.awards, "awards" in movie.silent) == ((whole.awards, False) if is_told else ([], True))
    assert whole.awards


def test_what_is_not_read_may_have_any_shape() -> None:
    assert imdb.title(edited(FILM, ("aboveTheFoldData.keywords", {"new": [1]}))).movie is not None


@pytest.mark.parametrize(
    ("case", "row"),
    [
        ("chart-top-2025", "pageData.chartTitles.edges.0.node"),
        ("search-2025", "searchResults.titleResults.titleListItems.0"),
        ("find-2026-unrated", "titleResults.results.0.listItem"),
        ("episodes-2025", "contentData.section.episodes.items.0"),
    ],
)
def test_a_row_without_its_rating_key_is_a_row_without_a_score(case: str, row: str) -> None:
    keys = ("ratingsSummary", "ratingSummary", "voteCount")
    listing = read_page(edited(case, *((f"{row}.{key}", GONE) for key in keys))).listing
    assert listing is not None
    assert [score for score in listing.entries[0].scores if score.kind == "imdb"] == []
    assert listing.entries[0].title


def test_a_suggestion_or_a_result_that_does_not_say_what_it_is_is_not_left_out() -> None:
    for case, key in (("suggestion-2022", b'"id"'), ("graphql-search", b'"__typename"')):
        body = body_of(f"imdb/{case}")
        assert read_page(body).listing is not None
        with pytest.raises(ExtractionError):
            read_page(body.replace(key, b'"renamed"'))


@pytest.mark.parametrize(
    "read", [imdb.READERS[kind] for kind in ("title", "chart", "search", "find", "calendar", "episodes")]
)
def test_the_page_of_an_error_is_an_error(read: Callable[[bytes, str | None], Any]) -> None:
    data = {"props": {"pageProps": {"statusCode": 500}}, "page": "/_error"}
    with pytest.raises(ExtractionError):
        read(page_of(data), "https://www.imdb.com/title/tt0900001/")


def test_the_id_is_the_pages_own_after_a_redirect() -> None:
    body = body_of(f"imdb/{FILM}")
    movie = movie_of(imdb.title(body, "https://www.imdb.com/title/tt0777777/"))
    assert movie.site_id == "tt0900001"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/title/tt0900001/", "title"),
        ("/title/tt0900001", "title"),
        ("/de/title/tt0900001/?ref_=x", "title"),
        ("/es-mx/title/tt10900001/", "title"),
        ("/title/tt0900001/reference", "reference"),
        ("/title/tt0900001/combined", "reference"),
        ("/title/tt0900001/fullcredits/?ref_=tt_cl", "fullcredits"),
        ("/title/tt0900001/fullcredits/cast", "fullcredits"),
        ("/title/tt0900001/episodes/?season=2", "episodes"),
        ("/title/tt0900001/locations/", "locations"),
        ("/chart/top/", "chart"),
        ("/chart/moviemeter", "chart"),
        ("/search/title/?title_type=feature", "search"),
        ("/find/?q=x&s=tt", "find"),
        ("/calendar/?region=MX", "calendar"),
        ("/title/tt0900001/parentalguide/", None),
        ("/name/nm0900001/", None),
        ("/search/name/?gender=female", None),
        ("/", None),
    ],
)
def test_the_url_says_which_page_it_is(path: str, kind: str | None) -> None:
    assert imdb.kind_of(b"", f"https://www.imdb.com{path}") == kind


def test_other_sites_pages_are_not_imdbs() -> None:
    linked = b'<link rel="canonical" href="https://www.metacritic.com/title/tt0900001/">'
    assert imdb.kind_of(linked, None) is None
    assert imdb.kind_of(b"", "https://www.metacritic.com/title/tt0900001/") is None
    assert imdb.kind_of(b'{"data": {"items": []}}', None) is None


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b"<link rel='canonical' href='http://[x'>", b"\xff\xfe", b"[]"])
def test_what_says_nothing_of_itself_has_no_kind(body: bytes) -> None:
    assert imdb.kind_of(body, None) is None
