"""Three states of a field: a value, stated absent, unknown (the movie does not mention it). One damage makes one field unknown and changes no other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import imdb, metacritic, rottentomatoes
from moviecrawler.extract.devalue import unflatten
from moviecrawler.extract.embedded import script
from moviecrawler.fields import present_in
from moviecrawler.items import Movie
from tests.extract.golden import GONE, body_of, changed, edit, edited, flatten, movie_of, plain

# --- IMDb -----------------------------------------------------------------------------------------------------------

FILM = "imdb/title-2022-principal-cast"
A, M = (f"props.pageProps.{name}" for name in ("aboveTheFoldData", "mainColumnData"))
RATING, COUNT = {"scores.imdb", "imdb_top250_rank"}, {"scores.imdb.count", "imdb_top250_rank"}
"""What a page does not mention that lacks a part of its rating, beside which the Top 250 stands."""


def imdb_movie(edits: dict[str, Any], case: str = FILM) -> Movie:
    return movie_of(imdb.title(edited(case, "__NEXT_DATA__", edits)))


def of_one(key: str, value: Any) -> dict[str, Any]:
    """Return the edits by which one object of a title's page has a value at a key, and the other hasn't got it."""
    return {f"{M}.{key.partition('.')[0]}": GONE, f"{A}.{key}": value}


@pytest.mark.parametrize(
    ("edits", "field"),
    [
        (of_one("id", GONE), "site_id"),
        (of_one("id", "nm0111161"), "site_id"),
        ({f"{A}.id": "tt0900002"}, "site_id"),
        (of_one("titleText", GONE), "title"),
        (of_one("titleType", GONE), "title_type"),
        ({"props": {"pageProps": {"statusCode": 500}}}, "page"),
    ],
)
def test_imdb_page_without_identity_is_refused(edits: dict[str, Any], field: str) -> None:
    with pytest.raises(ExtractionError) as error:
        imdb_movie(edits)
    assert error.value.field == field


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
        ("releaseDate.day", 10**20, {"release_date"}),
        ("runtime.seconds", 0, {"runtime_minutes"}),
        ("meterRanking.currentRank", 0, {"popularity_rank"}),
        ("keywords", {"new": [1]}, {"keywords"}),
    ],
)
def test_what_imdb_lacks_or_can_not_be_is_silent(key: str, value: Any, silent: set[str]) -> None:
    assert_silent(imdb_movie({}), imdb_movie(of_one(key, value)), silent)


def test_an_object_of_another_form_costs_only_what_stands_in_it() -> None:
    assert imdb_movie({M: ["another form"]}) == imdb_movie({M: GONE})


def assert_silent(whole: Movie, movie: Movie, silent: set[str]) -> None:
    """Assert that a movie does not mention these fields, and of what stands beside them, and is read as before of all else."""
    assert set(movie.unknown_fields) - set(whole.unknown_fields) == silent - set(whole.unknown_fields)
    lost = present_in(whole) - present_in(movie)
    assert {name for name in lost if not any(name.startswith(f"{field}.") for field in silent)} <= silent


@pytest.mark.promise("A page tells a value, a stated absence, or nothing of a field.")
def test_null_and_empty_lists_under_a_known_key_state_that_there_is_none() -> None:
    none: dict[str, Any] = {"plot": None, "metacritic": None, "genres": {"genres": []}, "writers": []}
    movie = imdb_movie({f"{about}.{key}": value for about in (A, M) for key, value in none.items()})
    assert (movie.plot, movie.genres, movie.score("metascore")) == (None, [], None)
    assert not {"plot", "genres", "scores.metascore", "credits.writer"} & set(movie.unknown_fields)


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
    case = "imdb/title-2025-traits"
    whole, movie = imdb_movie({}, case), imdb_movie({f"{M}.{key}": value for key, value in edits.items()}, case)
    assert (movie.awards, "awards" in movie.unknown_fields) == ((whole.awards, False) if is_told else ([], True))
    assert whole.awards


@pytest.mark.parametrize(
    ("episodes", "counts"),
    [
        ({"seasons": [{"number": 1}, {"number": 2}, {"number": 2}], "totalEpisodes": {"total": 9}}, (2, 9)),
        ({"seasons": [{"number": 1}, {"count": 2}], "episodes": {"total": 9}}, ("silent", 9)),
        ({"seasons": [], "totalEpisodes": {"total": 0}}, (None, None)),
        (
            {"displayableSeasons": {"total": 2, "edges": [{"node": {"season": "1"}}, {"node": {"season": "Unknown"}}]}},
            (1, "silent"),
        ),
        ({"displayableSeasons": {"total": 30, "edges": [{"node": {"season": "30"}}]}}, ("silent", "silent")),
        ({"seasons": "two", "totalEpisodes": {"total": -4}}, ("silent", "silent")),
        (None, (None, None)),
    ],
)
def test_counts_of_an_imdb_series_are_those_that_the_page_states(episodes: Any, counts: tuple[Any, Any]) -> None:
    movie = imdb_movie({f"{A}.episodes": episodes, f"{M}.episodes": GONE}, "imdb/title-2024-series")
    found = tuple(
        "silent" if name in movie.unknown_fields else getattr(movie, name) for name in ("season_count", "episode_count")
    )
    assert found == counts


def test_page_without_main_column_is_read_from_what_it_shows() -> None:
    tile = """<div data-testid="title-cast-item"><a data-testid="title-cast-item__actor" href="/name/nm0900{0}/?ref_=x">Jo {0}</a>
    <ul><li><a data-testid="cast-item-characters-link"><span>Keeper {0}</span></a></li></ul></div>"""
    shown = (
        "".join(tile.format(100 + number) for number in range(6))
        + """<a data-testid="award_top-rated">Bestbewertet: Platz 39</a>
    <ul><li data-testid="title-details-origin"><ul><li><a href="/x">Peru</a></li><li><a>Chile</a></li></ul></li></ul>
    <ul><li data-testid="title-details-languages"><ul><li><a>Spanish</a></li></ul></li></ul>"""
    )
    body = edited(FILM, "__NEXT_DATA__", {M: GONE}).replace(b"</body>", shown.encode() + b"</body>")
    movie = movie_of(imdb.title(body))
    assert [(c.name, c.character, c.person_id) for c in movie.people("cast")][5] == (
        "Jo 105",
        "Keeper 105",
        "nm0900105",
    )
    assert (movie.countries, movie.languages, movie.imdb_top250_rank) == (["Peru", "Chile"], ["Spanish"], 39)
    assert {"credits.cast", "countries", "imdb_top250_rank"} <= set(imdb_movie({M: GONE}).unknown_fields)


def test_row_of_a_chart_without_a_rating_is_a_row_without_a_score() -> None:
    path = "props.pageProps.pageData.chartTitles.edges.0.node.ratingsSummary"
    listing = imdb.chart(edited("imdb/chart-top-2025", "__NEXT_DATA__", {path: GONE})).listing
    assert listing is not None
    assert (listing.entries[0].scores, bool(listing.entries[0].title)) == ([], True)


# --- Metacritic -----------------------------------------------------------------------------------------------------

RE_RELEASE = "nuxt3-too-few-ratings"


def composed(case: str) -> Any:
    """Return the components of a page as plain data."""
    data = unflatten(script(body_of(f"metacritic/{case}"), "__NUXT_DATA__") or b"")["data"]
    (page,) = data
    return plain(data[page]["components"])


def metacritic_page(components: Any, slug: str = "movies:x") -> bytes:
    payload = json.dumps(flatten({"data": {f"loadPage:{slug}:": {"components": components}}})).encode()
    return b'<html><body><script id="__NUXT_DATA__">' + payload + b"</script></body></html>"


def metacritic_movie(components: Any, url: str | None = None) -> Movie:
    return movie_of(metacritic.movie(metacritic_page(components), url))


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
        (0, "premiereYear", 10**400, "year"),
        (0, "releaseDate", "2003-13-40", "release_date"),
        (0, "duration", 200_000, "runtime_minutes"),
        (0, "rating", "", "certificate"),
        (0, "genres", [{"label": "Drama"}], "genres"),
    ],
)
def test_what_metacritic_says_that_can_not_be_is_silent(component: int, field: str, value: Any, silent: str) -> None:
    components = composed(RE_RELEASE)
    components[0]["data"]["item"].pop("criticScoreSummary")
    whole = metacritic_movie(components)
    components[component]["data"]["item"][field] = value
    assert_silent(whole, metacritic_movie(components), {silent})


@pytest.mark.parametrize(
    ("path", "value"), [("data.item.title", ""), ("data.item.title", 7), ("meta.componentName", "renamed")]
)
def test_product_that_is_none_or_has_no_title_is_refused(path: str, value: Any) -> None:
    components = composed(RE_RELEASE)
    edit(components[0], path, value)
    with pytest.raises(ExtractionError):
        metacritic_movie(components)


def test_renamed_summary_is_silent_unless_the_product_has_it() -> None:
    components = composed(RE_RELEASE)
    product, critics, users = components[:3]
    critics["meta"]["componentName"] = users["meta"]["componentName"] = "renamed"
    movie = metacritic_movie(components)
    assert [score.value for score in movie.scores] == [88]
    assert "scores.metacritic_user" in movie.unknown_fields
    del product["data"]["item"]["criticScoreSummary"]
    movie = metacritic_movie(components)
    assert movie.scores == []
    assert {"scores.metascore", "scores.metacritic_user"} <= set(movie.unknown_fields)


def test_score_that_could_not_be_fetched_is_no_missing_score() -> None:
    components = composed(RE_RELEASE)
    del components[2]["data"]
    for code, is_silent in ((500, True), (404, False)):
        components[2]["errors"] = [{"code": code}]
        movie = metacritic_movie(components)
        assert movie.score("metacritic_user") is None
        assert ("scores.metacritic_user" in movie.unknown_fields) is is_silent


@pytest.mark.promise("A missing value is never a zero.")
@pytest.mark.parametrize("word", ["tbd", "TBD", "", None])
def test_score_of_0_without_a_word_for_it_is_none(word: str | None) -> None:
    components = composed(RE_RELEASE)
    components[2]["data"]["item"] |= {"score": 0, "reviewCount": 3, "sentiment": word}
    movie = metacritic_movie(components)
    assert movie.score("metacritic_user") is None
    assert "scores.metacritic_user" not in movie.unknown_fields


@pytest.mark.promise("A missing value is never a zero.")
def test_nothing_is_the_year_0() -> None:
    components = composed(RE_RELEASE)
    components[0]["data"]["item"].update(premiereYear=None, duration=0, rating="", imdbId=None)
    movie = metacritic_movie(components)
    assert (movie.year, movie.runtime_minutes, movie.certificate, movie.imdb_id) == (2003, None, None, None)


def test_offers_and_titles_alike_under_another_name_are_not_stated_absent() -> None:
    components = composed("nuxt3-offers")
    watch = components[2]["data"]["item"]
    watch["subscriptions"], watch["rentals"] = watch.pop("flatrate"), watch.pop("rent")
    assert "offers" in metacritic_movie(components).unknown_fields
    watch["hasOffers"] = False
    movie = metacritic_movie(components)
    assert (movie.offers, "offers" in movie.unknown_fields) == ([], False)
    for name, is_silent in (("items", False), ("titles", True)):
        components[1]["data"] = {name: []}
        movie = metacritic_movie(components)
        assert (movie.related, "related.similar" in movie.unknown_fields) == ([], is_silent)


@pytest.mark.parametrize("crew", [None, []])
def test_crew_without_creators_does_not_say_that_a_series_has_none(crew: Any) -> None:
    components = composed("nuxt3-series-rows")
    components[0]["data"]["item"]["production"]["crew"] = crew
    movie = metacritic_movie(components)
    assert "credits.creator" in movie.unknown_fields
    assert "credits.writer" not in movie.unknown_fields


def test_bad_address_of_a_page_refuses_nothing() -> None:
    body = body_of("metacritic/nuxt3-movie")
    bad = changed(body, b"<head>", b'<head><meta property="og:url" content="https://[x">')
    assert metacritic.movie(bad) == metacritic.movie(body)


# --- Rotten Tomatoes ------------------------------------------------------------------------------------------------

CARD = "rottentomatoes/2026-scorecard"
SCORECARD = "media-scorecard-json"


def tomatoes(body: bytes) -> Movie:
    return movie_of(rottentomatoes.movie(body))


def card(edits: dict[str, Any]) -> Movie:
    """Return a page that names its scores in its scorecard alone, edited."""
    return tomatoes(edited(CARD, SCORECARD, edits).replace(b'"aggregateRating"', b'"otherRating"'))


@pytest.mark.promise("A page tells a value, a stated absence, or nothing of a field.")
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
    body = body_of(CARD).replace(b'"aggregateRating"', b'"otherRating"')
    whole, movie = tomatoes(body), tomatoes(changed(body, part, part.replace(b"a", b"o").replace(b"i", b"y")))
    assert silent <= set(movie.unknown_fields) - set(whole.unknown_fields)
    for field in {"title", "year", "scores"} - {name.partition(".")[0] for name in silent}:
        assert getattr(movie, field) == getattr(whole, field)


@pytest.mark.parametrize("score", ["183", "-1", 83.5, "eighty", [83], True, "", None, "--"])
def test_score_that_is_none_beside_its_reviews_is_silent(score: Any) -> None:
    movie = card({"criticsScore.score": score, "criticsScore.scorePercent": GONE})
    assert [found.kind for found in movie.scores] == ["popcornmeter", "tomatometer_top", "popcornmeter_verified"]
    assert "scores.tomatometer" in movie.unknown_fields


def test_share_stands_for_a_score_that_the_card_has_not() -> None:
    assert card({"criticsScore.score": GONE}).scores == card({}).scores


def test_json_ld_serves_where_the_scorecard_is_silent() -> None:
    whole, movie = tomatoes(body_of(CARD)), tomatoes(changed(body_of(CARD), b'"criticsScore"', b'"scoreOfCritics"'))
    shown = [sorted((score.kind, score.value, score.count) for score in read.scores) for read in (whole, movie)]
    assert shown[0] == shown[1]
    assert "scores.tomatometer.average" in movie.unknown_fields  # which JSON-LD has not


def test_title_that_nobody_has_reviewed_states_that_it_has_no_score() -> None:
    movie = tomatoes(body_of("rottentomatoes/2026-unscored"))
    assert movie.scores == []
    assert not {"scores.tomatometer", "scores.popcornmeter"} & set(movie.unknown_fields)


def test_facts_beside_the_popcornmeter_are_of_the_part_of_the_audience_whose_score_is_shown() -> None:
    unscored = {"score": None, "likedCount": 2, "notLikedCount": 1, "title": "Popcornmeter"}
    everybody = {"score": "58", "likedCount": 1160, "notLikedCount": 840, "certified": False}
    verified = {"certified": False, "title": "Popcornmeter"}
    overlay = {"overlay.audienceAll": everybody, "overlay.audienceVerified": verified}
    score = card({"audienceScore": unscored, **overlay}).score("popcornmeter")
    assert score is not None
    assert (score.value, score.count, score.liked, score.disliked) == (58, 2000, 1160, 840)


def test_poster_and_props_stand_in_the_markup_where_the_scripts_lack_them() -> None:
    picture = "https://images.example/206x305/ferry.jpg"
    hero = f"""<media-hero><rt-img slot="posterImage" src="{picture}"></rt-img><rt-text slot="title">Dust Road</rt-text>
    <rt-text slot="metadataProp">R<span>, </span></rt-text><rt-text slot="metadataProp">1h 5m<span>, </span></rt-text></media-hero>"""
    body = body_of("rottentomatoes/2026-scorecard-alone")
    assert tomatoes(body).poster_url == "https://images.example/206x305/dust.jpg"
    bare = changed(body, b'"primaryImageUrl"', b'"secondaryImageUrl"').replace(b"</body>", hero.encode() + b"</body>")
    movie = tomatoes(bare)
    assert (movie.poster_url, movie.certificate, movie.runtime_minutes) == (picture, "R", 65)


SECTIONS = "rottentomatoes/2026-sections"


def sections(old: bytes, new: bytes) -> Movie:
    return tomatoes(changed(body_of(SECTIONS), old, new))


def test_paragraph_behind_the_section_of_the_consensus_is_none() -> None:
    movie = sections(b"<p>Warm &amp; <em>quiet</em>, The Lamp\n glows.</p></div>", b"</div>")
    assert movie.consensus is None
    assert "consensus" in movie.unknown_fields


def test_offers_whose_markup_is_another_are_not_stated_absent() -> None:
    assert "offers" in sections(b"where-to-watch-meta", b"watch-tile").unknown_fields
    start, end = (body_of(SECTIONS).index(part) for part in (b"<where-to-watch-meta", b'</section>\n<section id="more'))
    movie = sections(body_of(SECTIONS)[start:end], b"<p>Not available</p>")
    assert (movie.offers, "offers" in movie.unknown_fields) == ([], False)


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
