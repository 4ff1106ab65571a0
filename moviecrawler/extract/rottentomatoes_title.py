"""Where Rotten Tomatoes' title pages have each field: in scripts above the list of details, in that list, in sections, in JSON-LD.

A field that has moved gets one more place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract import rottentomatoes_sections as sections
from moviecrawler.extract import rottentomatoes_values as values
from moviecrawler.extract.findings import ABSENT, Findings, NoValue, Person, ShapeError, attempt, first
from moviecrawler.extract.rottentomatoes_values import FINER, credits_of, read_side
from moviecrawler.extract.values import check_year, parse_count, parse_runtime
from moviecrawler.items import Amount, Credit, Role, Score, ScoreKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from parsel import Selector

    from moviecrawler.items import Movie

_SCORES: Final[tuple[ScoreKind, ...]] = ("tomatometer", "popcornmeter", *FINER)
_CAST_SECTIONS: Final = (b"cast-and-crew", b"person-item", b"cast-item", b"castSection", b'id="cast-info"')
_BOILERPLATE: Final = "Discover reviews, ratings"
_NO_POSTER: Final = re.compile(r"poster[-_]?default|default[-_]?poster|TwitterCard", re.IGNORECASE)
_YEARS: Final = re.compile(r"^(?P<first>\d{4})(?:\s*[-–—]\s*(?P<last>\d{4})?)?$")  # noqa: RUF001 - the site's dashes
_DURATION: Final = re.compile(r"^\d+\s*(?:h|m|hr|min)\b", re.IGNORECASE)
_DATED: Final = re.compile(r"^(?:Released|Opened|Opens|Premiered|In Theaters)\s+(?P<date>.+)$", re.IGNORECASE)
_CERTIFICATE: Final = re.compile(r"^(?:G|PG|PG-?13|R|NC-?17|X|NR|Not Rated|Unrated|TV-?[A-Z0-9-]+)$", re.IGNORECASE)


@dataclass(slots=True)
class Head:
    """What the part of a page above its list of details shows; None is what it doesn't tell."""

    scores: dict[ScoreKind, Callable[[], Score | NoValue]] = field(default_factory=dict)
    """Where each score is."""
    sides: dict[ScoreKind, list[Any]] = field(default_factory=dict)
    """The objects that have what stands beside each score, the best first; None among them is none."""
    title: str | None = None
    year: int | None = None
    end_year: int | None = None
    is_running: bool = False
    """Whether a series has a first year and, where its last would stand, none."""
    runtime: int | None = None
    certificate: str | None = None
    genres: list[str] = field(default_factory=list)
    plot: str | None = None
    poster: str | None = None


@dataclass(slots=True)
class TitlePage:
    """A title's page, taken apart."""

    body: bytes
    head: Head
    details: dict[str, sections.Detail]
    """The rows of its list of details; empty without one."""
    linked: dict[str, Any]
    """Its JSON-LD about the title; empty without any."""
    tag: str | None = None
    """Its `<title>`."""
    tree: Selector | None = None
    """Its markup, where that had to be parsed."""
    older_cast: Callable[[], list[Person]] = list
    """Where pages to 2024 have the cast."""


def read_title(movie: Movie, page: TitlePage, year: int | None) -> Findings:
    """Return what a page says of a title, whose identity is known, and its `year` if that stands beside the title.

    A row of details that is not there says nothing.
    """
    found, body, head, details, linked = Findings(movie), page.body, page.head, page.details, page.linked
    # Beside details, JSON-LD has genres, writers and certificates that the page doesn't show.
    alone = {} if details else linked

    def row(name: str) -> str:
        return details[name].text

    if movie.series_id:
        found.look(
            "series_title", lambda: dig.text(linked, "partOfSeries", "name"), lambda: _series_in(page.tag, movie.title)
        )
    # Not from JSON-LD's dateCreated, which can be that of a re-release, nor from the date of its streaming.
    found.look(
        "year",
        lambda: year,
        lambda: values.read_year(row("release_date")),
        # Of a season it may be its series'.
        lambda: None if movie.series_id else sections.year_for_advertisers(body),
        lambda: values.read_year(dig.at(values.json_script(body, "where-to-watch-json"), "releaseYear")),
    )
    found.look("end_year", lambda: head.end_year or (ABSENT if head.is_running else None))
    found.look("release_date", lambda: values.read_release_date(row("release_date")))
    found.look(
        "runtime_minutes",
        lambda: parse_runtime(row("runtime")),
        lambda: head.runtime,
        # JSON-LD's own duration, not that of its video, which is a trailer's.
        lambda: parse_runtime(dig.text(alone, "duration") or ""),
    )
    found.look(
        "genres",
        lambda: [genre for genre in re.split(r"\s*,\s*", row("genres")) if genre],
        lambda: None if details else head.genres,
        lambda: values.read_names(dig.at(alone, "genre")),
    )
    found.look("languages", lambda: [row("language")])
    found.look(
        "certificate",
        lambda: values.short_certificate(row("certificate")),
        lambda: values.short_certificate(head.certificate),
        lambda: values.short_certificate(dig.text(alone, "contentRating")),
    )
    found.look("plot", lambda: head.plot, lambda: sections.synopsis(body), lambda: _linked_plot(alone))
    found.look("poster_url", lambda: _poster(head, page.tree, None if details else dig.text(linked, "image")))
    found.look("credits.director", lambda: _people_in(details, "director"), lambda: _linked_people("director", linked))
    found.look(
        "credits.writer", lambda: _people_in(details, "writer"), lambda: _linked_people("writer", alone, "author")
    )
    if movie.kind == "series" or "creator" in details:
        found.look("credits.creator", lambda: _people_in(details, "creator"), lambda: _linked_people("creator", alone))
    # JSON-LD names the first five: they are all that a page without any section of the cast names.
    is_all = not any(sign in body for sign in _CAST_SECTIONS)
    found.look(
        "credits.cast",
        lambda: credits_of("cast", sections.cast_tiles(body)),
        lambda: credits_of("cast", page.older_cast()),
        lambda: _people_in(details, "cast") if is_all else None,
        lambda: credits_of("cast", _linked_cast(linked)) if is_all or not details else None,
    )
    for kind in _SCORES:
        places = [head.scores.get(kind), partial(_linked_score, linked) if kind == "tomatometer" else None]
        found.look(f"scores.{kind}", *filter(None, places))
        beside = ((f"scores.{kind}.{fact}", *paths) for fact, *paths in values.facts_beside(kind))
        dig.look(found, beside, head.sides.get(kind, []))
    found.look("amounts.domestic", lambda: _dollars(row("domestic")))
    found.look("consensus", lambda: sections.read_consensus(body))
    found.look("offers", lambda: sections.read_offers(body))
    found.look("related.similar", lambda: sections.read_similar(body))
    found.look("external_ids", lambda: sections.read_ids(body))
    if movie.kind == "series":
        found.look("season_count", lambda: dig.size(linked, "numberOfSeasons") or None)
    if movie.kind == "season":
        found.look("episode_count", lambda: dig.size(linked, "numberOfEpisodes") or None)
    return found


def _series_in(tag: str | None, title: str) -> str | None:
    """Return the series of a season by the title of its page, "The Lamp: Season 2"."""
    series, colon, part = (tag or "").rpartition(":")
    return series.strip() if colon and part.strip() == title else None


def _people_in(details: dict[str, sections.Detail], role: Role) -> list[Credit]:
    return credits_of(role, [(*part, None) for part in details[role].parts])


def _dollars(text: str) -> Amount:
    return Amount(kind="domestic", value=parse_count(text.removeprefix("$"))[0], currency="USD")


def _poster(head: Head, tree: Selector | None, linked: str | None) -> str | None:
    """Return the first address of a real poster; saved pages can name local files, and most have a placeholder."""
    pictures = [head.poster, linked]
    if tree is not None:
        posters = tree.css(
            "img.posterImage, #topSection img[itemprop=image], .movie_poster_area img, #tv-image-section img"
        )
        pictures += [posters.attrib.get("data-src"), posters.attrib.get("src")]
        pictures += tree.css('meta[property="og:image"]::attr(content)').getall()
    return next((p for p in pictures if p and p.startswith(("https://", "http://")) and not _NO_POSTER.search(p)), None)


# --- JSON-LD --------------------------------------------------------------------------------------------------------


def _linked_plot(linked: dict[str, Any]) -> str | None:
    about = dig.text(linked, "description")
    return None if about and about.startswith(_BOILERPLATE) else about


def _linked_score(linked: dict[str, Any]) -> Score | NoValue:
    rating = dig.at(linked, "aggregateRating")
    named = dig.text(rating, "name")
    if named not in {None, "Tomatometer"}:
        return None
    return values.score("tomatometer", dig.at(rating, "ratingValue") or None, dig.at(rating, "reviewCount"))


def _linked_cast(linked: dict[str, Any]) -> list[Person]:
    """Return the cast of JSON-LD; until 2022 their characters stood beside them, in a list of the same length."""
    people = _persons(linked, "actor") or _persons(linked, "actors")
    characters = dig.listed(linked, "character")
    if len(characters) != len(people):
        return people
    return [(name, link, dig.text(played)) for (name, link, _), played in zip(people, characters, strict=True)]


def _linked_people(role: Role, linked: dict[str, Any], key: str | None = None) -> list[Credit]:
    return credits_of(role, _persons(linked, key or role))


def _persons(linked: dict[str, Any], key: str) -> list[Person]:
    listed = dig.listed(linked, key)
    people: list[Person] = [(values.name_of(person), dig.text(person, "sameAs"), None) for person in listed]
    if any(not name for name, _, _ in people):
        raise ShapeError(key, "a person without a name")
    return people


# --- The scripts above the details, since 2024 ----------------------------------------------------------------------


def read_years_and_runtime(head: Head, part: str) -> None:
    """Read a part of a line such as "2006, Crime/Drama, 2h 32m"."""
    if years := _YEARS.match(part):
        head.year = attempt(lambda: check_year(int(years["first"])))
        head.end_year = attempt(lambda: check_year(int(years["last"])))
        head.is_running = years["last"] is None and years["first"] != part
    elif _DURATION.match(part):
        head.runtime = attempt(lambda: parse_runtime(part))


def read_props(head: Head, props: list[str]) -> None:
    """Read what stands below the title without labels, in any order and number: "PG-13", "2021" or "Released Oct 22, 2021", "2h 35m"."""
    for prop in props:
        dated = _DATED.match(prop)
        if dated and (year := attempt(partial(values.read_year, dated["date"]))):
            head.year = year
        elif _CERTIFICATE.match(prop):
            head.certificate = prop
        else:
            read_years_and_runtime(head, prop)


def read_scorecard(scorecard: Any, hero: Any) -> Head:
    """Read the two scripts of pages since 2024, of which a piece of a page may have one only."""
    critics = partial(dig.read, partial(read_side, "tomatometer"), scorecard)
    audience = partial(dig.read, partial(read_side, "popcornmeter"), scorecard)
    overlay = attempt(lambda: dig.at(scorecard, "overlay"))
    finer = {kind: attempt(partial(dig.at, overlay, key)) for kind, key in FINER.items()}
    side = attempt(partial(dig.at, scorecard, "audienceScore"))
    is_scored = isinstance(attempt(partial(read_side, "popcornmeter", side)), Score)
    head = Head(
        {
            "tomatometer": lambda: first(partial(critics, "criticsScore"), partial(critics, "overlay", "criticsAll")),
            "popcornmeter": lambda: first(partial(audience, "audienceScore"), lambda: _all_of_audience(overlay)),
            **values.finer_scores(finer),
        },
        sides={
            "tomatometer": [
                attempt(partial(dig.at, scorecard, "criticsScore")),
                attempt(partial(dig.at, overlay, "criticsAll")),
            ],
            "popcornmeter": [side if is_scored else finer["popcornmeter_all"]],
            **{kind: [side] for kind, side in finer.items()},
        },
        title=attempt(lambda: dig.text(hero, "title")),
        genres=attempt(lambda: values.read_names(dig.at(hero, "metadataGenres"))) or [],
        plot=attempt(lambda: dig.text(scorecard, "description")),
        poster=attempt(lambda: dig.text(scorecard, "primaryImageUrl")) or attempt(lambda: dig.text(hero, "posterSrc")),
    )
    read_props(head, attempt(lambda: values.read_names(dig.at(hero, "metadataProps"))) or [])
    return head


def _all_of_audience(overlay: Any) -> Score | NoValue:
    """Return the score of the whole audience, where it is the one shown: no verified part of it has one."""
    if "score" in (dig.at(overlay, "audienceVerified") or {"score": None}):
        return None
    return dig.read(partial(read_side, "popcornmeter"), overlay, "audienceAll")
