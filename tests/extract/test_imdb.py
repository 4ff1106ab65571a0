from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import imdb
from moviecrawler.extract.pages import read_page
from moviecrawler.fields import present_in
from tests.extract.golden import body_of, movie_of

if TYPE_CHECKING:
    from collections.abc import Callable


def data_of(case: str) -> Any:
    return json.loads(body_of(f"imdb/{case}").partition(b'type="application/json">')[2].partition(b"</script>")[0])


def page_of(data: Any) -> bytes:
    return f'<html><script id="__NEXT_DATA__" type="application/json">{json.dumps(data)}</script></html>'.encode()


def without(case: str, *keys: str) -> bytes:
    """Return a title page whose two objects about the title don't have `keys`."""
    data = data_of(case)
    for about in ("aboveTheFoldData", "mainColumnData"):
        for key in keys:
            data["props"]["pageProps"][about].pop(key, None)
    return page_of(data)


def with_value(case: str, value: Any, *path: str | int) -> bytes:
    data = data_of(case)
    inner = data["props"]["pageProps"]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return page_of(data)


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        (["id"], "site_id"),
        (["titleText"], "title"),
        (["titleType"], "title_type"),
    ],
)
def test_a_page_without_identity_is_refused(keys: list[str], field: str) -> None:
    with pytest.raises(ExtractionError) as error:
        imdb.title(without("title-2022-principal-cast", *keys), None)
    assert error.value.field == field


@pytest.mark.parametrize(
    ("keys", "silent"),
    [
        (["ratingsSummary"], {"scores.imdb", "imdb_top250_rank"}),
        (["metacritic"], {"scores.metascore"}),
        (["genres", "titleGenres"], {"genres"}),
        (["cast", "castV2", "categories"], {"credits.cast"}),
        (["plot"], {"plot"}),
    ],
)
def test_what_stands_under_another_key_is_silent_and_all_else_is_read(keys: list[str], silent: set[str]) -> None:
    whole = movie_of(imdb.title(without("title-2022-principal-cast")))
    movie = movie_of(imdb.title(without("title-2022-principal-cast", *keys)))
    assert set(movie.silent) - set(whole.silent) == silent - set(whole.silent)
    assert present_in(whole) - present_in(movie) - {"scores.imdb.count"} == silent & present_in(whole)


def test_null_and_empty_lists_under_a_known_key_state_that_there_is_none() -> None:
    data = data_of("title-2022-principal-cast")
    for about in ("aboveTheFoldData", "mainColumnData"):
        data["props"]["pageProps"][about].update(plot=None, metacritic=None, genres={"genres": []}, writers=[])
    movie = movie_of(imdb.title(page_of(data)))
    assert (movie.plot, movie.genres, movie.score("metascore")) == (None, [], None)
    assert not {"plot", "genres", "scores.metascore", "credits.writer"} & set(movie.silent)


@pytest.mark.parametrize("key", ["aggregateRating", "voteCount"])
def test_a_renamed_rating_is_not_unrated(key: str) -> None:
    data = data_of("title-2022-principal-cast")
    del data["props"]["pageProps"]["aboveTheFoldData"]["ratingsSummary"][key]
    movie = movie_of(imdb.title(page_of(data)))
    assert {"aggregateRating": "scores.imdb", "voteCount": "scores.imdb.count"}[key] in movie.silent


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (93, ("ratingsSummary", "aggregateRating")),
        (0.9, ("ratingsSummary", "aggregateRating")),
        ("8.4", ("ratingsSummary", "aggregateRating")),
        (None, ("ratingsSummary", "aggregateRating")),  # with thousands of votes
        (-3, ("ratingsSummary", "voteCount")),
        (101, ("metacritic", "metascore", "score")),
        (15, ("releaseYear", "year")),
        (13, ("releaseDate", "month")),
        (0, ("runtime", "seconds")),
        (0, ("meterRanking", "currentRank")),
        ({"new": 1}, ("plot",)),
    ],
)
def test_what_can_not_be_is_silent_and_no_data(value: Any, path: tuple[str, ...]) -> None:
    data = data_of("title-2022-principal-cast")
    data["props"]["pageProps"]["mainColumnData"].pop(path[0], None)
    inner = data["props"]["pageProps"]["aboveTheFoldData"]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    movie = movie_of(imdb.title(page_of(data)))
    field = {
        "ratingsSummary": "scores.imdb.count" if path[-1] == "voteCount" else "scores.imdb",
        "metacritic": "scores.metascore",
        "releaseYear": "year",
        "releaseDate": "release_date",
        "runtime": "runtime_minutes",
        "meterRanking": "popularity_rank",
        "plot": "plot",
    }[path[0]]
    assert field in movie.silent
    assert field not in present_in(movie)


@pytest.mark.parametrize(("value", "path"), [("nm0111161", ("id",)), ("tt0900002", ("id",))])
def test_identity_that_can_not_be_is_an_error(value: Any, path: tuple[str, ...]) -> None:
    with pytest.raises(ExtractionError):
        imdb.title(with_value("title-2022-principal-cast", value, "aboveTheFoldData", *path), None)


def test_what_is_not_read_may_have_any_shape() -> None:
    body = with_value("title-2022-principal-cast", {"new": [1]}, "aboveTheFoldData", "keywords")
    assert imdb.title(body, None).movie is not None


@pytest.mark.parametrize(
    ("case", "read", "path"),
    [
        ("chart-top-2025", imdb.chart, ("pageData", "chartTitles", "edges", 0, "node")),
        ("search-2025", imdb.search, ("searchResults", "titleResults", "titleListItems", 0)),
        ("find-2026-unrated", imdb.find, ("titleResults", "results", 0, "listItem")),
        ("episodes-2025", imdb.episodes, ("contentData", "section", "episodes", "items", 0)),
    ],
)
def test_a_row_without_its_rating_key_is_a_row_without_a_score(
    case: str, read: Callable[[bytes, str | None], Any], path: tuple[str | int, ...]
) -> None:
    data = data_of(case)
    row = data["props"]["pageProps"]
    for step in path:
        row = row[step]
    for key in ("ratingsSummary", "ratingSummary", "voteCount"):
        row.pop(key, None)
    listing = read(page_of(data), None).listing
    assert [score for score in listing.entries[0].scores if score.kind == "imdb"] == []
    assert listing.entries[0].title


def test_a_suggestion_or_a_result_that_does_not_say_what_it_is_is_not_left_out() -> None:
    for case, key in (("suggestion-2022", b'"id"'), ("graphql-search", b'"__typename"')):
        body = body_of(f"imdb/{case}")
        assert read_page(body).listing is not None
        with pytest.raises(ExtractionError):
            read_page(body.replace(key, b'"renamed"'))


@pytest.mark.parametrize("read", [imdb.title, imdb.chart, imdb.search, imdb.find, imdb.calendar, imdb.episodes])
def test_the_page_of_an_error_is_an_error(read: Callable[[bytes, str | None], Any]) -> None:
    data = {"props": {"pageProps": {"statusCode": 500}}, "page": "/_error"}
    with pytest.raises(ExtractionError):
        read(page_of(data), "https://www.imdb.com/title/tt0900001/")


def test_the_id_is_the_pages_own_after_a_redirect() -> None:
    body = body_of("imdb/title-2022-principal-cast")
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
