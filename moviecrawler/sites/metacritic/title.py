"""Reads a title from the components of Metacritic's pages since 2026, by the tables of paths below.

Most are in the component `product`; scores, offers and similar titles are components of their own.
A field that has moved gets one more path.
"""

from functools import partial

from moviecrawler.basics.values import check_year
from moviecrawler.extract.dig import (
    FieldPath,
    extract_fields,
    get_integer,
    get_items,
    get_path,
    get_positive,
    get_size,
    get_text,
    parse_at,
    parse_texts,
    readers,
)
from moviecrawler.extract.findings import ABSENT, Findings, NoValue, ShapeError, attempt
from moviecrawler.items import Movie, ScoreKind
from moviecrawler.sites.ids import part_of_series
from moviecrawler.sites.metacritic import values
from moviecrawler.sites.metacritic.values import id_in, parse_score, refuse_errors
from moviecrawler.sites.titles import listed_seasons, parse_imdb_id, stated_title

Components = dict[str | None, object]
"""The components of a page by their names, each with its `data` and `errors`."""
PRODUCT = "product"
_SUMMARIES: dict[ScoreKind, str] = {
    "metascore": "critic-score-summary",
    "metacritic_user": "user-score-summary",
}
_OFFERS = "where-to-watch"
_RELATED = "related-carousel"
_SEASONS = "seasons"
_FIELDS = (
    FieldPath("runtime_minutes", values.parse_minutes, "duration"),
    FieldPath("genres", parse_texts("name"), "genres"),
    FieldPath("certificate", get_text, "rating"),
    FieldPath("plot", get_text, "description"),
    FieldPath(
        "credits.director", partial(values.parse_crew, "director", "Directed By"), "production.crew"
    ),
    FieldPath(
        "credits.writer", partial(values.parse_crew, "writer", "Written By"), "production.crew"
    ),
    FieldPath("credits.cast", partial(values.parse_people, "cast"), "production.cast"),
    FieldPath("keywords", parse_texts(), "tags"),
    FieldPath("taglines", values.parse_tagline, "tagline"),
    FieldPath("awards", values.parse_awards, "awards"),
)
"""What the product says of all kinds of titles. On a season's page it is the product of the
series."""
_OF_WHOLE_TITLES = (
    # It can be that of a series' pilot or of a dub: matching checks the year.
    FieldPath("imdb_id", parse_imdb_id, "imdbId"),
    # A film that is shown again has the year of its first release and the date of the last.
    FieldPath("release_date", values.parse_day, "releaseDate"),
)
"""What the product says of the title that it is, and not of a season."""
_OF_SEASONS = (
    FieldPath("year", values.parse_premiere, "releaseYear"),
    FieldPath("release_date", values.parse_day, "premiereDate"),
    FieldPath("episode_count", get_positive, "totalEpisodes"),
)
"""What a row of the list of seasons says of one."""
_OF_PICTURES = (
    FieldPath("poster_width", get_positive, "width"),
    FieldPath("poster_height", get_positive, "height"),
)
_SCORE_DETAILS = (
    FieldPath("liked", get_size, "positiveCount"),
    FieldPath("neutral", get_size, "neutralCount"),
    FieldPath("disliked", get_size, "negativeCount"),
    FieldPath("sentiment", get_text, "sentiment"),
)
"""What a summary has of a score beside its value."""
_NOT_FOUND = 404
_MARKS = ("mustSee", "mustWatch")
_IN_ROWS: dict[ScoreKind, str] = {
    "metascore": "criticScoreSummary",
    "metacritic_user": "userScore",
}


def read_title(components: Components, stated: str | None, linked: Movie | None) -> Findings:
    """Return the title of a page's components.

    A page of reviews has the summary of its own score only.

    `stated` is the site_id in the page's canonical link. The product of a season's page is its
    series. `linked` is the title of JSON-LD, whose name is used where the product has none.
    """
    refuse_errors(components.get(PRODUCT), "page")
    product = get_path(components, PRODUCT, "data", "item")
    if product is None:
        raise ShapeError("page", "no product among the components")
    site_id = _product_id(product, components, stated)
    title = attempt(stated_title, product, "title")
    if title is None and linked is not None and linked.site_id == site_id:
        title = linked.title
    if title is None:
        raise ShapeError("title", "a product without one")
    findings = Findings(values.new_movie(site_id, title))
    movie = findings.movie
    extract_fields(findings, _FIELDS, [product])
    if movie.kind == "series":
        findings.set_first("season_count", partial(parse_at, get_positive, product, "seasonCount"))
        # Few series have their creators marked; a crew without them doesn't say that there are
        # none.
        findings.set_first(
            "credits.creator",
            lambda: values.parse_creators(get_path(product, "production", "crew")),
        )
    row = _season_row(components, site_id)
    watch = attempt(get_path, components, _OFFERS, "data", "item")
    if movie.season is None:
        extract_fields(findings, _OF_WHOLE_TITLES, [product])
        findings.set_first("year", lambda: parse_year(product))
        findings.set_first("external_ids", lambda: values.parse_ids(product, watch))
    else:
        extract_fields(findings, _OF_SEASONS, [row])
    image = attempt(_image, product)
    findings.set_first("poster_url", lambda: _poster(product, image))
    extract_fields(findings, _OF_PICTURES, [image])
    _extract_scores(findings, components, product, row)
    if movie.season is None:
        findings.set_first("scores.metascore.certified", lambda: _must(product))
    findings.set_first(
        "related.similar",
        *readers(values.parse_similar, [components], f"{_RELATED}.data.items"),
    )
    findings.set_first("offers", lambda: values.parse_offers(watch))
    return findings


def _extract_scores(
    findings: Findings, components: Components, product: object, row: object
) -> None:
    site_id = findings.movie.site_id or ""
    for kind, name in _SUMMARIES.items():
        findings.set_first(f"scores.{kind}", partial(_stated_absence, components.get(name)))
        of_page = attempt(get_path, components, name, "data", "item")
        of_row = attempt(get_path, row, _IN_ROWS[kind])
        summaries = [summary for summary in (of_page, of_row) if _is_own(site_id, summary)]
        if kind == "metascore":
            # Beside a season's scores the product is its series, whose score has the series'
            # address, or none.
            own = attempt(get_path, product, "criticScoreSummary")
            if findings.movie.season is None or attempt(_id_of_summary, own) == site_id:
                summaries.insert(1, own)
        _extract_score(findings, kind, summaries)


def _product_id(product: object, components: Components, stated: str | None) -> str:
    """Return the site_id.

    That of a season is in the summaries of its scores or the page's link, as the product is its
    series.
    """
    whole = id_in(f"/{values.id_of_product(product)}")
    if whole is None:
        raise ShapeError("site_id", "a product whose slug is none")
    summaries = [
        attempt(get_path, components, name, "data", "item") for name in _SUMMARIES.values()
    ]
    of_summaries = [attempt(_id_of_summary, summary) for summary in summaries]
    for site_id in (*of_summaries, stated):
        part = part_of_series("metacritic", site_id or "")
        if site_id and part and part.series_id == whole:
            return site_id
    return whole


def parse_year(product: object) -> int | NoValue:
    """Return the year of the premiere, or without one that of the date of release.

    That date can be a later showing's.
    """
    premiere = parse_at(get_integer, product, "premiereYear")
    if premiere is ABSENT or premiere == 0:
        day = parse_at(values.parse_day, product, "releaseDate")
        return int(day[:4]) if isinstance(day, str) else ABSENT
    return None if premiere is None else check_year(premiere)


def _image(product: object) -> object:
    """Return the first picture that a product has with a path; None without one."""
    others = attempt(get_items, product, "images") or []
    images = [get_path(product, "image"), *others]
    return next((image for image in images if attempt(get_text, image, "bucketPath")), None)


def _poster(product: object, image: object) -> str | NoValue:
    if image is not None:
        return f"{values.IMAGES}{get_text(image, 'bucketPath')}"
    return (
        ABSENT
        if parse_at(get_path, product, "image") is ABSENT and not get_items(product, "images")
        else None
    )


# --- Scores ---------------------------------------------------------------------------------------


def _stated_absence(component: object) -> NoValue:
    """Return ABSENT where the site says that a title has no such component.

    Raises ShapeError where it could not get one.
    """
    if any(get_integer(error, "code") == _NOT_FOUND for error in get_items(component, "errors")):
        return ABSENT
    refuse_errors(component, "scores")
    return None


def _extract_score(findings: Findings, kind: ScoreKind, summaries: list[object]) -> None:
    """Set a score and its details from the first summary that has them."""
    findings.set_first(
        f"scores.{kind}",
        *(partial(parse_at, partial(parse_score, kind), summary) for summary in summaries),
    )
    average = FieldPath("average", partial(values.parse_average, kind), "normalizedScore")
    details = [
        FieldPath(f"scores.{kind}.{each.field}", each.parse, *each.paths)
        for each in (*_SCORE_DETAILS, average)
    ]
    extract_fields(findings, details, summaries)


def _id_of_summary(summary: object) -> str | None:
    return id_in(get_text(summary, "url"))


def _is_own(site_id: str, summary: object) -> bool:
    """Return whether a summary of scores belongs to a season.

    One that doesn't say to what it belongs does, too; to a whole title all belong.
    """
    return (
        attempt(_id_of_summary, summary) in {None, site_id}
        or part_of_series("metacritic", site_id) is None
    )


def _must(product: object) -> bool | None:
    """Return whether a title is a must-see.

    A product has the mark of its own kind, or those of all kinds.
    """
    marks = [mark for name in _MARKS if isinstance(mark := get_path(product, name), bool)]
    return any(marks) if marks else None


# --- Seasons --------------------------------------------------------------------------------------
# The page of a series, and those of its seasons, have a list of them: the component `seasons`.


def _season_row(components: Components, site_id: str) -> object:
    """Return what a page's list of seasons says of one of them; None when it doesn't list that."""
    return next((row for row in _rows(components) if attempt(_id_of_row, row) == site_id), None)


def seasons_of(series: Movie, components: Components) -> list[Movie]:
    """Return the seasons that a series' page lists, with what it says of each.

    A row that can't be read is passed by.
    """
    return listed_seasons(series, (attempt(_season, series, row) for row in _rows(components)))


def _rows(components: Components) -> list[object]:
    return attempt(get_items, components, _SEASONS, "data", "items") or []


def _id_of_row(row: object) -> str | None:
    """Return a season's id, by its address."""
    return id_in(attempt(get_text, row, "url"))


def _season(series: Movie, row: object) -> Movie | None:
    site_id = _id_of_row(row)
    title = attempt(get_text, row, "title")
    if site_id is None:
        return None
    findings = Findings(values.new_movie(site_id, title or series.title))
    for kind, name in _IN_ROWS.items():
        summary = attempt(get_path, row, name)
        if _is_own(site_id, summary):
            _extract_score(findings, kind, [summary])
    extract_fields(findings, _OF_SEASONS, [row])
    return findings.movie
