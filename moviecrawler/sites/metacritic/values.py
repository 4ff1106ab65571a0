"""Converts Metacritic's values.

Each function takes the value at a path and returns that of a field, ABSENT or None.
"""

import re
from collections.abc import Iterator
from functools import partial

from moviecrawler.basics.values import check_runtime, check_year, parse_date
from moviecrawler.extract.dig import (
    get_integer,
    get_items,
    get_number,
    get_path,
    get_size,
    get_text,
    parse_at,
)
from moviecrawler.extract.findings import (
    ABSENT,
    NoValue,
    ShapeError,
    attempt,
    first_of_each,
    one_of_each_title,
)
from moviecrawler.extract.offers import one_of_each_offer, plain_address
from moviecrawler.extract.people import Person, new_credits, without_notes
from moviecrawler.items import (
    Award,
    Credit,
    Movie,
    Offer,
    OfferKind,
    RelatedTitle,
    Role,
    Score,
    ScoreKind,
)
from moviecrawler.sites import SCORES, SITES
from moviecrawler.sites.ids import id_in_url, part_of_series
from moviecrawler.sites.scores import check_average, new_score
from moviecrawler.sites.titles import new_title

_SEASON_IN_TITLE = re.compile(r"[:-]\s*(?:Season (?P<number>\d{1,4})|Specials)$")
_ENOUGH_REVIEWS = 4
"""Reviews or ratings from which on a title has a score."""
_PREFIXES = {"movie": "movie", "show": "tv", "tv": "tv", "tv-show": "tv"}
"""The first part of a site_id, by a product's own type."""
OFFER_KINDS: dict[str, OfferKind] = {
    "free": "free",
    "ads": "ads",
    "flatrate": "subscription",
    "rent": "rent",
    "buy": "buy",
}
"""JustWatch's kinds of offers, in the order of the page."""
IMAGES = SITES["metacritic"].home + "/a/img/catalog"
_LOCALE = re.compile(r"[a-z]{2}_([A-Z]{2})")
_JUSTWATCH_PATH = re.compile(r"/[\w/.-]{1,300}")


id_in = partial(id_in_url, "metacritic")
"""Returns the site_id of the title that a URL or a path names, or None when it names none."""


def new_movie(site_id: str, title: str) -> Movie:
    """Return a title with what its id says of it. A season has the title of its series."""
    part = part_of_series("metacritic", site_id)
    title = without_season(site_id, title)
    series_title = title if part and part.kind == "season" else None
    return new_title("metacritic", site_id, title, series_title=series_title)


def without_season(site_id: str, title: str) -> str:
    """Return a season's title without its number.

    >>> without_season("tv/the-lighthouse/season-2", "The Lighthouse: Season 2")
    'The Lighthouse'
    """
    part = part_of_series("metacritic", site_id)
    match = _SEASON_IN_TITLE.search(title)
    return (
        title[: match.start()].rstrip()
        if match and part and part.season == int(match["number"] or 0)
        else title
    )


def parse_day(value: object) -> str | None:
    """Return a date of release."""
    text = get_text(value)
    return parse_date(text) if text else None


def parse_score(kind: ScoreKind, summary: object) -> Score | NoValue:
    """Return the score in a summary, of a page or of a row of a list."""
    value = parse_at(get_number, summary, "score")
    count = attempt(get_size, summary, "reviewCount") or 0
    if value is ABSENT or value is None:
        # A title with that many reviews has a score; it is at another position.
        return None if value is None or count >= _ENOUGH_REVIEWS else ABSENT
    # Lists, and titles with too few ratings, have 0 in place of null. Its sentiment is then "tbd"
    # or missing.
    if value == 0 and (get_text(summary, "sentiment") or "tbd").lower() == "tbd":
        return ABSENT
    scale = attempt(get_integer, summary, "max")
    if scale not in {None, SCORES[kind].scale}:
        raise ShapeError("scores", f"{kind} out of {scale}")
    return new_score(kind, value, count or None)


def refuse_errors(part: object, field: str) -> None:
    """Raise ShapeError when the site says that it could not get a part of the page."""
    errors = get_items(part, "errors")
    if errors:
        codes = ", ".join(str(get_path(error, "code")) for error in errors)
        raise ShapeError(field, f"the site answers error {codes}")


def parse_minutes(value: object) -> int | NoValue:
    """Return a runtime in minutes; 0 is none."""
    minutes = get_integer(value)
    return check_runtime(minutes) if minutes else ABSENT


def parse_premiere(value: object) -> int | None:
    """Return the year of a season; 0 is unknown."""
    year = get_integer(value)
    return check_year(year) if year else None


def parse_crew(role: Role, group: str, crew: object) -> list[Credit]:
    """Return those whom the crew has in a group, which is left out when nobody is in it."""
    return parse_people(role, _in_group(group, crew))


def parse_creators(crew: object) -> list[Credit]:
    """Return a series' creators, who are among its writers as "created by"."""
    writers = _in_group("Written By", crew)
    return parse_people(
        "creator", [one for one in writers if "created by" in get_items(one, "roles")]
    )


def _in_group(group: str, crew: object) -> list[object]:
    groups = [(get_text(person, "roleTypeGroupName"), person) for person in get_items(crew)]
    if any(name is None for name, _ in groups):
        raise ShapeError("credits", "a member of the crew without a group")
    return [person for name, person in groups if name == group]


def parse_people(role: Role, people: object) -> list[Credit]:
    """Return the people of a list."""
    return new_credits(role, (_person(role, person) for person in get_items(people)))


def _person(role: Role, person: object) -> Person:
    name = get_text(person, "name")
    if name is None:
        raise ShapeError("credits", f"a {role} without a name")
    address = parse_at(get_text, person, "entertainmentProduct", "url")
    if address is None or (role == "cast" and isinstance(person, dict) and "roles" not in person):
        raise ShapeError("credits", f"a {role} without an address or roles")
    # Of a member of the cast these are the parts played, of all others what they did.
    roles = map(get_text, get_items(person, "roles")) if role == "cast" else ()
    characters = (without_notes(part) for part in roles if part)
    link = None if address is ABSENT else address
    return Person(name, link, " / ".join(filter(None, characters)) or None)


def id_of_product(product: object) -> str:
    """Return the site_id that a product's type and slug make.

    Raises ShapeError for what is not a title.
    """
    kind = get_text(product, "type")
    slug = get_text(product, "slug")
    if slug is None or kind not in _PREFIXES:
        raise ShapeError("site_id", f"{kind!r} {slug!r} is not a title")
    return f"{_PREFIXES[kind]}/{slug}"


def parse_average(kind: ScoreKind, score: object) -> float:
    """Return the average behind a score; the users' has none."""
    return check_average(kind, get_number(score) or 0.0)


def parse_tagline(text: object) -> list[str] | NoValue:
    """Return the tagline as a list of one."""
    return [tagline] if (tagline := get_text(text)) else ABSENT


def parse_awards(awards: object) -> list[Award]:
    """Return the awards, one for each event."""
    return first_of_each(map(_award, get_items(awards)), lambda award: award.event)


def _award(award: object) -> Award:
    event = get_text(award, "awardEvent")
    wins = get_size(award, "wins")
    nominations = get_size(award, "nominations")
    if event is None or wins is None or nominations is None:
        raise ShapeError("awards", f"{wins} wins and {nominations} nominations of {event!r}")
    return Award(event=event, wins=wins, nominations=nominations)


def parse_similar(items: object) -> list[RelatedTitle]:
    """Return the titles that the page recommends; games among them are left out."""
    if any(get_text(item, "type") is None for item in get_items(items)):
        raise ShapeError("related", "a title without a type")
    named = ((attempt(id_of_product, item), get_text(item, "title")) for item in get_items(items))
    return one_of_each_title(
        RelatedTitle(relation="similar", site_id=site_id, title=title)
        for site_id, title in named
        if title and site_id and id_in(f"/{site_id}") == site_id
    )


def parse_offers(watch: object) -> list[Offer] | NoValue:
    """Return JustWatch's offers for the page's country; each has an option for every quality."""
    if not isinstance(watch, dict) or not any(kind in watch for kind in OFFER_KINDS):
        return None
    locale = _LOCALE.fullmatch(get_text(watch, "meta", "locale") or "")
    country = locale[1] if locale else None
    offers = [
        offer
        for name, kind in OFFER_KINDS.items()
        for listed in get_items(watch, name)
        for offer in _options(listed, kind, country)
    ]
    if not offers and get_path(watch, "hasOffers"):
        raise ShapeError("offers", "there are some, but not where they were")
    return one_of_each_offer(offers) or ABSENT


def _options(listed: object, kind: OfferKind, country: str | None) -> Iterator[Offer]:
    provider = get_text(listed, "providerName")
    if provider is None:
        raise ShapeError("offers", "an offer of nobody")
    url = plain_address(get_text(listed, "link"))
    for option in get_items(listed, "options") or [{}]:
        price = get_number(option, "optionPrice") or 0
        currency = get_text(option, "optionCurrencyCode")
        offer_type = get_text(option, "offerType") or get_text(listed, "offerType")
        is_priced = kind in {"rent", "buy"} and price > 0 and currency is not None
        yield Offer(
            provider=provider,
            kind=kind,
            country=country,
            price=price if is_priced else None,
            currency=currency if is_priced else None,
            quality=get_text(option, "qualityType"),
            url=url,
            source="JustWatch",
            scope="season" if offer_type == "SEASON" else None,
        )


def parse_ids(product: object, watch: object) -> dict[str, str] | None:
    """Return the number behind the slug, and the title's path at JustWatch."""
    number = attempt(get_integer, product, "id")
    path = attempt(get_text, watch, "meta", "fullPath")
    ids = {"metacritic": str(number)} if number is not None and number > 0 else {}
    if path and _JUSTWATCH_PATH.fullmatch(path):
        ids["justwatch"] = path
    return ids or None
