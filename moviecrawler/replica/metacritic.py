"""Metacritic's pages as the site has served them since the spring of 2026, and its JSON host.

A page carries its data as Nuxt 3 does, in an array of values that refer to one another by index. A series' page lists its seasons
with their Metascores. A season's page has the series as its product; the season's own scores stand at the series' address with a
query, such as `?season=season-2`. What is an episode's own stands in its page's JSON-LD; what the payload holds there is not
known, and is its season's here.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from moviecrawler.replica import markup
from moviecrawler.replica.bodies import Body, Template
from moviecrawler.replica.markup import encode, rating_json_ld
from moviecrawler.replica.nuxt import payload_around, shared_values
from moviecrawler.replica.titles import known
from moviecrawler.replica.traits import recommended, traits_of
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import MetacriticFacts, Person, Season, Title, Titles
    from moviecrawler.replica.traits import Traits

CAST_SHOWN = 20
POSTER_SIZE = (1280, 1920)
FINDER_ROWS, MOST_FINDER_ROWS = 24, 100
_ORDERED_TOGETHER = 10_000
"""The finder orders so many of the most popular titles, then the next so many, and so on."""


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


KINDS = (
    Kind("movie", "movie", "movies", 2, "movie", "Movie", 2_000_000_000),
    Kind("show", "tv", "shows", 1, "tv-show", "TVSeries", 2_010_000_000),
)


def kind_of(title: Title) -> Kind:
    """Return what the site calls the kind of a title."""
    return KINDS[title.is_series]


class Pages:
    """Metacritic's pages of a catalogue's titles; `light` ones have the same data without the bulk around it."""

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._light = light

    def _titles(self, kind: Kind) -> Titles:
        return self._catalogue if kind is KINDS[0] else self._catalogue.series

    def title(self, path: str, slug: str) -> Body | None:
        """Return the page at a path ("movie" or "tv") and a slug, also of a season or an episode; None when there is none."""
        kind = next(kind for kind in KINDS if kind.path == path)
        title = self._titles(kind).of_slug("metacritic", slug)
        if title is None:
            return None
        name, address = (title.part_of or title).basics.title, title_url("metacritic", f"{path}/{slug}")
        json_ld = _episode_json_ld(title) if title.episode else _title_json_ld(title)
        head = markup.head(name, f"{name} Reviews - Metacritic", address, json_ld)
        key, page = f"loadPage:{kind.composed}:{slug.replace('/', ':')}:", {"components": self._components(title)}
        payload = payload_around(key, page, f"/{path}/{slug}/", light=self._light)
        return _page_template(light=self._light).fill(head, *payload)

    def composed(self, name: str, slug: str) -> Body | None:
        """Return the JSON host's answer for the page of a movie or a series ("movies" or "shows"), or None when there is none."""
        kind = next(kind for kind in KINDS if kind.composed == name)
        title = self._titles(kind).of_slug("metacritic", slug)
        if title is None:
            return None
        return _composer_template(light=self._light).fill(b'{"components":' + encode(self._components(title))[:-1])

    def finder(self, kind: Kind, *, order: str, limit: int, offset: int, host: str) -> Body:
        """Return rows of the finder in an order such as "-metaScore", from `offset` on.

        Where the last row ties with the one after it, that one is there too, as rows that tie come up on both pages.
        `host` is the scheme and host that the links lead to.
        """
        titles = self._titles(kind)
        total = len(titles.listed["metacritic"])
        end = min(offset + min(limit, MOST_FINDER_ROWS), total)
        rows = [self._ordered(titles, order, place) for place in range(offset, end)]
        if rows and end < total and order == "-metaScore":
            following = self._ordered(titles, order, end)
            if known(titles.metacritic(following)).metascore == known(titles.metacritic(rows[-1])).metascore:
                rows.append(following)
        address = f"{host}/finder/metacritic/web?mcoTypeId={kind.finder_id}&sortBy={order}&limit={limit}&offset="
        links: dict[str, Any] = {"self": {"href": f"{address}{offset}"}, "first": {"href": f"{address}0"}}
        if end < total:
            links["next"] = {"href": f"{address}{end}"}
        data = {"totalResults": total, "items": [_row(titles.title(index)) for index in rows]}
        return Body(encode({"data": data, "links": links, "meta": {"componentName": None}}))

    def _ordered(self, titles: Titles, order: str, place: int) -> int:
        block, within = divmod(place, _ORDERED_TOGETHER)
        return self._block(titles, order, block)[within]

    @functools.lru_cache(maxsize=8)  # noqa: B019 - as many as there are pages, which live as long as the process
    def _block(self, titles: Titles, order: str, block: int) -> list[int]:
        """Return the indexes of one block of titles in an order; by popularity in any order that is not known."""
        indexes = titles.listed["metacritic"].part(block * _ORDERED_TOGETHER, (block + 1) * _ORDERED_TOGETHER)
        if order in _ORDERS:
            indexes.sort(key=lambda index: _ORDERS[order](known(titles.metacritic(index))))
        return indexes

    def _components(self, title: Title) -> list[dict[str, Any]]:
        """Return the parts of a page; those of a season are its series' but for the scores."""
        whole = title.part_of or title
        traits, facts = traits_of(self._catalogue, whole), known(whole.metacritic)
        own = known(title.season.metacritic) if title.season else facts
        address, query = f"/{kind_of(whole).path}/{facts.slug}", f"?season={_last_of(own)}" if title.season else ""
        critics = _summary(f"{address}/critic-reviews/{query}", 100, own.metascore, own.critic_reviews)
        users = _summary(f"{address}/user-reviews/{query}", 10, own.user_score, own.user_ratings)
        parts = [
            _component("product", "Product", _product(whole, traits)),
            _component("where-to-watch", "WhereToWatch", _where_to_watch(whole, traits)),
            _component("critic-score-summary", "MetaScoreSummary", critics),
            _component("user-score-summary", "MetaScoreSummary", users),
        ]
        if whole.is_series:
            seasons = [_season(whole, address, season, known(season.metacritic)) for season in whole.seasons]
            return [*parts, _list_component("seasons", "SeasonList", seasons)]
        # The site recommends the title itself, too.
        similar = [*recommended(self._catalogue, "metacritic", traits), title.index]
        names = [(self._catalogue.slug("metacritic", index), self._catalogue.basics(index).title) for index in similar]
        related = [{"type": "movie", "slug": slug, "title": name} for slug, name in names]
        return [parts[0], _list_component("related-carousel", "ProductList", related), *parts[1:]]


_ORDERS: dict[str, Callable[[MetacriticFacts], Any]] = {
    "-metaScore": lambda facts: -(facts.metascore or 0),
    "-releaseDate": lambda facts: [-part for part in (facts.release.year, facts.release.month, facts.release.day or 1)],
}


def poster_url(title: Title) -> str | None:
    """Return where the title's poster would be."""
    path = _image(title)
    return None if path is None else f"https://www.metacritic.com/a/img/catalog{path['bucketPath']}"


NO_SUCH_PAGE = encode({"errors": [{"code": 404, "message": "Not Found"}]})
"""What the JSON host answers for a slug that it does not have, with status 404."""


# --- Pages around the data ------------------------------------------------------------------------------------------


@functools.cache
def _page_template(*, light: bool) -> Template:
    markup_size = 600 if light else 340_000
    return Template(
        b'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">' + markup.styles(markup_size // 10, "metacritic"),
        b"</head><body>"
        + markup.elements(markup_size * 9 // 10, "metacritic")
        + b'<script type="application/json" data-nuxt-data="nuxt-app" data-ssr="true" id="__NUXT_DATA__">',
        shared_values(light=light)[0],
        b"</script></body></html>",
    )


@functools.cache
def _composer_template(*, light: bool) -> Template:
    news = {"meta": {"componentName": "related-news", "componentType": "ContentList"}, "data": {"items": []}}
    filler = markup.json_members(300 if light else 170_000, "composer")
    return Template(
        b"",
        b"," + encode(news)[:-1] + b',"links":{' + filler + b'}}],"meta":{"edition":"us"},"header":[],"footer":[]}',
    )


# --- The data -------------------------------------------------------------------------------------------------------


def _component(name: str, kind: str, item: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a page that shows one thing."""
    return {"data": {"item": item}, "links": {}, "meta": {"componentName": name, "componentType": kind}}


def _list_component(name: str, kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a part of a page that shows a list."""
    meta = {"componentName": name, "componentType": kind}
    return {"data": {"totalResults": len(items), "items": items}, "meta": meta}


def _product(title: Title, traits: Traits) -> dict[str, Any]:
    """Return what a page says of its title."""
    credits_ = title.credits
    crew = [_person(person, "Directed By", []) for person in credits_.directors]
    crew += [_person(person, "Written By", ["created by"]) for person in credits_.creators]
    crew += [_person(person, "Written By", ["screenplay"]) for person in credits_.writers]
    cast = [
        _person(person, "Cast", character.split(" / ") if character else [])
        for person, character in credits_.cast[:CAST_SHOWN]
    ]
    return {
        **_listed(title),
        "production": {"cast": cast, "crew": crew},
        "imdbId": title.imdb_id if known(title.metacritic).names_imdb_id else None,
        "tags": [keyword.replace(" ", "-") for keyword in traits.keywords],
        "tagline": traits.tagline,
        "awards": [{"awardEvent": event, "wins": w, "nominations": n} for event, w, n in traits.awards],
        **({"seasonCount": len(title.seasons)} if title.is_series else {}),
    }


def _where_to_watch(title: Title, traits: Traits) -> dict[str, Any]:
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
        "meta": {"fullPath": justwatch_path(title), "locale": "en_US", "objectType": kind_of(title).type},
    }


def justwatch_path(title: Title) -> str:
    """Return where JustWatch would have the title."""
    return f"/us/{kind_of(title).justwatch}/{known(title.metacritic).slug}"


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


def _summary(address: str, scale: int, score: float | None, reviews: int) -> dict[str, Any]:
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


def _season(series: Title, address: str, season: Season, facts: MetacriticFacts) -> dict[str, Any]:
    """Return a row of the list of seasons, each of which has its series' title."""
    slug = _last_of(facts)
    critics = _summary(f"{address}/critic-reviews/?season={slug}", 100, facts.metascore, facts.critic_reviews)
    return {
        "title": series.basics.title,
        "seasonNumber": season.number,
        "releaseYear": facts.release.year,
        "episodeCount": len(season.episodes),
        "criticScoreSummary": critics,
        "url": f"{address}/{slug}/",
        "seasonSlug": slug,
    }


def _last_of(season: MetacriticFacts) -> str:
    return season.slug.rpartition("/")[2]


def _image(title: Title) -> dict[str, Any] | None:
    if not title.has_poster:
        return None
    return {
        "typeName": "poster art",
        "bucketType": "catalog",
        "bucketPath": f"/provider/2/13/2-{title.imdb_id}.jpg",
        "width": POSTER_SIZE[0],
        "height": POSTER_SIZE[1],
    }


def _row(title: Title) -> dict[str, Any]:
    """Return a row of the finder, where what has no score has 0, and where details have null."""
    listed, facts = _listed(title), known(title.metacritic)
    listed["criticScoreSummary"]["score"] = facts.metascore or 0
    return {**listed, "userScore": {"score": facts.user_score or 0}}


def _listed(title: Title) -> dict[str, Any]:
    basics, facts, kind = title.basics, known(title.metacritic), kind_of(title)
    address = f"/{kind.path}/{facts.slug}/critic-reviews/"
    return {
        "id": kind.first_id + title.index,
        "type": kind.type,
        "title": basics.title,
        "slug": facts.slug,
        "premiereYear": facts.release.year,
        "releaseDate": facts.release.iso,
        "rating": title.certificate,
        "image": _image(title),
        "criticScoreSummary": _summary(address, 100, facts.metascore, facts.critic_reviews),
        "genres": [{"id": None, "name": genre} for genre in basics.genres],
        "description": title.plot,
        "duration": basics.runtime_minutes,
    }


def _title_json_ld(title: Title) -> dict[str, Any]:
    """Return what JSON-LD says of a title; of a season what it says of its series, with its own score and date."""
    whole, facts, kind = title.part_of or title, known(title.metacritic), kind_of(title)
    basics = whole.basics
    found: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "TVSeason" if title.season else kind.json_ld,
        "name": basics.title,
        "datePublished": facts.release.iso,
        "description": title.plot or "",
        "url": title_url("metacritic", f"{kind.path}/{facts.slug}"),
    }
    if facts.metascore is not None:
        found["aggregateRating"] = rating_json_ld(
            0, 100, facts.metascore, name="Metascore", reviewCount=facts.critic_reviews
        )
    return found


def _episode_json_ld(title: Title) -> dict[str, Any]:
    """Return what JSON-LD says of an episode, which only users rate."""
    series, facts = known(title.part_of), known(title.metacritic)
    found: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "TVEpisode",
        "name": title.basics.title,
        "url": title_url("metacritic", f"{kind_of(title).path}/{facts.slug}"),
        "datePublished": facts.release.iso,
        "partOfSeries": {"@type": "TVSeries", "name": series.basics.title},
    }
    if facts.user_score is not None:
        found["aggregateRating"] = rating_json_ld(
            0, 10, facts.user_score, name="Metacritic User Score", ratingCount=facts.user_ratings
        )
    return found
