"""What Metacritic's readers refuse: absent titles, failed or renamed parts, values that cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import metacritic
from moviecrawler.extract.embedded import script
from moviecrawler.extract.pages import read_page
from moviecrawler.fields import present_in
from moviecrawler.replica.nuxt import flatten
from tests.extract.golden import body_of, changed, edit, movie_of

URL = "https://backend.metacritic.com/composer/metacritic/pages/movies/the-lantern-keeper-re-release/web"


def composer() -> Any:
    return json.loads(body_of("metacritic/composer-too-few-ratings"))


def read(answer: Any) -> Any:
    return metacritic.detail(json.dumps(answer).encode(), URL).movie


@pytest.mark.parametrize(
    "body", [b"", b"<html></html>", b'{"errors": [{"code": 404}]}', b"{}", b"[]", b'{"components": []}']
)
def test_answer_without_a_title_is_refused(body: bytes) -> None:
    with pytest.raises(ExtractionError):
        metacritic.detail(body, URL)


def test_list_of_the_host_is_read_whatever_its_meta_is() -> None:
    body = body_of("metacritic/finder-movies")
    odd = json.dumps(json.loads(body) | {"meta": []}).encode()
    read_list = metacritic.READERS["backend"]
    assert read_list(odd, None) == read_list(body, None)


def test_payload_of_a_list_is_read_without_its_page_and_a_title_never_as_the_list_of_titles_alike() -> None:
    page = body_of("metacritic/browse-nuxt3")
    assert read_page(script(page, "__NUXT_DATA__") or b"").listing == read_page(page).listing
    answer = json.loads(body_of("metacritic/composer-offers"))
    next(part for part in answer["components"] if part["meta"]["componentName"] == "product")["meta"] = {}
    answer["components"][1]["data"]["totalResults"] = 9
    with pytest.raises(ExtractionError, match="no page of a title"):
        metacritic.nuxt_data(page_of(answer, "movies:the-lamp"))


def test_row_of_a_type_that_is_not_known_is_no_title_and_hides_no_other_row() -> None:
    answer = json.loads(body_of("metacritic/composer-search"))
    answer["components"][1]["data"]["items"][2]["type"] = "podcast"
    listing = read_page(json.dumps(answer).encode(), "https://backend.metacritic.com/").listing
    assert listing is not None
    assert [(row.site_id, row.kind) for row in listing.entries] == [
        ("movie/glass-orchard", "movie"),
        ("podcast/gil-glass", "other"),
    ]


def test_json_ld_names_the_title_also_where_markup_was_left_around_it() -> None:
    body = body_of("metacritic/trimmed-2026")
    bare = movie_of(read_page(body))
    page = read_page(changed(body, b"</head>", b"</head><body><div>Kept</div></body>"))
    assert (page.kind, movie_of(page)) == ("movie", bare)


def test_json_ld_of_no_reviews_has_no_score() -> None:
    linked = (
        b'{"@type": "Movie", "name": "Salt", "url": "https://www.metacritic.com/movie/salt/", "aggregateRating": %b}'
    )
    html = b'<html><head><script type="application/ld+json">' + linked + b"</script></head></html>"
    for rating, scores in (
        (b'{"ratingValue": 0, "reviewCount": 0}', []),
        (b'{"ratingValue": 0, "reviewCount": 4}', [0]),
    ):
        assert [score.value for score in movie_of(read_page(html % rating)).scores] == scores


def page_of(answer: Any, title: str) -> bytes:
    """Return the page that has the components of an answer of the JSON host."""
    payload = flatten({"data": {f"loadPage:{title}:": {"components": answer["components"]}}}, 0)
    script = json.dumps(payload).encode()
    return b'<html><body><script id="__NUXT_DATA__">' + script + b"</script></body></html>"


SEASON = "https://www.metacritic.com/tv/pale-harbour/season-2/"


def season_page(*, is_reviewed: bool = True) -> bytes:
    """Return the page of a season: its series as product, and the season's scores at the series' address."""
    answer = composer()
    product, critics, users = (component["data"]["item"] for component in answer["components"][:3])
    home = "/tv/pale-harbour"
    product |= {"type": "show", "slug": "pale-harbour", "title": "Pale Harbour", "id": 2000900321, "mustWatch": True}
    own = {"url": f"{home}/critic-reviews/", "max": 100, "score": 61, "reviewCount": 40, "normalizedScore": 61.2}
    product["criticScoreSummary"] = own
    critics |= {"url": f"{home}/critic-reviews/?season=season-2", "score": 88, "reviewCount": 9}
    users |= {"url": f"{home}/user-reviews/?season=season-2", "score": 7.1, "reviewCount": 90, "max": 10}
    if not is_reviewed:
        critics |= {"url": None, "score": None, "reviewCount": 0}
    return page_of(answer, "shows:pale-harbour")


def test_season_is_not_its_series_and_has_no_mark_no_id_and_no_score_of_it_though_the_product_is() -> None:
    movie = movie_of(metacritic.movie(season_page(), SEASON))
    assert (movie.site_id, movie.season, movie.title) == ("tv/pale-harbour/season-2", 2, "Pale Harbour")
    assert [(s.kind, s.value, s.count, s.average, s.certified) for s in movie.scores] == [
        ("metascore", 88, 9, None, None),
        ("metacritic_user", 7.1, 90, None, None),
    ]
    assert movie.external_ids == {}
    assert "external_ids" in movie.silent
    unreviewed = movie_of(metacritic.movie(season_page(is_reviewed=False), SEASON))
    assert [score.kind for score in unreviewed.scores] == ["metacritic_user"]


def test_markup_of_a_series_is_refused_where_a_season_was_asked_for() -> None:
    linked = (
        b'{"@type": "TVSeries", "name": "Pale Harbour", "url": "https://www.metacritic.com/tv/pale-harbour/",'
        b' "aggregateRating": {"bestRating": 100, "worstRating": 0, "ratingValue": 88, "reviewCount": 9}}'
    )
    body = b'<html><head><script type="application/ld+json">' + linked + b"</script></head></html>"
    assert movie_of(metacritic.movie(body, SEASON.removesuffix("season-2/"))).site_id == "tv/pale-harbour"
    with pytest.raises(ExtractionError, match="season-2 was asked for"):
        metacritic.movie(body, SEASON)


def test_renamed_summary_is_silent_unless_the_product_has_it() -> None:
    answer = composer()
    product, critics, users = answer["components"][:3]
    critics["meta"]["componentName"] = users["meta"]["componentName"] = "renamed"
    movie = read(answer)
    assert movie.score("metascore").value == 88
    assert "scores.metacritic_user" in movie.silent
    del product["data"]["item"]["criticScoreSummary"]
    movie = read(answer)
    assert movie.scores == []
    assert {"scores.metascore", "scores.metacritic_user"} <= set(movie.silent)


@pytest.mark.parametrize(
    ("component", "field", "value", "silent"),
    [
        (1, "score", 101, "scores.metascore"),
        (1, "score", "88", "scores.metascore"),
        (1, "score", -1, "scores.metascore"),
        (1, "score", None, "scores.metascore"),  # beside its reviews
        (1, "max", 10, "scores.metascore"),
        (1, "reviewCount", 0, "scores.metascore.count"),
        (0, "imdbId", "tt12", "imdb_id"),
        (0, "imdbId", "tt\u0661\u0662\u0663\u0664\u0665\u0666\u0667", "imdb_id"),  # digits, and none of an id
        (0, "premiereYear", 15, "year"),
        (0, "releaseDate", "2003-13-40", "release_date"),
        (0, "duration", 200_000, "runtime_minutes"),
        (0, "rating", "", "certificate"),
        (0, "genres", [{"label": "Drama"}], "genres"),
    ],
)
def test_value_that_cannot_be_is_silent(component: int, field: str, value: Any, silent: str) -> None:
    answer = composer()
    answer["components"][0]["data"]["item"].pop("criticScoreSummary")
    whole = read(answer)
    answer["components"][component]["data"]["item"][field] = value
    movie = read(answer)
    assert set(movie.silent) - set(whole.silent) == {silent}
    lost = present_in(whole) - present_in(movie)
    assert {name for name in lost if not name.startswith(f"{silent}.")} <= {silent}


def offering() -> Any:
    return json.loads(body_of("metacritic/composer-offers"))


def test_offers_that_stand_elsewhere_than_before_are_not_stated_absent() -> None:
    answer = offering()
    watch = answer["components"][2]["data"]["item"]
    watch["subscriptions"], watch["rentals"] = watch.pop("flatrate"), watch.pop("rent")
    assert "offers" in read(answer).silent
    watch["hasOffers"] = False
    movie = read(answer)
    assert movie.offers == []
    assert "offers" not in movie.silent


@pytest.mark.parametrize(("name", "is_silent"), [("items", False), ("titles", True)])
def test_related_titles_under_another_name_are_not_stated_absent(name: str, *, is_silent: bool) -> None:
    answer = offering()
    answer["components"][1]["data"] = {name: []}
    for movie in (read(answer), movie_of(metacritic.movie(page_of(answer, "movies:the-lamp")))):
        assert movie.related == []
        assert ("related.similar" in movie.silent) is is_silent


@pytest.mark.parametrize(
    ("path", "value"), [("data.item.title", ""), ("data.item.title", 7), ("meta.componentName", "renamed")]
)
def test_product_that_is_none_or_has_no_title_is_refused(path: str, value: Any) -> None:
    answer = composer()
    edit(answer["components"][0], path, value)
    with pytest.raises(ExtractionError):
        read(answer)


def test_score_that_could_not_be_fetched_is_no_missing_score() -> None:
    answer = composer()
    del answer["components"][2]["data"]
    answer["components"][2]["errors"] = [{"code": 500}]
    assert "scores.metacritic_user" in read(answer).silent
    answer["components"][2]["errors"] = [{"code": 404}]
    assert read(answer).score("metacritic_user") is None
    assert "scores.metacritic_user" not in read(answer).silent


def test_link_to_a_person_without_a_name_is_no_credit() -> None:
    body = body_of("metacritic/movie-2017")
    whole = movie_of(metacritic.movie(body))
    movie = movie_of(metacritic.movie(changed(body, b">Ada Quist</a>", b">,</a>")))
    assert [credit.name for credit in movie.credits] == [c.name for c in whole.credits if c.name != "Ada Quist"]
    assert [credit.position for credit in movie.credits if credit.role == "cast"] == [1]


def test_null_among_the_people_of_json_ld_is_passed_by() -> None:
    body = body_of("metacritic/nuxt2-movie")
    whole = movie_of(metacritic.movie(body))
    assert whole.credits
    movie = movie_of(metacritic.movie(changed(body, b'"actor": [', b'"actor": [null, ')))
    assert movie.credits == whole.credits


@pytest.mark.parametrize("crew", [None, []])
def test_crew_without_creators_does_not_say_that_a_series_has_none(crew: Any) -> None:
    answer = json.loads(body_of("metacritic/composer-series"))
    answer["components"][0]["data"]["item"]["production"]["crew"] = crew
    movie = read(answer)
    assert "credits.creator" in movie.silent
    assert "credits.writer" not in movie.silent


@pytest.mark.parametrize("word", ["tbd", "TBD", "", None])
def test_score_of_0_without_a_word_for_it_is_none(word: str | None) -> None:
    answer = composer()
    answer["components"][2]["data"]["item"] |= {"score": 0, "reviewCount": 3, "sentiment": word}
    movie = read(answer)
    assert movie.score("metacritic_user") is None
    assert "scores.metacritic_user" not in movie.silent


def test_nothing_is_the_year_0() -> None:
    answer = composer()
    answer["components"][0]["data"]["item"].update(premiereYear=None, duration=0, rating="", imdbId=None)
    movie = read(answer)
    assert (movie.year, movie.runtime_minutes, movie.certificate, movie.imdb_id) == (2003, None, None, None)
