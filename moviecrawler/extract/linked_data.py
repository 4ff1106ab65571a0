"""Reads schema.org's JSON-LD, the one fallback for fields that a page's own data doesn't have.

All sites use it. A key missing from JSON-LD means "unknown", never "absent"; its lists may be
truncated. Each site's extractors name the fields on which its JSON-LD is right.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

from moviecrawler.basics.values import parse_count, parse_decimal, parse_runtime
from moviecrawler.extract.dig import (
    FieldPath,
    JsonObject,
    as_list,
    get_items,
    get_number,
    get_path,
    get_text,
    parse_at,
)
from moviecrawler.extract.embedded import decode_json, scripts
from moviecrawler.extract.findings import (
    ABSENT,
    Findings,
    ShapeError,
    attempt,
)
from moviecrawler.extract.people import Person, new_credits
from moviecrawler.items import Credit, Role, TitleKind

KINDS: dict[str, TitleKind] = {
    "Movie": "movie",
    "TVSeries": "series",
    "TVSeason": "season",
    "TVEpisode": "episode",
}
"""The kinds of title by their names in JSON-LD."""
_NO_PLOT = re.compile(
    r"^Discover reviews, ratings|\b(?:starring|directed by)\b|(?:\.\.\.|…)$", re.IGNORECASE
)
"""Matches descriptions that are written for search engines, and plots that are cut off."""
_NO_POSTER = re.compile(
    r"poster[-_]?default|default[-_]?poster|TwitterCard|/images/(?:products|icons)/", re.IGNORECASE
)


def objects(body: bytes) -> Iterator[JsonObject]:
    """Yield the page's JSON-LD objects in order, each with the first of its types, or none.

    Skips a script that is no JSON: some templates leave quotes unescaped.
    """
    for raw in scripts(body, b"application/ld+json"):
        with suppress(ShapeError):
            for item in as_list(decode_json(raw)):
                for part in as_list(item, "@graph") or [item]:
                    if isinstance(part, dict):
                        yield {**part, "@type": get_text(first_of(part.get("@type")))}


def title_of(body: bytes) -> JsonObject:
    """Return the title in a page's JSON-LD, the first with a name if there is one; else empty."""
    titles = [data for data in objects(body) if data["@type"] in KINDS]
    return next((data for data in titles if data.get("name")), titles[0] if titles else {})


def kind_of(data: JsonObject) -> TitleKind | None:
    """Return the kind of a title; None where its type is another."""
    name: str | None = attempt(partial(get_text, first_of(data.get("@type"))))
    return KINDS.get(name or "")


def listed_titles(body: bytes) -> list[JsonObject]:
    """Return the titles in a page's ItemList, in order; empty without one."""
    lists = (data for data in objects(body) if data["@type"] == "ItemList")
    return [title for data in lists for title in _members(data)]


def _members(data: object) -> Iterator[JsonObject]:
    """Yield what an ItemList or a ListItem leads to, which can be another ItemList."""
    inner = [*as_list(data, "itemListElement"), *as_list(data, "item")]
    if not inner and isinstance(data, dict):
        yield data
    for member in inner:
        yield from _members(member)


def extract_fields(findings: Findings, linked: JsonObject, fields: Iterable[FieldPath]) -> None:
    """Set the fields that have no value yet from a title's JSON-LD. A 0 there states nothing."""

    def value(convert: Callable[..., object], path: str) -> object:
        stated = parse_at(convert, linked, *path.split("."))
        return None if stated is ABSENT or stated == 0 else stated

    for each in fields:
        findings.set_first(each.field, *(partial(value, each.parse, path) for path in each.paths))


def first_of(value: object) -> object:
    """Return the first value of a list; a value that is not a list itself."""
    return next(iter(value), None) if isinstance(value, list) else value


def parsed(parse: Callable[[str], object], value: object) -> object:
    """Return what a text says; None for what is not a text."""
    text = get_text(value)
    return parse(text) if text else None


def texts(value: object) -> list[str]:
    """Return the texts of a list."""
    return [*filter(None, map(get_text, as_list(value)))]


def plot(text: str) -> str | None:
    """Return a description that is a plot, and not written for search engines, or cut off."""
    return None if _NO_PLOT.search(text) else text


def picture(value: object) -> str | None:
    """Return the address of a picture that is not a mere stand-in."""
    shown = first_of(value)
    urls = (
        [shown]
        if isinstance(shown, str)
        else [get_path(shown, key) for key in ("url", "contentUrl")]
    )
    address = next(filter(None, map(get_text, urls)), "")
    return address if address.startswith("http") and not _NO_POSTER.search(address) else None


def people(role: Role, value: object) -> list[Credit]:
    """Return the people of a list.

    A person without a list is refused: some pages repeat the key, so that only the last is there.
    Organizations, which some lists have, are left out; of anything else the list is refused.
    """
    kinds = [(item, get_text(item, "@type")) for item in get_items(value)]
    if any(kind not in {"Person", "Organization"} for _, kind in kinds):
        raise ShapeError("credits", f"a {role} that is not a person")
    persons = [item for item, kind in kinds if kind == "Person"]
    names = [get_text(person, "name") or "" for person in persons]
    if not all(names):
        raise ShapeError("credits", f"a {role} without a name")
    links = [get_text(person, "url") or get_text(person, "sameAs") for person in persons]
    return new_credits(role, map(Person, names, links))


def number(data: object, key: str) -> float | None:
    """Return a number, which may be written as text. Raises ValueError for anything else."""
    value = get_path(data, key)
    if isinstance(value, str):
        return float(parse_count(value)) if "," in value else parse_decimal(value)
    return get_number(value)


_FIELDS = (
    FieldPath("plot", partial(parsed, plot), "description"),
    FieldPath("genres", texts, "genre"),
    FieldPath("certificate", get_text, "contentRating"),
    FieldPath("poster_url", picture, "image"),
    FieldPath("runtime_minutes", partial(parsed, parse_runtime), "duration"),
    FieldPath("series_title", get_text, "partOfSeries.name"),
    FieldPath("credits.director", partial(people, "director"), "director"),
    FieldPath("credits.cast", partial(people, "cast"), "actor"),
)


def paths_of(*fields: str) -> list[FieldPath]:
    """Return where JSON-LD has fields, in a form that more than one site uses."""
    return [path for path in _FIELDS if path.field in fields]
