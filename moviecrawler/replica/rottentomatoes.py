"""Rotten Tomatoes' pages as the site has served them since 2024: scripts of JSON, a list of details, JSON-LD."""

from __future__ import annotations

import base64
import functools
import html
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from moviecrawler.replica import bulk
from moviecrawler.replica.bodies import Body, Template
from moviecrawler.replica.rottentomatoes_rows import browse_row, tile, worded
from moviecrawler.replica.traits import has_consensus, recommended, sides_of, traits_of
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.items import OfferKind
    from moviecrawler.replica.facts import Person, ReplicaMovie, RottenTomatoesFacts
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.traits import Side, Traits

CAST_SHOWN = 8
BROWSE_ROWS = 28
IN_THEATERS = 56
"""How many of the most popular movies are in theaters."""
_CRITICS, _AUDIENCE = "Tomatometer", "Popcornmeter"
_FRESH = 60
_MILLION = 1_000_000
_OF_SERIES = "tv_"
"""What the names of lists of series begin with."""
_LICENCES: dict[OfferKind, str] = {
    "free": "Free",
    "ads": "Free with ads",
    "subscription": "Subscription",
    "rent": "Rent/buy",
}

_encode = msgspec.json.Encoder().encode


class Kind(NamedTuple):
    """What the site calls one kind of titles."""

    type: str
    """In its scripts."""
    json_ld: str
    database: int
    """The number before that of the first title in the site's database."""


MOVIE = Kind("Movie", "Movie", 770_000_000)


class Pages:
    """Rotten Tomatoes' pages of a catalogue's movies; `light` ones have the same data without the bulk around it."""

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._light = light

    def canonical_slug(self, slug: str) -> str | None:
        """Return how the site writes a slug, whose hyphens and underscores may be the wrong ones; None if unknown."""
        index = self._catalogue.index_of_slug("rottentomatoes", slug)
        return None if index is None else self._facts(index).slug

    def movie(self, slug: str) -> Body | None:
        """Return a movie's page, or None when there is none with exactly this slug."""
        index = self._catalogue.index_of_slug("rottentomatoes", slug)
        if index is None or self._facts(index).slug != slug:
            return None
        movie, facts = self._catalogue.movie(index), self._facts(index)
        traits = traits_of(self._catalogue, movie)
        props = [f"Released {worded(facts.release)}"]
        if movie.basics.runtime_minutes is not None:
            props.append(_hours(movie.basics.runtime_minutes))
        return self._page(f"m/{slug}", MOVIE, movie, facts, traits, props, title_json_ld(movie, facts))

    def _page(
        self,
        site_id: str,
        kind: Kind,
        movie: ReplicaMovie,
        facts: RottenTomatoesFacts,
        traits: Traits,
        props: list[str],
        json_ld: dict[str, Any],
        more: str = "",
    ) -> Body:
        """Return the page of any title. `props`: what stands below its name; `more`: what stands beside the sections of all."""
        title, address = html.escape(movie.basics.title), title_url("rottentomatoes", site_id)
        head = (
            f'<title>{title} | Rotten Tomatoes</title><link rel="canonical" href="{address}">'
            f'<meta property="og:url" content="{address}"><meta property="og:title" content="{title}">'
            '<script type="application/ld+json">'
        ).encode()
        sections = self._sections(movie, facts, traits) + more
        return _template("movie", light=self._light).fill(
            head + _encode(json_ld) + b"</script>",
            _scripts(f"/{site_id}", kind, movie, facts, traits, props) + sections.encode() + _cast(movie).encode(),
            _details(movie, facts).encode(),
        )

    def _sections(self, movie: ReplicaMovie, facts: RottenTomatoesFacts, traits: Traits) -> str:
        """Return the sections beside the facts, each of which is left out when it has nothing to show."""
        found = []
        if has_consensus(facts):
            text = html.escape(traits.consensus)
            found.append(f'<div id="critics-consensus" class="consensus"><rt-text>Critics</rt-text><p>{text}</p></div>')
        if offers := where_to_watch(movie, traits):
            shown = "".join(_offer(*offer) for offer in offers)
            found.append(f'<section id="where-to-watch" data-qa="section:where-to-watch">{shown}</section>')
        if similar := recommended(self._catalogue, "rottentomatoes", traits):
            tiles = "".join(self._card(index) for index in similar)
            found.append(f'<section id="more-like-this" data-qa="section:more-like-this">{tiles}</section>')
        return "".join(found)

    def _card(self, index: int) -> str:
        link, title = f'href="/m/{self._facts(index).slug}"', html.escape(self._catalogue.basics(index).title)
        return (
            f'<tile-poster-card slot="tile"><rt-link slot="primaryImage" {link}><sr-text>{title}</sr-text></rt-link>'
            f'<rt-link slot="title" {link}>{title}</rt-link></tile-poster-card>'
        )

    def browse(self, name: str) -> Body:
        """Return the first page of a browse list: movies_in_theaters, tv_series_browse, or all movies by popularity."""
        places, info = self._browse_places(name, 0)
        movies = [self._at(name, place) for place in places]
        tiles = "".join(tile(*found) for found in movies)
        script = b'<script id="pageInfo" type="application/json">' + _encode(info) + b"</script>"
        if not movies:
            script += b'<script id="noResults" type="application/json">true</script>'
        return _template("browse", light=self._light).fill(
            f'<title>{name}</title><link rel="canonical" href="https://www.rottentomatoes.com/browse/{name}">'.encode(),
            f'<div data-qa="discovery-media-list">{tiles}</div>'.encode(),
            script,
        )

    def browse_json(self, name: str, after: str) -> Body:
        """Return what follows a cursor in a browse list. Raises ValueError for a cursor that is none."""
        places, info = self._browse_places(name, int(base64.b64decode(after, validate=True)) + 1)
        rows = [browse_row(*self._at(name, place)) for place in places]
        return Body(_encode({"grid": {"id": name, "list": rows}, "pageInfo": info}))

    def _facts(self, index: int) -> RottenTomatoesFacts:
        facts = self._catalogue.rottentomatoes(index)
        if facts is None:
            raise IndexError(f"Rotten Tomatoes lacks movie {index}")
        return facts

    def _at(self, name: str, place: int) -> tuple[str, ReplicaMovie, RottenTomatoesFacts]:
        """Return the id, the title and the facts at a place of a list."""
        if name.startswith(_OF_SERIES):
            about = self._catalogue.series.series(self._series[place]).about
            assert about.rottentomatoes is not None  # noqa: S101 - the list is of those that the site has
            return f"tv/{about.rottentomatoes.slug}", about, about.rottentomatoes
        index = self._catalogue.nth("rottentomatoes", place)
        return f"m/{self._facts(index).slug}", self._catalogue.movie(index), self._facts(index)

    @functools.cached_property
    def _series(self) -> Sequence[int]:
        return self._catalogue.series.numbers("rottentomatoes")

    def _browse_places(self, name: str, first: int) -> tuple[range, dict[str, Any]]:
        """Return the places in popularity that a page of a list shows, and its pageInfo."""
        total = self._catalogue.count("rottentomatoes")
        if name.startswith(_OF_SERIES):
            total = len(self._series)
        elif name.startswith("movies_in_theaters"):
            total = min(total, IN_THEATERS)
        places = range(min(first, total), min(first + BROWSE_ROWS, total))
        last = places[-1] if places else max(total - 1, 0)
        info = {
            "startCursor": base64.b64encode(str(first).encode()).decode(),
            "endCursor": base64.b64encode(str(last).encode()).decode(),
            "hasNextPage": last + 1 < total,
            "hasPreviousPage": first > 0,
        }
        return places, info


def poster_url(movie: ReplicaMovie) -> str | None:
    """Return where the movie's poster would be."""
    return f"https://resizing.flixster.com/replica/206x305/v2/{movie.imdb_id}.jpg" if movie.has_poster else None


def box_office(movie: ReplicaMovie) -> str | None:
    """Return the US box office as the site abbreviates it: "$53.1M"."""
    gross = movie.domestic_gross
    if gross is None:
        return None
    return f"${gross / _MILLION:.1f}M" if gross >= _MILLION else f"${gross / 1000:.1f}K"


@functools.cache
def _template(kind: str, *, light: bool) -> Template:
    size = 1_200 if light else 380_000  # less than 2 kB would pass for a throttle, also of a list without rows
    return Template(
        b'<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8">' + bulk.styles(size // 20, kind),
        bulk.script(size // 4, kind) + b"</head><body>" + bulk.markup(size * 4 // 10, kind),
        bulk.markup(size // 10, kind + " middle"),
        bulk.markup(size // 5, kind + " end") + b"</body></html>",
    )


# --- A movie's page ---------------------------------------------------------------------------------------------------


def _scripts(
    address: str, kind: Kind, movie: ReplicaMovie, facts: RottenTomatoesFacts, traits: Traits, props: list[str]
) -> bytes:
    shown = [*([] if movie.certificate is None else [movie.certificate]), *props]
    content = {
        "mediaType": kind.type,
        "title": movie.basics.title,
        "metadataGenres": list(movie.basics.genres),
        "metadataProps": shown,
    }
    sides = sides_of(facts)
    verified = _audience(address, sides.get("popcornmeter_verified"), "VERIFIED")
    everybody = _audience(address, sides.get("popcornmeter_all"), "ALL")
    critics = _critics(address, sides.get("tomatometer"))
    scorecard = {
        "audienceScore": verified if "popcornmeter_verified" in sides else everybody,
        "criticsScore": critics,
        "criticReviewHref": f"/critics/self-submission/movie/{traits.ems_id}",
        "description": movie.plot,
        "hideAudienceScore": False,
        "overlay": {
            "audienceAll": everybody,
            "audienceVerified": verified,
            "criticsAll": critics,
            "criticsTop": _critics(address, sides.get("tomatometer_top")),
            "mediaType": kind.type,
        },
        "primaryImageUrl": poster_url(movie),
    }
    curation = {"emsId": traits.ems_id, "rtId": database_id(movie, kind), "type": kind.type[0].lower() + kind.type[1:]}
    return (
        b'<script id="media-hero-json" data-json="mediaHero" type="application/json">'
        + _encode({"content": content})
        + b'</script><script id="media-scorecard-json" data-json="mediaScorecard" type="application/json">'
        + _encode(scorecard)
        + b'</script><script id="curation-json" type="application/json">'
        + _encode(curation)
        + b"</script>"
    )


def database_id(movie: ReplicaMovie, kind: Kind = MOVIE) -> str:
    """Return the number that stands for a title in the site's database."""
    return str(kind.database + movie.index)


def _critics(address: str, side: Side | None) -> dict[str, Any]:
    """Return the critics' score; before there are reviews, it has no `score` at all."""
    shown = {"reviewsPageUrl": f"{address}/reviews", "title": _CRITICS}
    if side is None:
        return {"certified": False, **shown}
    return {
        **_side(side),
        "averageRating": f"{side.average:.2f}",
        "ratingCount": side.count,
        "reviewCount": side.count,
        **shown,
    }


def _audience(address: str, side: Side | None, score_type: str) -> dict[str, Any]:
    """Return an audience's score, which is counted in bands only."""
    shown = {"reviewsPageUrl": f"{address}/reviews/all-audience", "scoreType": score_type, "title": _AUDIENCE}
    if side is None:
        return {"certified": False, **shown}
    return {
        **_side(side),
        "averageRating": f"{side.average:.1f}",
        "bandedRatingCount": f"{side.count // 50 * 50:,}+ Ratings",
        "reviewCount": written_reviews(side),
        **shown,
    }


def written_reviews(side: Side) -> int:
    """Return how many of an audience have written a review."""
    return side.count // 3


def _side(side: Side) -> dict[str, Any]:
    return {
        "certified": side.certified,
        "likedCount": side.liked,
        "notLikedCount": side.disliked,
        "score": str(side.value),
        "scorePercent": f"{side.value}%",
        "sentiment": sentiment(side.value),
    }


def where_to_watch(movie: ReplicaMovie, traits: Traits) -> list[tuple[str, str, str | None]]:
    """Return affiliates with their licences and addresses; what can be rented and bought has one of both."""
    shown: list[tuple[str, str, str | None]] = [("showtimes", "In theaters", None)] if is_in_theaters(movie) else []
    return shown + [(o.affiliate, _LICENCES[o.kind], o.url) for o in traits.offers if o.kind != "buy"]


def is_in_theaters(movie: ReplicaMovie) -> bool:
    """Return whether a title is shown in theaters now."""
    return movie.index < IN_THEATERS and movie.basics.title_type in {"movie", "tvMovie"}


def _offer(affiliate: str, licence: str, url: str | None) -> str:
    link = "" if url is None else f' href="{url}?cmp=rt_where_to_watch&amp;tag=replica-20"'
    return f'<where-to-watch-meta affiliate="{affiliate}"{link}><span slot="license">{licence}</span></where-to-watch-meta>'


def _cast(movie: ReplicaMovie) -> str:
    """Return the tiles of the cast, which begin with the director."""
    people = [(person, "Director") for person in movie.credits.directors]
    people += [(person, character or "Actor") for person, character in movie.credits.cast[:CAST_SHOWN]]
    return "".join(
        f'<a href="/{person.celebrity}" data-qa="person-item"><tile-dynamic><div slot="insetText">'
        f'<p class="name" data-qa="person-name">{html.escape(person.name)}</p>'
        f'<p class="role" data-qa="person-role">{html.escape(part)}</p></div></tile-dynamic></a>'
        for person, part in people
    )


def _details(movie: ReplicaMovie, facts: RottenTomatoesFacts) -> str:
    """Return the list of details; what the site does not know has no row."""
    basics, credits_ = movie.basics, movie.credits
    is_series = basics.title_type.startswith("tv") and basics.title_type != "tvMovie"
    dated = "Premiere Date" if is_series else f"Release Date ({'Streaming' if facts.streaming_only else 'Theaters'})"
    wide = "" if is_series or facts.streaming_only else ", Wide"
    genres = "tv_series_browse" if is_series else "movies_at_home"
    rows: list[tuple[str, list[tuple[str, str | None]]]] = [
        ("Creator", [(person.name, f"/{person.celebrity}") for person in credits_.creators]),
        ("Director", [(person.name, f"/{person.celebrity}") for person in credits_.directors]),
        ("Screenwriter", [(person.name, f"/{person.celebrity}") for person in credits_.writers]),
        ("Genre", [(genre, f"/browse/{genres}/genres:{genre.lower()}") for genre in basics.genres]),
        ("Original Language", [(basics.country.language, None)]),
        (dated, [(worded(facts.release) + wide, None)]),
    ]
    if movie.certificate is not None:
        rows.append(("Rating", [(f"{movie.certificate} (Some Language|Mild Peril)", None)]))
    gross = box_office(movie)
    if gross is not None:
        rows.append(("Box Office (Gross USA)", [(gross, None)]))
    if basics.runtime_minutes is not None:
        rows.append(("Runtime", [(_hours(basics.runtime_minutes), None)]))
    return "<dl>" + "".join(_detail(label, values) for label, values in rows if values) + "</dl>"


def _detail(label: str, values: list[tuple[str, str | None]]) -> str:
    shown = '<rt-text class="delimiter">, </rt-text>'.join(
        f'<rt-text data-qa="item-value">{html.escape(text)}</rt-text>'
        if link is None
        else f'<rt-link href="{link}" data-qa="item-value">{html.escape(text)}</rt-link>'
        for text, link in values
    )
    return (
        f'<div class="category-wrap" data-qa="item"><dt class="key"><rt-text class="key" data-qa="item-label">{label}'
        f'</rt-text></dt><dd data-qa="item-value-group">{shown}</dd></div>'
    )


def title_json_ld(movie: ReplicaMovie, facts: RottenTomatoesFacts) -> dict[str, Any]:
    """Return what JSON-LD says of a movie."""
    basics, credits_ = movie.basics, movie.credits
    name = basics.title
    if facts.slug.endswith(f"_{facts.release.year}"):
        # Where two movies share a title, the site tells them apart here.
        name = f"{name} ({facts.release.year})"
    found: dict[str, Any] = {
        "@context": "http://schema.org",
        "@type": "Movie",
        "name": name,
        "url": title_url("rottentomatoes", f"m/{facts.slug}"),
        "description": f"Discover reviews, ratings, and trailers for {basics.title} on Rotten Tomatoes.",
        "dateCreated": facts.release.iso,
        "genre": list(basics.genres),
        "actor": [person_json_ld(person) for person, _ in credits_.cast[:5]],
        "director": [person_json_ld(person) for person in credits_.directors],
        # Of the trailer, not of the movie.
        "video": {"@type": "VideoObject", "name": f"{basics.title}: Trailer 1", "duration": "2:28"},
    }
    if movie.certificate is not None:
        found["contentRating"] = movie.certificate
    if facts.tomatometer is not None:
        found["aggregateRating"] = rating_json_ld(facts)
    return found


def rating_json_ld(facts: RottenTomatoesFacts) -> dict[str, Any]:
    """Return what JSON-LD says of the critics' score."""
    return {
        "@type": "AggregateRating",
        "bestRating": "100",
        "name": _CRITICS,
        "ratingCount": facts.critic_reviews,
        "ratingValue": str(facts.tomatometer),
        "reviewCount": facts.critic_reviews,
        "worstRating": "0",
    }


def person_json_ld(person: Person) -> dict[str, str]:
    """Return what JSON-LD says of somebody."""
    return {"@type": "Person", "name": person.name, "sameAs": f"https://www.rottentomatoes.com/{person.celebrity}"}


def _hours(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours}h {rest}m" if hours else f"{rest}m"


def sentiment(score: int) -> str:
    """Return the site's word for a share of likes."""
    return "POSITIVE" if score >= _FRESH else "NEGATIVE"
