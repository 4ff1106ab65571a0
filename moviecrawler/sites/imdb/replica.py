"""IMDb's title pages and charts as the site has served them since the autumn of 2025.

Their data is in `__NEXT_DATA__`.
"""

from collections.abc import Mapping

from moviecrawler.items import Credit, Movie
from moviecrawler.sites.replicas import Collection, Markup, Refusal, Title

_POPULAR_SIZE = 100
_BOX_OFFICE_SIZE = 10
ROBOTS = """
User-agent: *
Disallow: /OnThisDay
Disallow: /ap/
Disallow: /mymovies/
Disallow: /registration/
Disallow: /search/name-text
Disallow: /search/title-text
Disallow: /tvschedule
"""
LIVE_ROBOTS = """
User-agent: *
Disallow: /
Allow: /datasets/
"""
"""It lets nobody in, but its datasets have a host of their own without one."""
CHALLENGE = Refusal(
    status=202,
    headers={"x-amzn-waf-action": "challenge"},
    head="<script>window.awsWafCookieDomainList = []; window.gokuProps = {};</script>",
)
MOVED = 308
CHARTS = ("top", "moviemeter", "boxoffice", "toptv", "tvmeter")


def title_page(_title: Title, movie: Movie) -> Markup:
    """Return the page of a film, a series or an episode."""
    return Markup(
        template="replica_title.html",
        variables={
            "title": f"{movie.title} ({movie.year}) - IMDb",
            "url": movie.url,
            "route": "/title/[tconst]",
            "movie": movie,
        },
    )


def list_page(
    collection: Collection, path: str, _query: Mapping[str, str], _host: str
) -> Markup | None:
    """Return a chart of titles in their order, or a page of full credits; None for another path."""
    beginning, _, name = path.partition("/")
    if beginning == "title" and name.endswith("/fullcredits"):
        found = collection.find("imdb", name.removesuffix("/fullcredits"))
        return None if found is None else _full_credits(found[1])
    if beginning != "chart" or name not in CHARTS:
        return None
    titles = collection.series if "tv" in name else collection
    size = _BOX_OFFICE_SIZE if name == "boxoffice" else _POPULAR_SIZE
    indexes = titles.top_ranks if name.startswith("top") else range(min(titles.count, size))
    route = f"/chart/{name}"
    return Markup(
        template="replica_chart.html",
        variables={
            "title": f"{name} - IMDb",
            "url": f"https://www.imdb.com{route}/",
            "route": route,
            "name": name,
            "movies": [titles.title(index).movies["imdb"] for index in indexes],
        },
    )


def full_cast(movie: Movie) -> list[Credit]:
    """Return the cast of a title on its page of full credits, which begins as on its own page."""
    shown = movie.people("cast")
    number = int(str(movie.site_id)[2:])
    more = [
        Credit(
            name=f"Extra {place}",
            role="cast",
            position=place,
            person_id=f"nm{8_000_000 + number % 10_000 * 100 + place}",
            character=f"Passer-by {place}",
        )
        for place in range(len(shown) + 1, 31)
    ]
    return [*shown, *more]


def _full_credits(movie: Movie) -> Markup:
    lists = {
        "director": movie.people("director"),
        "writer": movie.people("writer"),
        "cast": full_cast(movie),
    }
    return Markup(
        template="replica_credits.html",
        variables={
            "title": f"{movie.title} - Full cast",
            "url": f"{movie.url}fullcredits/",
            "route": "/title/[tconst]/fullcredits",
            "movie": movie,
            "people": {role: people for role, people in lists.items() if people},
        },
    )
