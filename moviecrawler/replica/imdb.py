"""IMDb's pages as the site has served them since the autumn of 2025: data in `__NEXT_DATA__`, JSON-LD beside it."""

from __future__ import annotations

import functools
import html
from typing import TYPE_CHECKING, Any

import msgspec

from moviecrawler.replica import bulk
from moviecrawler.replica.bodies import Body, Template
from moviecrawler.replica.traits import traits_of
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.items import OfferKind
    from moviecrawler.replica.facts import Person, ReplicaMovie
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.traits import Traits

CAST_ON_TITLE_PAGE = 18
POSTER_SIZE = (1000, 1500)
_BOX_OFFICE_SIZE = 10
_RANKED = 2_000
"""Of so many titles a page tells the rank among the top rated, which goes on beyond the chart."""

WATCH_CATEGORIES: dict[OfferKind, str] = {
    "free": "FREE",
    "ads": "FREE WITH ADS",
    "subscription": "STREAMING",
    "rent": "RENT/BUY",
}

_encode = msgspec.json.Encoder().encode


class Pages:
    """IMDb's pages over a catalogue; `light` ones have the same data without the bulk around it."""

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._light = light

    def title(self, imdb_id: str) -> Body | None:
        """Return a title page, or None when there is no such title."""
        index = self._catalogue.index_of_imdb_id(imdb_id)
        if index is None:
            return None
        movie = self._catalogue.movie(index)
        rank = self._catalogue.top_ranks.get(index)
        if rank is None and movie.rating is not None and index < _RANKED:
            # The ranking goes on beyond the chart: 1046 is no place in the Top 250.
            rank = len(self._catalogue.top) + 1 + index
        return self.title_page(movie, traits_of(self._catalogue, movie), rank)

    def title_page(
        self,
        movie: ReplicaMovie,
        traits: Traits,
        rank: int | None,
        *,
        series: dict[str, Any] | None = None,
        episodes: dict[str, Any] | None = None,
    ) -> Body:
        """Return the page of any title; `series` is what an episode's says of its place, `episodes` what a series' says of its own."""
        above = {**self._above_the_fold(movie), **_about(traits), "series": series}
        main = {**self._main_column(movie, rank), **self._beside(movie, traits), "episodes": episodes}
        props = {"tconst": movie.imdb_id, "aboveTheFoldData": above, "mainColumnData": main}
        return self.page("/title/[tconst]", _head(movie) + _json_ld_script(_title_json_ld(movie)), props)

    def top(self) -> Body:
        """Return the Top 250."""
        return self.chart("top", [self._catalogue.movie(index) for index in self._catalogue.top])

    def popular(self) -> Body:
        """Return the most popular titles."""
        return self.chart("moviemeter", [self._catalogue.movie(index) for index in self._catalogue.popular])

    def box_office(self) -> Body:
        """Return the weekend's box office, which gives no ranks, years or running times."""
        edges = []
        for index in range(min(self._catalogue.titles, _BOX_OFFICE_SIZE)):
            movie = self._catalogue.movie(index)
            node = _title(movie)
            for absent in ("releaseYear", "runtime", "certificate", "titleGenres", "releaseDate"):
                del node[absent]
            gross = _wrapped("total", _money(movie.opening_weekend))
            edges.append({"node": {"gross": gross, "release": {"weeksRunning": 1 + index, "titles": [node]}}})
        props = {"pageData": {"topGrossingReleases": {"edges": edges}}}
        return self.page("/chart/boxoffice", _canonical("/chart/boxoffice/"), props)

    def chart(self, name: str, movies: Sequence[ReplicaMovie]) -> Body:
        """Return a chart of titles in their order."""
        edges = [{"currentRank": rank, "node": _title(movie)} for rank, movie in enumerate(movies, start=1)]
        head = _canonical(f"/chart/{name}/") + _json_ld_script(_chart_json_ld(movies))
        return self.page(f"/chart/{name}", head, {"pageData": {"chartTitles": {"edges": edges}}})

    def page(self, route: str, head: bytes, props: dict[str, Any]) -> Body:
        """Return a page of a route, with what stands in its head and in its data."""
        return _template(route, light=self._light).fill(head, _encode(props)[1:-1])

    def _above_the_fold(self, movie: ReplicaMovie) -> dict[str, Any]:
        basics, credits_ = movie.basics, movie.credits
        shown = (
            ("Creator", "creator", credits_.creators),
            ("Director", "director", credits_.directors),
            ("Writers", "writer", credits_.writers),
            ("Stars", "cast", tuple(person for person, _ in credits_.cast)),
        )
        return {
            **_title(movie),
            "meterRanking": {"currentRank": movie.index + 1},
            "criticReviewsTotal": {"total": critic_review_count(movie)},
            "genres": {"genres": [{"text": genre, "id": genre} for genre in basics.genres]},
            "principalCredits": [
                {
                    "category": {"text": text, "id": category},
                    **_credits(people),
                    "credits": _credits(people[:3])["credits"],
                }
                for text, category, people in shown
                if people
            ],
            "metacritic": _wrapped("metascore", _wrapped("score", movie.metascore)),
            "creatorsPageTitle": _departments(credits_.creators),
            "directorsPageTitle": _departments(credits_.directors),
        }

    def _main_column(self, movie: ReplicaMovie, rank: int | None) -> dict[str, Any]:
        country, credits_ = movie.basics.country, movie.credits
        title = _title(movie)
        cast = [_cast_edge(*part) for part in credits_.cast[:CAST_ON_TITLE_PAGE]]
        return {
            **{
                key: title[key]
                for key in ("id", "titleText", "originalTitleText", "titleType", "releaseDate", "runtime")
            },
            "ratingsSummary": {"topRanking": _wrapped("rank", rank), **title["ratingsSummary"]},
            "cast": {"total": len(credits_.cast), "edges": cast},
            "creators": _departments(credits_.creators),
            "directors": _departments(credits_.directors),
            "writers": _departments(credits_.writers),
            "spokenLanguages": {"spokenLanguages": [{"id": country.language_code, "text": country.language}]},
            "countriesDetails": {"countries": [{"id": country.code, "text": country.name}]},
            "productionBudget": _wrapped("budget", _money(movie.budget)),
            "worldwideGross": _wrapped("total", _money(movie.worldwide_gross)),
            "lifetimeGross": _wrapped("total", _money(movie.domestic_gross)),
            "openingWeekendGross": _wrapped("gross", _wrapped("total", _money(movie.opening_weekend))),
        }

    def _beside(self, movie: ReplicaMovie, traits: Traits) -> dict[str, Any]:
        """Return what the main column has of other titles, awards and votes."""
        wins = sum(won for _, won, _ in traits.awards)
        nominated = sum(nominations for _, _, nominations in traits.awards)
        named = next(
            ({"wins": w, "nominations": n - w, "award": {"text": event}} for event, w, n in traits.awards), None
        )
        connected = [] if traits.follows is None else [traits.follows]
        bars = [{"rating": bar, "voteCount": votes} for bar, votes in enumerate(traits.histogram, start=1)]
        return {
            "wins": {"total": wins},
            "nominationsExcludeWins": {"total": nominated - wins},
            "prestigiousAwardSummary": named,
            "moreLikeThisTitles": {"edges": [{"node": self._named(index)} for index in traits.similar]},
            "connections": {
                "edges": [
                    {"node": {"associatedTitle": self._named(index), "category": {"text": category}}}
                    for category, index in connected
                ]
            },
            "aggregateRatingsBreakdown": {"histogram": {"histogramValues": bars if movie.rating else []}},
            "reviews": {"total": traits.user_reviews},
            "watchOptionsByCategory": {"categorizedWatchOptionsList": _watch_options(traits)},
        }

    def _named(self, index: int) -> dict[str, Any]:
        basics = self._catalogue.basics(index)
        return {
            "id": self._catalogue.imdb_id(index),
            "titleText": {"text": basics.title},
            "titleType": {"id": basics.title_type},
            "releaseYear": {"year": basics.year, "endYear": None},
        }


def _about(traits: Traits) -> dict[str, Any]:
    """Return what the head of the page says of what a title is like."""
    edges = [{"node": {"text": keyword}} for keyword in traits.keywords]
    interests = [{"node": {"primaryText": {"text": interest}}} for interest in traits.interests]
    taglines = [{"node": {"text": traits.tagline}}] if traits.tagline else []
    return {
        "keywords": {"total": len(edges), "edges": edges},
        "interests": {"edges": interests},
        "taglines": {"edges": taglines},
        "criticReviewsTotal": {"total": traits.critic_reviews},
    }


def _watch_options(traits: Traits) -> list[dict[str, Any]]:
    """Return the offers by category; what can be rented and bought stands once for both."""
    found: dict[str, list[dict[str, Any]]] = {}
    for offer in traits.offers:
        if offer.kind != "buy":
            option = {"provider": {"name": {"value": offer.provider}}, "link": f"{offer.url}?ref_=tt_watch"}
            found.setdefault(WATCH_CATEGORIES[offer.kind], []).append(option)
    return [{"categoryName": {"value": name}, "watchOptions": options} for name, options in found.items()]


def poster_url(movie: ReplicaMovie) -> str | None:
    """Return where the movie's poster would be."""
    return f"https://m.media-amazon.com/images/M/MV5B{movie.imdb_id}._V1_.jpg" if movie.has_poster else None


# --- Pages around the data ------------------------------------------------------------------------------------------

_SIZES = {
    "/title/[tconst]": (790_000, 530_000),
    "/title/[tconst]/episodes": (350_000, 400_000),
    "/chart/top": (770_000, 370_000),
    "/chart/toptv": (770_000, 370_000),
    "/chart/tvmeter": (770_000, 370_000),
    "/chart/moviemeter": (770_000, 370_000),
    "/chart/boxoffice": (450_000, 370_000),
}
"""How many bytes of markup and of JSON that say nothing of movies each page carries."""


@functools.cache
def _template(route: str, *, light: bool) -> Template:
    # Less than 2 kB would pass for a throttle, also of a chart without titles.
    markup_size, json_size = (1_500, 300) if light else _SIZES[route]
    head = b'<!DOCTYPE html><html lang="en-US"><head><meta charSet="utf-8"/>' + bulk.styles(markup_size // 12, route)
    return Template(
        head,
        b"</head><body>"
        + bulk.markup(markup_size * 11 // 12, route)
        + b'<script id="__NEXT_DATA__" type="application/json">{"props":{"pageProps":{',
        # Healthy pages too hold the firewall's words, as they repeat the headers of the request.
        b',"requestContext":{"sidecarHeaders":{"x-amzn-waf-frontier-bot-control":"aws-waf-token"}},'
        b'"translationContext":{"i18n":{"translations":{"resources":{'
        + bulk.json_members(json_size, route)
        + b'}}}},"urqlState":null,"fetchState":null},"__N_SSP":true},"page":'
        + _encode(route)
        + b',"query":{},"buildId":"replica","locale":"en-US"}</script></body></html>',
    )


def _canonical(path: str) -> bytes:
    return f'<link rel="canonical" href="https://www.imdb.com{path}"/>'.encode()


def _head(movie: ReplicaMovie) -> bytes:
    title, address = html.escape(movie.basics.title), title_url("imdb", movie.imdb_id)
    return (
        f'<title>{title} ({movie.basics.year}) - IMDb</title><link rel="canonical" href="{address}"/>'
        f'<meta property="og:url" content="{address}"/><meta property="og:title" content="{title}"/>'
    ).encode()


def _json_ld_script(data: dict[str, Any]) -> bytes:
    return b'<script type="application/ld+json">' + _encode(data) + b"</script>"


def _title_json_ld(movie: ReplicaMovie) -> dict[str, Any]:
    """Return a title's JSON-LD, whose texts are HTML-escaped: name and alternateName are the original and the shown."""
    basics, credits_ = movie.basics, movie.credits
    found = {
        **_listed_json_ld(movie),
        "@context": "https://schema.org",
        "genre": list(basics.genres),
        "datePublished": movie.release.iso,
        "actor": [_person_json_ld(person) for person, _ in credits_.cast[:3]],
        "director": [_person_json_ld(person) for person in credits_.directors],
        "creator": [_person_json_ld(person) for person in (*credits_.creators, *credits_.writers)],
    }
    if basics.original_title is not None:
        found |= {"name": html.escape(basics.original_title), "alternateName": html.escape(basics.title)}
    return found


def _chart_json_ld(movies: Sequence[ReplicaMovie]) -> dict[str, Any]:
    items = [{"@type": "ListItem", "item": {**_listed_json_ld(m), "genre": ", ".join(m.basics.genres)}} for m in movies]
    return {"@type": "ItemList", "itemListElement": items, "@context": "https://schema.org"}


def _listed_json_ld(movie: ReplicaMovie) -> dict[str, Any]:
    basics = movie.basics
    found: dict[str, Any] = {
        "@type": _TYPES[basics.title_type][1],
        "url": title_url("imdb", movie.imdb_id),
        # The site writes &apos; where html.escape writes &#x27;.
        "name": html.escape(basics.title).replace("&#x27;", "&apos;"),
        "image": poster_url(movie),
        "description": html.escape(movie.plot) if movie.plot else None,
        "contentRating": movie.certificate,
    }
    if movie.rating is not None:
        rating, votes = movie.rating
        found["aggregateRating"] = {
            "@type": "AggregateRating",
            "bestRating": 10,
            "worstRating": 1,
            "ratingValue": rating,
            "ratingCount": votes,
        }
    if basics.runtime_minutes is not None:
        found["duration"] = f"PT{basics.runtime_minutes // 60}H{basics.runtime_minutes % 60}M"
    return {key: value for key, value in found.items() if value is not None}


def _person_json_ld(person: Person) -> dict[str, str]:
    return {"@type": "Person", "url": f"https://www.imdb.com/name/{person.imdb_id}/", "name": html.escape(person.name)}


# --- Pieces of the data ---------------------------------------------------------------------------------------------


def critic_review_count(movie: ReplicaMovie) -> int:
    """Return how many critics' reviews a title's page links to."""
    return movie.index % 300


def _title(movie: ReplicaMovie) -> dict[str, Any]:
    """Return what rows of charts say of a title, and the head of its page."""
    basics, release, poster = movie.basics, movie.release, poster_url(movie)
    rating, votes = movie.rating or (None, 0)
    country = {"id": "US", "text": "United States"}
    return {
        "id": movie.imdb_id,
        "titleText": {"text": basics.title},
        "titleType": {"id": basics.title_type, "text": _TYPES[basics.title_type][0]},
        "originalTitleText": {"text": basics.original_title or basics.title},
        "primaryImage": None if poster is None else {"width": POSTER_SIZE[0], "height": POSTER_SIZE[1], "url": poster},
        "releaseYear": {"year": basics.year, "endYear": basics.end_year},
        "releaseDate": {"day": release.day, "month": release.month, "year": release.year, "country": country},
        "ratingsSummary": {"aggregateRating": rating, "voteCount": votes},
        "runtime": _wrapped("seconds", None if basics.runtime_minutes is None else basics.runtime_minutes * 60),
        "certificate": _wrapped("rating", movie.certificate),
        "titleGenres": {"genres": [{"genre": {"text": genre}} for genre in basics.genres]},
        "plot": _wrapped("plotText", _wrapped("plainText", movie.plot)),
    }


_TYPES = {
    "movie": ("Movie", "Movie"),
    "tvMovie": ("TV Movie", "Movie"),
    "tvSeries": ("TV Series", "TVSeries"),
    "tvMiniSeries": ("TV Mini Series", "TVSeries"),
    "tvEpisode": ("TV Episode", "TVEpisode"),
}
"""What the page and its JSON-LD call each type of title."""


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
