"""What is read where a page's first source is missing, damaged or of another age; all pages here are invented."""

from __future__ import annotations

import html
import json
from typing import Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.embedded import decode_text, json_ld
from moviecrawler.extract.legacy.wayback import original
from moviecrawler.extract.pages import page_record, read_page
from tests.extract.golden import body_of

IMDB = "https://www.imdb.com/title/tt9100777/"
OWN = f'<link rel="canonical" href="{IMDB}">'
EPISODE_HEAD = f'<title>"Salt" The Well (TV Episode 2016) - IMDb</title>{OWN}'


def document(body: str, head: str = "") -> bytes:
    return f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>".encode()


def linked(data: Any) -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return f'<script type="application/ld+json">{text}</script>'


def item(body: bytes, url: str | None = None) -> dict[str, Any]:
    found: dict[str, Any] = page_record(read_page(body, url))["item"]
    return found


# --- JSON-LD in all its forms ---------------------------------------------------------------------------------------

FILM: dict[str, Any] = {
    "@type": "Movie",
    "name": "The Salt Road",
    "image": "https://pictures.example/images/M/salt.jpg",
    "director": [{"@type": "Person", "name": "Ines Vale"}],
    "aggregateRating": {"ratingValue": 7.4, "ratingCount": 33314},
    "datePublished": None,
    "duration": None,
}


@pytest.mark.parametrize(
    "form",
    [
        FILM,
        [FILM],
        {"@graph": [{"@type": "WebPage"}, FILM]},
        {**FILM, "@type": ["Movie", "CreativeWork"]},
        {**FILM, "aggregateRating": [FILM["aggregateRating"]]},
        {**FILM, "aggregateRating": {"ratingValue": "7.4", "ratingCount": "33314"}},
        {**FILM, "aggregateRating": {"ratingValue": 7.4, "ratingCount": "33,314"}},
        {**FILM, "aggregateRating": {"ratingValue": 7.4, "ratingCount": 33314.0}},
        {**FILM, "image": {"@type": "ImageObject", "url": FILM["image"]}},
        {**FILM, "image": [{"@type": "ImageObject", "contentUrl": FILM["image"]}]},
        {**FILM, "director": ["Ines Vale"]},
        {**FILM, "datePublished": "null", "duration": ""},
        {**FILM, "datePublished": "", "duration": "undefined"},
    ],
)
def test_all_forms_of_json_ld_are_one(form: Any) -> None:
    films = [data for data in json_ld(document(linked(form))) if data["@type"] == "Movie"]
    assert films == [FILM]


def test_title_may_be_what_stands_for_nothing_elsewhere() -> None:
    assert json_ld(document(linked({"@type": "Movie", "name": "null", "duration": "null"}))) == [
        {"@type": "Movie", "name": "null", "duration": None}
    ]


def test_json_ld_that_is_no_json_is_passed_by_and_a_cut_one_is_not() -> None:
    broken = linked('{"@type": "Movie", "description": "A "quiet" film"}')
    assert json_ld(document(broken + linked(FILM))) == [FILM]
    with pytest.raises(ValueError, match="ends inside a script"):
        json_ld(document(broken)[:-20].replace(b"</script", b""))


@pytest.mark.parametrize("head", ["", '<meta charset="utf-8">', '<meta charset="iso-8859-1">'])
def test_text_is_what_most_of_its_bytes_are(head: str) -> None:
    text = document("Café Zúñiga – naïve", head).decode()
    assert decode_text(text.encode()) == text
    assert decode_text(text.encode("cp1252")) == text
    assert decode_text(text.encode() + b"\xe9") == text + "\ufffd"


# --- IMDb -----------------------------------------------------------------------------------------------------------

HERO = """
<h1 data-testid="hero__pageTitle"><span data-testid="hero__primary-text">The Salt Road</span></h1>
<ul><li>{label}</li><li><a href="/title/tt9100777/releaseinfo?ref_=tt_ov_rdat">2024</a></li>
<li><a href="/title/tt9100777/parentalguide/#certificates">PG-13</a></li><li>{runtime}</li></ul>
<div data-testid="hero-rating-bar__aggregate-rating__score"><span>7.4</span><span>/10</span></div>
<div data-testid="hero-media__poster"><img src="https://pictures.example/images/M/salt.jpg"></div>
<p data-testid="plot"><span data-testid="plot-xs_to_m">A carter… <a href="plotsummary">Read all</a></span>
<span data-testid="plot-xl">A carter crosses a dry sea.</span></p>
<div data-testid="genres"><a><span class="ipc-chip__text">Drama</span></a><a><span class="ipc-chip__text">Western</span></a></div>
<ul><li data-testid="title-pc-principal-credit"><span class="ipc-metadata-list-item__label">{role}</span>
<ul><li><a href="/name/nm9100001/?ref_=tt_ov_{code}_1">Ines Vale</a></li></ul></li></ul>
<h3>More like this</h3><ul><li>3h 20m</li></ul>
"""


def hero(**words: str) -> bytes:
    values = {"label": "TV Movie", "runtime": "1h 33m", "role": "Director", "code": "dr", **words}
    return document(HERO.format(**values), "<title>The Salt Road (TV Movie 2024) - IMDb</title>")


@pytest.mark.parametrize(
    ("runtime", "minutes"),
    [
        ("2h", 120),
        ("45m", 45),
        ("90 min", 90),
        ("1 h 5 min", 65),
        ("1 Std. 30 Min.", 90),
        ("1 godz. 1 min", 61),
        ("", None),
    ],
)
def test_runtime_beside_the_heading(runtime: str, minutes: int | None) -> None:
    assert item(hero(runtime=runtime), IMDB)["runtime_minutes"] == minutes


@pytest.mark.parametrize("words", ["Original title: The Salt", "Titre original : The Salt"])
@pytest.mark.parametrize("place", ["Top rated movie #26", "Película mejor valorada n.º 26", "Film le mieux noté n°26"])
def test_words_of_other_languages(words: str, place: str) -> None:
    rank = f'<a data-testid="award_top-rated" href="/chart/top/?ref_=tt_awd">{place}</a>'
    found = item(hero().replace(b"</h1>", f"</h1><div>{words}</div>{rank}".encode()), IMDB)
    assert (found["original_title"], found["imdb_top250_rank"]) == ("The Salt", 26)


@pytest.mark.parametrize(
    ("role", "code", "field"),
    [
        ("Writers", "2", "writers"),
        ("Regie", "dr", "directors"),
        ("Creator", "wr", "creators"),
        ("Besetzung", "st", "cast"),
    ],
)
def test_credits_beside_the_heading_go_by_their_words_or_their_links(role: str, code: str, field: str) -> None:
    found = item(hero(role=role, code=code), IMDB)[field]
    assert [person["name"] if isinstance(person, dict) else person for person in found] == ["Ines Vale"]


def test_as_many_genres_as_there_is_room_for_may_not_be_all() -> None:
    page = hero().replace(b"<a><span class", b'<a><span class="ipc-chip__text">Mystery</span></a><a><span class', 1)
    assert item(page, IMDB)["genres"] == []


OLDER = """
<div class="title_wrapper long"><h1>The Salt Road&nbsp;<span id="titleYear">(<a href="/year/2011/">2011</a>)</span></h1>
<div class="subtext dense">R <time>90 min</time> | <a href="/search/title?genres=drama">Drama</a></div></div>
{rating}
<div class="summary_text wide">A carter crosses a dry sea.</div>
<table class="cast_list new"><tr><td><a href="/name/nm9100002/">Jo May</a></td>
<td class="character x">Aldous Finch (voice)</td></tr></table>
"""
RATED = """<div class="ratings_wrapper"><div class="imdbRating"><strong><span>7,4</span></strong><span>/</span><span>10</span>
<a href="/title/tt9100777/ratings?ref_=tt_ov_rt"><span>{votes}</span></a></div></div>"""


def older(rating: str) -> bytes:
    return document(OLDER.format(rating=rating), "<title>The Salt Road (2011) - IMDb</title>" + OWN)


@pytest.mark.parametrize(
    ("words", "kind"), [("(mini)", "series"), ("(TV)", "movie"), ("(V)", "video"), ("(VG)", "game"), ("", "movie")]
)
def test_words_behind_the_year_say_what_a_title_was_until_2011(words: str, kind: str) -> None:
    heading = f'<div id="tn15title"><h1>Salt <span>(<a href="/Sections/Years/2005">2005</a>) {words}</span></h1></div>'
    found = item(document(heading, f"<title>Salt (2005) {words}</title>" + OWN), IMDB)
    assert (found["title"], found["year"], found["kind"]) == ("Salt", 2005, kind)


@pytest.mark.parametrize(
    ("heading", "kind", "end_year"),
    [
        ('<div id="tn15title"><h1>{}<span class="tv-extra">TV series 2005-2009</span></h1></div>', "tvSeries", 2009),
        ('<div id="tn15title"><h1>{}<span class="tv-extra">TV mini-series</span></h1></div>', "tvMiniSeries", None),
        ('<div id="overview-top"><h1>{}<span>(TV Series 2005&ndash;2009)</span></h1></div>', "tvSeries", 2009),
        (
            '<div class="titlereference-header"><h3 itemprop="name">{}</h3><ul><li>TV-14</li><li>TV Mini-Series</li></ul></div>',
            "tvMiniSeries",
            None,
        ),
    ],
)
def test_words_beside_the_heading_say_what_a_series_is(heading: str, kind: str, end_year: int | None) -> None:
    found = item(document(heading.format("Salt"), '<title>"Salt" (2005)</title>' + OWN), IMDB)
    assert (found["title"], found["title_type"], found["year"], found["end_year"]) == ("Salt", kind, 2005, end_year)


@pytest.mark.parametrize("heading", ["tn15title", "overview-top"])
@pytest.mark.parametrize("title", ['"Salt" Road', 'The "Salt"', '"Salt" & "Road"'])
def test_quotes_of_a_title_are_its_own(heading: str, title: str) -> None:
    stands = html.escape(title)
    body = f'<div id="{heading}"><h1>{stands} <span>(<a href="/year/2005/">2005</a>)</span></h1></div>'
    found = item(document(body, f"<title>{stands} (2005)</title>{OWN}"), IMDB)
    assert (found["title"], found["kind"], found["year"]) == (title, "movie", 2005)


def test_episode_of_2009() -> None:
    heading = (
        '<div id="tn15title"><h1>"Salt" <span><em>The Well</em> (<a href="/year/2005/">2005</a>)</span></h1></div>'
    )
    series = '<div class="info"><h5>TV Series:</h5><a href="/title/tt9100001/">"Salt"</a></div>'
    aired = '<div class="info"><h5>Original Air Date:</h5>2 June 2005 (Season 1, Episode 3)</div>'
    found = item(document(f'<div id="tn15main">{heading}{series}{aired}</div>', f"<title>x</title>{OWN}"), IMDB)
    assert (found["title"], found["series_title"], found["series_id"]) == ("The Well", "Salt", "tt9100001")
    assert (found["season"], found["episode"], found["release_date"]) == (1, 3, "2005-06-02")


def test_page_of_an_episodes_credits_to_2012_is_not_its_series() -> None:
    series = '<small>Full cast and crew for<br></small><a class="main" href="/title/tt9100777/">"Salt"</a>'
    heading = (
        f'<h1>{series} <span><em>The Well</em> (2005) <span class="tv-extra">TV series 1999-2003</span></span></h1>'
    )
    head = f'<title>"Salt" The Well (2005) - Full cast and crew</title>{OWN}'
    found = item(document(f'<div id="tn15title">{heading}</div>', head), f"{IMDB}fullcredits")
    assert (found["title"], found["kind"], found["year"]) == ("The Well", "episode", 2005)


def test_facts_below_the_heading_are_no_original_title() -> None:
    facts = "<div><ul><li>Certificate: PG-13</li></ul></div>"
    assert item(hero().replace(b"</h1>", f"</h1>{facts}".encode()), IMDB)["original_title"] is None


@pytest.mark.parametrize(
    "beside",
    [
        '<div class="info">Season 9, Episode 8</div>',
        '<div class="info">99 min - Drama</div>',
        '<div class="info">They part. <a href="/title/tt9100001/plotsummary">more</a></div>',
    ],
)
def test_what_stands_beside_of_other_titles_is_not_read(beside: str) -> None:
    body = document(f'<div class="title_wrapper"><h1>The Well</h1></div>{beside}', EPISODE_HEAD)
    found = item(body, IMDB)
    assert [found[field] for field in ("season", "runtime_minutes", "plot")] == [None, None, None]


@pytest.mark.parametrize("year", ["/year/2005/", "/Sections/Years/2005/"])
def test_first_date_of_a_page_of_release_dates_to_2012(year: str) -> None:
    heading = '<div id="tn15title"><h1><small>Release dates for<br></small><a class="main" href="/">Salt</a></h1></div>'
    rows = [
        f'<tr><td><b><a href="/calendar/?region={region}">{region}</a></b></td><td align="right">{date}</td><td></td></tr>'
        for region, date in (
            ("us", f'<a href="{year}">2005</a>'),
            ("no", f'<a href="/date/06-02/">2 June</a> <a href="{year}">2005</a>'),
        )
    ]
    head = f"<title>Salt (2005) - Release dates</title>{OWN}"
    body = f'{heading}<div id="tn15content"><table><tr><th>Country</th><th>Date</th></tr>{"".join(rows)}</table></div>'
    assert item(document(body, head), f"{IMDB}releaseinfo")["release_date"] == "2005-06-02"


def test_title_that_is_a_year() -> None:
    heading = '<div id="overview-top"><h1><span itemprop="name">1984</span> <span>(2010)</span></h1></div>'
    assert item(document(heading, f"<title>1984 - IMDb</title>{OWN}"), IMDB)["year"] == 2010


def test_series_on_a_reference_page() -> None:
    facts = (
        '<ul><li class="ipl-inline-list__item">1 Std. 5 Min.</li><li class="ipl-inline-list__item">TV Series</li></ul>'
    )
    years = '<span class="titlereference-title-year">(<a href="/year/2005">2005-2009</a>)</span>'
    heading = f'<div class="titlereference-header"><h3 itemprop="name">Salt {years}</h3>{facts}</div>'
    links = [f'<a href="/title/tt9100777/episodes?season={number}">{number}</a>' for number in (2, 1)]
    years = '<span class="titlereference-overview-years-links"><a href="/title/tt9100777/episodes?year=2005">2005</a></span>'
    seasons = f"<div> Seasons: {links[0]} {links[1]} Years: {years}</div><div><b>{links[0]}</b> Years</div>"
    overview = f'<section class="titlereference-section-overview">{seasons}<div>They part.</div></section>'
    found = item(document(heading + overview, f"<title>Salt - Reference View - IMDb</title>{OWN}"), f"{IMDB}reference")
    assert (found["year"], found["end_year"], found["certificate"]) == (2005, 2009, None)
    assert (found["plot"], found["season_count"]) == ("They part.", 2)


def test_date_of_release_is_no_duration() -> None:
    facts = '<img src="/certificates/us/pg_13.png" title="PG_13"><time datetime="2005-03-04">4 March 2005</time>'
    block = '<div class="txt-block"><time datetime="PT98M">98 min</time></div>'
    heading = f'<div id="overview-top"><h1>Salt</h1><div class="infobar">{facts}</div></div>{block}'
    found = item(document(heading, "<title>Salt (2005) - IMDb</title>" + OWN), IMDB)
    assert (found["runtime_minutes"], found["certificate"]) == (98, "PG-13")


@pytest.mark.parametrize("facts", ["45 min - Drama", "TV Episode - 45 min - ", "TV-14 &nbsp;-&nbsp; 45 min"])
def test_runtime_stands_among_bare_words(facts: str) -> None:
    heading = f'<div id="overview-top"><h1>Salt</h1><div class="infobar">{facts}</div></div>'
    assert item(document(heading, "<title>Salt (2005) - IMDb</title>" + OWN), IMDB)["runtime_minutes"] == 45


def test_end_of_a_span_of_minutes_is_no_runtime() -> None:
    heading = '<div id="overview-top"><h1>Salt</h1><div class="infobar">40-45 min - Drama</div></div>'
    assert item(document(heading, "<title>Salt (2005) - IMDb</title>" + OWN), IMDB)["runtime_minutes"] is None


@pytest.mark.parametrize(
    ("votes", "count"),
    [
        ("33,314", 33314),
        ("33.314", 33314),
        ("33\u00a0314", 33314),
        ("33,314 users", 33314),
        ("1 204 Stimmen", 1204),
        ("33K", None),
        ("2,8 Mio.", None),
    ],
)
def test_rating_stands_beside_its_votes_in_any_layout(votes: str, count: int | None) -> None:
    found = item(older(RATED.format(votes=votes)), IMDB)
    assert found["scores"] == [{"kind": "imdb", "value": 7.4, "count": count}]
    assert (found["plot"], found["certificate"]) == ("A carter crosses a dry sea.", "R")
    assert found["cast"] == [{"name": "Jo May", "character": "Aldous Finch", "id": "nm9100002"}]


@pytest.mark.parametrize(
    "rating", ["", '<a href="ratings?ref_=tt_ov_rt">(awaiting 5 votes)</a>', '<a href="ratings">Rate</a>']
)
def test_title_that_nobody_has_rated_has_no_score(rating: str) -> None:
    assert item(older(rating), IMDB)["scores"] == []


@pytest.mark.parametrize(
    ("rating", "value"), [({"ratingValue": None}, None), ({"ratingValue": 7.4, "ratingCount": -5}, 7.4)]
)
def test_rating_in_json_ld_may_be_empty(rating: dict[str, Any], value: float | None) -> None:
    unrated = '<a href="ratings">(awaiting 5 votes)</a>' if value is None else ""
    found = page_record(read_page(older(linked({**FILM, "aggregateRating": rating}) + unrated), IMDB))
    assert [score["value"] for score in found["item"]["scores"]] == ([] if value is None else [value])
    assert "scores.imdb" not in found["silent"]


@pytest.mark.parametrize("votes", ["33,314", "33'314"])
def test_votes_without_a_rating_are_no_missing_rating(votes: str) -> None:
    found = page_record(read_page(older(f'<p><a href="/title/tt9100777/ratings">{votes}</a></p>'), IMDB))
    assert found["item"]["scores"] == []
    assert "scores.imdb" in found["silent"]


@pytest.mark.parametrize(
    ("text", "plot"),
    [
        (
            "The Salt Road is a movie starring J.R. Finch, Jo May Jr., and Al Day. He is back. Soon.",
            "He is back. Soon.",
        ),
        ("The Salt Road is a TV series directed by somebody else. He is back.", None),
        ("The Salt Road isn't on any map.", "The Salt Road isn't on any map."),
    ],
)
def test_sentence_made_of_names_is_no_plot(text: str, plot: str | None) -> None:
    people = [{"@type": "Person", "name": name} for name in ("J.R. Finch", "Jo May Jr.", "Al Day", "Bo Lee")]
    data = {**FILM, "url": "/title/tt9100777/", "actor": people, "description": text}
    assert item(document("", linked(data)), IMDB)["plot"] == plot


@pytest.mark.parametrize(
    "body", ["<h1>Something went wrong</h1>", '<div class="title_wrapper"><h1>Page not found</h1></div>']
)
def test_a_page_that_does_not_name_the_title_itself_is_refused(body: str) -> None:
    """Whatever the address says that it was fetched from."""
    with pytest.raises(ExtractionError) as refused:
        read_page(document(f"{body}{LINK}", "<title>404 Error - IMDb</title>"), IMDB)
    assert refused.value.field == "site_id"
    metacritic = document(body, '<title>Not Found - Metacritic</title><meta property="og:title" content="Not Found">')
    with pytest.raises(ExtractionError):
        read_page(metacritic, "https://www.metacritic.com/movie/the-salt-road/")


def test_a_page_without_its_address_names_its_title_in_its_links() -> None:
    page = hero().replace(OWN.encode(), b"")
    assert item(page)["site_id"] == item(page, IMDB)["site_id"] == "tt9100777"
    with pytest.raises(ExtractionError):
        read_page(page, "https://www.imdb.com/title/tt9100778/")


CARDS = "".join(
    f'<li class="ipc-metadata-list-summary-item"><a href="/title/tt910000{n}/">{n}. Lantern {n}</a></li>'
    for n in (1, 2, 3)
)


@pytest.mark.parametrize(
    ("counted", "total"),
    [
        ('<div data-testid="chart-layout-total-items">3 Titles</div>', 3),
        ("<div>1-3 of 42,401</div>", 42401),
        ("", None),
    ],
)
def test_list_says_how_long_it_is(counted: str, total: int | None) -> None:
    page = read_page(document(f"{counted}<ul>{CARDS}</ul>"), "https://www.imdb.com/chart/top/")
    assert page.listing is not None
    assert [entry.rank for entry in page.listing.entries] == [1, 2, 3]
    assert page.listing.total == total


@pytest.mark.parametrize("first", ["", '<a href="/video/vi9100001/">Trailer</a>'])
def test_row_about_a_title_may_begin_with_another_link(first: str) -> None:
    row = f'<li class="ipc-metadata-list-summary-item">{first}<a href="/title/tt9100009/">Salt</a></li>'
    page = read_page(document(f"<ul>{CARDS}{row}</ul>"), "https://www.imdb.com/chart/moviemeter/")
    assert page.listing is not None
    assert len(page.listing.entries) == CARDS.count("<li") + 1


def test_first_episodes_of_a_season_are_no_list() -> None:
    page = body_of("imdb/episodes-2024-without-data").replace(
        b"</section>", b'<span class="ipc-see-more">50 more</span></section>'
    )
    with pytest.raises(ExtractionError, match="first episodes"):
        read_page(page, f"{IMDB}episodes/")


@pytest.mark.parametrize(("below", "title"), [("Salt", "Salt"), ("Another", None)])
def test_sub_page_since_2023_without_its_data(below: str, title: str | None) -> None:
    heading = f'<h1>Filming &amp; production</h1><h2 data-testid="subtitle">{below}</h2>'
    body = document(heading, f"<title>Salt (2005) - Filming &amp; production - IMDb</title>{OWN}")
    if title is None:
        with pytest.raises(ExtractionError, match="no heading that is known"):
            read_page(body, f"{IMDB}locations/")
    else:
        assert item(body, f"{IMDB}locations/")["title"] == title


def test_titles_beside_a_list_of_2012_are_none_of_it() -> None:
    row = '<tr><td>1.</td><td><a href="/title/tt9100009/">Salt</a> (2005)</td><td>$9M</td></tr>'
    beside = f'<div id="pagecontent"><div id="main">No list</div><div id="sidebar"><table>{row}</table></div></div>'
    with pytest.raises(ExtractionError, match="no list that is known"):
        read_page(document(beside), "https://www.imdb.com/chart/top")


def test_person_whom_a_search_finds_is_no_title() -> None:
    known_for = '<li class="ipc-metadata-list-summary-item"><a href="/name/nm9100001/">Jo May</a><a href="/title/tt9100009/">Salt</a></li>'
    page = read_page(document(f"<ul>{CARDS}{known_for}</ul>"), "https://www.imdb.com/find/?q=lantern")
    assert page.listing is not None
    assert len(page.listing.entries) == CARDS.count("<li")


@pytest.mark.parametrize(
    "counted", ['<div data-testid="chart-layout-total-items">250 Titles</div>', "<div>1-50 of 42,401</div>"]
)
def test_list_that_shows_only_its_first_rows_is_refused(counted: str) -> None:
    with pytest.raises(ExtractionError, match="and shows 3"):
        read_page(document(f"{counted}<ul>{CARDS}</ul>"), "https://www.imdb.com/search/title/")


# --- Metacritic -----------------------------------------------------------------------------------------------------


def test_season_is_not_its_series_though_the_canonical_link_says_so() -> None:
    body = body_of("metacritic/season-2017")
    whole = item(body)
    assert "/season-" in whole["site_id"]
    for tag in (b'property="og:url"', b'property="og:title"'):
        assert tag in body
        body = body.replace(tag, b'property="og:other"')
    found = item(body)
    assert (found["site_id"], found["title"]) == (whole["site_id"], whole["title"])


@pytest.mark.parametrize(
    "attributes",
    ['type="application/ld+json"', "type='application/ld+json'", 'data-hid="x" type="application/ld+json"'],
)
def test_page_trimmed_to_its_json_ld(attributes: str) -> None:
    picture = {"@type": "ImageObject", "url": "https://www.metacritic.com/a/img/catalog/salt.jpg"}
    data = {**FILM, "image": picture, "url": "https://www.metacritic.com/movie/the-salt-road/"}
    data["aggregateRating"] = {"ratingValue": "71", "reviewCount": "1,204"}
    found = item(f"<script {attributes}>{json.dumps(data)}</script>".encode())
    assert (found["site_id"], found["poster_url"]) == ("movie/the-salt-road", picture["url"])
    assert found["scores"] == [{"kind": "metascore", "value": 71, "count": 1204}]


def test_search_is_known_by_its_markup_however_that_is_written() -> None:
    body = body_of("metacritic/search-2014")
    assert b'class="query_results"' in body
    other = body.replace(b'class="query_results"', b"class='wide query_results'").replace(
        b"Metacritic</title>", b"Metacritic\n</title>"
    )
    assert page_record(read_page(other)) == page_record(read_page(body))


# --- Rotten Tomatoes ------------------------------------------------------------------------------------------------


def test_synopsis_that_a_browser_has_moved_behind_its_paragraph() -> None:
    body = body_of("rottentomatoes/2014-heading-in-synopsis")
    start = body.index(b"<h2", body.index(b'id="movieSynopsis"'))
    moved = body[:start] + b"</p>" + body[start:].replace(b"</p>", b"<p></p>", 1)
    assert item(moved)["plot"] == item(body)["plot"] is not None
    assert item(moved.replace(b'id="movieSynopsis"', b"id='movieSynopsis'"))["plot"] == item(body)["plot"]


def test_panel_with_reviews_and_without_a_known_score_says_nothing_of_it() -> None:
    body = body_of("rottentomatoes/2014-heading-in-synopsis")
    assert body.count(b"meter-value") > 1
    whole, found = page_record(read_page(body)), page_record(read_page(body.replace(b"meter-value", b"share", 1)))
    assert set(found["silent"]) - set(whole["silent"]) == {"scores.tomatometer"}
    for field, value in whole["item"].items():
        assert found["item"][field] == (
            [each for each in value if each["kind"] != "tomatometer"] if field == "scores" else value
        )


def test_share_stands_for_a_score_that_the_card_has_not() -> None:
    body = body_of("rottentomatoes/2026-scorecard")
    cut = body.replace(b'"score":"83"', b'"scorePercent":"83%"')
    assert cut != body
    assert item(cut)["scores"] == item(body)["scores"]


# --- Archives -------------------------------------------------------------------------------------------------------

STAMP = "/web/20150612010203"


@pytest.mark.parametrize(
    "written",
    [
        f'"https://web.archive.org{STAMP}/http://www.imdb.com/x"',
        f'"//web.archive.org{STAMP}im_/http://www.imdb.com/x"',
        f'"{STAMP}/http://www.imdb.com/x"',
        f"'{STAMP}id_/http://www.imdb.com/x'",
        f"url({STAMP}cs_/http://www.imdb.com/x)",
        f'"https:\\/\\/web.archive.org{STAMP}\\/http://www.imdb.com/x"'.replace("/web/", "\\/web\\/"),
    ],
)
def test_address_that_an_archive_has_written_is_the_sites_again(written: str) -> None:
    body = f"<p data-x={written}>archive.org</p>".encode()
    mark = written[: written.index("(") + 1] if "(" in written else written[0]
    end = written[-1]
    assert original(body) == f"<p data-x={mark}http://www.imdb.com/x{end}>archive.org</p>".encode()


@pytest.mark.parametrize(
    "text",
    ["/web/20150612010203/notes", "https://web.archive.org/", "see archive.org/web/2015/http://x", "/web/12/http://x"],
)
def test_other_addresses_stay_as_they_are(text: str) -> None:
    body = f'<a href="{text}">archive.org</a>'.encode()
    assert original(body) == body


def test_page_out_of_an_archive_is_the_title_of_the_site() -> None:
    body = body_of("imdb/title-2014")
    whole = page_record(read_page(body))
    address = b"https://web.archive.org" + STAMP.encode() + b"/"
    wrapped = body.replace(b'="http', b'="' + address + b"http") + b"<!-- FILE ARCHIVED ON 01:02:03 Jun 12, 2015 -->"
    assert page_record(read_page(wrapped)) == whole
    assert page_record(read_page(wrapped, address.decode() + whole["item"]["url"])) == whole


# --- Lists of nothing, and lists whose rows are not known -----------------------------------------------------------

FIND = "https://www.imdb.com/find?q=salt&s=all"
LINK = '<a href="/title/tt9100001/">The Salt Road</a>'


def test_list_is_empty_only_when_it_links_to_no_title() -> None:
    nothing = f'<div id="main"><h1 class="findHeader">No results found for "salt"</h1></div><div id="side">{LINK}</div>'
    people = (
        '<div id="main"><h1 class="findHeader">Displaying 1 result</h1><table><tr class="findResult odd">'
        f'<td class="result_text"><a href="/name/nm9100001/">Jo May</a> (Actress, {LINK})</td></tr></table></div>'
    )
    assert [page_record(read_page(document(body), FIND))["entries"] for body in (nothing, people)] == [[], []]
    renamed = people.replace("findResult odd", "hit").replace("/name/nm9100001/", "/title/tt9100002/")
    lister = f'<div id="main"><div class="lister"><div class="row">{LINK}</div></div></div>'
    for body, url in ((renamed, FIND), (lister, "https://www.imdb.com/search/title/?title_type=feature")):
        with pytest.raises(ExtractionError, match="no list that is known"):
            read_page(document(body), url)


@pytest.mark.parametrize("known", [True, False])
def test_season_is_empty_only_when_it_links_to_no_episode(*, known: bool) -> None:
    heading = '<div class="subpage_title_block"><h3><a href="/title/tt9100777/">Lantern Row</a></h3></div>'
    row = '<div class="row"><strong><a href="/title/tt9100001/">The First Lamp</a></strong></div>'
    if known:
        row = row.replace('"row"', '"list_item"')
    body = document(
        f'{heading}<div class="eplist">{row}</div>',
        "<title>Lantern Row (TV Series 2011) - Episodes - IMDb</title>" + OWN,
    )
    if known:
        assert [entry["site_id"] for entry in page_record(read_page(body, IMDB + "episodes/"))["entries"]] == [
            "tt9100001"
        ]
    else:
        with pytest.raises(ExtractionError, match="no list that is known"):
            read_page(body, IMDB + "episodes/")


def test_search_whose_rows_have_another_name_is_not_one_without_results() -> None:
    body = body_of("rottentomatoes/2026-search")
    assert page_record(read_page(body))["entries"]
    url = "https://www.rottentomatoes.com/search?search=salt"
    with pytest.raises(ExtractionError):
        read_page(body.replace(b"search-page-media-row", b"search-row"), url)


def test_two_halves_of_one_kind_are_no_panel() -> None:
    half = '<div class="mop-ratings-wrap__half{kind}"><h2>{heading}</h2><span class="mop-ratings-wrap__percentage">{share}%</span></div>'
    details = '<ul><li class="meta-row"><div class="meta-label">Runtime:</div><div class="meta-value">95 minutes</div></li></ul>'
    head = '<title>The Salt Road (2011) - Rotten Tomatoes</title><link rel="canonical" href="https://www.rottentomatoes.com/m/salt">'

    def panel(*halves: tuple[str, str, int]) -> bytes:
        shown = "".join(half.format(kind=kind, heading=heading, share=share) for kind, heading, share in halves)
        return document(shown + details + " " * 100_000, head)

    for kind in (" audience-score", ""):
        found = item(panel(("", "Tomatometer", 91), (kind, "Audience Score", 60)))
        assert [(score["kind"], score["value"]) for score in found["scores"]] == [
            ("tomatometer", 91),
            ("popcornmeter", 60),
        ]
    unclear = page_record(read_page(panel(("", "Tomatometer", 91), ("", "All", 60))))
    assert unclear["item"]["scores"] == []
    assert {"scores.tomatometer", "scores.popcornmeter"} < set(unclear["silent"])


def test_mark_of_the_critics_that_is_not_found_is_no_missing_score() -> None:
    body = body_of("metacritic/season-2017")
    assert [score["kind"] for score in item(body)["scores"]] == ["metascore"]
    unmarked = body.replace(b"metascore_w xlarge", b"metascore_w huge").replace(
        b"metascore_w larger", b"metascore_w huge"
    )
    found = page_record(read_page(unmarked))
    assert found["item"]["scores"] == []
    assert "scores.metascore" in found["silent"]


@pytest.mark.parametrize(
    "row",
    [
        "<tr><td>{label}</td><td>{value}</td></tr>",
        '<div class="row"><div class="col subtle">{label}</div><div class="col">{value}</div></div>',
        "<p><b>{label}</b> <span>{value}</span></p>",
    ],
)
def test_details_are_pairs_of_a_label_and_what_stands_beside_it(row: str) -> None:
    body = body_of("rottentomatoes/2014-heading-in-synopsis")
    whole = item(body)
    start, end = body.index(b"<dl"), body.index(b"</dl>") + 5
    labels = [
        ("Rating:", whole["certificate"]),
        ("Genre:", ", ".join(whole["genres"])),
        ("Directed By:", f'<a href="/celebrity/x">{whole["directors"][0]}</a>'),
        ("Runtime:", f"{whole['runtime_minutes']} min."),
        ("Nothing that is known:", "x"),
    ]
    rows = "".join(row.format(label=label, value=value) for label, value in labels).encode()
    table = b"<table>" + rows + b"</table>" if rows.startswith(b"<tr") else rows
    assert b"movie_info" in body[:start]
    found = item(body[:start] + table + body[end:])
    for field in ("certificate", "genres", "runtime_minutes"):
        assert found[field] == whole[field]
    assert found["directors"] == whole["directors"][:1]


@pytest.mark.parametrize(
    ("beside", "years"),
    [
        ('<span id="titleYear">(<a href="/year/2011/">2011</a>)</span>', (2011, None)),
        ('<span class="nobr">(2005– )</span>', (2005, None)),
        ('<span class="nobr">(5 Jul. 2008)</span>', (2008, None)),
        ("", (None, None)),
    ],
)
def test_year_stands_beside_the_heading_too(beside: str, years: tuple[int | None, int | None]) -> None:
    body = f'<div class="title_wrapper"><h1>The Salt Road {beside}</h1></div>'
    found = item(document(body, "<title>The Salt Road (Part One) - IMDb</title>" + OWN), IMDB)
    assert (found["title"], found["year"], found["end_year"]) == ("The Salt Road", *years)
