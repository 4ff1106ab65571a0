"""The components of Metacritic's pages since 2026: a product, and the summaries of its scores."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract import metacritic_traits as traits
from moviecrawler.extract.findings import ABSENT, Findings, NoValue, ShapeError, attempt, scores_of
from moviecrawler.extract.metacritic_values import (
    credits_of,
    id_in,
    new_movie,
    read_date,
    read_day,
    read_poster,
    read_score,
    without_season,
)
from moviecrawler.extract.series import listed_season, one_of_each_season
from moviecrawler.extract.values import check_runtime, check_year
from moviecrawler.urls import HOMES, IMDB_ID, part_of_series

if TYPE_CHECKING:
    from moviecrawler.items import Credit, Movie, Role, Score, ScoreKind

_IMAGES: Final = HOMES["metacritic"] + "/a/img/catalog"
NOT_FOUND: Final = 404
SEASONS: Final = "seasons"
_SUMMARIES_OF_ROWS: Final[dict[ScoreKind, str]] = {"metascore": "criticScoreSummary", "metacritic_user": "userScore"}
_SEASON_COUNTS: Final = ("seasonCount", "numberOfSeasons")


def component_name(component: Any) -> str | None:
    """Return what a component says it is."""
    return dig.text(component, "meta", "componentName")


def refuse_errors(part: Any, field: str) -> None:
    """Raise ShapeError when the site says that it could not get a part of the page."""
    errors = dig.items(part, "errors")
    if errors:
        codes = ", ".join(str(dig.at(error, "code")) for error in errors)
        raise ShapeError(field, f"the site answers error {codes}")


def from_components(components: dict[str | None, Any], stated: str | None = None) -> Findings:
    """Return the title of a page's components. A page of reviews has the summary of its own score only.

    `stated` is the site_id in the page's canonical link. The product of a season's page is its series.
    """
    product_component = components.get("product")
    refuse_errors(product_component, "page")
    product = dig.at(product_component, "data", "item")
    if product is None:
        raise ShapeError("page", "no product among the components")
    title = dig.text(product, "title")
    if title is None:
        raise ShapeError("title", "a product without one")
    found = Findings(new_movie(product_id(product, components, stated), title))
    site_id = found.movie.site_id or ""
    row = _season_row(components, site_id)
    if found.movie.season is None:
        found.look("imdb_id", lambda: dig.read(_imdb_id, product, "imdbId"))
        # A film that is shown again has the year of its first release and the date of the last.
        found.look("release_date", lambda: dig.read(read_day, product, "releaseDate"))
        found.look("year", lambda: read_year(product))
    else:
        found.look("year", lambda: dig.read(_premiere, row, "releaseYear"))
    if found.movie.kind == "series":
        found.look("season_count", *(partial(dig.read, _number, product, key) for key in _SEASON_COUNTS))
    found.look("runtime_minutes", lambda: dig.read(_minutes, product, "duration"))
    found.look("genres", lambda: dig.read(dig.texts("name"), product, "genres"))
    found.look("certificate", lambda: dig.read(dig.text, product, "rating"))
    found.look("plot", lambda: dig.read(dig.text, product, "description"))
    image = attempt(lambda: _image(product))
    found.look("poster_url", lambda: _poster(product, image))
    found.look("poster_width", lambda: dig.read(dig.pixels, image, "width"))
    found.look("poster_height", lambda: dig.read(dig.pixels, image, "height"))
    found.look("credits.director", partial(_crew, product, "director", "Directed By"))
    found.look("credits.writer", partial(_crew, product, "writer", "Written By"))
    if found.movie.kind == "series":
        found.look("credits.creator", lambda: _creators(product))
    found.look("credits.cast", lambda: dig.read(partial(_people, "cast"), product, "production", "cast"))
    found.look(
        "scores.metascore",
        partial(_component_score, site_id, components, "metascore"),
        partial(_own_score, site_id, components),
        partial(_score_in_row, "metascore", site_id, row),
    )
    found.look("scores.metacritic_user", partial(_component_score, site_id, components, "metacritic_user"))
    traits.look_beside_scores(found, components)
    traits.look_for_traits(found, components)
    return found


def _component_score(site_id: str, components: dict[str | None, Any], kind: ScoreKind) -> Score | NoValue:
    component = components.get(traits.SUMMARIES[kind])
    if any(dig.integer(error, "code") == NOT_FOUND for error in dig.items(component, "errors")):
        return ABSENT
    refuse_errors(component, "scores")
    if component is None or not traits.is_own(site_id, attempt(lambda: dig.at(component, "data", "item"))):
        return None
    return dig.read(partial(read_score, kind), component, "data", "item")


def _own_score(site_id: str, components: dict[str | None, Any]) -> Score | NoValue:
    """Return the Metascore that a product has beside its other facts."""
    return dig.read(partial(read_score, "metascore"), traits.own_summary(site_id, components))


def product_id(product: Any, components: dict[str | None, Any], stated: str | None = None) -> str:
    """Return the site_id. The summaries of its scores tell a season's, as the product beside them is its series; or, without any, its page."""
    summaries = [attempt(partial(dig.at, components.get(name), "data", "item")) for name in traits.SUMMARIES.values()]
    own = attempt(lambda: dig.at(product, "criticScoreSummary"))
    ids = [found for summary in (own, *summaries) if (found := attempt(partial(_id_of_summary, summary)))]
    season = next(filter(partial(part_of_series, "metacritic"), ids), None)
    whole = ids[0] if ids else traits.id_of_product(product)
    part = part_of_series("metacritic", stated or "")
    return season or (stated if stated and part and part.series_id == whole else whole)


def _id_of_summary(summary: Any) -> str | None:
    return id_in(dig.text(summary, "url"))


def _imdb_id(value: Any) -> str | None:
    # It is the site's own word, and sometimes that of a series' pilot or of a film's dub: joining checks the year.
    imdb_id = dig.text(value)
    if imdb_id is not None and not IMDB_ID.fullmatch(imdb_id):
        raise ShapeError("imdb_id", f"{imdb_id!r} is no id of IMDb")
    return imdb_id


def read_year(product: Any) -> int | NoValue:
    """Return the year of the premiere. The date of release can be that of a later showing: it serves where there is no other."""
    premiere = dig.read(dig.integer, product, "premiereYear")
    if premiere is ABSENT or premiere == 0:
        return read_date(dig.text(product, "releaseDate"))[1] or ABSENT
    return None if premiere is None else check_year(premiere)


def _number(value: Any) -> int | None:
    return dig.size(value) or None


def _minutes(value: Any) -> int | NoValue:
    minutes = dig.integer(value)
    return ABSENT if minutes == 0 else None if minutes is None else check_runtime(minutes)


def _image(product: Any) -> Any:
    """Return the first picture that a product has with a path; None without one."""
    images = [dig.read(dig.at, product, "image"), *dig.items(product, "images")]
    return next((image for image in images if isinstance(image, dict) and dig.text(image, "bucketPath")), None)


def _poster(product: Any, image: Any) -> str | NoValue:
    if image is not None:
        return read_poster(_IMAGES + (dig.text(image, "bucketPath") or "")) or ABSENT
    return ABSENT if dig.read(dig.at, product, "image") is ABSENT and not dig.items(product, "images") else None


def _crew(product: Any, role: Role, group: str) -> list[Credit] | NoValue:
    """Return those whom the crew has in a group, which is left out when nobody is in it."""
    crew = dig.read(dig.items, product, "production", "crew")
    if not isinstance(crew, list):
        return crew
    groups = [dig.text(person, "roleTypeGroupName") for person in crew]
    if None in groups:
        raise ShapeError("credits", "a member of the crew without a group")
    return _people(role, [person for person, name in zip(crew, groups, strict=True) if name == group])


def _creators(product: Any) -> list[Credit]:
    """Return a series' creators, who stand among its writers as "created by"."""
    crew = dig.items(product, "production", "crew")
    writers = [person for person in crew if dig.at(person, "roleTypeGroupName") == "Written By"]
    return _people("creator", [person for person in writers if "created by" in dig.items(person, "roles")])


def _people(role: Role, people: Any) -> list[Credit]:
    return credits_of(role, (_person(role, person) for person in dig.items(people)))


def _person(role: Role, person: Any) -> tuple[str, str | None, str | None]:
    name = dig.text(person, "name")
    if name is None:
        raise ShapeError("credits", f"a {role} without a name")
    address = dig.read(dig.text, person, "entertainmentProduct", "url")
    if address is None or (role == "cast" and "roles" not in person):
        raise ShapeError("credits", f"a {role} without an address or roles")
    # Of a member of the cast these are the parts played, of all others what they did.
    parts = map(dig.text, dig.items(person, "roles")) if role == "cast" else ()
    return name, None if address is ABSENT else address, " / ".join(part for part in parts if part)


# --- Seasons --------------------------------------------------------------------------------------------------------
# The page of a series, and those of its seasons, have a list of them: the component `seasons`.


def _season_row(components: dict[str | None, Any], site_id: str) -> Any:
    """Return what a page's list of seasons says of one of them; None when it doesn't list that."""
    return next((row for row in _rows(components) if attempt(partial(_id_of, row)) == site_id), None)


def seasons_of(series: Movie, components: dict[str | None, Any]) -> list[Movie]:
    """Return the seasons that a series' page lists, with what it says of each. A row that can't be read is passed by."""
    return one_of_each_season(attempt(partial(_season, series, row)) for row in _rows(components))


def _score_in_row(kind: ScoreKind, site_id: str, row: Any) -> Score | NoValue:
    """Return a season's score in its row; None where the address of the score is its series' or another season's."""
    name = _SUMMARIES_OF_ROWS[kind]
    if not traits.is_own(site_id, attempt(lambda: dig.at(row, name))):
        return None
    return dig.read(partial(read_score, kind), row, name)


def _premiere(year: Any) -> int | None:
    """Return the year of a season."""
    number = dig.integer(year)
    return check_year(number) if number else None


def _rows(components: dict[str | None, Any]) -> list[Any]:
    data = attempt(partial(dig.at, components.get(SEASONS), "data"))
    return next(
        (rows for path in (("items",), ("item", "seasons")) if (rows := attempt(partial(dig.items, data, *path)))),
        [],
    )


def _id_of(row: Any) -> str | None:
    """Return a season's id, by its own address or by that of its scores."""
    addresses = (attempt(partial(dig.text, row, *path)) for path in (("url",), ("criticScoreSummary", "url")))
    return next(filter(None, map(id_in, addresses)), None)


def _season(series: Movie, row: Any) -> Movie | None:
    site_id, title = _id_of(row), attempt(lambda: dig.text(row, "title"))
    scores = scores_of(*(partial(_score_in_row, kind, site_id or "", row) for kind in _SUMMARIES_OF_ROWS))
    for score in scores:
        traits.add_facts(score, row[_SUMMARIES_OF_ROWS[score.kind]])
    return listed_season(
        series,
        site_id,
        without_season(site_id, title) if site_id and title else None,
        scores,
        year=attempt(lambda: _premiere(row["releaseYear"])),
    )
