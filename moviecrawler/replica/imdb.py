"""IMDb's pages as the site has served them since the autumn of 2025: data in `__NEXT_DATA__`."""

from __future__ import annotations

import functools
import html
from typing import TYPE_CHECKING, Any

from moviecrawler.replica import markup
from moviecrawler.replica.bodies import Body, Template
from moviecrawler.replica.markup import encode
from moviecrawler.replica.traits import traits_of
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from moviecrawler.items import OfferKind
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import Basics, Person, Title
    from moviecrawler.replica.traits import Traits

CAST_ON_TITLE_PAGE = 18
POSTER_SIZE = (1000, 1500)
_POPULAR_SIZE = 100
_BOX_OFFICE_SIZE = 10
_RANKED = 2_000
"""How many of the most popular titles have a rank among the top rated on their pages, also beyond the chart."""

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
        return self._page("/title/[tconst]", _head(title), props)

    def chart(self, name: str) -> Body:
        """Return a chart of titles in their order: top, moviemeter, boxoffice, toptv or tvmeter."""
        titles = self._catalogue.series if "tv" in name else self._catalogue
        indexes = titles.top if name.startswith("top") else range(min(titles.count, _POPULAR_SIZE))
        if name == "boxoffice":
            return self._box_office(indexes[:_BOX_OFFICE_SIZE])
        edges = [
            {"currentRank": rank, "node": _title(titles.title(index))} for rank, index in enumerate(indexes, start=1)
        ]
        return self._page(
            f"/chart/{name}", _canonical(f"/chart/{name}/"), {"pageData": {"chartTitles": {"edges": edges}}}
        )

    def _box_office(self, indexes: Iterable[int]) -> Body:
        """Return the weekend's box office, which gives no ranks, years or running times."""
        edges = []
        for index in indexes:
            title = self._catalogue.title(index)
            node = _title(title)
            for absent in ("releaseYear", "runtime", "certificate", "titleGenres", "releaseDate"):
                del node[absent]
            gross = _wrapped("total", _money(title.opening_weekend))
            edges.append({"node": {"gross": gross, "release": {"titles": [node]}}})
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
    return (f'<title>{name} ({title.basics.year}) - IMDb</title><link rel="canonical" href="{address}"/>').encode()


# --- Pieces of the data ---------------------------------------------------------------------------------------------

_TYPES = {
    "movie": "Movie",
    "tvMovie": "TV Movie",
    "tvSeries": "TV Series",
    "tvMiniSeries": "TV Mini Series",
    "tvEpisode": "TV Episode",
}
"""What the page calls each type of title."""


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
        "titleType": {"id": basics.title_type, "text": _TYPES[basics.title_type]},
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
    return {
        **_title(title),
        "meterRanking": {"currentRank": title.index + 1},
        "criticReviewsTotal": {"total": traits.critic_reviews},
        "genres": {"genres": [{"text": genre, "id": genre} for genre in title.basics.genres]},
        "metacritic": _wrapped("metascore", _wrapped("score", title.metascore)),
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
    return {
        "episodes": {"total": len(series.episodes)},
        "seasons": [{"number": season.number} for season in series.numbered],
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
