"""IMDb's pages about one title, read from markup and JSON-LD: all of them to 2021, and later ones without their JSON.

IMDb translated little of these pages but the titles, so the few labels that are looked for are English. Wherever a
link's target or its `ref_` code says what a value is, that is used instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from moviecrawler.extract.embedded import ShapeError, dig, dig_list, dig_text, fold, reader
from moviecrawler.extract.imdb_dom import (
    Document,
    all_text,
    attribute,
    first_text,
    imdb_score,
    metascore,
    of_class,
    own_text,
    person_id,
)
from moviecrawler.extract.imdb_lists import episodes, listing
from moviecrawler.extract.values import check_runtime, find_date, parse_date, parse_integer, parse_runtime
from moviecrawler.items import Amount, Credit, Page
from moviecrawler.urls import id_in_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from parsel import Selector

    from moviecrawler.items import Movie, Role, Score

__all__ = ["episodes", "full_credits", "listing", "title"]

_PAGE_KINDS = {
    "combined": "reference",
    "reference": "reference",
    "criticreviews": "criticreviews",
    "releaseinfo": "releaseinfo",
}
_TOP_PLACES = 250
_CHIPS = 3

# Beside the heading, from 2021: year, certificate, runtime, and in front of them what is not a feature film.
_HERO_FACTS = "(//h1[starts-with(@data-testid, 'hero')])[1]/following-sibling::*[self::ul or .//ul][1]/descendant-or-self::ul[1]/li"
_DAY, _YEAR = re.compile(r"(?<!\d)\d{1,2}(?!\d)"), re.compile(r"(?<!\d)\d{4}(?!\d)")
_HOURS = re.compile(r"\d{1,9} ?(?:h|min)\b")
_MINUTES = re.compile(r"(?:[^:|]{1,100}:)?\s?(\d{1,9})\s?min(?:ut\w*)?\b", re.IGNORECASE)
_OUT_OF_TEN = re.compile(r"(?<!\d)(\d+(?:[.,]\d)?)\s*/\s*10\b")
_NUMBER = re.compile(r"\d[\d.,\s]*")
_WORDS = re.compile(r"(?<!\s)\s*[^\W\d_]{4,}")
_FEWEST_VOTES = 5
"""Votes that a title needs to have a rating."""
_RATED = re.compile(r"Rated ([A-Z0-9+-]+)(?: for\b|$)")
_NOTE = re.compile(
    r"(?<!\s)\s*\((?:as |also |voice|singing voice|uncredited|credit only|archive|unconfirmed|rumored|scenes deleted"
    r"|\d+ episodes?|unknown episodes)[^()]*\)"
)
_NUMBERS = re.compile(r"\bS(?:eason )?(\d+)\W+E(?:pisode )?(\d+)\b")
_SUM = re.compile(r"(?P<currency>[A-Z]{3}|[^\s\d.,()]{1,4})\s*(?P<value>\d[\d,.]{0,40})[\s,]*$")
# How the site abbreviates currencies; all others stand as their ISO 4217 code.
_CURRENCIES = {
    "$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
    "₩": "KRW",
    "₪": "ILS",
    "₫": "VND",
    "₱": "PHP",
    "A$": "AUD",
    "CA$": "CAD",
    "CN¥": "CNY",
    "HK$": "HKD",
    "MX$": "MXN",
    "NT$": "TWD",
    "NZ$": "NZD",
    "R$": "BRL",
    "₽": "RUB",
    "₴": "UAH",
    "₺": "TRY",
}


@reader
def title(body: bytes, url: str | None) -> Page:
    """Return what a title's main, combined, reference, critic reviews or release info page says of it.

    Raises ExtractionError when the page was cut off or has a layout that isn't known.
    """
    document = Document(body, url)
    movie = document.movie()
    root, data = document.root, document.title_data
    movie.genres = _genres(document)
    movie.countries = _details(root, "country_of_origin=", "/country/", "/Sections/Countries/")
    movie.languages = _details(root, "primary_language=", "/language/", "/Sections/Languages/")
    movie.certificate = _certificate(root) or dig_text(data, "contentRating")
    movie.release_date = _release_date(document)
    movie.runtime_minutes = _runtime(document)
    movie.plot = _plot(document)
    movie.poster_url = _poster(document)
    movie.credits = _credits(document, movie)
    movie.scores = _scores(document)
    movie.amounts = _amounts(root)
    movie.imdb_top250_rank, movie.imdb_top250_tv_rank = _top_places(root)
    movie.popularity_rank = _popularity(root)
    if movie.kind == "movie" and movie.title_type is None and "Short" in movie.genres:
        movie.kind = "short"
    if movie.kind == "episode":
        _read_series(root, movie)
    page = urlsplit(document.address).path.rstrip("/").rpartition("/")[2]
    return Page(site="imdb", kind=_PAGE_KINDS.get(page, "title"), movie=movie)


@reader
def full_credits(body: bytes, url: str | None) -> Page:
    """Return everybody whom a full credits page names as director, writer or cast.

    Raises ExtractionError when the page was cut off or has a layout that isn't known.
    """
    document = Document(body, url)
    if not document.root.css("#fullcredits_content, table.cast_list, table.cast"):
        raise ShapeError("credits", "no section that is known")
    movie = document.movie()
    movie.credits = list(_distinct([*_crew(document.root), *_cast(document.root)]))
    movie.poster_url = _poster(document)
    return Page(site="imdb", kind="fullcredits", movie=movie)


# --- People ---------------------------------------------------------------------------------------------------------


def _credits(document: Document, movie: Movie) -> list[Credit]:
    """Return the credits of a title's page: each role of the first place that names anybody in it."""
    root = document.root
    found: list[Credit] = []
    for source in (_crew(root), _cast(root), _overview(root, movie), _linked_people(document, movie)):
        known = {credit.role for credit in found}
        found += [credit for credit in source if credit.role not in known]
    return list(_distinct(found))


def _crew(root: Selector) -> Iterator[Credit]:
    """Read the tables of directors and writers: full credits of any age, /combined and /reference."""
    roles: list[tuple[Role, str, str, str]] = [
        ("director", "directors", "Directed by", "ttfc_fc_dr"),
        ("writer", "writers", "Writing Credits", "ttfc_fc_wr"),
    ]
    for role, name, words, ref in roles:
        heading = f"@name='{role}' or @name='{name}' or contains(normalize-space(), '{words}')"
        links = root.xpath(
            f"//a[contains(@href, '{ref}')]"
            f" | //table[preceding-sibling::h4[1][{heading}]]//a[contains(@href, '/name/nm')]"
            f" | //table[.//a[{of_class('glossary')}][{heading}]]//a[contains(@href, '/name/nm')]"
        )
        yield from _linked(role, links)


def _overview(root: Selector, movie: Movie) -> Iterator[Credit]:
    """Read the few names at the top of a title's page. There, a series' creators have the writers' `ref_` code."""
    is_series = movie.kind == "series"
    for block in root.css(
        ".credit_summary_item, #overview-top .txt-block, .titlereference-overview-section, #tn15main .info,"
        " [data-testid=title-pc-principal-credit]"
    ):
        links = block.xpath(".//a[contains(@href, '/name/nm')]")
        label = first_text(block, "h4, h5, .ipc-metadata-list-item__label") or own_text(block) or ""
        # To 2011 the codes stood in `onclick`: /rg/directorlist/position-1/images/b.gif.
        code = attribute(links[:1], "href") + attribute(links[:1], "onclick")
        of_writers = "_ov_wr" in code or "/writerlist/" in code
        if label.startswith("Creator") or (is_series and of_writers and not label.startswith("Writer")):
            yield from _linked("creator", links)
        elif "_ov_dr" in code or "/directorlist/" in code or label.startswith("Director"):
            yield from _linked("director", links)
        elif of_writers or label.startswith("Writer"):
            yield from _linked("writer", links)
        elif "_ov_st" in code or label.startswith("Star"):
            yield from _linked("cast", links)


def _linked(role: Role, links: Iterable[Selector]) -> Iterator[Credit]:
    for link in links:
        if name := all_text(link):
            yield Credit(name=name, role=role, position=0, person_id=person_id(attribute(link, "href")))


def _cast(root: Selector) -> Iterator[Credit]:
    """Read the cast's table, since 2021 its cards. Rows without a name are headings, and places for its episodes."""
    for row in root.css("table.cast_list tr, table.cast tr"):
        for credit in _linked(
            "cast", row.xpath(f"./td[not({of_class('primary_photo')})]/a[contains(@href, '/name/nm')]")
        ):
            parts = row.xpath(
                f"./td[{of_class('character')} or {of_class('char')}]//text()[not(ancestor::a[@href='#'])]"
            )
            credit.character = _character("".join(parts.getall()))
            yield credit
    for card in root.css("[data-testid=title-cast-item]"):
        for credit in _linked("cast", card.css("[data-testid=title-cast-item__actor]")):
            names = (all_text(link) for link in card.css("[data-testid=cast-item-characters-link] span:first-child"))
            credit.character = _character(" / ".join(name for name in names if name))
            yield credit


def _character(text: str) -> str | None:
    """Return who is played, of a cell such as: Vera / The Cartographer / ... (voice) (as A. Petrov)."""
    names = [fold(_NOTE.sub("", name)) for name in fold(text).split(" / ")]
    return " / ".join(name for name in names if name.strip(".…")) or None


def _linked_people(document: Document, movie: Movie) -> Iterator[Credit]:
    """Read JSON-LD's people, one object or a list. Its creators are companies, which have no name, and writers, too."""
    creators: Role = "creator" if movie.kind == "series" else "writer"
    roles: list[tuple[Role, str]] = [("director", "director"), (creators, "creator"), ("cast", "actor")]
    for role, key in roles:
        people = document.title_data.get(key)
        for person in people if isinstance(people, list) else [people]:
            name = dig_text(person, "name")
            if name and dig(person, "@type") == "Person":
                yield Credit(name=name, role=role, position=0, person_id=person_id(dig_text(person, "url") or ""))


def _distinct(found: Iterable[Credit]) -> Iterator[Credit]:
    """Drop who was named in a role before, as writers are once for each kind of writing, and number the others."""
    seen: set[tuple[Role, str]] = set()
    positions: dict[Role, int] = {}
    for credit in found:
        key = (credit.role, credit.person_id or credit.name)
        if key not in seen:
            seen.add(key)
            credit.position = positions[credit.role] = positions.get(credit.role, 0) + 1
            yield credit


# --- Scores and ranks -----------------------------------------------------------------------------------------------


def _scores(document: Document) -> list[Score]:
    root, linked = document.root, dig(document.title_data, "aggregateRating")
    found: list[Score] = []
    old = _OUT_OF_TEN.match(first_text(root, "#tn15rating b, .starbar-meta b, .star-box .rating-rating") or "")
    new = _OUT_OF_TEN.match(first_text(root, "[data-testid=hero-rating-bar__aggregate-rating__score]") or "")
    blocks = root.css(".imdbRating, .star-box-details, .titlereference-header")
    value, votes = None, None
    if value := first_text(blocks, "[itemprop=ratingValue], .ipl-rating-star__rating"):
        votes = first_text(blocks, "[itemprop=ratingCount], .ipl-rating-star__total-votes")
    elif old:
        # 428,329 votes
        links = root.css("#tn15rating a[href*=ratings], .starbar-meta a, .star-box a[href*=ratings]")
        numbers = (_NUMBER.match((all_text(link) or "").strip("(")) for link in links)
        value, votes = old[1], next((number[0].strip() for number in numbers if number), None)
    elif linked is not None:
        value, votes = str(dig(linked, "ratingValue")), str(dig(linked, "ratingCount"))
    if value:
        if not votes:
            raise ShapeError("scores", f"a rating of {value} without votes")
        found.append(imdb_score(value, votes.strip("()")))
    elif new:
        # Beside it stands only about how many voted, 2.8M.
        found.append(imdb_score(new[1], None))
    else:
        found += _rating_beside_votes(root)
    if critics := first_text(root, ".metascore_block [itemprop=ratingValue]"):
        found.append(metascore(critics, first_text(root, ".metascore_block [itemprop=ratingCount]")))
    elif critics := first_text(root, ".metacriticScore, .score-meta, .metacritic-score-box"):
        found.append(metascore(critics))
    else:
        # To 2015 as text: Metascore: 79/100.
        texts = [all_text(link) or "" for link in root.css(".star-box-details a[href*=criticreviews]")]
        found += [metascore(text.removesuffix("/100")) for text in texts if text.endswith("/100")]
    return found


def _rating_beside_votes(root: Selector) -> list[Score]:
    """Return the rating beside the link to its details, which is the number of votes in every layout: 7.4/10 47,104.

    Raises ShapeError when there is no rating beside it: it stands where it isn't looked for.
    """
    for link in root.xpath("//a[contains(@href, 'ratings')]"):
        # 33,314 users; not: (awaiting 5 votes)
        text = (all_text(link) or "").strip("() ")
        if text[:1].isdigit() and urlsplit(attribute(link, "href")).path.rstrip("/").rpartition("/")[2] == "ratings":
            votes = _WORDS.sub("", text)
            around = (
                " ".join(element.xpath(".//text()").getall()) for element in link.xpath("ancestor::*[position() <= 4]")
            )
            if rated := next((rated for text in around if (rated := _OUT_OF_TEN.search(text))), None):
                return [imdb_score(rated[1], votes)]
            if parse_integer(votes) >= _FEWEST_VOTES:
                raise ShapeError("scores", f"{votes} votes and no rating beside them")
    return []


def _top_places(root: Selector) -> tuple[int | None, int | None]:
    """Return the places in the Top 250 movies and series: Top Rated Movies #26, Top 250: #9."""
    places: dict[str, int] = {}
    for link in root.css(
        "#titleAwardsRanks a, .starbar-special a, .titlereference-header a, a[data-testid=award_top-rated]"
    ):
        chart = urlsplit(attribute(link, "href")).path.strip("/")
        place = re.search(r"#([\d,]+)$", all_text(link) or "")
        if place and chart in {"chart/top", "chart/toptv"}:
            places[chart] = parse_integer(place[1])
    for place_ in places.values():
        if not 1 <= place_ <= _TOP_PLACES:
            raise ShapeError("imdb_top250_rank", f"{place_} is not a place in a Top 250")
    return places.get("chart/top"), places.get("chart/toptv")


def _popularity(root: Selector) -> int | None:
    """Return the moviemeter rank. To 2015 the page could give a band instead, "Top 5000"."""
    text = first_text(root, "#meterRank, [data-testid=hero-rating-bar__popularity__score]")
    for item in root.xpath("//*[contains(@class, 'titleReviewBarItem')][.//*[contains(@class, 'popularity')]]"):
        text = next((own for sub in item.css(".subText") if (own := own_text(sub))), text)
    found = re.match(r"\d[\d,.\s]*", text or "")
    return parse_integer(found[0].strip()) if found else None


# --- Other facts ----------------------------------------------------------------------------------------------------


def _genres(document: Document) -> list[str]:
    """Return all genres: of the storyline section, as the overview has three at most."""
    storylines = "#titleStoryLine, .titlereference-section-storyline, [data-testid=storyline-genres]"
    for css in (storylines, ".info", ".infobar, .subtext"):
        for section in document.root.css(css):
            if found := _link_texts(section, "genres=", "/genre/", "/Sections/Genres/"):
                return found
    genre = document.title_data.get("genre")
    genres = [genre] if isinstance(genre, str) else dig_list(document.title_data, "genre")
    linked = [text for each in genres if (text := dig_text(each))]
    if linked:
        return linked
    chips = list(dict.fromkeys(filter(None, map(all_text, document.root.css("[data-testid=genres] .ipc-chip__text")))))
    # There is room for three: as many can be all of them or the first three.
    return chips if len(chips) < _CHIPS else []


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
            return fold(text)
    # In this line it is the only bare text before the runtime and the links.
    line = root.xpath(
        f"//*[{of_class('subtext')}]/text()[not(preceding-sibling::time or preceding-sibling::a)]"
    ).getall()
    if text := fold("".join(line)).strip(" ,|"):
        return text
    if shown := first_text(root.xpath(_HERO_FACTS), "a[href*=parentalguide]"):
        return shown
    first_fact = root.css(".titlereference-header .ipl-inline-list__item")[:1]
    text = own_text(first_fact) or ""
    if text and not _HOURS.match(text):
        return text
    reasons = root.xpath(
        f"//*[@id='titleStoryLine']//*[@itemprop='contentRating'] | //*[{of_class('info')}][h5/a[contains(@href, '/mpaa')]]/div"
    )
    rated = (_RATED.match(all_text(reason) or "") for reason in reasons)
    return next((found[1] for found in rated if found), None)


def _release_date(document: Document) -> str | None:
    """Return the first date shown beside a link to the release dates; a bare year is none."""
    beside = document.root.xpath(
        f"//*[{of_class('infobar')} or {of_class('subtext')} or {of_class('titlereference-header')}]"
        "//a[contains(@href, 'releaseinfo')]"
        f" | //*[{of_class('txt-block')} or {of_class('info')}][.//a[contains(@href, 'releaseinfo')][not(contains(@href, '#'))]]"
        f" | //table[@id='release_dates']//td[{of_class('release_date')}]"
        f" | //*[{of_class('info')}][h5[starts-with(., 'Original Air Date')]]"
        " | //*[@data-testid='title-details-releasedate']//a[contains(@href, 'releaseinfo')]"
    )
    texts = [all_text(element) or "" for element in beside]
    if date := next((date for text in texts if (date := find_date(text))), None):
        return date
    stated = document.root.xpath("//meta[@itemprop='datePublished']/@content").getall()
    for published in (dig_text(document.title_data, "datePublished") or "", *stated):
        if "-" in published:
            return parse_date(published)
    if unread := next((text for text in texts if _DAY.search(text) and _YEAR.search(text)), None):
        raise ShapeError("release_date", f"{unread!r} holds no date that is known")
    return None


def _runtime(document: Document) -> int | None:
    for time in document.root.css(".subtext time, .infobar time, .txt-block time"):
        if value := attribute(time, "datetime").strip():
            return parse_runtime(value)
    for fact in document.root.css(".titlereference-header .ipl-inline-list__item"):
        if _HOURS.match(text := all_text(fact) or ""):
            return parse_runtime(text)
    for block in document.root.xpath(
        f"//*[{of_class('info')}]/*[{of_class('info-content')}][not(.//a)] | //*[{of_class('infobar')}] | //*[{of_class('txt-block')}][not(.//a)]"
    ):
        if found := _MINUTES.match(own_text(block) or ""):
            return check_runtime(int(found[1]))
    for fact in document.root.xpath(_HERO_FACTS):
        if re.match(r"\d+ ?[^\W\d]", text := own_text(fact) or ""):
            return parse_runtime(text)
    duration = dig_text(document.title_data, "duration")
    return parse_runtime(duration) if duration else None


def _plot(document: Document) -> str | None:
    """Return the outline, without the links after it: See full summary, Add a Plot."""
    blocks = document.root.xpath(
        f"//*[{of_class('summary_text')}] | //p[@itemprop='description']"
        f" | //*[{of_class('titlereference-section-overview')}]/div[not(@class)]"
        f" | //*[{of_class('info')}]/*[{of_class('info-content')}][a[contains(@href, 'plotsummary')]]"
        " | //*[@id='overview-top']/p"
        # The same in three widths of window, of which only the widest is never cut.
        " | (//*[@data-testid='plot-xl'])[1]"
    )
    for block in blocks:
        parts = block.xpath(
            ".//text()[not(ancestor::a[contains(@href, 'plot') or contains(@href, 'synopsis')"
            " or contains(@href, 'contribute') or contains(@href, '/update')] or ancestor::button)]"
        )
        if text := fold("".join(parts.getall())).rstrip(" »|"):
            return text
    # Where the page has a place for the plot and it is empty, JSON-LD makes up a sentence of title and names.
    return None if blocks else _linked_plot(document.title_data)


def _linked_plot(data: dict[str, Any]) -> str | None:
    """Return JSON-LD's plot; until 2021 a sentence of title and people was put in front: Salt is a movie starring Jo May."""
    text, name = dig_text(data, "description"), dig_text(data, "name")
    if text is None or name is None or not text.startswith((f"{name} is a ", f"{name} is an ")):
        return text
    # Names have full stops, too: the sentence ends behind one of the people that JSON-LD lists.
    people = [person for key in ("actor", "director", "creator") for person in _people(data, key)]
    ends = [at + len(f"{person}. ") for person in people if (at := text.find(f"{person}. ")) != -1]
    return text[min(ends) :] if ends else None


def _people(data: dict[str, Any], key: str) -> list[str]:
    listed = data.get(key)
    return [name for person in (listed if isinstance(listed, list) else [listed]) if (name := dig_text(person, "name"))]


def _poster(document: Document) -> str | None:
    """Return the poster; stand-ins for a missing one lie elsewhere than under /images/M/."""
    shown = document.root.css(
        ".poster img, img.poster, #img_primary img, a[name=poster] img, .titlereference-primary-image,"
        " [data-testid=hero-media__poster] img"
    )
    sources = [dig_text(document.title_data, "image") or "", *(attribute(image, "src") for image in shown)]
    if shown:
        # A page saved by a browser has local addresses in its images, but not in its head.
        sources += document.root.xpath("//meta[@property='og:image']/@content").getall()
    return next((source for source in sources if source.startswith("http") and "/images/M/" in source), None)


def _amounts(root: Selector) -> list[Amount]:
    """Read budget and box office of the details: Gross USA: $8,349,430, to 2016 Gross: $8,349,430 (USA)."""
    found: dict[str, Amount] = {}
    for block in root.css("#titleDetails .txt-block"):
        label = (first_text(block, "h4") or "").rstrip(":")
        kind = _amount_kind(label, first_text(block, ".attribute") or "")
        stated = _SUM.match(own_text(block) or "")
        if kind and stated:
            currency = _CURRENCIES.get(stated["currency"], stated["currency"])
            if not re.fullmatch("[A-Z]{3}", currency):
                raise ShapeError("amounts", f"{currency!r} is not a currency that is known")
            value = parse_integer(stated["value"].rstrip(",."))
            if value:
                found.setdefault(kind, Amount(kind=kind, value=value, currency=currency))
    return list(found.values())


def _amount_kind(label: str, place: str) -> Literal["budget", "opening_weekend", "domestic", "worldwide"] | None:
    if label == "Budget":
        return "budget"
    if label.startswith("Opening Weekend"):
        return "opening_weekend"
    if "Worldwide" in label or (label == "Gross" and place == "(Worldwide)"):
        return "worldwide"
    if label == "Gross USA" or (label == "Gross" and place == "(USA)"):
        return "domestic"
    return None


def _read_series(root: Selector, movie: Movie) -> None:
    """Add to an episode which series, season and number it is: Season 3 | Episode 10, (Season 3, Episode 10)."""
    for link in root.xpath(
        f"//*[{of_class('titleParent')}]/a | //*[{of_class('tv_header')}]/a | //a[@data-testid='hero-title-block__series-link']"
        f" | //*[@id='tn15main']//*[{of_class('info')}][h5[starts-with(., 'TV Series')]]//a[contains(@href, '/title/tt')]"
    ):
        movie.series_id = id_in_url("imdb", attribute(link, "href"))
        movie.series_title = all_text(link)
    numbers = "[data-testid=hero-subnav-bar-season-episode-numbers-section]"
    for css in (".bp_heading", ".tv_header", ".info-content", numbers):
        for element in root.css(css):
            if found := _NUMBERS.search(all_text(element) or ""):
                movie.season, movie.episode = int(found[1]), int(found[2])
