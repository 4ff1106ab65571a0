"""Rotten Tomatoes: its profile."""

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

_SITEMAPS = "/sitemaps/sitemap.xml"
_CRITICS = ("count", "average", "liked", "disliked", "certified", "sentiment")
_TOMATOMETER = ScoreProfile(
    name="Tomatometer",
    short_heading="Tomato",
    audience="critics",
    lowest=0,
    scale=100,
    average_scale=10,
    columns=("tomatometer", "tomatometer_reviews"),
    unit="%",
    facts=_CRITICS,
)
_POPCORNMETER = ScoreProfile(
    name="Popcornmeter",
    short_heading="Popcorn",
    audience="users",
    lowest=0,
    scale=100,
    average_scale=5,
    columns=("popcornmeter", "popcornmeter_ratings"),
    unit="%",
    facts=(*_CRITICS, "reviews"),
)

PROFILE = SiteProfile(
    id="rottentomatoes",
    package=__name__,
    name="Rotten Tomatoes",
    hosts=(
        Host(
            setting="ROTTENTOMATOES_URL",
            live="https://www.rottentomatoes.com",
            description="Scheme and host of Rotten Tomatoes.",
        ),
    ),
    domains=(".rottentomatoes.com",),
    aliases=("rottentomatoes.com",),
    title_path="/{}",
    ids=Ids(
        pattern=f"m/{NAME}",
        example="m/dune_part_two",
        series=SeriesIds(
            series=f"tv/{NAME}",
            part=(
                # A season. A special between two episodes of a season has a number inside the
                # season's: `s37.2`.
                r"(?i:/s(?P<season>[0-9]{1,4})(?P<special>\.[0-9]{1,3})?"
                # An episode, also one between two others: /e05, /e05.1.
                r"(?:(?P<of_episode>/e(?:(?P<episode>[0-9]{1,4})(?![0-9.])|[0-9]{1,4}\.[0-9]{1,3}))"
                r"|(?!/e[0-9])))"
            ),
            spellings=(
                Spelling(
                    pattern=r"(/[se])([0-9])(?=[./]|$)",
                    replacement=r"\g<1>0\2",
                ),
                Spelling(
                    pattern=r"(/[se])0+(?=[0-9]{2})",
                    replacement=r"\1",
                ),
            ),
        ),
    ),
    per_day=5_000,
    authority=2,
    wikidata="P1258",
    lists={
        "movies_at_home/sort:popular": TitleList(
            path="/browse/movies_at_home/sort:popular", is_trending=True
        ),
        "movies_in_theaters": TitleList(path="/browse/movies_in_theaters", is_trending=True),
        "tv_series_browse/sort:popular": TitleList(
            path="/browse/tv_series_browse/sort:popular", kind="series", is_trending=True
        ),
    },
    list_names=(
        r"(?:movies_in_theaters|movies_at_home|movies_coming_soon|tv_series_browse)"
        r"(?:/[a-zA-Z0-9_:~,.-]+)?/?"
    ),
    sitemaps={
        "sitemap": Sitemap(path=_SITEMAPS, kind="movie", parts="movie_"),
        "sitemap-series": Sitemap(path=_SITEMAPS, kind="series", parts="tv-series_"),
        "sitemap-seasons": Sitemap(path=_SITEMAPS, kind="season", parts="tv-seasons_"),
    },
    pages=(
        PageForm(
            path=r"/(?:m/[^/]+|tv/[^/]+(?:/s\d[\d.]*(?:/e\d[\d.]*)?)?)/?",
            reader="title",
        ),
        PageForm(path=r"/browse/.*", reader="browse"),
        PageForm(path=r"/cnapi/browse/.*", reader="browse_json", expects="json"),
    ),
    published=USUAL_FIELDS
    | {
        "languages",
        "amounts.domestic",
        "scores.tomatometer",
        "scores.popcornmeter",
        "scores.tomatometer_top",
        "scores.popcornmeter_all",
        "scores.popcornmeter_verified",
        "offers",
        "related.similar",
        "consensus",
        "external_ids",
    },
    published_of_kind={
        "series": {"season_count", "end_year"},
        "season": {"episode_count"},
    },
    optional_fields=frozenset(
        {
            "amounts.domestic",
            "certificate",
            "consensus",
            "languages",
            "offers",
            "release_date",
            "runtime_minutes",
        }
    ),
    scores={
        "tomatometer": _TOMATOMETER,
        "popcornmeter": _POPCORNMETER,
        "tomatometer_top": _TOMATOMETER._replace(name="Tomatometer, top critics", columns=None),
        "popcornmeter_all": _POPCORNMETER._replace(name="Popcornmeter, all", columns=None),
        "popcornmeter_verified": _POPCORNMETER._replace(
            name="Popcornmeter, verified", columns=None
        ),
    },
)
