"""IMDb's title pages and charts as the site has served them since the autumn of 2025: data in `__NEXT_DATA__`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moviecrawler.replica.payloads import Page, Templates, page

if TYPE_CHECKING:
    from moviecrawler.items import Award, Movie
    from moviecrawler.replica.collection import Collection

_POPULAR_SIZE, _BOX_OFFICE_SIZE = 100, 10
CHARTS: Final = ("top", "moviemeter", "boxoffice", "toptv", "tvmeter")
_TYPES: Final = {"movie": "Movie", "tvMovie": "TV Movie", "tvSeries": "TV Series", "tvEpisode": "TV Episode"}
"""What pages call each type of title."""


def _award(award: Award) -> dict[str, Any]:
    return {"wins": award.wins, "nominations": award.nominations, "award": {"text": award.event}}


_render: Final = Templates(
    "imdb",
    {
        "type": _TYPES.get,
        "original": lambda movie: movie.original_title or movie.title,
        "parts_of_date": lambda date: dict(
            zip(("year", "month", "day"), [*map(int, date.split("-")), None], strict=False)
        ),
        "seconds": lambda minutes: minutes * 60,
        "rank": lambda movie: movie.imdb_top250_rank or movie.imdb_top250_tv_rank,
        "characters": lambda names: [{"name": name} for name in names.split(" / ")],
        "departments": lambda people: [people] if people else [],
        # All awards together are the first in the list.
        "wins": lambda movie: movie.awards[0].wins if movie.awards else 0,
        "nominations": lambda movie: movie.awards[0].nominations if movie.awards else 0,
        "most_telling": lambda awards: next((_award(one) for one in awards[1:]), None),
        "bars": lambda votes: [{"rating": bar, "voteCount": count} for bar, count in enumerate(votes, start=1)],
        "seasons": lambda count: [{"number": number + 1} for number in range(count)],
    },
)


def title_page(movie: Movie) -> Page:
    """Return the page of a film, a series or an episode."""
    named, dated, above, main = (_render(name, movie) for name in ("named", "dated", "above_the_fold", "main_column"))
    data = {"tconst": movie.site_id, "aboveTheFoldData": {**named, **dated, **above}, "mainColumnData": main}
    return _page("/title/[tconst]", f"{movie.title} ({movie.year})", str(movie.url), data)


def chart(collection: Collection, name: str) -> Page:
    """Return a chart of titles in their order. The box office gives no ranks, years or running times."""
    titles = collection.series if "tv" in name else collection
    size = _BOX_OFFICE_SIZE if name == "boxoffice" else _POPULAR_SIZE
    indexes = titles.top if name.startswith("top") else range(min(titles.count, size))
    movies = [titles.title(index).movies["imdb"] for index in indexes]
    rows = [_render("named", movie) for movie in movies]
    if name == "boxoffice":
        data: dict[str, Any] = {
            "topGrossingReleases": {"edges": [{"node": {"release": {"titles": [row]}}} for row in rows]}
        }
    else:
        dated = [{**row, **_render("dated", movie)} for row, movie in zip(rows, movies, strict=True)]
        edges = [{"currentRank": rank, "node": row} for rank, row in enumerate(dated, start=1)]
        data = {"chartTitles": {"edges": edges}}
    return _page(f"/chart/{name}", name, f"https://www.imdb.com/chart/{name}/", {"pageData": data})


def _page(route: str, title: str, url: str, data: dict[str, Any]) -> Page:
    return page("imdb.html", title=f"{title} - IMDb", url=url, route=route, data=data)
