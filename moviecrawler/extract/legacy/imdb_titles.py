"""IMDb's pages about one title, read from markup and JSON-LD: all of them to 2021, and later ones without their JSON.

IMDb translated little of these pages but the titles, so the few labels that are looked for are English. Wherever a
link's target or its `ref_` code says what a value is, that is used instead.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import reader
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError, attempt, one_of_each_title
from moviecrawler.extract.legacy.imdb_document import (
    Document,
    all_text,
    attribute,
    first_match,
    first_text,
    of_class,
    own_text,
)
from moviecrawler.extract.legacy.imdb_numbers import look_for_scores, look_for_series
from moviecrawler.extract.legacy.imdb_people import look_for_people
from moviecrawler.extract.values import check_runtime, find_date, parse_date, parse_integer, parse_runtime
from moviecrawler.items import Amount, Page, RelatedTitle
from moviecrawler.texts import fold
from moviecrawler.urls import IMDB_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from parsel import Selector

    from moviecrawler.extract.findings import Findings
    from moviecrawler.items import AmountKind

_PAGE_KINDS = {
    "combined": "reference",
    "reference": "reference",
    "criticreviews": "criticreviews",
    "releaseinfo": "releaseinfo",
}
_ROOM = 3
"""Genres that an overview and JSON-LD have room for."""
_GENRES = ("#titleStoryLine, .titlereference-section-storyline, [data-testid=storyline-genres]", ".info")

# Beside the heading, from 2021: year, certificate, runtime, and in front of them what is not a feature film.
_HERO_FACTS = "(//h1[starts-with(@data-testid, 'hero')])[1]/following-sibling::*[self::ul or .//ul][1]/descendant-or-self::ul[1]/li"
_TIMES = ".subtext time, .infobar time, .txt-block time"
_FACTS_OF_REFERENCE = ".titlereference-header .ipl-inline-list__item"
_ANY = re.compile("")
_DURATION = re.compile("P")
_SHORT_HOURS = re.compile(r"\d{1,9} ?[^\W\d]")
_HOURS = re.compile(r"\d{1,9} ?(?:h|min)\b")
_MINUTES = re.compile(r"(?:[^:|]{1,100}(?::|\s-))?\s?(\d{1,9})\s?min(?:ut\w*)?\b", re.IGNORECASE)
_RATED = re.compile(r"Rated ([A-Z0-9+-]+)(?: for\b|\.?$)")
_COUNTED = re.compile(r"(\d{1,3}(?:[,. ]\d{3}){1,3}|\d{1,9}) [^\W\d]")
_SUM = re.compile(
    r"(?P<currency>[A-Z]{3}|[^\s\d.,()]{1,4})\s*(?P<value>\d[\d,.]{0,40})[\s,]*(?:\(estimated\)|\d{1,2} \w+ \d{4})?$"
)
# How the site abbreviates currencies; all others stand as their ISO 4217 code.
_CURRENCIES = dict(
    pair.split()
    for pair in (
        *("$ USD", "€ EUR", "£ GBP", "¥ JPY", "₹ INR", "₩ KRW", "₪ ILS", "₫ VND", "₱ PHP"),
        *("A$ AUD", "CA$ CAD", "CN¥ CNY", "HK$ HKD", "MX$ MXN", "NT$ TWD"),
        *("NZ$ NZD", "R$ BRL", "₽ RUB", "₴ UAH", "₺ TRY"),
    )
)


@reader
def title(body: bytes, url: str | None = None) -> Page:
    """Return what a title's main, combined, reference, critic reviews or release info page says of it.

    Raises ExtractionError when the page was cut off, or doesn't say which title it is about.
    """
    document = Document(body, url)
    found = document.findings()
    page = _PAGE_KINDS.get(urlsplit(document.address).path.rstrip("/").rpartition("/")[2], "title")
    look_for_facts(found, document, page)
    movie = found.movie
    if movie.kind == "movie" and movie.title_type is None and "Short" in movie.genres:
        movie.kind = "short"
    return Page(site="imdb", kind=page, movie=found.done())


@reader
def full_credits(body: bytes, url: str | None = None) -> Page:
    """Return everybody whom a full credits page names as director, writer or cast.

    Raises ExtractionError when the page was cut off, or doesn't say which title it is about.
    """
    document = Document(body, url)
    found = document.findings()
    look_for_people(found, document, "fullcredits")
    found.look("poster_url", partial(_poster, document))
    return Page(site="imdb", kind="fullcredits", movie=found.done())


_KEYWORDS = "a[href*='/keyword/'] .itemprop, a[href*='/search/keyword?'] .itemprop"


def _similar(root: Selector) -> list[RelatedTitle]:
    """Return the site's recommendations, whose names are those of their pictures."""
    named = (
        (attribute(tile, "data-tconst"), attribute(tile.css("img"), "title"))
        for tile in root.css(".rec_item[data-tconst]")
    )
    return one_of_each_title(
        RelatedTitle(relation="similar", site_id=site_id, title=title)
        for site_id, title in named
        if title and IMDB_ID.fullmatch(site_id)
    )


def look_for_facts(found: Findings, document: Document, page_kind: str) -> None:
    """Find what a page's markup and its JSON-LD say of the title, of what hasn't been found yet."""
    root, data = document.root, document.title_data
    found.look("genres", *(partial(_genres_in, root, css) for css in _GENRES), partial(_brief_genres, document))
    found.look("countries", partial(_details, root, "country_of_origin=", "/country/", "/Sections/Countries/"))
    found.look("languages", partial(_details, root, "primary_language=", "/language/", "/Sections/Languages/"))
    found.look("certificate", partial(_certificate, root), lambda: dig.text(data, "contentRating"))
    found.look("release_date", partial(_release_date, root), partial(_stated_date, document))
    found.look(
        "runtime_minutes",
        lambda: _runtime((attribute(time, "datetime").strip() for time in root.css(_TIMES)), _DURATION),
        lambda: _runtime(map(all_text, root.css(_FACTS_OF_REFERENCE)), _HOURS),
        lambda: _runtime_in_block(root),
        lambda: _runtime(map(own_text, root.xpath(_HERO_FACTS)), _SHORT_HOURS),
        lambda: _runtime([dig.text(data, "duration")]),
    )
    found.look("plot", partial(_plot, root), partial(_linked_plot, document))
    found.look("keywords", lambda: [text for link in root.css(_KEYWORDS) if (text := all_text(link))])
    found.look("related.similar", partial(_similar, root))
    found.look("poster_url", partial(_poster, document))
    look_for_people(found, document, page_kind)
    look_for_scores(found, document)
    for block in root.css("#titleDetails .txt-block, .titlereference-section-box-office tr"):
        if (amount := attempt(partial(_amount, block))) is not None:
            found.take(f"amounts.{amount.kind}", amount)
    look_for_series(found, root)
    found.look("critic_review_count", partial(_critic_reviews, root))


# --- Other facts ----------------------------------------------------------------------------------------------------


def _genres_in(root: Selector, css: str) -> list[str]:
    """Return the genres that a section of the page links to."""
    return next(
        (
            found
            for section in root.css(css)
            if (found := _link_texts(section, "genres=", "/genre/", "/Sections/Genres/"))
        ),
        [],
    )


def _brief_genres(document: Document) -> list[str] | None:
    """Return the genres of the overview or of JSON-LD, if they can be all: there is room for three."""
    linked = [text for each in dig.listed(document.title_data, "genre") if (text := dig.text(each))]
    chips = list(dict.fromkeys(filter(None, map(all_text, document.root.css("[data-testid=genres] .ipc-chip__text")))))
    for genres in (_genres_in(document.root, ".infobar, .subtext"), linked, chips):
        if genres:
            return genres if len(genres) != _ROOM else None
    return None


def _details(root: Selector, *targets: str) -> list[str]:
    """Return the texts of links to any of the targets in the details; menus may have the same links."""
    sections = "#titleDetails, .titlereference-section-additional-details, [data-testid=title-details-section], .info"
    found = (text for section in root.css(sections) for text in _link_texts(section, *targets))
    return list(dict.fromkeys(found))


def _link_texts(root: Selector, *targets: str) -> list[str]:
    """Return the texts of links to any of the targets, each once."""
    condition = " or ".join(f"contains(@href, '{target}')" for target in targets)
    found = (all_text(link) for link in root.xpath(f".//a[{condition}]"))
    return list(dict.fromkeys(text for text in found if text))


def _certificate(root: Selector) -> str | None:
    """Return the certificate's short form, of the overview, else of "Rated PG-13 for intense sequences…"."""
    for mark in root.css(".infobar [itemprop=contentRating], .infobar img[src*=certificates]"):
        if text := attribute(mark, "content") or attribute(mark, "title"):
            return fold(text).replace("_", "-")  # PG_13
    # In this line it is the only bare text before the runtime and the links.
    line = root.xpath(
        f"//*[{of_class('subtext')}]/text()[not(preceding-sibling::time or preceding-sibling::a)]"
    ).getall()
    if text := fold("".join(line)).strip(" ,|"):
        return text
    if shown := first_text(root.xpath(_HERO_FACTS), "a[href*=parentalguide]"):
        return shown
    # The last fact is always the kind of title.
    fact = own_text(root.css(_FACTS_OF_REFERENCE)[:1].xpath("self::*[not(a)][following-sibling::li]"))
    if fact and attempt(partial(parse_runtime, fact)) is None:
        return fact
    reasons = root.xpath(
        "//*[@id='titleStoryLine']//*[@itemprop='contentRating']"
        f" | //*[{of_class('info')}][h5/a[contains(@href, '/mpaa')]]/descendant-or-self::div"
    )
    rated = first_match(_RATED, map(own_text, reasons))
    return rated[1] if rated else None


def _release_date(root: Selector) -> str | None:
    """Return the first date shown beside a link to the release dates; a bare year is none."""
    beside = root.xpath(
        "//a[contains(@href, 'releaseinfo')]"
        f"[ancestor::*[{of_class('infobar')} or {of_class('subtext')} or {of_class('titlereference-header')}]]"
        f" | //*[{of_class('txt-block')} or {of_class('info')}][.//a[contains(@href, 'releaseinfo')][not(contains(@href, '#'))]]"
        f" | //table[@id='release_dates']//td[{of_class('release_date')}]"
        " | //*[@id='tn15content']//td[a[contains(@href, '/year/') or contains(@href, '/Years/')]]"
        f" | //*[{of_class('info')}][h5[starts-with(., 'Original Air Date')]]"
        " | //*[@data-testid='title-details-releasedate']//a[contains(@href, 'releaseinfo')]"
    )
    return next((date for element in beside if (date := find_date(all_text(element) or ""))), None)


def _stated_date(document: Document) -> str | None:
    stated = document.root.xpath("//meta[@itemprop='datePublished']/@content").getall()
    # Until 2021 the date of JSON-LD is not that of the visitor's country, which the details show.
    linked = None if document.root.css("#titleDetails") else dig.text(document.title_data, "datePublished")
    for published in (linked or "", *stated):
        if "-" in published:
            return parse_date(published)
    return None


def _runtime(texts: Iterable[str | None], form: re.Pattern[str] = _ANY) -> int | None:
    """Return the runtime in the first of these texts that has a form."""
    found = first_match(form, filter(None, texts))
    return parse_runtime(found.string) if found else None


def _runtime_in_block(root: Selector) -> int | None:
    blocks = root.xpath(
        f"//*[@id='tn15main']//*[{of_class('info')} or {of_class('info-content')}][not(.//a)]"
        f" | //*[{of_class('txt-block')}][not(.//a)] | //*[{of_class('infobar')}]"
    )
    found = first_match(_MINUTES, map(own_text, blocks))
    return check_runtime(int(found[1])) if found else None


def _plot(root: Selector) -> str | NoValue:
    """Return the outline, without the links after it: See full summary, Add a Plot, of which the second says that there is none."""
    blocks = root.xpath(
        f"//*[{of_class('summary_text')}] | //p[@itemprop='description']"
        f" | //*[{of_class('titlereference-section-overview')}]/div[not(@class)][not(.//a[contains(@href, 'episodes')])]"
        f" | //*[@id='tn15main']//*[{of_class('info')} or {of_class('info-content')}][a[contains(@href, 'plotsummary')]]"
        " | //*[@id='overview-top']/p"
        # The same in three widths of window, of which only the widest is never cut.
        " | (//*[@data-testid='plot-xl'])[1]"
    )
    for block in blocks:
        parts = block.xpath(
            ".//text()[not(ancestor::h5 or ancestor::a[contains(@href, 'plot') or contains(@href, 'synopsis')"
            " or contains(@href, 'contribute') or contains(@href, '/update')] or ancestor::button)]"
        )
        if text := fold("".join(parts.getall())).rstrip(" »|"):
            return text
    return ABSENT if any(all_text(block) for block in blocks) else None


def _linked_plot(document: Document) -> str | None:
    """Return JSON-LD's plot; until 2021 a sentence of title and people was put in front: Salt is a movie starring Jo May."""
    data = document.title_data
    text, name = dig.text(data, "description"), dig.text(data, "name")
    if text is None or name is None or not text.startswith((f"{name} is a ", f"{name} is an ")):
        return text
    # Names have full stops, too: the sentence ends behind one of the people that JSON-LD lists.
    people = [person for key in ("actor", "director", "creator") for person in _people(data, key)]
    ends = [at + len(f"{person}. ") for person in people if (at := text.find(f"{person}. ")) != -1]
    return text[min(ends) :] if ends else None


def _people(data: dict[str, Any], key: str) -> list[str]:
    return [name for person in dig.listed(data, key) if (name := dig.text(person, "name"))]


def _poster(document: Document) -> str | None:
    """Return the poster; stand-ins for a missing one lie elsewhere than under /images/M/."""
    shown = document.root.css(
        ".poster img, img.poster, #img_primary img, a[name=poster] img, .titlereference-primary-image,"
        " [data-testid=hero-media__poster] img"
    )
    sources = [dig.text(document.title_data, "image") or "", *(attribute(image, "src") for image in shown)]
    if shown:
        # A page saved by a browser has local addresses in its images, but not in its head.
        sources += document.root.xpath("//meta[@property='og:image']/@content").getall()
    return next((source for source in sources if source.startswith("http") and "/images/M/" in source), None)


def _amount(block: Selector) -> Amount | None:
    """Read budget or box office of the details: Gross USA: $8,349,430, to 2016 Gross: $8,349,430 (USA).

    Reference pages have the day behind it: Opening Weekend United States $27,788,331, 04 Apr 1999.
    """
    label = (first_text(block, "h4, td") or "").rstrip(":")
    kind = _amount_kind(label, first_text(block, ".attribute") or "")
    stated = _SUM.match(own_text(block) or own_text(block.css("td:last-child")) or "")
    if kind is None or stated is None:
        return None
    currency = _CURRENCIES.get(stated["currency"], stated["currency"])
    if not re.fullmatch("[A-Z]{3}", currency):
        raise ShapeError("amounts", f"{currency!r} is not a currency that is known")
    value = parse_integer(stated["value"].rstrip(",."))
    return Amount(kind=kind, value=value, currency=currency) if value else None


def _amount_kind(label: str, place: str) -> AmountKind | None:
    if label == "Budget":
        return "budget"
    # A British one may stand in front of it.
    if label in {"Opening Weekend USA", "Opening Weekend United States"} or (label, place) == (
        "Opening Weekend",
        "(USA)",
    ):
        return "opening_weekend"
    if "Worldwide" in label or (label, place) == ("Gross", "(Worldwide)"):
        return "worldwide"
    return "domestic" if label == "Gross USA" or (label, place) == ("Gross", "(USA)") else None


def _critic_reviews(root: Selector) -> int | None:
    """Return the number in the link to critics' reviews elsewhere: 169 critic, 218 Critic reviews."""
    counted = first_match(_COUNTED, map(all_text, root.css("a[href*=externalreviews]")))
    return parse_integer(counted[1]) or None if counted else None
