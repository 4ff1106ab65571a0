"""Metacritic's pages without a JSON payload: the markup of 2010 to 2023, Nuxt 2 (2023 to early 2026), bare JSON-LD.

Three layouts name their facts by labels ("Runtime:", "Starring:"): the product pages of 2010 (television and games kept
it to the end), the movie pages of 2016 and the details pages. Nuxt 2 has its data in a script that is JavaScript, not
JSON: its JSON-LD and `data-testid`s are read instead.
"""

from __future__ import annotations

import html
import re
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import check_whole, json_ld
from moviecrawler.extract.findings import ABSENT, Findings, NoValue, ShapeError, attempt, new_score
from moviecrawler.extract.metacritic_values import (
    credits_of,
    id_in,
    new_movie,
    read_certificate,
    read_date,
    read_day,
    read_poster,
    without_season,
)
from moviecrawler.extract.trees import text_of, tree_of
from moviecrawler.extract.values import check_runtime, parse_decimal, parse_integer, parse_runtime, parse_year
from moviecrawler.texts import fold
from moviecrawler.urls import part_of_series

if TYPE_CHECKING:
    from collections.abc import Callable

    from parsel import Selector, SelectorList

    from moviecrawler.items import Credit, Movie, Role, Score, ScoreKind

_T = TypeVar("_T")
_TITLE_TYPES: Final = ("Movie", "TVSeries", "TVSeason", "TVEpisode", "VideoGame", "MusicAlbum")
_PEOPLE: Final[dict[Role, tuple[str, ...]]] = {
    "director": ("director", "directors", "director(s)"),
    "writer": ("writer", "writers", "writer(s)"),
    "creator": ("creator", "creators", "creator(s)"),
    "cast": ("starring", "cast"),
}
"""The labels of each role."""
_HEADINGS: Final = (".product_page_title h1", "h1.product_title [itemprop=name]", ".product_title a")
_ROLES_OF_TABLES: Final[dict[str, Role]] = {
    "director": "director",
    "writer": "writer",
    "creator": "creator",
    "principal cast": "cast",
    "cast": "cast",
    "star": "cast",
}
_MAIN_LABELS: Final = (
    "//*[contains(concat(' ', @class, ' '), ' label ') or self::th[@scope='row']]"
    "[not(ancestor::*[@id='side' or contains(concat(' ', @class, ' '), ' side_col ')])]"
)
_BASED_ON: Final = re.compile(r"\bbased on (\S+) (?:Critic|User|Rating)", re.IGNORECASE)
_OUT_OF: Final = re.compile(r"\b(\S+) out of 10+$")
_SHIFTED_DURATION: Final = re.compile(r"^PT(?:(?P<hours>\d{1,2})M)?(?P<minutes>[1-5]?\d)S$")
_ONE_UNIT_DURATION: Final = re.compile(r"^PT\dM$")
_SCRIPT_TAG: Final = re.compile(rb"<script\b[^<>]*>", re.IGNORECASE)


def title(body: bytes, url: str | None, *, details: bool = False) -> Movie:
    """Return the title that a page of any of these generations is about.

    `url` is where it came from. `details` is for the page of details and credits: its summary is the title page's, and left to that one.
    """
    linked = title_in_json_ld(body)
    if is_bare(body):
        if not linked:
            raise ShapeError("page", "neither a payload nor JSON-LD nor markup of a title")
        name = dig.text(linked, "name")
        if name is None:
            raise ShapeError("title", "JSON-LD without a name")
        found = Findings(new_movie(_required_id(dig.text(linked, "url") or url), name))
        _look_in_json_ld(found, linked, is_whole=True)
        _look_for_cast(found, linked)
        return found.done()
    page = whole_tree(body)
    site_id = _required_id(_own_address(page, linked, url))
    if part_of_series("metacritic", site_id) and dig.at(linked, "@type") == "TVSeries":
        linked = {}  # that of the season's series
    is_nuxt2 = bool(page.css(f"{_NUXT_SECTIONS}, .c-productDetails_staff_directors, [data-testid=critic-score-info]"))
    # Nuxt 2 has "Reviews" behind the title in its head.
    title_ = _title(page, linked, site_id)
    of_episode = dig.at(linked, "@type") == "TVEpisode"
    if is_nuxt2 or of_episode:
        title_ = dig.text(linked, "name") or title_.removesuffix(" Reviews")
    found = Findings(new_movie(site_id, title_))
    facts = _labelled(page)
    if of_episode:
        found.look("series_title", lambda: dig.text(linked, "partOfSeries", "name"))
        _look_in_json_ld(found, linked, is_whole=False)
    elif is_nuxt2:
        _look_in_nuxt2(found, page, linked)
    else:
        _look_at_labels(found, facts, page, linked, details=details)
    if not details:
        _look_for_cast(found, linked)
    return found.done()


def look_beside_payload(found: Findings, body: bytes) -> None:
    """Find what a page's JSON-LD and markup say of what its payload hasn't told."""
    linked = title_in_json_ld(body)
    _look_in_json_ld(found, linked, is_whole=False)
    for kind, testid in _NUXT_SCORES.items():
        if found.is_open(f"scores.{kind}") and testid.encode() in body:
            page = tree_of(body)
            found.look(f"scores.{kind}", partial(_nuxt2_score, page, kind, testid))


def title_in_json_ld(body: bytes) -> dict[str, Any]:
    """Return the title in a page's JSON-LD; empty without one."""
    return next((thing for thing in json_ld(body) if thing.get("@type") in _TITLE_TYPES), {})


def _title(page: Selector, linked: dict[str, Any], site_id: str) -> str:
    name = (
        page.css('meta[property="og:title"]::attr(content)').get()
        or next((text for heading in _HEADINGS if (text := text_of(page.css(heading)))), None)
        or dig.text(linked, "name")
    )
    if not name:
        raise ShapeError("title", "neither an og:title nor a heading nor JSON-LD with a name")
    return without_season(site_id, fold(html.unescape(name)))


def whole_tree(body: bytes) -> Selector:
    """Return the page's tree, if all of it is there: a list or a score that was cut off would look like none."""
    check_whole(body)
    return tree_of(body)


def is_bare(body: bytes) -> bool:
    """Return whether a page was trimmed to its JSON-LD: it then is whole, and without any other script."""
    with suppress(ShapeError):
        check_whole(body)
        kinds = [b"application/ld+json" in tag for tag in _SCRIPT_TAG.findall(body)]
        return bool(kinds) and all(kinds) and b"<div" not in body
    return False


def _own_address(page: Selector, linked: dict[str, Any], url: str | None) -> str | None:
    """Return the address that the page gives as its own, or `url` where it links to pages of that title. A page of an error does neither."""
    # The canonical link of a season is its series: its heading and og:url are the season's own.
    heading = page.css("h1.product_title > a, .product_page_title > a").attrib.get("href")
    own = page.css('meta[property="og:url"]::attr(content)').get()
    canonical = page.css('link[rel="canonical"]::attr(href)').get()
    stated = (heading, own, canonical, attempt(lambda: dig.text(linked, "url")))
    found = next((address for address in stated if address and id_in(address)), None)
    if (
        found is None
        and (asked := id_in(url))
        and any(id_in(href) == asked for href in page.xpath("//a/@href").getall())
    ):
        return url
    return found


def _required_id(url: str | None) -> str:
    site_id = id_in(url)
    if site_id is None:
        raise ShapeError("site_id", f"{url!r} names no title")
    return site_id


# --- JSON-LD --------------------------------------------------------------------------------------------------------


def _look_in_json_ld(found: Findings, linked: dict[str, Any], *, is_whole: bool) -> None:
    """Find what JSON-LD says, but the cast. Beside other sources (not `is_whole`) it has counts of all platforms of a game."""

    def at(read: Callable[[Any], Any], *path: str) -> Any:
        return dig.read(read, linked, *path)

    found.look("release_date", lambda: at(read_day, "datePublished"))
    found.look("year", lambda: at(_year, "datePublished"))
    found.look("runtime_minutes", lambda: at(_json_ld_runtime, "duration"))
    found.look("genres", lambda: [genre for genre in map(dig.text, dig.listed(linked, "genre")) if genre])
    found.look("certificate", lambda: at(dig.text, "contentRating"))
    found.look("plot", lambda: at(dig.text if is_whole else _whole_text, "description"))
    found.look("poster_url", lambda: at(_picture, "image"))
    found.look("credits.director", lambda: _json_ld_people("director", linked, "director"))
    has_count = is_whole or found.movie.kind in {"movie", "series"}
    found.look("scores.metascore", lambda: at(partial(_json_ld_score, has_count=has_count), "aggregateRating"))
    found.look("scores.metacritic_user", lambda: at(_json_ld_user_score, "aggregateRating"))


def _look_for_cast(found: Findings, linked: dict[str, Any]) -> None:
    """Find the cast in JSON-LD, where it has no characters."""
    found.look("credits.cast", lambda: _json_ld_people("cast", linked, "actor"))


def _whole_text(value: Any) -> str | None:
    """Return a plot, if it isn't cut: JSON-LD has had room for its beginning."""
    text = dig.text(value)
    return None if text and text.endswith(("...", "…")) else text


def _is_of_users(rating: Any) -> bool:
    """Return whether a rating is that of the users, which JSON-LD has of episodes: they have no Metascore."""
    return "user" in (dig.text(rating, "name") or "").lower()


def _json_ld_user_score(rating: Any) -> Score | None:
    value, count = dig.at(rating, "ratingValue"), attempt(lambda: parse_integer(str(dig.at(rating, "ratingCount"))))
    return new_score("metacritic_user", parse_decimal(str(value)), count) if value and _is_of_users(rating) else None


def _json_ld_score(rating: Any, *, has_count: bool) -> Score | None:
    if _is_of_users(rating):
        return None
    value, count = dig.at(rating, "ratingValue"), attempt(lambda: parse_integer(str(dig.at(rating, "reviewCount"))))
    if value is None or not (value or count):  # 0 of no reviews
        return None
    return new_score("metascore", parse_integer(str(value)), count if has_count else None)


def _year(value: Any) -> int | None:
    return read_date(dig.text(value))[1]


def _picture(value: Any) -> str | NoValue:
    address = dig.text(value)
    return read_poster(address) or (ABSENT if address else None)


def _json_ld_people(role: Role, linked: dict[str, Any], key: str) -> list[Credit]:
    """Return the people of a list. To 2018 the key is repeated for each person: a JSON object then has the last only, and no list."""
    named = [(dig.text(person, "name"), dig.text(person, "url")) for person in dig.items(linked, key)]
    if any(name is None for name, _ in named):
        raise ShapeError("credits", f"a {role} without a name")
    if any(link is None for _, link in named):
        raise ShapeError("credits", f"a {role} without an address")
    return credits_of(role, ((name, link, None) for name, link in named if name))


def _json_ld_runtime(value: Any) -> int | NoValue:
    """Return a runtime in minutes.

    In 2026 the JSON-LD has hours where minutes belong and minutes where seconds do: `PT2M17S` is 2 h 17 min, `PT58S`
    58 min. `PT2M` may then be 2 hours or, on pages before that, 2 minutes: it is not read.
    """
    text = dig.text(value)
    if text is None or _ONE_UNIT_DURATION.match(text):
        return None
    if re.fullmatch(r"PT[0HMS]*", text):  # a title without one
        return ABSENT
    shifted = _SHIFTED_DURATION.match(text)
    if shifted:
        return check_runtime(int(shifted["hours"] or 0) * 60 + int(shifted["minutes"]))
    return parse_runtime(text)


# --- Nuxt 2 ---------------------------------------------------------------------------------------------------------


_NUXT_SCORES: Final[dict[ScoreKind, str]] = {"metascore": "critic-score-info", "metacritic_user": "user-score-info"}
_NUXT_SECTIONS: Final = ".c-movieDetails_sectionContainer, .c-productionDetailsTv_sectionContainer"


def _look_in_nuxt2(found: Findings, page: Selector, linked: dict[str, Any]) -> None:
    for kind, testid in _NUXT_SCORES.items():
        found.look(f"scores.{kind}", partial(_nuxt2_score, page, kind, testid))
    sections = {text_of(section.css("span")).rstrip(": "): section for section in page.css(_NUXT_SECTIONS)}

    def fact(*labels: str) -> str:
        return next((text_of(sections[label].css("span")[1:2]) for label in labels if label in sections), "")

    found.look("runtime_minutes", lambda: parse_runtime(fact("Duration")))
    found.look("genres", lambda: [name for genre in sections["Genres"].css("li") if (name := text_of(genre))])
    for role in ("director", "writer"):
        staff = page.css(f".c-productDetails_staff_{role}s")[:1]
        found.look(f"credits.{role}", partial(_credits_in, role, staff))
    _look_in_json_ld(found, linked, is_whole=False)
    # The first release that a season's page shows is that of its series.
    released = fact("Release Date", *([] if found.movie.season else ["Initial Release Date"]))
    found.look("release_date", lambda: read_day(released))
    found.look("year", lambda: _year(released))
    found.look("certificate", lambda: fact("Rating") or None)


def _nuxt2_score(page: Selector, kind: ScoreKind, testid: str) -> Score | NoValue:
    """Return a score of the page's head; its count is that of the platform shown, unlike the JSON-LD's."""
    boxes = page.css(f'[data-testid="{testid}"]')
    # The title reads "Metascore 94 out of 100".
    worded = _OUT_OF.search(boxes[0].css('[title*=" out of "]::attr(title)').get(""))
    value = worded[1] if worded else text_of(boxes[0].css(".c-siteReviewScore"))
    return worded_score(kind, value, spaced(boxes[0]))


# --- Pages with labels ----------------------------------------------------------------------------------------------


def _look_at_labels(
    found: Findings, facts: dict[str, Selector], page: Selector, linked: dict[str, Any], *, details: bool
) -> None:
    def fact(read: Callable[[str], _T | NoValue], *labels: str) -> _T | NoValue:
        text = _fact(facts, *labels)
        return None if text is None else read(text)

    released: tuple[str, ...] = ("release date", "series premiere date", "season premiere date", "premiere date")
    if (season := found.movie.season) is not None:  # the head of its page has the premiere of its series
        released = (f"season {season} premiere date", "season premiere date")
    displayed_year = page.css(".product_page_title .release_year::text").get()
    found.look("release_date", lambda: fact(read_day, *released))
    found.look("year", lambda: parse_year(displayed_year) if displayed_year else fact(_year, *released))
    found.look("runtime_minutes", lambda: fact(_labelled_runtime, "runtime", "episode length"))
    found.look("genres", lambda: fact(_split, "genre(s)", "genres", "genre"))
    found.look("countries", lambda: fact(_split, "country", "countries"))
    found.look("languages", lambda: fact(_split, "language", "languages"))
    found.look("certificate", lambda: fact(read_certificate, "rating"))
    if not details:
        found.look("plot", lambda: _plot(facts.get("summary")))
    _look_for_scores(found, page)
    tables = _credits_of_tables(page)
    for role, labels in _PEOPLE.items():
        if role != "creator" or found.movie.kind == "series":
            found.look(f"credits.{role}", partial(tables.get, role), partial(_labelled_people, facts, role, labels))
    if details:
        linked = {key: value for key, value in linked.items() if key != "description"}
    _look_in_json_ld(found, linked, is_whole=False)
    for css in ('meta[itemprop="image"]', ".pfull_summary img", 'meta[property="og:image"]'):
        picture = page.css(css).xpath("@content | @src").get()
        found.look("poster_url", partial(_picture, picture))


def _labelled(page: Selector) -> dict[str, Selector]:
    """Return the node around each label of the main column and its value, by the label in lower case."""
    facts: dict[str, Selector] = {}
    for label in page.xpath(_MAIN_LABELS):
        if label.xpath("following-sibling::*"):
            facts.setdefault(text_of(label).rstrip(": ").lower(), label.xpath("..")[0])
    return facts


def _fact(facts: dict[str, Selector], *labels: str) -> str | None:
    """Return the text after the first of these labels that the page has."""
    holder = next((facts[label] for label in labels if label in facts), None)
    return None if holder is None else text_of(holder).partition(":")[2].strip() or None


def _labelled_runtime(text: str) -> int:
    # Television has bare minutes, as in "Episode Length: 30".
    return check_runtime(parse_integer(text)) if text.isdecimal() else parse_runtime(text)


def _split(text: str) -> list[str] | None:
    return [part.strip() for part in text.split(",") if part.strip()] or None


def _plot(summary: Selector | None) -> str | None:
    """Return the whole text where the page shows a part and unfolds the rest."""
    if summary is None:
        return None
    if summary.css(".blurb_collapsed, .toggle_expand"):
        return text_of(summary.css(".blurb_expanded")) or None
    return _fact({"summary": summary}, "summary")


def _labelled_people(facts: dict[str, Selector], role: Role, labels: tuple[str, ...]) -> list[Credit]:
    holder = next((facts[label] for label in labels if label in facts), None)
    return [] if holder is None else _credits_in(role, holder)


def _credits_in(role: Role, holder: Selector | SelectorList[Selector]) -> list[Credit]:
    links = holder.css('a[href*="/person/"]')
    return credits_of(
        role, [(text_of(link).rstrip(", "), link.attrib["href"], None) for link in links if text_of(link)]
    )


def _credits_of_tables(page: Selector) -> dict[Role, list[Credit]]:
    """Return the credits of a details page: first the principal cast, then all of it, alphabetically; some films have one of the two.

    The column of the part played says "Principal Cast" or "Cast" where none is known. A table that can't be read leaves
    its role out.
    """
    people: dict[Role, list[tuple[str, str | None, str | None]]] = {}
    tables = [(text_of(table.css("th.person")).lower(), table) for table in page.css("table.credits")]
    # The summary of a table, as in "Her's Cast Credits", says again whose it is.
    are_named = all(table.attrib.get("summary", "").lower().endswith(f"{heading} credits") for heading, table in tables)
    of_cast = sum(heading in {"cast", "principal cast"} for heading, _ in tables)
    unread: set[Role] = {"cast"} if of_cast == 1 and not are_named else set()
    for heading, table in tables:
        role = _ROLES_OF_TABLES.get(heading)
        if role is None:
            continue
        for row in table.css("tbody tr"):
            name, part = text_of(row.css("td.person")), text_of(row.css("td.role"))
            if not name or not row.css("td.role"):
                unread.add(role)
            character = part if role == "cast" and part.lower() not in _ROLES_OF_TABLES else None
            people.setdefault(role, []).append((name, row.css("td.person a::attr(href)").get(), character or None))
    return {role: credits_of(role, rows) for role, rows in people.items() if role not in unread}


def _look_for_scores(found: Findings, page: Selector) -> None:
    """Find the scores in a page's head. The place of the users' score says "tbd" while there is none."""
    # To 2013 the mark was a `score_value` in one of two wraps.
    of_critics = page.css(
        ".metascore_w.larger:not(.user):not(.indiv), .metascore_w.xlarge:not(.user):not(.indiv),"
        " .feature_metascore .score_value"
    )
    of_users = page.css(
        ".metascore_w.user.larger:not(.indiv), .metascore_w.user.large:not(.indiv), .feature_userscore .score_value"
    )
    found.look("scores.metascore", lambda: _marked_score("metascore", of_critics[0]))
    found.look("scores.metacritic_user", lambda: _marked_score("metacritic_user", of_users[0]))


def _marked_score(kind: ScoreKind, mark: Selector) -> Score | NoValue:
    # The count stands beside the mark: in the same row of a table, or in the same box.
    around = mark.xpath("ancestor::*[position() <= 4][contains(., 'ased on')][1]")
    return worded_score(kind, text_of(mark), spaced(around[0]) if around else "")


def worded_score(kind: ScoreKind, value: str, around: str) -> Score | NoValue:
    """Return a score of its text, with the count in the words around it; ABSENT of "tbd"."""
    if value.lower() == "tbd":
        return ABSENT
    if not value:
        return None
    counted = _BASED_ON.search(around)
    count = attempt(lambda: parse_integer(counted[1])) if counted else None
    return new_score(kind, parse_decimal(value), count)


# --- Trees ----------------------------------------------------------------------------------------------------------


def spaced(node: Selector) -> str:
    """Return the text of a node with a space between its elements, which may stand without any."""
    return fold(" ".join(node.xpath(".//text()").getall()))
