"""IMDb: its profile."""

from moviecrawler.sites.profile import (
    USUAL_FIELDS,
    Host,
    Ids,
    PageForm,
    ScoreProfile,
    SiteProfile,
    Spelling,
    TitleList,
)

_LANGUAGE = r"[a-z]{2}(?:-[a-z]{2})?"
"""As in https://www.imdb.com/de/title/tt0111161/, or in pt-br."""

PROFILE = SiteProfile(
    id="imdb",
    package=__name__,
    name="IMDb",
    hosts=(
        Host(
            setting="IMDB_URL",
            live="https://www.imdb.com",
            description="Scheme and host of IMDb's pages; any but the live one counts as a "
            "replica.",
        ),
        Host(
            setting="IMDB_DATASETS_URL",
            live="https://datasets.imdbws.com",
            description="The host of IMDb's datasets; empty means https://datasets.imdbws.com, or "
            "none when IMDB_URL is a replica.",
            has_files=True,
        ),
    ),
    domains=(".imdb.com",),
    aliases=("imdb.com", "m.imdb.com"),
    title_path="/title/{}/",
    ids=Ids(
        pattern="tt[0-9]{7,10}",
        example="tt0111161",
        path_prefix=rf"(?:{_LANGUAGE}/)?title/",
        # IMDb fills its numbers up to seven digits.
        spellings=(Spelling(pattern="^tt0+(?=[0-9]{7})", replacement="tt"),),
    ),
    per_day=30_000,
    authority=1,
    wikidata="P345",
    lists={
        "top": TitleList(path="/chart/top/"),
        "popular": TitleList(path="/chart/moviemeter/", is_trending=True),
        "boxoffice": TitleList(path="/chart/boxoffice/", is_trending=True),
        "toptv": TitleList(path="/chart/toptv/", kind="series"),
        "populartv": TitleList(path="/chart/tvmeter/", kind="series", is_trending=True),
    },
    pages=(
        PageForm(path=rf"(?:/{_LANGUAGE})?/title/tt\d+(?:/(?:fullcredits/?)?)?", reader="title"),
        PageForm(path=rf"(?:/{_LANGUAGE})?/chart/[\w-]+/?", reader="chart"),
    ),
    published=USUAL_FIELDS
    | {
        "original_title",
        "title_type",
        "countries",
        "languages",
        "scores.imdb",
        "scores.metascore",
        "popularity_rank",
        "amounts.budget",
        "amounts.opening_weekend",
        "amounts.domestic",
        "amounts.worldwide",
        "poster_width",
        "poster_height",
        "keywords",
        "interests",
        "taglines",
        "awards",
        "offers",
        "related.similar",
        "related.connection",
        "critic_review_count",
    },
    published_of_kind={
        "movie": {"imdb_top250_rank"},
        "series": {"season_count", "episode_count", "end_year", "imdb_top250_tv_rank"},
    },
    optional_fields={"taglines", "offers"},
    scores={
        "imdb": ScoreProfile(
            name="IMDb rating",
            heading="IMDb",
            audience="users",
            lowest=1,
            scale=10,
            columns=("imdb_rating", "imdb_votes"),
            form=".1f",
            facts=("count", "reviews", "histogram"),
            rates_seasons=False,
        ),
    },
)
