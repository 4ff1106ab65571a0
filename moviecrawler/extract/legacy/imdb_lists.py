"""IMDb's charts, searches, calendars and lists of episodes, read from markup."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import reader
from moviecrawler.extract.findings import ShapeError, attempt, scores_of
from moviecrawler.extract.legacy.imdb_document import (
    LABELS,
    Document,
    all_text,
    attribute,
    first_text,
    imdb_score,
    linked_score,
    metascore,
    of_class,
    own_text,
    release_words,
    unquoted,
)
from moviecrawler.extract.legacy.imdb_numbers import numbers_in, season_count, season_shown
from moviecrawler.extract.values import find_date, parse_date, parse_integer, parse_year
from moviecrawler.items import Entry, Listing, Page
from moviecrawler.sites import SITES
from moviecrawler.texts import fold
from moviecrawler.urls import id_in_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from parsel import Selector, SelectorList

    from moviecrawler.items import TitleKind

_IN_PARENTHESES = re.compile(r"\(([^()]*)\)")
_PLACE_AND_TITLE = re.compile(r"(?:(\d+)\. )?(.+)")
_COUNTED = re.compile(r"(\d[\d,]{0,20})-(\d[\d,]{0,20}) of (\d[\d,]{0,20})")
_NUMBER = re.compile(r"\d[\d,.\u00a0\u202f]*")
_EPISODE_NUMBER = re.compile(r"(\d{1,9})\.\s", re.ASCII)
_USERS_RATED = re.compile(r"(?<![\d.,])([\d.,]+)/10 \((\d[\d,.\u00a0\u202f]*) ")
_RATING = re.compile(r"\d{1,9}[.,]\d")
_STAR_AND_VOTES = re.compile(r"(\d{1,9}(?:[.,]\d)?)\s?(?:\(\s?([^()]{1,40}?)\s?\))?$")
_TITLE_LINKS = ".//a[contains(@href, '/title/tt')]"
_OF_TITLE = (
    f"{_TITLE_LINKS} and not((.//a[normalize-space()])[1]"
    "[contains(@href, '/name/') or contains(@href, '/character/') or contains(@href, '/company/')])"
)
"""That a row is about a title, not about a person, a character or a company with titles beside the name."""


@reader
def listing(body: bytes, url: str | None) -> Page:
    """Return the rows of a chart, /search/title, /find or /calendar page.

    Raises ExtractionError when the page was cut off or has a layout that isn't known.
    """
    document = Document(body, url)
    root = document.root
    kind, entries = _rows(document)
    section = urlsplit(document.address).path.strip("/").partition("/")[0]
    if section in {"chart", "search", "find", "calendar"}:
        kind = section
    if not entries:
        _require_empty(root.css(".findHeader, .lister, .desc"), root.xpath("//*[@id='main']"))
    total = _total(root) if kind == "search" else None
    counted = _counted(root)
    if counted and len(entries) < counted[0]:
        # Until scripts run, a new page shows 25; the others are in data that this one lacks.
        raise ShapeError("entries", f"the page says that it lists {counted[0]} titles, and shows {len(entries)}")
    following = attribute(root.css("a.lister-page-next, .pagination a:last-child"), "href")
    base = urljoin(SITES["imdb"].home, url or document.address)
    return Page(
        site="imdb",
        kind=kind,
        listing=Listing(
            site="imdb",
            entries=entries,
            total=total if total is not None or counted is None else counted[1],
            next=urljoin(base, following) if following else None,
        ),
    )


@reader
def episodes(body: bytes, url: str | None) -> Page:
    """Return a series, and the episodes of the season that its page shows.

    Raises ExtractionError when the page was cut off or has a layout that isn't known.
    """
    document = Document(body, url)
    root = document.root
    layouts: list[tuple[str, Callable[[Selector], Entry]]] = [
        (".eplist .list_item", _episode),
        ("#eplist a.btn-full", partial(_mobile_episode, season_shown(root))),
        ("#tn15content .filter-all", _oldest_episode),
        ("article.episode-item-wrapper", _episode_card),
    ]
    entries = next((rows for css, read in layouts if (rows := [read(row) for row in root.css(css)])), [])
    if root.css("article.episode-item-wrapper") and root.css("[class*=see-more]"):
        raise ShapeError("entries", "the page shows the first episodes of its season alone")
    if not entries:
        shown = root.css(".eplist, #eplist")
        _require_empty(shown, shown)
    found = document.findings()
    found.look("season_count", lambda: season_count(root))
    return Page(site="imdb", kind="episodes", movie=found.done(), listing=Listing(site="imdb", entries=entries))


def _require_empty(signs: SelectorList[Selector], lists: SelectorList[Selector]) -> None:
    """Raise ShapeError unless there is a sign of a list, and no title in what holds it: it is one of nothing then.

    People whom a search finds may have titles beside them.
    """
    if not signs or lists.xpath(f"{_TITLE_LINKS}[not(ancestor::tr[{of_class('findResult')}])]"):
        raise ShapeError("entries", "no list that is known")


def _rows(document: Document) -> tuple[str, list[Entry]]:
    """Return the rows of the first layout that the page has any of, and the kind of list that this layout stands for."""
    layouts: list[tuple[str, str, Callable[[Selector], Entry | None]]] = [
        ("chart", f"//tr[td[{of_class('titleColumn')}]]", _chart_row),
        ("search", f"//*[{of_class('lister-item')}]", _search_row),
        ("search", f"//table[{of_class('results')}]//tr[td[{of_class('title')}]]", _old_search_row),
        ("find", "//tr[contains(@class, 'findResult')]", _find_row),
        ("calendar", "//li[@data-testid='coming-soon-entry']", _coming_soon_row),
        ("chart", f"//li[contains(@class, 'ipc-metadata-list-summary-item')][{_OF_TITLE}]", _card),
        ("calendar", f"//*[@id='main']//ul[preceding-sibling::h4]/li[{_TITLE_LINKS}]", _calendar_row),
        (
            "chart",
            f"//*[@id='tn15' or @id='main' or @id='pagecontent' and not(.//@id='main')]//tr[count(td) > 2][not(.//tr)][{_OF_TITLE}]",
            _oldest_row,
        ),
    ]
    for kind, rows, read in layouts:
        entries = [entry for row in document.root.xpath(rows) if (entry := read(row))]
        if entries:
            return kind, _with_linked(document, entries)
    return "find", []


def _with_linked(document: Document, shown: list[Entry]) -> list[Entry]:
    """Return the rows of the page's JSON-LD where it has as many: until scripts run, a new chart shows 25 of 250.

    Its votes are exact, too; but only the markup has years.
    """
    linked: dict[str, Any] = next((data for data in document.linked_data if data.get("@type") == "ItemList"), {})
    elements = dig.items(linked, "itemListElement")
    if len(elements) < len(shown):
        return shown
    by_id = {entry.site_id: entry for entry in shown}
    entries = []
    for element in elements:
        item = dig.at(element, "item")
        entry = _entry(dig.text(item, "url") or "", dig.text(item, "alternateName") or dig.text(item, "name"))
        entry = by_id.get(entry.site_id, entry)
        entry.rank = dig.integer(element, "position") or entry.rank
        entry.scores = scores_of(partial(linked_score, item)) or entry.scores
        entries.append(entry)
    return entries


def _entry(href: str, title: str | None) -> Entry:
    site_id = id_in_url("imdb", href)
    if site_id is None or not title:
        raise ShapeError("entries", f"a row links to {href!r} as {title!r}")
    return Entry(site_id=site_id, title=title)


def _linked_entry(links: SelectorList[Selector], at: int = 0) -> Entry:
    """Return an entry of the link at that place among those that have a text."""
    worded = [(attribute(link, "href"), text) for link in links if (text := all_text(link))]
    if not worded:
        raise ShapeError("entries", "a row has no link to its title")
    return _entry(*worded[at])


def _year_and_kind(text: str | None) -> tuple[int | None, TitleKind | None]:
    """Return year and kind, where given, of words such as: (I) (2009) (TV Series), (2013 TV Movie)."""
    year: int | None = None
    kind: TitleKind | None = None
    for words in _IN_PARENTHESES.findall(text or ""):
        label, first_year, _, running = release_words(words)
        year = year or first_year
        if running:
            kind = "series"
        if label.lower() in LABELS:
            kind = LABELS[label.lower()][0]
    return year, kind


def _chart_row(row: Selector) -> Entry:
    """Read a chart's row of 2013 to 2023. The box office has neither ranks nor years."""
    cell = row.css("td.titleColumn")
    entry = _linked_entry(cell.css("a"))
    entry.year, entry.kind = _year_and_kind(cell.xpath(f"string(span[{of_class('secondaryInfo')}])").get())
    rank = attribute(row.css("span[name=rk]"), "data-value")
    entry.rank = attempt(lambda: parse_integer(rank)) if rank else None
    if rating := first_text(row, "td.imdbRating strong"):
        entry.scores = scores_of(lambda: imdb_score(rating, attribute(row.css("span[name=nv]"), "data-value")))
    return entry


def _search_row(row: Selector) -> Entry:
    """Read a search's row of 2016 to 2023. An episode stands behind its series."""
    entry = _linked_entry(row.css(".lister-item-header a, .col-title a"), -1)
    entry.year, entry.kind = _year_and_kind(all_text(row.css(".lister-item-year")[-1:]))
    if index := first_text(row, ".lister-item-index"):
        entry.rank = attempt(lambda: parse_integer(index.rstrip(".")))
    if rating := first_text(
        row,
        ".ratings-imdb-rating strong, .col-imdb-rating strong, .ipl-rating-widget > .ipl-rating-star .ipl-rating-star__rating",
    ):
        # The gross has the same name as the votes.
        votes = row.xpath(".//*[@name='nv'][not(contains(., '$'))]/@data-value").get()
        entry.scores = scores_of(lambda: imdb_score(rating, votes))
    if critics := first_text(row, ".metascore"):
        entry.scores += scores_of(lambda: metascore(critics))
    return entry


def _old_search_row(row: Selector) -> Entry:
    """Read a search's row before 2016."""
    entry = _linked_entry(row.xpath(f"td[{of_class('title')}]/a"))
    entry.year, entry.kind = _year_and_kind(first_text(row, ".year_type"))
    if number := first_text(row, "td.number"):
        entry.rank = attempt(lambda: parse_integer(number.rstrip(".")))
    if rated := _USERS_RATED.search(attribute(row.css(".rating-list"), "title")):
        entry.scores = scores_of(lambda: imdb_score(rated[1], rated[2]))
    return entry


def _find_row(row: Selector) -> Entry | None:
    """Read a /find row to 2022; None when it is a person, company or keyword, which may link to titles as well."""
    links = row.css(".result_text a")
    section = urlsplit(attribute(links, "href")).path.strip("/").partition("/")[0]
    if section in {"name", "company", "keyword", "character", "search"}:
        return None
    entry = _linked_entry(links)
    entry.year, entry.kind = _year_and_kind("".join(row.css(".result_text").xpath("text()").getall()))
    return entry


def _card(row: Selector) -> Entry:
    """Read a row since 2022, of a page that scripts have completed."""
    entry = _linked_entry(row.xpath(_TITLE_LINKS))
    if (named := _PLACE_AND_TITLE.match(entry.title)) and named[1]:
        entry.rank, entry.title = int(named[1]), named[2]
    if place := first_text(row, "[data-testid=title-list-item-ranking]"):
        entry.rank = attempt(lambda: parse_integer(place.lstrip("#")))
    for fact in row.css("[class*=title-metadata-item], .ipc-metadata-list-summary-item__li"):
        _, entry.year, _, running = release_words(all_text(fact) or "")
        if entry.year:
            entry.kind = "series" if running else None
            break
    if starred := _STAR_AND_VOTES.match(first_text(row, ".ipc-rating-star--imdb") or ""):
        entry.scores = scores_of(lambda: imdb_score(starred[1], starred[2]))
    return entry


def _coming_soon_row(row: Selector) -> Entry:
    """Read a calendar's row since 2022, which has the year in its title: Lantern Row (2023)."""
    link = row.css("a.ipc-metadata-list-summary-item__t")
    text = all_text(link) or ""
    title, _, year = text.rpartition(" (")
    entry = _entry(attribute(link, "href"), title or text)
    entry.year = attempt(lambda: parse_year(year)) if title else None
    day = row.xpath("string(ancestor::*[@data-testid='calendar-section']//*[@data-testid='release-date'])")
    entry.release_date = attempt(lambda: parse_date(day.get("")))
    return entry


def _calendar_row(row: Selector) -> Entry:
    """Read a row below its day's heading: 20 October 2017."""
    entry = _linked_entry(row.xpath(_TITLE_LINKS))
    entry.year, entry.kind = _year_and_kind(own_text(row))
    entry.release_date = attempt(lambda: parse_date(fold(row.xpath("string(../preceding-sibling::h4[1])").get(""))))
    return entry


def _oldest_row(row: Selector) -> Entry:
    """Read a row to 2012 of a chart (place, rating, title with year, votes) or of /find (picture, place, title)."""
    entry = _linked_entry(row.xpath(_TITLE_LINKS))
    entry.title = unquoted(entry.title)
    entry.year, entry.kind = _year_and_kind("".join(row.xpath(f"{_TITLE_LINKS}/following-sibling::text()").getall()))
    texts = [all_text(cell) or "" for cell in row.xpath("./td")]
    place = texts[0].rstrip(".")
    if place.isdecimal():
        entry.rank = parse_integer(place)
    if _RATING.fullmatch(texts[1]):
        entry.scores = scores_of(lambda: imdb_score(texts[1], texts[-1]))
    return entry


def _episode(row: Selector) -> Entry:
    """Read an episode of 2012 to 2023. Only the star with votes beside it is IMDb's, the others are the visitor's."""
    entry = _linked_entry(row.css("strong a"))
    entry.kind = "episode"
    entry.season, entry.episode = numbers_in(first_text(row, ".image"))
    entry.release_date, entry.year = _air_date(first_text(row, ".airdate"))
    votes = row.css(".ipl-rating-star__total-votes")[:1]
    if rating := all_text(votes.xpath("preceding-sibling::*[contains(@class, '__rating')]")):
        entry.scores = scores_of(lambda: imdb_score(rating, (all_text(votes) or "").strip("()")))
    return entry


def _oldest_episode(row: Selector) -> Entry:
    """Read an episode to 2012, whose page lists those of all seasons: Season 1, Episode 2: The First Lamp."""
    heading = row.css("h3")
    entry = _linked_entry(heading.css("a"))
    entry.title = unquoted(entry.title)
    entry.kind = "episode"
    entry.season, entry.episode = numbers_in(all_text(heading))
    entry.release_date, entry.year = _air_date(first_text(row, ".less-emphasis strong"))
    return entry


def _mobile_episode(season: int | None, link: Selector) -> Entry:
    entry = _entry(attribute(link, "href"), first_text(link, ".episode-list__title-text"))
    entry.kind, entry.season = "episode", season
    number = _EPISODE_NUMBER.match(first_text(link, "span") or "")
    entry.episode = int(number[1]) if number else None
    entry.release_date, entry.year = _air_date(own_text(link))
    if rating := all_text(link.xpath("./strong")):
        entry.scores = scores_of(lambda: imdb_score(rating, None))
    return entry


def _episode_card(row: Selector) -> Entry:
    """Read an episode since 2023: S4.E0 ∙ The First Lamp. Its date may be a day early, by the server's clock."""
    entry = _linked_entry(row.css("[data-testid=slate-list-card-title] a"))
    entry.kind = "episode"
    entry.season, entry.episode = numbers_in(entry.title)
    entry.title = entry.title.partition(" ∙ ")[2] or entry.title
    aired = find_date(all_text(row.css("[data-testid=slate-list-card-title] + span")) or "")
    entry.year = int(aired[:4]) if aired and not aired.endswith("12-31") else None
    rated = first_text(row, "[data-testid='ratingGroup--imdb-rating']") or ""
    if starred := _STAR_AND_VOTES.match(rated.replace("/10", "")):
        entry.scores = scores_of(lambda: imdb_score(starred[1], starred[2]))
    return entry


def _air_date(text: str | None) -> tuple[str | None, int | None]:
    """Return date and year, where given: 2 Jun. 2002, or only 2002."""
    if not text:
        return None, None
    return attempt(lambda: parse_date(text)), attempt(lambda: parse_year(text))


def _total(root: Selector) -> int | None:
    """Return how many rows the whole search has: 1-50 of 700,604 titles., or on a single page 90 titles."""
    text = first_text(root, ".desc span, .desc, #left") or ""
    numbers = _NUMBER.findall(text)
    return parse_integer(numbers[-1].rstrip(".,")) if numbers else None


def _counted(root: Selector) -> tuple[int, int] | None:
    """Return how many rows a page since 2022 says that it lists, and the whole list: 250 Titles, 1-50 of 42,401."""
    whole = _NUMBER.match(first_text(root, "[data-testid=chart-layout-total-items]") or "")
    if whole:
        number = parse_integer(whole[0].strip())
        return number, number
    for text in root.xpath("//div[not(*)]/text()[contains(., '-')]").getall():
        if counted := _COUNTED.fullmatch(fold(text)):
            first, last, total = map(parse_integer, counted.groups())
            return last - first + 1, total
    return None
