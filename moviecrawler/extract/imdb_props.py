"""The data in the script of IMDb's pages, as far as anything of it is read.

Most of the script are translations, tracking and further reading. Only what is named here is built.
"""

from __future__ import annotations

from typing import Any, TypedDict, cast

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, script, starts_with
from moviecrawler.extract.findings import ShapeError


class Category(TypedDict, total=False):
    """A department of a page of credits, with its people."""

    id: Any
    section: Any


class _Named(TypedDict, total=False):
    id: Any
    titleText: Any


class _NamedEdge(TypedDict, total=False):
    node: _Named | None


class _NamedEdges(TypedDict, total=False):
    edges: list[_NamedEdge | None] | None


class _Total(TypedDict, total=False):
    total: Any


class TitleData(TypedDict, total=False):
    """What is read of an object about one title."""

    id: Any
    titleText: Any
    originalTitleText: Any
    titleType: Any
    releaseYear: Any
    releaseDate: Any
    runtime: Any
    series: Any
    genres: Any
    titleGenres: Any
    countriesDetails: Any
    countriesOfOrigin: Any
    spokenLanguages: Any
    certificate: Any
    plot: Any
    primaryImage: Any
    ratingsSummary: Any
    metacritic: Any
    meterRanking: Any
    productionBudget: Any
    openingWeekendGross: Any
    lifetimeGross: Any
    worldwideGross: Any
    directors: Any
    writers: Any
    creators: Any
    principalCast: Any
    cast: Any
    castV2: Any
    crewV2: Any
    principalCredits: Any
    principalCreditsV2: Any
    directorsPageTitle: Any
    creatorsPageTitle: Any
    categories: list[Category | None] | None
    keywords: Any
    storylineKeywords: Any
    interests: Any
    taglines: Any
    wins: Any
    nominations: Any
    nominationsExcludeWins: Any
    prestigiousAwardSummary: Any
    moreLikeThisTitles: _NamedEdges | None
    connections: Any
    watchOptionsByCategory: Any
    aggregateRatingsBreakdown: Any
    reviews: _Total | None
    criticReviewsTotal: _Total | None
    episodes: Any


class _ContentData(TypedDict, total=False):
    entityMetadata: TitleData | None
    section: Any
    categories: Any


class PageProps(TypedDict, total=False):
    """What is read of a page's script."""

    tconst: Any
    aboveTheFoldData: TitleData | None
    mainColumnData: TitleData | None
    contentData: _ContentData | None
    pageData: Any
    searchResults: Any
    titleResults: Any
    groups: Any


class _Props(TypedDict, total=False):
    pageProps: PageProps


class _NextData(_Props, total=False):
    props: _Props


def page_props(body: bytes) -> PageProps | None:
    """Return what a page's script holds, or the bare JSON of one; None when the page has no such script.

    Raises ShapeError when that isn't what it was, or the page ends inside it.
    """
    raw = body if is_json(body) else script(body, "__NEXT_DATA__")
    if raw is None:
        return None
    try:
        data: _NextData = decode_json(raw, _NextData)
        # The site's own scripts fetch the next page as `pageProps` alone.
        props = data.get("props", data).get("pageProps")
    except ShapeError:
        props = _odd_page_props(decode_json(raw))
    if props is None:
        raise ShapeError("page", "the script has no pageProps")
    return props


def _odd_page_props(data: Any) -> PageProps | None:
    """Return what is of the expected type in a script of which something is not."""
    found = dig.at(data, "props", "pageProps") or dig.at(data, "pageProps")
    if not isinstance(found, dict):
        return None
    objects = ("aboveTheFoldData", "mainColumnData", "contentData")
    odd = {name for name in objects if not isinstance(found.get(name), dict | None)}
    return cast("PageProps", {name: value for name, value in found.items() if name not in odd})


def is_json(body: bytes) -> bool:
    """Return whether a body is a JSON object, not a page of markup."""
    return starts_with(body, b"{")
