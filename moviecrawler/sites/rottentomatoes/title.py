"""Reads a title from Rotten Tomatoes' pages since 2024.

Its fields are in two scripts, the list of details, other markup and JSON-LD. A field that has moved
gets one more path. `RottenTomatoes.context.*` is never read: it holds what other requests left in
the same server process.
"""

import re
from dataclasses import dataclass
from functools import partial

from parsel import Selector

from moviecrawler.basics.values import check_year, parse_runtime
from moviecrawler.extract import linked_data
from moviecrawler.extract.dig import (
    FieldPath,
    JsonObject,
    as_list,
    extract_fields,
    get_path,
    get_size,
    get_text,
    parse_at,
    parse_texts,
    readers,
)
from moviecrawler.extract.findings import ABSENT, Findings, NoValue, ShapeError, attempt
from moviecrawler.extract.people import Person, new_credits
from moviecrawler.extract.trees import text_of
from moviecrawler.items import Role, Score, ScoreKind
from moviecrawler.sites.rottentomatoes import markup, values
from moviecrawler.sites.scores import linked_score
from moviecrawler.sites.titles import new_title, stated_title

_SCORE_PATHS: dict[ScoreKind, tuple[str, ...]] = {
    "tomatometer": ("criticsScore", "scoreboard.tomatometerScore"),
    "popcornmeter": ("audienceScore", "scoreboard.audienceScore"),
    "tomatometer_top": ("overlay.criticsTop", "modal.tomatometerScoreTop"),
    "popcornmeter_all": ("overlay.audienceAll", "modal.audienceScoreAll"),
    "popcornmeter_verified": ("overlay.audienceVerified", "modal.audienceScoreVerified"),
}
"""The paths of the objects that have the scores: in `media-scorecard-json`; until spring 2024 below
`modal` and `scoreboard` of `scoreDetails`."""
_SLOTS: dict[ScoreKind, str] = {
    "tomatometer": "critics-score",
    "popcornmeter": "audience-score",
}
"""The slots of `<media-scorecard>` that show them; tiles of other titles have such slots, too."""
_IN_DETAILS = (
    FieldPath("year", values.parse_shown_year, "release_date"),
    FieldPath("release_date", values.parse_release_date, "release_date"),
    FieldPath("runtime_minutes", parse_runtime, "runtime"),
    FieldPath("genres", values.split, "genres"),
    FieldPath("languages", as_list, "language"),
    FieldPath("certificate", values.short_certificate, "certificate"),
    FieldPath("amounts.domestic", values.parse_dollars, "domestic"),
)
"""What the rows of the list of details state. A missing row states nothing."""
_IN_MARKUP = {
    "consensus": markup.consensus_of,
    "offers": markup.offers_of,
    "related.similar": markup.similar_of,
}
_LINKED = (
    *linked_data.paths_of(
        "plot", "poster_url", "runtime_minutes", "series_title", "credits.director", "credits.cast"
    ),
    FieldPath("scores.tomatometer", partial(linked_score, "tomatometer"), "aggregateRating"),
    FieldPath("season_count", get_size, "numberOfSeasons"),
    FieldPath("episode_count", get_size, "numberOfEpisodes"),
)
"""The fields on which the site's JSON-LD is right. Its dates can be those of a later release."""
_LINKED_WITHOUT_DETAILS = (
    *linked_data.paths_of("genres"),
    FieldPath(
        "certificate", partial(linked_data.parsed, values.short_certificate), "contentRating"
    ),
)
"""The fields of which the list of details shows other values, where a page has one."""
_ROLES: tuple[Role, ...] = ("director", "writer", "creator")
_SITE_NAME = re.compile(r"(?<!\s)\s*[-|]\s*Rotten Tomatoes$")
# The dashes are the site's own.
_YEARS = re.compile(r"^(?P<year>\d{4})(?:\s*[-–—]\s*(?P<end_year>\d{4})?)?$")  # noqa: RUF001
_DATED = re.compile(
    r"^(?:Released|Opened|Opens|Premiered|In Theaters)\s+(?P<date>.+)$", re.IGNORECASE
)
_DURATION = re.compile(r"^\d+\s*(?:h|m|hr|min)\b", re.IGNORECASE)
_CERTIFICATE = re.compile(
    r"^(?:G|PG|PG-?13|R|NC-?17|X|NR|Not Rated|Unrated|TV-?[A-Z0-9-]+)$", re.IGNORECASE
)


@dataclass(kw_only=True)
class _Hero:
    """The head of a page."""

    title: str | None
    genres: list[str]
    posters: list[object]
    year: int | None = None
    end_year: int | NoValue = None
    certificate: str | None = None
    runtime: str | None = None


def _hero_of(content: object, scorecard: object, tree: Selector) -> _Hero:
    """Return the head of a page.

    It is read from its script, until spring 2024 from that of the scores, or from the markup.
    """
    fields = content.items() if isinstance(content, dict) else ()
    shown = tree.css("media-hero")

    def texts(key: str, name: str) -> list[str]:
        listed = attempt(lambda: parse_texts()(get_path(content, key)))
        return listed or [
            text for part in shown.css(f'[slot="{name}"]') if (text := text_of(part).strip(" /,"))
        ]

    hero = _Hero(
        title=attempt(stated_title, content, "title")
        or attempt(stated_title, scorecard, "scoreboard", "title"),
        genres=texts("metadataGenres", "metadataGenre"),
        posters=[
            *(value for key, value in fields if key.startswith("poster")),
            *markup.posters_of(tree),
        ],
    )
    for prop in texts("metadataProps", "metadataProp"):
        if years := _YEARS.match(prop):
            hero.year = int(years["year"])
            # A running series has a first year, a dash, and no last year.
            if not prop.isdigit():
                hero.end_year = int(years["end_year"]) if years["end_year"] else ABSENT
        elif (dated := _DATED.match(prop)) and (
            year := attempt(values.parse_shown_year, dated["date"])
        ):
            hero.year = year
        elif _CERTIFICATE.match(prop):
            hero.certificate = prop
        elif _DURATION.match(prop):
            hero.runtime = prop
    return hero


def read_title(
    site_id: str,
    tree: Selector,
    scorecard: object,
    content: object,
    linked: JsonObject,
) -> Findings:
    """Return what a page says of a title.

    Args:
        site_id: The title's id.
        tree: The page.
        scorecard: The script with the scores; None without one.
        content: What the script of the page's head has; None without one.
        linked: The page's JSON-LD about the title; empty without any.
    """
    hero = _hero_of(content, scorecard, tree)
    rows = markup.details_of(tree)
    tag = _SITE_NAME.sub("", text_of(tree.css("title")))
    title = hero.title or attempt(stated_title, linked, "name") or tag
    if not title:
        raise ShapeError("title", "no title at a known position")
    # JSON-LD can write the title so: "Dune (2021)".
    named = values.YEAR_BEHIND_TITLE.match(title)
    if named and hero.year in {None, int(named["year"])}:
        title = named["title"]
        hero.year = int(named["year"])
    findings = Findings(new_title("rottentomatoes", site_id, title))
    details = {name: ", ".join(piece.text for piece in row) for name, row in rows.items()}
    findings.set_first("year", lambda: hero.year)
    extract_fields(findings, _IN_DETAILS, [details])
    end_year = hero.end_year
    findings.set_first(
        "end_year", lambda: check_year(end_year) if isinstance(end_year, int) else end_year
    )
    findings.set_first("runtime_minutes", partial(parse_at, parse_runtime, hero.runtime))
    findings.set_first("certificate", partial(parse_at, values.short_certificate, hero.certificate))
    pictures = (attempt(get_text, scorecard, "primaryImageUrl"), *hero.posters)
    findings.set_first(
        "poster_url", lambda: next(filter(None, map(linked_data.picture, pictures)), None)
    )
    findings.set_first(
        "plot", lambda: get_text(scorecard, "description"), lambda: markup.plot_of(tree)
    )
    findings.set_first("credits.cast", lambda: new_credits("cast", markup.cast_of(tree)))
    for role in _ROLES:
        people = [Person(piece.text, piece.link) for piece in rows.get(role, [])]
        findings.set_first(f"credits.{role}", partial(new_credits, role, people))
    _extract_scores(findings, scorecard)
    for field, read in _IN_MARKUP.items():
        findings.set_first(field, partial(read, tree))
    findings.set_first("external_ids", lambda: values.parse_ids(tree, scorecard))
    # JSON-LD has the first five of the cast; it is used where the page has no section of the cast.
    if tree.css('[data-qa="person-item"], [data-qa="cast-crew-item"]'):
        linked = {**linked, "actor": None}
    if not rows:
        findings.set_first("genres", lambda: hero.genres)
        linked_data.extract_fields(findings, linked, _LINKED_WITHOUT_DETAILS)
    linked_data.extract_fields(findings, linked, _LINKED)
    for kind, name in _SLOTS.items():
        shown = values.slot(tree.css("media-scorecard"), name) or None
        findings.set_first(f"scores.{kind}", partial(values.score, kind, shown))
    return findings


def _extract_scores(findings: Findings, scorecard: object) -> None:
    for kind, paths in {**_SCORE_PATHS, "popcornmeter": _popcornmeter_paths(scorecard)}.items():
        findings.set_first(
            f"scores.{kind}", *readers(partial(values.parse_score, kind), [scorecard], *paths)
        )
        score_details = [
            FieldPath(
                f"scores.{kind}.{each.field}",
                each.parse,
                *(f"{path}.{key}" for path in paths for key in each.paths),
            )
            for each in values.score_details(kind)
        ]
        extract_fields(findings, score_details, [scorecard])


def _popcornmeter_paths(scorecard: object) -> tuple[str, ...]:
    """Return the paths of the score that is shown.

    It is that of the whole audience, where no verified part of it has one.
    """
    shown = attempt(
        parse_at, partial(values.parse_score, "popcornmeter"), scorecard, "audienceScore"
    )
    verified = attempt(get_path, scorecard, "overlay", "audienceVerified")
    is_of_all = (
        not isinstance(shown, Score) and isinstance(verified, dict) and "score" not in verified
    )
    return ("overlay.audienceAll",) if is_of_all else _SCORE_PATHS["popcornmeter"]
