"""IMDb's pages as the site has served them since the autumn of 2025: data in `__NEXT_DATA__`, JSON-LD beside it."""

from __future__ import annotations

import functools
import html
from typing import TYPE_CHECKING, Any

from moviecrawler.replica import markup
from moviecrawler.replica.bodies import Body, Template
from moviecrawler.replica.markup import encode, json_ld_script, rating_json_ld
from moviecrawler.replica.titles import Release
from moviecrawler.replica.traits import traits_of
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moviecrawler.items import OfferKind
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import Basics, Episode, Person, Title
    from moviecrawler.replica.traits import Traits

CAST_ON_TITLE_PAGE = 18
POSTER_SIZE = (1000, 1500)
_POPULAR_SIZE = 100
_BOX_OFFICE_SIZE = 10
_RANKED = 2_000
"""How many of the most popular titles have a rank among the top rated on their pages, also beyond the chart."""
_UNKNOWN = "Unknown"
"""What the site calls the season of an episode that has none."""

WATCH_CATEGORIES: dict[OfferKind, str] = {
    "free": "FREE",
    "ads": "FREE WITH ADS",
    "subscription": "STREAMING",
    "rent": "RENT/BUY",
}


class Pages:
    """IMDb's pages over a catalogue; `light` ones have the same data without the bulk around it."""

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._light = light

    def title(self, imdb_id: str) -> Body | None:
        """Return the page of a movie, a series or an episode, or None when there is no such title."""
        title = self._catalogue.of_imdb_id(imdb_id)
        if title is None:
            return None
        traits = traits_of(self._catalogue, title)
        above = {**_above_the_fold(title, traits), "series": _place(title)}
        main = {
            **_main_column(title, self._rank(title)),
            **self._beside(title, traits),
            "episodes": _outline(title) if title.seasons else None,
        }
        props = {"tconst": title.imdb_id, "aboveTheFoldData": above, "mainColumnData": main}
        return self._page("/title/[tconst]", _head(title) + json_ld_script(_title_json_ld(title)), props)

    def episodes(self, imdb_id: str, season: str | None) -> Body | None:
        """Return the page of one season's episodes, the first unless it is named; episodes of no season are in "Unknown"."""
        series = self._catalogue.series.of_imdb_id(imdb_id)
        if series is None or series.episode:
            return None
        seasons = [str(part.number) if part.number else _UNKNOWN for part in series.seasons]
        shown = season or next(iter(seasons), "1")
        listed = [_row(episode) for episode in series.episodes if str(episode.season or _UNKNOWN) == shown]
        rating, votes = series.rating or (None, 0)
        entity = {
            **_named(series.imdb_id, series.basics),
            "ratingsSummary": {"aggregateRating": rating, "voteCount": votes},
            "series": None,
        }
        section = {
            "selectedTab": "seasons",
            "seasons": [{"id": name, "value": name} for name in seasons],
            "episodes": {"items": listed, "total": len(listed), "hasNextPage": False, "endCursor": None},
            "currentSeason": shown,
        }
        head = f"<title>{html.escape(series.basics.title)} - Episodes - IMDb</title>".encode()
        return self._page(
            "/title/[tconst]/episodes", head, {"contentData": {"entityMetadata": entity, "section": section}}
        )

    def chart(self, name: str) -> Body:
        """Return a chart of titles in their order: top, moviemeter, boxoffice, toptv or tvmeter."""
        titles = self._catalogue.series if "tv" in name else self._catalogue
        indexes = titles.top if name.startswith("top") else range(min(titles.count, _POPULAR_SIZE))
        if name == "boxoffice":
            return self._box_office(indexes[:_BOX_OFFICE_SIZE])
        shown = [titles.title(index) for index in indexes]
        edges = [{"currentRank": rank, "node": _title(title)} for rank, title in enumerate(shown, start=1)]
        head = _canonical(f"/chart/{name}/") + json_ld_script(_chart_json_ld(shown))
        return self._page(f"/chart/{name}", head, {"pageData": {"chartTitles": {"edges": edges}}})

    def _box_office(self, indexes: Iterable[int]) -> Body:
        """Return the weekend's box office, which gives no ranks, years or running times."""
        edges = []
        for index in indexes:
            title = self._catalogue.title(index)
            node = _title(title)
            for absent in ("releaseYear", "runtime", "certificate", "titleGenres", "releaseDate"):
                del node[absent]
            gross = _wrapped("total", _money(title.opening_weekend))
            edges.append({"node": {"gross": gross, "release": {"weeksRunning": 1 + index, "titles": [node]}}})
        props = {"pageData": {"topGrossingReleases": {"edges": edges}}}
        return self._page("/chart/boxoffice", _canonical("/chart/boxoffice/"), props)

    def _page(self, route: str, head: bytes, props: dict[str, Any]) -> Body:
        """Return a page of a route, with what stands in its head and in its data."""
        return _template(route, light=self._light).fill(head, encode(props)[1:-1])

    def _rank(self, title: Title) -> int | None:
        """Return the rank among the top rated, which goes on beyond the chart: 1046 is no place in the Top 250."""
        if title.episode or title.rating is None or title.index >= _RANKED:
            return None
        titles = self._catalogue.series if title.is_series else self._catalogue
        return titles.top_ranks.get(title.index, len(titles.top) + 1 + title.index)

    def _beside(self, title: Title, traits: Traits) -> dict[str, Any]:
        """Return what the main column has of other titles, awards and votes."""

        def named(index: int) -> dict[str, Any]:
            found = _named(self._catalogue.imdb_id(index), self._catalogue.basics(index))
            del found["originalTitleText"]
            return found

        wins = sum(won for _, won, _ in traits.awards)
        nominated = sum(nominations for _, _, nominations in traits.awards)
        award = next(
            ({"wins": w, "nominations": n - w, "award": {"text": event}} for event, w, n in traits.awards), None
        )
        connected = [] if traits.follows is None else [traits.follows]
        bars = [{"rating": bar, "voteCount": votes} for bar, votes in enumerate(traits.histogram, start=1)]
        return {
            "wins": {"total": wins},
            "nominationsExcludeWins": {"total": nominated - wins},
            "prestigiousAwardSummary": award,
            "moreLikeThisTitles": {"edges": [{"node": named(index)} for index in traits.similar]},
            "connections": {
                "edges": [
                    {"node": {"associatedTitle": named(index), "category": {"text": category}}}
                    for category, index in connected
                ]
            },
            "aggregateRatingsBreakdown": {"histogram": {"histogramValues": bars if title.rating else []}},
            "reviews": {"total": traits.user_reviews},
            "watchOptionsByCategory": {"categorizedWatchOptionsList": _watch_options(traits)},
        }


def poster_url(title: Title) -> str | None:
    """Return where the title's poster would be."""
    return f"https://m.media-amazon.com/images/M/MV5B{title.imdb_id}._V1_.jpg" if title.has_poster else None


# --- Pages around the data ------------------------------------------------------------------------------------------

_SIZES = {
    "/title/[tconst]": (790_000, 530_000),
    "/title/[tconst]/episodes": (350_000, 400_000),
    "/chart/boxoffice": (450_000, 370_000),
}
_CHART_SIZES = (770_000, 370_000)
"""How many bytes of markup and of JSON that say nothing of titles a page carries."""


@functools.cache
def _template(route: str, *, light: bool) -> Template:
    # Less than 2 kB would pass for a throttle, also of a chart without titles.
    markup_size, json_size = (1_500, 300) if light else _SIZES.get(route, _CHART_SIZES)
    head = b'<!DOCTYPE html><html lang="en-US"><head><meta charSet="utf-8"/>' + markup.styles(markup_size // 12, route)
    return Template(
        head,
        b"</head><body>"
        + markup.elements(markup_size * 11 // 12, route)
        + b'<script id="__NEXT_DATA__" type="application/json">{"props":{"pageProps":{',
        # Healthy pages too hold the firewall's words, as they repeat the headers of the request.
        b',"requestContext":{"sidecarHeaders":{"x-amzn-waf-frontier-bot-control":"aws-waf-token"}},'
        b'"translationContext":{"i18n":{"translations":{"resources":{'
        + markup.json_members(json_size, route)
        + b'}}}},"urqlState":null,"fetchState":null},"__N_SSP":true},"page":'
        + encode(route)
        + b',"query":{},"buildId":"replica","locale":"en-US"}</script></body></html>',
    )


def _canonical(path: str) -> bytes:
    return f'<link rel="canonical" href="https://www.imdb.com{path}"/>'.encode()


def _head(title: Title) -> bytes:
    name, address = html.escape(title.basics.title), title_url("imdb", title.imdb_id)
    return (
        f'<title>{name} ({title.basics.year}) - IMDb</title><link rel="canonical" href="{address}"/>'
        f'<meta property="og:url" content="{address}"/><meta property="og:title" content="{name}"/>'
    ).encode()


def _title_json_ld(title: Title) -> dict[str, Any]:
    """Return a title's JSON-LD, whose texts are HTML-escaped: name and alternateName are the original and the shown."""
    basics, credits_ = title.basics, title.credits
    found = {
        **_listed_json_ld(title),
        "@context": "https://schema.org",
        "genre": list(basics.genres),
        "datePublished": title.release.iso,
        "actor": _people_json_ld(person for person, _ in credits_.cast[:3]),
        "director": _people_json_ld(credits_.directors),
        "creator": _people_json_ld((*credits_.creators, *credits_.writers)),
    }
    if basics.original_title is not None:
        found |= {"name": html.escape(basics.original_title), "alternateName": html.escape(basics.title)}
    return found


def _chart_json_ld(titles: Sequence[Title]) -> dict[str, Any]:
    items = [{"@type": "ListItem", "item": {**_listed_json_ld(t), "genre": ", ".join(t.basics.genres)}} for t in titles]
    return {"@type": "ItemList", "itemListElement": items, "@context": "https://schema.org"}


def _listed_json_ld(title: Title) -> dict[str, Any]:
    basics, minutes, rating = title.basics, title.basics.runtime_minutes, title.rating
    found: dict[str, Any] = {
        "@type": _TYPES[basics.title_type][1],
        "url": title_url("imdb", title.imdb_id),
        # The site writes &apos; where html.escape writes &#x27;.
        "name": html.escape(basics.title).replace("&#x27;", "&apos;"),
        "image": poster_url(title),
        "description": html.escape(title.plot) if title.plot else None,
        "contentRating": title.certificate,
        "aggregateRating": None if rating is None else rating_json_ld(1, 10, rating[0], ratingCount=rating[1]),
        "duration": None if minutes is None else f"PT{minutes // 60}H{minutes % 60}M",
    }
    return {key: value for key, value in found.items() if value is not None}


def _people_json_ld(people: Iterable[Person]) -> list[dict[str, str]]:
    return [
        {"@type": "Person", "url": f"https://www.imdb.com/name/{person.imdb_id}/", "name": html.escape(person.name)}
        for person in people
    ]


# --- Pieces of the data ---------------------------------------------------------------------------------------------

_TYPES = {
    "movie": ("Movie", "Movie"),
    "tvMovie": ("TV Movie", "Movie"),
    "tvSeries": ("TV Series", "TVSeries"),
    "tvMiniSeries": ("TV Mini Series", "TVSeries"),
    "tvEpisode": ("TV Episode", "TVEpisode"),
}
"""What the page and its JSON-LD call each type of title."""


def _named(imdb_id: str, basics: Basics) -> dict[str, Any]:
    """Return what a page says of a title that it only names."""
    return {
        "id": imdb_id,
        "titleText": {"text": basics.title},
        "originalTitleText": {"text": basics.title},
        "titleType": {"id": basics.title_type},
        "releaseYear": {"year": basics.year, "endYear": basics.end_year},
    }


def _title(title: Title) -> dict[str, Any]:
    """Return what rows of charts say of a title, and the head of its page."""
    basics, release, poster = title.basics, title.release, poster_url(title)
    rating, votes = title.rating or (None, 0)
    country = {"id": "US", "text": "United States"}
    return {
        "id": title.imdb_id,
        "titleText": {"text": basics.title},
        "titleType": {"id": basics.title_type, "text": _TYPES[basics.title_type][0]},
        "originalTitleText": {"text": basics.original_title or basics.title},
        "primaryImage": None if poster is None else {"width": POSTER_SIZE[0], "height": POSTER_SIZE[1], "url": poster},
        "releaseYear": {"year": basics.year, "endYear": basics.end_year},
        "releaseDate": {"day": release.day, "month": release.month, "year": release.year, "country": country},
        "ratingsSummary": {"aggregateRating": rating, "voteCount": votes},
        "runtime": _wrapped("seconds", None if basics.runtime_minutes is None else basics.runtime_minutes * 60),
        "certificate": _wrapped("rating", title.certificate),
        "titleGenres": {"genres": [{"genre": {"text": genre}} for genre in basics.genres]},
        "plot": _wrapped("plotText", _wrapped("plainText", title.plot)),
    }


def _above_the_fold(title: Title, traits: Traits) -> dict[str, Any]:
    credits_ = title.credits
    shown = (
        ("Creator", "creator", credits_.creators),
        ("Director", "director", credits_.directors),
        ("Writers", "writer", credits_.writers),
        ("Stars", "cast", tuple(person for person, _ in credits_.cast)),
    )
    principal = [
        {"category": {"text": text, "id": category}, **_credits(people), "credits": _credits(people[:3])["credits"]}
        for text, category, people in shown
        if people
    ]
    return {
        **_title(title),
        "meterRanking": {"currentRank": title.index + 1},
        "criticReviewsTotal": {"total": traits.critic_reviews},
        "genres": {"genres": [{"text": genre, "id": genre} for genre in title.basics.genres]},
        "principalCredits": principal,
        "metacritic": _wrapped("metascore", _wrapped("score", title.metascore)),
        "creatorsPageTitle": _departments(credits_.creators),
        "directorsPageTitle": _departments(credits_.directors),
        "keywords": {
            "total": len(traits.keywords),
            "edges": [{"node": {"text": keyword}} for keyword in traits.keywords],
        },
        "interests": {"edges": [{"node": {"primaryText": {"text": interest}}} for interest in traits.interests]},
        "taglines": {"edges": [{"node": {"text": traits.tagline}}] if traits.tagline else []},
    }


def _main_column(title: Title, rank: int | None) -> dict[str, Any]:
    country, credits_, shown = title.basics.country, title.credits, _title(title)
    repeated = ("id", "titleText", "originalTitleText", "titleType", "releaseDate", "runtime")
    return {
        **{key: shown[key] for key in repeated},
        "ratingsSummary": {"topRanking": _wrapped("rank", rank), **shown["ratingsSummary"]},
        "cast": {
            "total": len(credits_.cast),
            "edges": [_cast_edge(*part) for part in credits_.cast[:CAST_ON_TITLE_PAGE]],
        },
        "creators": _departments(credits_.creators),
        "directors": _departments(credits_.directors),
        "writers": _departments(credits_.writers),
        "spokenLanguages": {"spokenLanguages": [{"id": country.language_code, "text": country.language}]},
        "countriesDetails": {"countries": [{"id": country.code, "text": country.name}]},
        "productionBudget": _wrapped("budget", _money(title.budget)),
        "worldwideGross": _wrapped("total", _money(title.worldwide_gross)),
        "lifetimeGross": _wrapped("total", _money(title.domestic_gross)),
        "openingWeekendGross": _wrapped("gross", _wrapped("total", _money(title.opening_weekend))),
    }


def _place(title: Title) -> dict[str, Any] | None:
    """Return where an episode stands in its series; a special has no number."""
    series, episode = title.part_of, title.episode
    if series is None or episode is None:
        return None
    numbers = {"episodeNumber": episode.number, "seasonNumber": episode.season}
    return {
        "episodeNumber": numbers if episode.season is not None else None,
        "series": _named(series.imdb_id, series.basics),
    }


def _outline(series: Title) -> dict[str, Any]:
    """Return what a series' page says of its episodes."""
    episodes = series.episodes
    return {
        "episodes": {"total": len(episodes)},
        "seasons": [{"number": season.number} for season in series.numbered],
        "years": [{"year": year} for year in sorted({episode.air_date.year for episode in episodes})],
        "totalEpisodes": {"total": len(episodes)},
        "unknownSeasonEpisodes": {"total": sum(episode.season is None for episode in episodes)},
    }


def _row(episode: Episode) -> dict[str, Any]:
    release, (rating, votes) = Release.on(episode.air_date), episode.rating or (None, 0)
    return {
        "id": episode.imdb_id,
        "type": "tvEpisode",
        "season": str(episode.season or _UNKNOWN),
        "episode": _UNKNOWN if episode.number is None else str(episode.number),
        "titleText": episode.title,
        "releaseDate": {"year": release.year, "month": release.month, "day": release.day},
        "releaseYear": release.year,
        "aggregateRating": rating,
        "voteCount": votes,
    }


def _watch_options(traits: Traits) -> list[dict[str, Any]]:
    """Return the offers by category; what can be rented and bought stands once for both."""
    found: dict[str, list[dict[str, Any]]] = {}
    for offer in traits.offers:
        if offer.kind != "buy":
            option = {"provider": {"name": {"value": offer.provider}}, "link": f"{offer.url}?ref_=tt_watch"}
            found.setdefault(WATCH_CATEGORIES[offer.kind], []).append(option)
    return [{"categoryName": {"value": name}, "watchOptions": options} for name, options in found.items()]


def _departments(people: Sequence[Person]) -> list[dict[str, Any]]:
    return [_credits(people)] if people else []


def _wrapped(key: str, value: Any) -> dict[str, Any] | None:
    return None if value is None else {key: value}


def _credits(people: Sequence[Person]) -> dict[str, Any]:
    return {"totalCredits": len(people), "credits": [_credit(person) for person in people]}


def _credit(person: Person) -> dict[str, Any]:
    return {"name": {"id": person.imdb_id, "nameText": {"text": person.name}}}


def _cast_edge(person: Person, character: str | None) -> dict[str, Any]:
    played = None if character is None else [{"name": name} for name in character.split(" / ")]
    return {"node": {**_credit(person), "category": {"id": "actor", "text": "Actor"}, "characters": played}}


def _money(amount: int | None) -> dict[str, Any] | None:
    return None if amount is None else {"amount": amount, "currency": "USD"}
