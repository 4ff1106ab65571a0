"""Metacritic: its profile."""

from moviecrawler.items import TitleKind
from moviecrawler.sites.profile import (
    NAME,
    USUAL_FIELDS,
    Host,
    Ids,
    PageForm,
    ScoreProfile,
    SeriesIds,
    Sitemap,
    SiteProfile,
    Spelling,
    TitleList,
)

_OPINIONS = ("liked", "neutral", "disliked", "sentiment")
_FINDER = "/finder/metacritic/web"
_TYPES: dict[TitleKind, int] = {"movie": 2, "series": 1}
"""The finder's numbers of kinds of titles."""
_FINDER_ROWS = 24
"""Rows that the site's own browse pages ask the finder for."""
_MOVIES_SITEMAP = "/movies.xml"
_SERIES_SITEMAP = "/tvshows.xml"


def _finder_list(kind: TitleKind, order: str, *, is_trending: bool = False) -> TitleList:
    """Return a list of the finder's, the last one in that order first."""
    path = f"{_FINDER}?mcoTypeId={_TYPES[kind]}&sortBy=-{order}"
    return TitleList(path=path, kind=kind, rows=_FINDER_ROWS, is_trending=is_trending)


PROFILE = SiteProfile(
    id="metacritic",
    package=__name__,
    name="Metacritic",
    hosts=(
        Host(
            setting="METACRITIC_URL",
            live="https://www.metacritic.com",
            description="Scheme and host of Metacritic's pages and sitemaps.",
        ),
        Host(
            setting="METACRITIC_API_URL",
            live="https://backend.metacritic.com",
            description="The host of Metacritic's JSON; empty means "
            "https://backend.metacritic.com, or METACRITIC_URL when that is a replica.",
        ),
    ),
    domains=(".metacritic.com",),
    aliases=("metacritic.com",),
    title_path="/{}/",
    ids=Ids(
        pattern=f"movie/{NAME}",
        example="movie/dune-part-two",
        series=SeriesIds(
            series=f"tv/{NAME}",
            part=(
                # A season, or a special beside the seasons: /season-1, /season-1-special.
                r"(?i:/(?:season-(?P<season>[0-9]{1,4})(?P<special>-[a-z0-9-]{1,60})?|specials)"
                # An episode, with or without a number: /episode-5-undertow, /episode-pilot.
                rf"(?P<of_episode>/episode-"
                rf"(?:(?=(?P<episode>[0-9]{{1,4}})(?:[-/]|$))|){NAME})?)"
            ),
            spellings=(
                Spelling(pattern=r"^/season-0+(?=/|$)", replacement="/specials"),
                Spelling(pattern=r"^/season-0+(?=[1-9])", replacement="/season-"),
            ),
        ),
    ),
    per_second=0.2,
    per_day=600,
    authority=3,
    wikidata="P1712",
    lists={
        "metascore": _finder_list("movie", "metaScore"),
        "new": _finder_list("movie", "releaseDate", is_trending=True),
        "popular": _finder_list("movie", "popularityCount", is_trending=True),
        "tv-metascore": _finder_list("series", "metaScore"),
        "tv-new": _finder_list("series", "releaseDate", is_trending=True),
        "tv-popular": _finder_list("series", "popularityCount", is_trending=True),
    },
    sitemaps={
        "sitemap": Sitemap(path=_MOVIES_SITEMAP, kind="movie"),
        "sitemap-series": Sitemap(path=_SERIES_SITEMAP, kind="series"),
        "sitemap-seasons": Sitemap(path=_SERIES_SITEMAP, kind="season"),
    },
    pages=(
        PageForm(
            path=r"/(?:movie/[^/]+"
            r"|tv/[^/]+(?:(?:/season-\d[^/]*|/specials)(?:/episode-[^/]+)?)?)/?",
            reader="title",
        ),
        PageForm(path=rf"{_FINDER}/?", reader="finder", expects="json"),
    ),
    published=USUAL_FIELDS
    | {
        "imdb_id",
        "countries",
        "languages",
        "scores.metascore",
        "scores.metacritic_user",
        "poster_width",
        "poster_height",
        "keywords",
        "taglines",
        "awards",
        "offers",
        "related.similar",
        "external_ids",
    },
    published_of_kind={
        "series": {"season_count"},
        "season": {"episode_count"},
    },
    optional_fields={"countries", "languages", "poster_width", "poster_height"},
    scores={
        "metascore": ScoreProfile(
            name="Metascore",
            short_heading="Meta",
            audience="critics",
            lowest=0,
            scale=100,
            average_scale=100,
            columns=("metascore", "metascore_reviews"),
            facts=("count", "average", *_OPINIONS),  # the site marks only what is a must-see
        ),
        "metacritic_user": ScoreProfile(
            name="Metacritic users",
            heading="User",
            audience="users",
            lowest=0,
            scale=10,
            columns=("metacritic_user_score", "metacritic_user_ratings"),
            form=".1f",
            facts=("count", *_OPINIONS),
        ),
    },
)
