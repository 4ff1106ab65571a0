"""IMDb's title pages and charts as the site has served them since the autumn of 2025.

Their data is in `__NEXT_DATA__`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moviecrawler.replica.payloads import Templates, page

if TYPE_CHECKING:
    from moviecrawler.items import Movie
    from moviecrawler.replica.collection import Collection

_POPULAR_SIZE = 100
_BOX_OFFICE_SIZE = 10
CHARTS: Final = ("top", "moviemeter", "boxoffice", "toptv", "tvmeter")
_TYPES: Final = {
    "movie": "Movie",
    "tvMovie": "TV Movie",
    "tvSeries": "TV Series",
    "tvEpisode": "TV Episode",
}
"""What pages call each type of title."""


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
        "most_telling": lambda awards: next(
            (
                {"wins": one.wins, "nominations": one.nominations, "award": {"text": one.event}}
                for one in awards[1:]
            ),
            None,
        ),
        "bars": lambda votes: [
            {"rating": bar, "voteCount": count} for bar, count in enumerate(votes, start=1)
        ],
        "seasons": lambda count: [{"number": number + 1} for number in range(count)],
    },
)


def title_page(movie: Movie, *, light: bool) -> bytes:
    """Return the page of a film, a series or an episode."""
    named = _render("named", movie)
    dated = _render("dated", movie)
    above = _render("above_the_fold", movie)
    main = _render("main_column", movie)
    data = {
        "tconst": movie.site_id,
        "aboveTheFoldData": {**named, **dated, **above},
        "mainColumnData": main,
    }
    name = f"{movie.title} ({movie.year}) - IMDb"
    return page(
        "imdb.html", light=light, title=name, url=movie.url, route="/title/[tconst]", data=data
    )


def chart(collection: Collection, name: str, *, light: bool) -> bytes:
    """Return a chart of titles in their order.

    The box office gives no ranks, years or running times.
    """
    titles = collection.series if "tv" in name else collection
    size = _BOX_OFFICE_SIZE if name == "boxoffice" else _POPULAR_SIZE
    indexes = titles.top_ranks if name.startswith("top") else range(min(titles.count, size))
    movies = [titles.title(index).movies["imdb"] for index in indexes]
    if name == "boxoffice":
        edges: list[Any] = [
            {"node": {"release": {"titles": [_render("named", movie)]}}} for movie in movies
        ]
    else:
        rows = [{**_render("named", movie), **_render("dated", movie)} for movie in movies]
        edges = [{"currentRank": rank, "node": row} for rank, row in enumerate(rows, start=1)]
    data = {"topGrossingReleases" if name == "boxoffice" else "chartTitles": {"edges": edges}}
    route = f"/chart/{name}"
    url = f"https://www.imdb.com{route}/"
    title = f"{name} - IMDb"
    return page(
        "imdb.html", light=light, title=title, url=url, route=route, data={"pageData": data}
    )
