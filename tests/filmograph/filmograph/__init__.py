"""Filmograph, an invented site: its profile."""

from __future__ import annotations

from moviecrawler.sites.profile import (
    NAME,
    USUAL_FIELDS,
    Host,
    Ids,
    PageForm,
    ScoreProfile,
    SeriesIds,
    SiteProfile,
    TitleList,
)

PROFILE = SiteProfile(
    id="filmograph",
    package=__name__,
    spiders="filmograph.spider",
    name="Filmograph",
    hosts=(
        Host(
            setting="FILMOGRAPH_URL",
            live="https://www.filmograph.example",
            description="Scheme and host of Filmograph.",
        ),
    ),
    domains=(".filmograph.example",),
    title_path="/{}/",
    ids=Ids(
        pattern=f"film/{NAME}",
        example="film/the-falling-mask",
        series=SeriesIds(series=f"show/{NAME}", part=r"/season/(?P<season>[0-9]{1,4})"),
    ),
    per_second=1,
    per_day=1_000,
    authority=4,
    lists={
        "films": TitleList(path="/films"),
        "shows": TitleList(path="/shows", kind="series", is_trending=True),
    },
    pages=(
        PageForm(path=r"/(?:films|shows)", reader="listing"),
        PageForm(path=r"/(?:film|show)/.+", reader="title"),
    ),
    published=USUAL_FIELDS | {"scores.filmograph_stars", "scores.filmograph_approval"},
    published_of_kind={"series": frozenset({"season_count"})},
    scores={
        "filmograph_stars": ScoreProfile(
            name="Filmograph stars",
            short_heading="Stars",
            audience="users",
            lowest=0,
            scale=5,
            columns=("filmograph_stars", "filmograph_votes"),
            form=".1f",
            facts=("count",),
        ),
        "filmograph_approval": ScoreProfile(
            name="Filmograph approval",
            short_heading="Approval",
            audience="critics",
            lowest=0,
            scale=100,
            columns=("filmograph_approval", "filmograph_critics"),
            unit="%",
            facts=("count",),
        ),
    },
)
