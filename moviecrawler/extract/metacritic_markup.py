"""Metacritic's pages without a JSON payload: the markup of 2010 to 2023, Nuxt 2 (2023 to early 2026), bare JSON-LD.

Three layouts name their facts by labels ("Runtime:", "Starring:"): the product pages of 2010 (television and games kept
it to the end), the movie pages of 2016 and the details pages. Nuxt 2 has its data in a script that is JavaScript, not
JSON: its JSON-LD and `data-testid`s are read instead.
"""

from __future__ import annotations

import html
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

from parsel import Selector

from moviecrawler.extract.embedded import ShapeError, check_whole, dig, dig_list, dig_text, fold, json_ld
from moviecrawler.extract.metacritic_values import (
    KINDS,
    id_in,
    new_credits,
    new_movie,
    new_score,
    read_certificate,
    read_date,
    read_poster,
    without_season,
)
from moviecrawler.extract.trees import tree_of
from moviecrawler.extract.values import check_runtime, parse_decimal, parse_integer, parse_runtime, parse_year
from moviecrawler.items import Entry, Listing
from moviecrawler.urls import HOMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moviecrawler.items import Credit, Movie, Role, Score, ScoreKind, TitleKind

_TITLE_TYPES: Final = ("Movie", "TVSeries", "TVSeason", "VideoGame", "MusicAlbum")
_HEADINGS: Final = (".product_page_title h1", "h1.product_title [itemprop=name]", ".product_title a")
_ROLES_OF_TABLES: Final[dict[str, Role]] = {
    "director": "director",
    "writer": "writer",
    "creator": "creator",
    "principal cast": "cast",
    "cast": "cast",
    "star": "cast",
}
_TYPES_OF_RESULTS: Final[dict[str, TitleKind]] = {
    "Movie": "movie",
    "TV Show": "series",
    "Game": "game",
    "Album": "music",
}
_MAIN_LABELS: Final = (
    "//*[contains(concat(' ', @class, ' '), ' label ')]"
    "[not(ancestor::*[@id='side' or contains(concat(' ', @class, ' '), ' side_col ')])]"
)
_BASED_ON: Final = re.compile(r"\bbased on (\S+) (?:Critic|User|Rating)", re.IGNORECASE)
_OF_REVIEWS: Final = re.compile(r"/(?:critic|user)-reviews$")
_CRITICS_COUNTED: Final = re.compile(r"\bbased on \d[\d,]* Critic", re.IGNORECASE)
_OUT_OF: Final = re.compile(r"\b(\S{1,20}) out of 10+$")
_SHIFTED_DURATION: Final = re.compile(r"^PT(?:(?P<hours>\d{1,2})M)?(?P<minutes>[1-5]?\d)S$")
_ONE_UNIT_DURATION: Final = re.compile(r"^PT\dM$")
_SCRIPT_TAG: Final = re.compile(rb"<script\b[^<>]*>", re.IGNORECASE)
_RESULTS: Final = re.compile(r"of ([\d,]+) results?")
_RESULT_LINE: Final = re.compile(r"^(?P<type>\D+?)(?:, (?P<year>\d{4}))?$")


def title(body: bytes, url: str | None, *, details: bool = False) -> Movie:
    """Return the title that a page of any of these generations is about.

    `url` is where it came from; the page's own address wins. `details` is for the page of details and credits: its summary is the title page's, and left to that one.
    """
    linked = next((thing for thing in json_ld(body) if thing.get("@type") in _TITLE_TYPES), None)
    if is_bare(body):
        if linked is None:
            raise ShapeError("page", "neither a payload nor JSON-LD nor markup of a title")
        return _from_json_ld(linked, _required_id(dig_text(linked, "url")))
    page = _tree(body)
    site_id = _required_id(_own_address(page) or url)
    if page.css('[data-testid="critic-score-info"], [data-testid="user-score-info"]'):
        if linked is None:
            raise ShapeError("page", "no JSON-LD of a title")
        return _from_nuxt2(page, linked, site_id)
    return _from_labels(page, linked or {}, site_id, details=details)


def browse(body: bytes, url: str | None) -> Listing:
    """Return a browse page: the table with summaries, the condensed list, or the cards since 2023."""
    page = _tree(body)
    rows = page.css("td.clamp-summary-wrap, tr.summary_row, #main ol.list_products > li.product, .c-finderProductCard")
    if not rows:
        raise ShapeError("entries", "no list that is known")
    return Listing(site="metacritic", entries=[_browse_row(row) for row in rows], next=_next(page, url))


def search(body: bytes, url: str | None) -> Listing:
    """Return a search page: titles, but also people, companies and articles, which have kind `other`."""
    page = _tree(body)
    counted = fold(" ".join(page.css(".query_results ::text").getall()))
    total = _RESULTS.search(counted)
    rows = page.css("ul.search_results > li.result, a.c-pageSiteSearch-results-item")
    if not rows and "No search results" not in " ".join(page.css(".search_results ::text").getall()):
        raise ShapeError("entries", "no list that is known")
    return Listing(
        site="metacritic",
        entries=[_result_row(row) for row in rows],
        total=parse_integer(total[1]) if total else None if rows else 0,
        next=_next(page, url),
    )


def _tree(body: bytes) -> Selector:
    """Return the page's tree, if all of it is there: a list or a score that was cut off would look like none."""
    check_whole(body)
    return tree_of(body)


def is_bare(body: bytes) -> bool:
    """Return whether a page was trimmed to its JSON-LD: it then is whole, and without any other script."""
    with suppress(ShapeError):
        check_whole(body)
        kinds = [b"application/ld+json" in tag for tag in _SCRIPT_TAG.findall(body)]
        return bool(kinds) and all(kinds)
    return False


def _own_address(page: Selector) -> str | None:
    # The canonical link of a season is its series: its heading and og:url are the season's own.
    heading = page.css("h1.product_title > a, .product_page_title > a").attrib.get("href")
    own = page.css('meta[property="og:url"]::attr(content)').get()
    stated = (heading, own, page.css('link[rel="canonical"]::attr(href)').get())
    return next((address for address in stated if address and id_in(address)), None)


def _required_id(url: str | None) -> str:
    site_id = id_in(url)
    if site_id is None:
        raise ShapeError("site_id", f"{url!r} names no title")
    return site_id


# --- JSON-LD --------------------------------------------------------------------------------------------------------


def _from_json_ld(linked: dict[str, Any], site_id: str) -> Movie:
    name = dig_text(linked, "name")
    if name is None:
        raise ShapeError("title", "JSON-LD without a name")
    movie = new_movie(site_id, name)
    movie.release_date, movie.year = read_date(dig_text(linked, "datePublished"))
    movie.runtime_minutes = _json_ld_runtime(dig_text(linked, "duration"))
    movie.genres = [genre for genre in map(dig_text, _listed(linked, "genre")) if genre]
    movie.certificate = dig_text(linked, "contentRating")
    movie.plot = dig_text(linked, "description")
    movie.poster_url = read_poster(dig_text(linked, "image"))
    movie.credits = [
        *_json_ld_people("director", _listed(linked, "director")),
        *_json_ld_people("cast", _listed(linked, "actor")),
    ]
    rating = dig(linked, "aggregateRating")
    if rating is not None:
        value, count = dig(rating, "ratingValue"), dig(rating, "reviewCount")
        if value is None:
            raise ShapeError("aggregateRating", "a rating without a value")
        movie.scores = [
            new_score("metascore", parse_integer(str(value)), None if count is None else parse_integer(str(count))),
        ]
    return movie


def _listed(linked: dict[str, Any], key: str) -> list[Any]:
    value = linked.get(key)
    return dig_list(value) if isinstance(value, list) else [] if value is None else [value]


def _json_ld_people(role: Role, people: list[Any]) -> list[Credit]:
    named = ((dig_text(person, "name"), dig_text(person, "url")) for person in people)
    return new_credits(role, ((name, link, None) for name, link in named if name))


def _json_ld_runtime(text: str | None) -> int | None:
    """Return a runtime in minutes.

    In 2026 the JSON-LD has hours where minutes belong and minutes where seconds do: `PT2M17S` is 2 h 17 min, `PT58S`
    58 min. `PT2M` may then be 2 hours or, on pages before that, 2 minutes: it is not read.
    """
    # "PT" and "PT0S" are titles without one.
    if text is None or _ONE_UNIT_DURATION.match(text) or not re.search(r"[1-9]", text):
        return None
    shifted = _SHIFTED_DURATION.match(text)
    if shifted:
        return check_runtime(int(shifted["hours"] or 0) * 60 + int(shifted["minutes"]))
    return parse_runtime(text)


# --- Nuxt 2 ---------------------------------------------------------------------------------------------------------


def _from_nuxt2(page: Selector, linked: dict[str, Any], site_id: str) -> Movie:
    movie = _from_json_ld(linked, site_id)
    movie.scores = [
        score
        for score in (
            _nuxt2_score(page, "metascore", "critic-score-info"),
            _nuxt2_score(page, "metacritic_user", "user-score-info"),
        )
        if score
    ]
    facts = {
        _text(section.css("span")[:1]): _text(section.css("span")[1:2])
        for section in page.css(".c-movieDetails_sectionContainer")
    }
    duration = facts.get("Duration")
    if duration:
        movie.runtime_minutes = parse_runtime(duration)
    if movie.release_date is None:
        movie.release_date, year = read_date(facts.get("Release Date"))
        movie.year = movie.year or year
    movie.certificate = movie.certificate or facts.get("Rating") or None
    directors = new_credits("director", _linked_names(page.css(".c-productDetails_staff_directors")[:1]))
    writers = new_credits("writer", _linked_names(page.css(".c-productDetails_staff_writers")[:1]))
    movie.credits = [*(directors or movie.people("director")), *writers, *movie.people("cast")]
    return movie


def _nuxt2_score(page: Selector, kind: ScoreKind, testid: str) -> Score | None:
    """Return a score of the page's head; its count is that of the platform shown, unlike the JSON-LD's."""
    boxes = page.css(f'[data-testid="{testid}"]')
    if not boxes:
        raise ShapeError("scores", f"no {testid}")
    # The title reads "Metascore 94 out of 100".
    worded = _OUT_OF.search(boxes[0].css('[title*=" out of "]::attr(title)').get(""))
    value = worded[1] if worded else _text(boxes[0].css(".c-siteReviewScore"))
    return _worded_score(kind, value, _spaced(boxes[0]))


# --- Pages with labels ----------------------------------------------------------------------------------------------


def _from_labels(page: Selector, linked: dict[str, Any], site_id: str, *, details: bool) -> Movie:
    name = page.css('meta[property="og:title"]::attr(content)').get() or next(
        (text for heading in _HEADINGS if (text := _text(page.css(heading)[:1]))), None
    )
    if not name:
        raise ShapeError("title", "neither an og:title nor a heading")
    facts = _labelled(page)
    movie = _from_json_ld(linked, site_id) if linked else new_movie(site_id, fold(name))
    movie.title = without_season(site_id, fold(html.unescape(name)))
    released, year = read_date(
        _fact(facts, "release date", "series premiere date", "season premiere date", "premiere date")
    )
    displayed_year = page.css(".product_page_title .release_year::text").get()
    movie.release_date = released or movie.release_date
    movie.year = parse_year(displayed_year) if displayed_year else year or movie.year
    movie.runtime_minutes = _labelled_runtime(_fact(facts, "runtime", "episode length")) or movie.runtime_minutes
    movie.genres = _split(_fact(facts, "genre(s)", "genres", "genre")) or movie.genres
    movie.countries = _split(_fact(facts, "country", "countries"))
    movie.languages = _split(_fact(facts, "language", "languages"))
    movie.certificate = read_certificate(_fact(facts, "rating")) or movie.certificate
    movie.plot = None if details else _plot(facts.get("summary")) or movie.plot
    movie.poster_url = movie.poster_url or read_poster(
        page.css('meta[itemprop="image"]::attr(content), .pfull_summary img::attr(src)').get()
        or page.css('meta[property="og:image"]::attr(content)').get(),
    )
    # The JSON-LD of these pages repeats the key of an actor for each: a JSON object has the last only.
    movie.credits = _credits_of_tables(page) or [
        *_labelled_people(facts, "director", "director", "directors", "director(s)"),
        *_labelled_people(facts, "writer", "writer", "writers", "writer(s)"),
        *_labelled_people(facts, "creator", "creator", "creators", "creator(s)"),
        *_labelled_people(facts, "cast", "starring", "cast"),
    ]
    movie.scores = _marked_scores(page, linked)
    return movie


def _labelled(page: Selector) -> dict[str, Selector]:
    """Return the node around each label of the main column and its value, by the label in lower case."""
    facts: dict[str, Selector] = {}
    for label in page.xpath(_MAIN_LABELS):
        if label.xpath("following-sibling::*[1]"):
            facts.setdefault(_text(label).rstrip(": ").lower(), label.xpath("..")[0])
    return facts


def _fact(facts: dict[str, Selector], *labels: str) -> str | None:
    """Return the text after the first of these labels that the page has."""
    holder = next((facts[label] for label in labels if label in facts), None)
    return None if holder is None else _text(holder).partition(":")[2].strip() or None


def _labelled_runtime(text: str | None) -> int | None:
    if text is None:
        return None
    # Television has bare minutes, as in "Episode Length: 30".
    return check_runtime(parse_integer(text)) if text.isdecimal() else parse_runtime(text)


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()] if text else []


def _plot(summary: Selector | None) -> str | None:
    """Return the whole text where the page shows a part and unfolds the rest."""
    if summary is None:
        return None
    return _text(summary.css(".blurb_expanded")[:1]) or _fact({"summary": summary}, "summary")


def _labelled_people(facts: dict[str, Selector], role: Role, *labels: str) -> list[Credit]:
    holder = next((facts[label] for label in labels if label in facts), None)
    return [] if holder is None else new_credits(role, _linked_names(holder))


def _credits_of_tables(page: Selector) -> list[Credit]:
    """Return the credits of a details page: first the principal cast, then all of it, alphabetically.

    The column of the part played says "Principal Cast" or "Cast" where none is known.
    """
    people: dict[Role, list[tuple[str, str | None, str | None]]] = {}
    for table in page.css("table.credits"):
        heading = _text(table.css("th.person")).lower()
        role = _ROLES_OF_TABLES.get(heading)
        if role is None:
            continue
        for row in table.css("tbody tr"):
            name, part = _text(row.css("td.person")), _text(row.css("td.role"))
            if not name:
                raise ShapeError("credits", "a row without a name")
            character = part if role == "cast" and part.lower() not in _ROLES_OF_TABLES else None
            people.setdefault(role, []).append((name, row.css("td.person a::attr(href)").get(), character or None))
    return [credit for role, rows in people.items() for credit in new_credits(role, rows)]


def _marked_scores(page: Selector, linked: dict[str, Any]) -> list[Score]:
    """Return the scores in a page's head.

    Every page has a place for the users' score, which says "tbd" while there is none. The critics' has been left out
    of some pages without reviews; a page without either is not one of these.
    """
    # To 2013 the mark was a `score_value` in one of two wraps.
    of_critics = page.css(
        ".metascore_w.larger:not(.user):not(.indiv), .metascore_w.xlarge:not(.user):not(.indiv),"
        " .feature_metascore .score_value"
    )
    of_users = page.css(
        ".metascore_w.user.larger:not(.indiv), .metascore_w.user.large:not(.indiv), .feature_userscore .score_value"
    )
    if not of_users:
        raise ShapeError("scores", "no place for the users' score")
    if not of_critics and ("aggregateRating" in linked or _CRITICS_COUNTED.search(_spaced(page))):
        raise ShapeError("scores", "a count of critics or a metascore in the JSON-LD, and none on the page")
    return [
        score
        for score in (
            _marked_score("metascore", of_critics[0]) if of_critics else None,
            _marked_score("metacritic_user", of_users[0]),
        )
        if score
    ]


def _marked_score(kind: ScoreKind, mark: Selector) -> Score | None:
    # The count stands beside the mark: in the same row of a table, or in the same box.
    around = mark.xpath("ancestor::*[position() <= 4][contains(., 'ased on')][1]")
    return _worded_score(kind, _text(mark), _spaced(around[0]) if around else "")


def _worded_score(kind: ScoreKind, value: str, around: str) -> Score | None:
    if value.lower() == "tbd":
        return None
    counted = _BASED_ON.search(around)
    return new_score(kind, parse_decimal(value), parse_integer(counted[1]) if counted else None)


# --- Lists ----------------------------------------------------------------------------------------------------------


def _browse_row(row: Selector) -> Entry:
    link = row.css("a.title, .product_title a, .title_wrapper .title a") or row.css('a[href^="/"]')
    date_text = _text(
        row.css(
            ".clamp-details > span, .release_date .data, .date_wrapper span, .c-finderProductCard_meta .u-text-uppercase"
        )[:1]
    )
    marks = row.css(
        ".clamp-metascore .metascore_w, .product_score .metascore_w, .score_wrapper .metascore_w:not(.user),"
        " .c-siteReviewScore"
    )
    of_users = row.css(".clamp-userscore .metascore_w, .product_avguserscore .data")
    rank = _text(row.css(".numbered, td.rank, .c-finderProductCard_titleHeading span:nth-last-child(2)")[:1])
    name = _text(link.css("h3 span:last-child")[:1]) or _text(link.css("h3")[:1]) or _text(link[:1])
    return _entry(
        link.attrib.get("href"),
        name,
        date_text,
        {"metascore": _text(marks[:1]), "metacritic_user": _text(of_users[:1])},
        rank=parse_integer(rank.rstrip(".")) if rank else None,
    )


def _result_row(row: Selector) -> Entry:
    if row.root.tag == "a":
        return _card_of_result(row)
    link = row.css(".product_title a")
    date_text = _text(row.css(".release_date .data")[:1])
    kind_text = _text(row.css(".result_type strong")[:1])
    if not kind_text:
        # Since 2018: "Movie, 2019"
        line = _RESULT_LINE.match(_text(row.css(".main_stats p")[:1]))
        if not line:
            raise ShapeError("entries", "a result that does not say what it is")
        kind_text, date_text = line["type"], line["year"] or date_text
    entry = _entry(
        link.attrib.get("href"),
        _text(link[:1]),
        date_text,
        {
            "metascore": _text(row.css(".main_stats .metascore_w:not(.user)")[:1]),
            "metacritic_user": _text(row.css(".product_avguserscore .data")[:1]),
        },
    )
    entry.kind = _TYPES_OF_RESULTS.get(kind_text, "other")
    return entry


def _card_of_result(card: Selector) -> Entry:
    """Read a search's result since 2023."""
    entry = _entry(
        card.attrib.get("href"),
        _text(card.css("p")[:1]),
        _text(card.css(".u-text-uppercase:not(.c-tagList_button)")[:1]),
        {"metascore": _text(card.css(".c-siteReviewScore")[:1])},
    )
    entry.kind = entry.kind or "other"
    return entry


def _entry(link: str | None, name: str, date_text: str, scores: dict[ScoreKind, str], rank: int | None = None) -> Entry:
    # The first link of a row can be that of its reviews.
    path = _OF_REVIEWS.sub("", urlsplit(link).path.strip("/")) if link else ""
    if not path or not name:
        raise ShapeError("entries", f"a row without {'a name' if path else 'a link'}")
    day, year = read_date(date_text or None)
    return Entry(
        site_id=path,
        title=name,
        year=year,
        kind=KINDS.get(path.partition("/")[0]),
        rank=rank,
        release_date=day,
        scores=[score for kind, text in scores.items() if text and (score := _worded_score(kind, text, ""))],
    )


def _next(page: Selector, url: str | None) -> str | None:
    link = page.css('a[rel="next"]::attr(href), link[rel="next"]::attr(href)').get()
    return urljoin(url or HOMES["metacritic"], link) if link else None


# --- Trees ----------------------------------------------------------------------------------------------------------


def _text(nodes: Selector | Iterable[Selector]) -> str:
    """Return the text of nodes, white space folded; "" when there is none."""
    several = [nodes] if isinstance(nodes, Selector) else nodes
    return fold(" ".join(node.xpath("string()").get("") for node in several))


def _spaced(node: Selector) -> str:
    """Return the text of a node with a space between its elements, which may stand without any."""
    return fold(" ".join(node.xpath(".//text()").getall()))


def _linked_names(nodes: Selector | Any) -> list[tuple[str, str | None, None]]:
    links = nodes.css('a[href*="/person/"]')
    return [(_text(link).rstrip(", "), link.attrib["href"], None) for link in links if _text(link)]
