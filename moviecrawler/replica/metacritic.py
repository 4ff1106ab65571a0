"""Metacritic's pages as the site has served them since the spring of 2026, and its JSON host.

A page carries its data as Nuxt 3 does, in an array of values that refer to one another by index.
"""

from __future__ import annotations

import functools
import html
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec

from moviecrawler.replica import bulk
from moviecrawler.replica.bodies import Body, Template
from moviecrawler.replica.nuxt import payload_around, shared_values
from moviecrawler.replica.traits import recommended, traits_of
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moviecrawler.replica.facts import MetacriticFacts, Person, ReplicaMovie
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.traits import Traits

CAST_SHOWN = 20
POSTER_SIZE = (1280, 1920)
FINDER_ROWS, MOST_FINDER_ROWS = 24, 100
_ORDERED_TOGETHER = 10_000
"""The finder orders so many of the most popular movies, then the next so many, and so on."""

_encode = msgspec.json.Encoder().encode


class Kind(NamedTuple):
    """What the site calls one kind of titles."""

    type: str
    path: str
    """What addresses begin with."""
    composed: str
    """In the JSON host's addresses and the payload's keys."""
    finder_id: int
    justwatch: str
    json_ld: str
    first_id: int
    """The number of the first title in the site's database."""


MOVIE = Kind("movie", "movie", "movies", 2, "movie", "Movie", 2_000_000_000)


class Pages:
    """Metacritic's pages of a catalogue's movies; `light` ones have the same data without the bulk around it."""

    kind = MOVIE

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._light = light

    def title(self, slug: str) -> Body | None:
        """Return a title's page, or None when there is none with exactly this slug."""
        found = self._of_slug(slug)
        if found is None:
            return None
        movie, facts = found
        return self._page(facts.slug, movie, self._components(movie, facts), title_json_ld(movie, facts, self.kind))

    def _page(self, slug: str, movie: ReplicaMovie, components: list[dict[str, Any]], json_ld: dict[str, Any]) -> Body:
        title, address = html.escape(movie.basics.title), title_url("metacritic", f"{self.kind.path}/{slug}")
        head = (
            f'<title>{title} Reviews - Metacritic</title><link rel="canonical" href="{address}">'
            f'<meta property="og:url" content="{address}"><meta property="og:title" content="{title}">'
            '<script type="application/ld+json">'
        ).encode()
        key, path = f"loadPage:{self.kind.composed}:{slug.replace('/', ':')}:", f"/{self.kind.path}/{slug}/"
        payload = payload_around(key, {"components": components}, path, light=self._light)
        return _page_template(light=self._light).fill(head + _encode(json_ld) + b"</script>", *payload)

    def composed(self, slug: str) -> Body | None:
        """Return the JSON host's answer for a title's page, or None when there is no such title."""
        found = self._of_slug(slug)
        if found is None:
            return None
        return _composer_template(light=self._light).fill(b'{"components":' + _encode(self._components(*found))[:-1])

    def finder(self, *, order: str, limit: int, offset: int, host: str) -> Body:
        """Return rows of the finder in an order such as "-metaScore", from `offset` on.

        Where the last row ties with the one after it, that one is there too, as rows that tie come up on both pages.
        `host` is the scheme and host that the links lead to.
        """
        return Body(_encode(self._finder(order, limit, offset, host)))

    def _of_slug(self, slug: str) -> tuple[ReplicaMovie, MetacriticFacts] | None:
        index = self._catalogue.index_of_slug("metacritic", slug)
        if index is None:
            return None
        movie, facts = self._catalogue.movie(index), self._facts(index)
        return (movie, facts) if facts.slug == slug else None

    def _components(self, movie: ReplicaMovie, facts: MetacriticFacts) -> list[dict[str, Any]]:
        traits = traits_of(self._catalogue, movie)
        related = [
            {"type": "movie", "slug": self._facts(index).slug, "title": self._catalogue.basics(index).title}
            # The site recommends the title itself, too.
            for index in (*recommended(self._catalogue, "metacritic", traits), movie.index)
        ]
        return [
            component("product", "Product", product(movie, facts, traits, self.kind)),
            list_component("related-carousel", "ProductList", related),
            component("where-to-watch", "WhereToWatch", where_to_watch(facts, traits, self.kind)),
            *score_components(f"/{self.kind.path}/{facts.slug}", facts),
        ]

    def _count(self) -> int:
        return self._catalogue.count("metacritic")

    def _nth(self, place: int) -> int:
        return self._catalogue.nth("metacritic", place)

    def _movie(self, index: int) -> ReplicaMovie:
        return self._catalogue.movie(index)

    def _facts(self, index: int) -> MetacriticFacts:
        facts = self._catalogue.metacritic(index)
        if facts is None:
            raise IndexError(f"Metacritic lacks movie {index}")
        return facts

    def _finder(self, order: str, limit: int, offset: int, host: str) -> dict[str, Any]:
        total = self._count()
        end = min(offset + min(limit, MOST_FINDER_ROWS), total)
        rows = [self._ordered(order, place) for place in range(offset, end)]
        if rows and end < total and order == "-metaScore":
            following = self._ordered(order, end)
            if self._facts(following).metascore == self._facts(rows[-1]).metascore:
                rows.append(following)
        address = f"{host}/finder/metacritic/web?mcoTypeId={self.kind.finder_id}&sortBy={order}&limit={limit}&offset="
        links: dict[str, Any] = {"self": {"href": f"{address}{offset}"}, "first": {"href": f"{address}0"}}
        if end < total:
            links["next"] = {"href": f"{address}{end}"}
        items = [_row(self._movie(index), self._facts(index), self.kind) for index in rows]
        return {"data": {"totalResults": total, "items": items}, "links": links, "meta": {"componentName": None}}

    def _ordered(self, order: str, place: int) -> int:
        block, within = divmod(place, _ORDERED_TOGETHER)
        return self._block(order, block)[within]

    @functools.lru_cache(maxsize=8)  # noqa: B019 - as many as there are pages, which live as long as the process
    def _block(self, order: str, block: int) -> Sequence[int]:
        """Return the indexes of one block of movies in an order; by popularity in any order that is not known."""
        first = block * _ORDERED_TOGETHER
        indexes = [self._nth(place) for place in range(first, min(first + _ORDERED_TOGETHER, self._count()))]
        keys: dict[str, Callable[[MetacriticFacts], Any]] = {
            "-metaScore": lambda facts: -(facts.metascore or 0),
            "-userScore": lambda facts: -(facts.user_score or 0),
            "-releaseDate": lambda facts: [
                -part for part in (facts.release.year, facts.release.month, facts.release.day or 1)
            ],
        }
        if order in keys:
            indexes.sort(key=lambda index: keys[order](self._facts(index)))
        return indexes


def poster_url(movie: ReplicaMovie) -> str | None:
    """Return where the movie's poster would be."""
    path = _image(movie)
    return None if path is None else f"https://www.metacritic.com/a/img/catalog{path['bucketPath']}"


NO_SUCH_PAGE = _encode({"errors": [{"code": 404, "message": "Not Found"}]})
"""What the JSON host answers for a slug that it does not have, with status 404."""


# --- Pages around the data ------------------------------------------------------------------------------------------


@functools.cache
def _page_template(*, light: bool) -> Template:
    markup_size = 600 if light else 340_000
    return Template(
        b'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">' + bulk.styles(markup_size // 10, "metacritic"),
        b"</head><body>"
        + bulk.markup(markup_size * 9 // 10, "metacritic")
        + b'<script type="application/json" data-nuxt-data="nuxt-app" data-ssr="true" id="__NUXT_DATA__">',
        shared_values(light=light)[0],
        b"</script></body></html>",
    )


@functools.cache
def _composer_template(*, light: bool) -> Template:
    news = {"meta": {"componentName": "related-news", "componentType": "ContentList"}, "data": {"items": []}}
    filler = bulk.json_members(300 if light else 170_000, "composer")
    return Template(
        b"",
        b"," + _encode(news)[:-1] + b',"links":{' + filler + b'}}],"meta":{"edition":"us"},"header":[],"footer":[]}',
    )


# --- The data -------------------------------------------------------------------------------------------------------


def component(name: str, kind: str, item: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a page that shows one thing."""
    return {"data": {"item": item}, "links": {}, "meta": {"componentName": name, "componentType": kind}}


def list_component(name: str, kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a part of a page that shows a list."""
    meta = {"componentName": name, "componentType": kind}
    return {"data": {"totalResults": len(items), "items": items}, "meta": meta}


def score_components(path: str, facts: MetacriticFacts, query: str = "") -> list[dict[str, Any]]:
    """Return the parts that show both scores of what is at a path; a season's stand at its series', with a query."""
    critics = summary(f"{path}/critic-reviews/{query}", 100, facts.metascore, facts.critic_reviews)
    users = summary(f"{path}/user-reviews/{query}", 10, facts.user_score, facts.user_ratings)
    return [
        component("critic-score-summary", "MetaScoreSummary", critics),
        component("user-score-summary", "MetaScoreSummary", users),
    ]


def product(movie: ReplicaMovie, facts: MetacriticFacts, traits: Traits, kind: Kind) -> dict[str, Any]:
    """Return what a page says of its title."""
    credits_ = movie.credits
    crew = [_person(person, "Directed By", []) for person in credits_.directors]
    crew += [_person(person, "Written By", ["created by"]) for person in credits_.creators]
    crew += [_person(person, "Written By", ["screenplay"]) for person in credits_.writers]
    cast = [
        _person(person, "Cast", character.split(" / ") if character else [])
        for person, character in credits_.cast[:CAST_SHOWN]
    ]
    return {
        **_listed(movie, facts, kind),
        "production": {"companies": [], "officialSite": "", "filmingLocations": [], "cast": cast, "crew": crew},
        "imdbId": movie.imdb_id if facts.names_imdb_id else None,
        "tags": [keyword.replace(" ", "-") for keyword in traits.keywords],
        "tagline": traits.tagline,
        "awards": [{"awardEvent": event, "wins": w, "nominations": n} for event, w, n in traits.awards],
    }


def where_to_watch(facts: MetacriticFacts, traits: Traits, kind: Kind) -> dict[str, Any]:
    """Return JustWatch's offers, whose links lead to a counter first."""
    offers: dict[str, list[dict[str, Any]]] = {name: [] for name in ("free", "rent", "buy", "flatrate", "ads")}
    for offer in traits.offers:
        name = "flatrate" if offer.kind == "subscription" else offer.kind
        option: dict[str, Any] = {"qualityType": offer.quality, "optionCurrencyCode": "USD", "offerType": "DEFAULT"}
        if offer.price is not None:
            option["optionPrice"] = offer.price
        target = quote(f"{offer.url}?utm_source=replica", safe="")
        offers[name].append(
            {
                "providerName": offer.provider,
                "link": f"https://click.justwatch.com/a?cx=eyJzY2hlbWEi&r={target}&uct_country=us",
                "options": [option],
                "monetization": name,
            }
        )
    return {
        "hasOffers": bool(traits.offers),
        **offers,
        "meta": {"fullPath": justwatch_path(facts, kind), "locale": "en_US", "objectType": kind.type},
    }


def justwatch_path(facts: MetacriticFacts, kind: Kind) -> str:
    """Return where JustWatch would have the title."""
    return f"/us/{kind.justwatch}/{facts.slug}"


def _person(person: Person, group_name: str, roles: list[str]) -> dict[str, Any]:
    return {
        "name": person.name,
        "roles": roles,
        "roleTypeGroupName": group_name,
        "entertainmentProduct": {"name": person.name, "slug": person.slug, "url": f"/person/{person.slug}/"},
    }


SENTIMENT = "Generally favorable"


def opinions(score: float, scale: int, reviews: int) -> tuple[int, int, int]:
    """Return how many reviews are positive, mixed and negative."""
    liked = int(reviews * score / scale)
    return liked, (reviews - liked) // 2, (reviews - liked + 1) // 2


def unrounded(score: float) -> float:
    """Return a Metascore as it was before it was rounded."""
    return max(0.0, score - 0.25)


def summary(address: str, scale: int, score: float | None, reviews: int) -> dict[str, Any]:
    """Return one score, as it stands at an address."""
    given = 0 if score is None else reviews
    liked, neutral, disliked = opinions(score or 0, scale, given)
    return {
        "max": scale,
        "score": score,
        "normalizedScore": None if score is None else unrounded(score),
        "reviewCount": given,
        "positiveCount": liked,
        "neutralCount": neutral,
        "negativeCount": disliked,
        "sentiment": None if score is None else SENTIMENT,
        "url": address,
    }


def _image(movie: ReplicaMovie) -> dict[str, Any] | None:
    if not movie.has_poster:
        return None
    path = f"/provider/2/13/2-{movie.imdb_id}.jpg"
    return {
        "typeName": "poster art",
        "bucketType": "catalog",
        "bucketPath": path,
        "width": POSTER_SIZE[0],
        "height": POSTER_SIZE[1],
    }


def _row(movie: ReplicaMovie, facts: MetacriticFacts, kind: Kind) -> dict[str, Any]:
    """Return a row of the finder, where what has no score has 0, and where details have null."""
    listed = _listed(movie, facts, kind)
    listed["criticScoreSummary"]["score"] = facts.metascore or 0
    return {**listed, "userScore": {"score": facts.user_score or 0}}


def _listed(movie: ReplicaMovie, facts: MetacriticFacts, kind: Kind) -> dict[str, Any]:
    basics, address = movie.basics, f"/{kind.path}/{facts.slug}/critic-reviews/"
    return {
        "id": kind.first_id + movie.index,
        "type": kind.type,
        "title": basics.title,
        "slug": facts.slug,
        "premiereYear": facts.year,
        "releaseDate": facts.release.iso,
        "rating": movie.certificate,
        "image": _image(movie),
        "criticScoreSummary": summary(address, 100, facts.metascore, facts.critic_reviews),
        "genres": [{"id": None, "name": genre} for genre in basics.genres],
        "description": movie.plot,
        "duration": basics.runtime_minutes,
    }


def title_json_ld(movie: ReplicaMovie, facts: MetacriticFacts, kind: Kind) -> dict[str, Any]:
    """Return what JSON-LD says of a title."""
    basics = movie.basics
    found: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": kind.json_ld,
        "name": basics.title,
        "dateCreated": f"{facts.release.iso}T00:00:00.000Z",
        "datePublished": facts.release.iso,
        "description": movie.plot or "",
        "contentRating": movie.certificate or "",
        "url": title_url("metacritic", f"{kind.path}/{facts.slug}"),
        "genre": list(basics.genres),
        "actor": [_person_json_ld(person) for person, _ in movie.credits.cast[:CAST_SHOWN]],
        "director": [_person_json_ld(person) for person in movie.credits.directors],
    }
    if basics.runtime_minutes is not None:
        # So the site writes 2 h 17 min, and 58 min as PT58S.
        hours, minutes = divmod(basics.runtime_minutes, 60)
        found["duration"] = f"PT{f'{hours}M' if hours else ''}{minutes}S"
    if facts.metascore is not None:
        found["aggregateRating"] = {
            "@type": "AggregateRating",
            "name": "Metascore",
            "bestRating": 100,
            "worstRating": 0,
            "ratingValue": facts.metascore,
            "reviewCount": facts.critic_reviews,
        }
    return found


def _person_json_ld(person: Person) -> dict[str, str]:
    return {"@type": "Person", "name": person.name, "url": f"https://www.metacritic.com/person/{person.slug}/"}
