"""Rotten Tomatoes' pages as the site has served them since 2024: scripts of JSON, a list of details, JSON-LD.

A series' page has a tile for each season with its Tomatometer and Popcornmeter, without what they count. A special that was shown
inside a season has a tile, too, which is no season's.
"""

from __future__ import annotations

import functools
import html
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from moviecrawler.replica import markup
from moviecrawler.replica.bodies import Template
from moviecrawler.replica.markup import json_script, rating_json_ld
from moviecrawler.replica.titles import known
from moviecrawler.replica.traits import has_consensus, recommended, sides_of, traits_of
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from moviecrawler.items import OfferKind
    from moviecrawler.replica.bodies import Body
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import Release, RottenTomatoesFacts, Title
    from moviecrawler.replica.traits import Side, Traits

CAST_SHOWN = 8
IN_THEATERS = 56
"""How many of the most popular movies are in theaters."""
_CRITICS, _AUDIENCE = "Tomatometer", "Popcornmeter"
_FRESH = 60
_MILLION = 1_000_000
_LICENCES: dict[OfferKind, str] = {
    "free": "Free",
    "ads": "Free with ads",
    "subscription": "Subscription",
    "rent": "Rent/buy",
}


class Kind(NamedTuple):
    """What the site calls one kind of titles."""

    type: str
    """The same in the page's scripts."""
    json_ld: str
    database: int
    """The number before that of the first title in the site's database."""


_MOVIE, _SERIES = Kind("Movie", "Movie", 770_000_000), Kind("TvSeries", "TVSeries", 880_000_000)
KINDS = {
    "movie": _MOVIE,
    "tvMovie": _MOVIE,
    "tvSeries": _SERIES,
    "tvMiniSeries": _SERIES,
    "tvSeason": Kind("TvSeason", "TVSeason", 881_000_000),
    "tvEpisode": Kind("TvEpisode", "TVEpisode", 882_000_000),
}


class Pages:
    """Rotten Tomatoes' pages of a catalogue's titles; `light` ones have the same data without the bulk around it."""

    def __init__(self, catalogue: Catalogue, *, light: bool = False) -> None:
        self._catalogue = catalogue
        self._light = light

    def title(self, section: str, slug: str) -> Body | str | None:
        """Return the page of a slug in a section ("m" or "tv"), also of a season or an episode; None when there is none.

        Of a slug whose hyphens and underscores are the wrong ones, return how the site writes it.
        """
        titles = self._catalogue if section == "m" else self._catalogue.series
        whole, slash, part = slug.partition("/")
        index = titles.index_of_slug("rottentomatoes", whole)
        if index is None:
            return None
        canonical = titles.slug("rottentomatoes", index)
        if canonical != whole:
            return canonical + slash + part
        title = titles.of_slug("rottentomatoes", slug)
        return None if title is None else self._page(title)

    def _page(self, title: Title) -> Body:
        facts, traits = known(title.rottentomatoes), traits_of(self._catalogue, title)
        name, site_id = title.basics.title, id_of(title)
        address = title_url("rottentomatoes", site_id)
        return template("movie", light=self._light).fill(
            markup.head(name, f"{name} | Rotten Tomatoes", address, _json_ld(title, facts)),
            _scripts(f"/{site_id}", title, facts, traits)
            + self._sections(title, facts, traits).encode()
            + _cast(title).encode(),
            _details(title, facts).encode(),
        )

    def _sections(self, title: Title, facts: RottenTomatoesFacts, traits: Traits) -> str:
        """Return the sections beside the facts, each of which is left out when it has nothing to show."""
        found = []
        if has_consensus(facts):
            text = html.escape(traits.consensus)
            found.append(f'<div id="critics-consensus" class="consensus"><rt-text>Critics</rt-text><p>{text}</p></div>')
        if offers := _where_to_watch(title, traits):
            shown = "".join(_offer(*offer) for offer in offers)
            found.append(f'<section id="where-to-watch" data-qa="section:where-to-watch">{shown}</section>')
        if similar := recommended(self._catalogue, "rottentomatoes", traits):
            tiles = "".join(self._card(index) for index in similar)
            found.append(f'<section id="more-like-this" data-qa="section:more-like-this">{tiles}</section>')
        if title.seasons and not title.season:
            tiles = "".join(_season_tiles(title))
            found.append(f'<section id="seasons"><carousel-slider>{tiles}</carousel-slider></section>')
        return "".join(found)

    def _card(self, index: int) -> str:
        link = f'href="/m/{self._catalogue.slug("rottentomatoes", index)}"'
        name = html.escape(self._catalogue.basics(index).title)
        return (
            f'<tile-poster-card slot="tile"><rt-link slot="primaryImage" {link}><sr-text>{name}</sr-text></rt-link>'
            f'<rt-link slot="title" {link}>{name}</rt-link></tile-poster-card>'
        )


def id_of(title: Title) -> str:
    """Return the site's id of a title that it has."""
    return f"{'tv' if title.is_series else 'm'}/{known(title.rottentomatoes).slug}"


def poster_url(title: Title) -> str | None:
    """Return where the title's poster would be."""
    return f"https://resizing.flixster.com/replica/206x305/v2/{title.imdb_id}.jpg" if title.has_poster else None


def box_office(title: Title) -> str | None:
    """Return the US box office as the site abbreviates it: "$53.1M"."""
    gross = title.domestic_gross
    if gross is None:
        return None
    return f"${gross / _MILLION:.1f}M" if gross >= _MILLION else f"${gross / 1000:.1f}K"


@functools.cache
def template(kind: str, *, light: bool) -> Template:
    """Return what a kind of page has around its data."""
    size = 1_200 if light else 380_000  # less than 2 kB would pass for a throttle, also of a list without rows
    return Template(
        b'<!DOCTYPE html><html lang="en"><head><meta charset="UTF-8">' + markup.styles(size // 20, kind),
        markup.statements(size // 4, kind) + b"</head><body>" + markup.elements(size * 4 // 10, kind),
        markup.elements(size // 10, kind + " middle"),
        markup.elements(size // 5, kind + " end") + b"</body></html>",
    )


# --- A title's page ---------------------------------------------------------------------------------------------------


def _scripts(address: str, title: Title, facts: RottenTomatoesFacts, traits: Traits) -> bytes:
    kind, sides = kind_of(title), sides_of(facts)
    verified = _audience(address, sides.get("popcornmeter_verified"), "VERIFIED")
    everybody = _audience(address, sides.get("popcornmeter_all"), "ALL")
    critics = _critics(address, sides.get("tomatometer"))
    content = {
        "mediaType": kind.type,
        "title": title.basics.title,
        "metadataProps": [*([] if title.certificate is None else [title.certificate]), *_below_the_name(title, facts)],
    }
    scorecard = {
        "audienceScore": verified if "popcornmeter_verified" in sides else everybody,
        "criticsScore": critics,
        "description": title.plot,
        "overlay": {
            "audienceAll": everybody,
            "audienceVerified": verified,
            "criticsAll": critics,
            "criticsTop": _critics(address, sides.get("tomatometer_top")),
            "mediaType": kind.type,
        },
        "primaryImageUrl": poster_url(title),
    }
    curation = {"emsId": traits.ems_id, "rtId": database_id(title), "type": kind.type[0].lower() + kind.type[1:]}
    return (
        json_script('id="media-hero-json" data-json="mediaHero" type="application/json"', {"content": content})
        + json_script('id="media-scorecard-json" data-json="mediaScorecard" type="application/json"', scorecard)
        + json_script('id="curation-json" type="application/json"', curation)
    )


def _below_the_name(title: Title, facts: RottenTomatoesFacts) -> list[str]:
    """Return when a title was released, and how long a movie is; the years that a series ran."""
    basics = title.basics
    if not title.is_series:
        length = [] if basics.runtime_minutes is None else [_hours(basics.runtime_minutes)]
        return [f"Released {worded(facts.release)}", *length]
    if title.season or basics.end_year == basics.year:
        return [str(basics.year)]
    return [f"{basics.year}-{basics.end_year or ''}"]


def kind_of(title: Title) -> Kind:
    """Return what the site calls the kind of a title."""
    return KINDS[title.basics.title_type]


def database_id(title: Title) -> str:
    """Return the number that stands for a title in the site's database."""
    return str(kind_of(title).database + title.index)


def _critics(address: str, side: Side | None) -> dict[str, Any]:
    """Return the critics' score; before there are reviews, it has no `score` at all."""
    shown = {"reviewsPageUrl": f"{address}/reviews", "title": _CRITICS}
    if side is None:
        return {"certified": False, **shown}
    counts = {"averageRating": f"{side.average:.2f}", "ratingCount": side.ratings, "reviewCount": side.ratings}
    return {**_side(side), **counts, **shown}


def _audience(address: str, side: Side | None, score_type: str) -> dict[str, Any]:
    """Return an audience's score, which is counted in bands only."""
    shown = {"reviewsPageUrl": f"{address}/reviews/all-audience", "scoreType": score_type, "title": _AUDIENCE}
    if side is None:
        return {"certified": False, **shown}
    return {
        **_side(side),
        "averageRating": f"{side.average:.1f}",
        "bandedRatingCount": f"{side.ratings // 50 * 50:,}+ Ratings",
        "reviewCount": written_reviews(side),
        **shown,
    }


def written_reviews(side: Side) -> int:
    """Return how many of an audience have written a review."""
    return side.ratings // 3


def _side(side: Side) -> dict[str, Any]:
    return {
        "certified": side.certified,
        "likedCount": side.liked,
        "notLikedCount": side.disliked,
        "score": str(side.value),
        "scorePercent": f"{side.value}%",
        "sentiment": sentiment(side.value),
    }


def _where_to_watch(title: Title, traits: Traits) -> list[tuple[str, str, str | None]]:
    """Return affiliates with their licences and addresses; what can be rented and bought has one of both."""
    shown: list[tuple[str, str, str | None]] = [("showtimes", "In theaters", None)] if is_in_theaters(title) else []
    return shown + [(o.affiliate, _LICENCES[o.kind], o.url) for o in traits.offers if o.kind != "buy"]


def is_in_theaters(title: Title) -> bool:
    """Return whether a title is shown in theaters now."""
    return title.index < IN_THEATERS and not title.is_series


def _offer(affiliate: str, licence: str, url: str | None) -> str:
    link = "" if url is None else f' href="{url}?cmp=rt_where_to_watch&amp;tag=replica-20"'
    return f'<where-to-watch-meta affiliate="{affiliate}"{link}><span slot="license">{licence}</span></where-to-watch-meta>'


def _season_tiles(series: Title) -> list[str]:
    """Return the tiles of the seasons, the last first."""
    found = []
    for season in reversed(series.seasons):
        facts = known(season.rottentomatoes)
        aired = f"{season.air_date:%b %Y}"
        if season.number == series.split:
            found.append(_season_tile(f"{facts.slug}.2", f"{season.title}, Part 2", aired, None, None))
        found.append(_season_tile(facts.slug, season.title, aired, facts.tomatometer, facts.popcornmeter))
    return found


def _season_tile(slug: str, title: str, aired: str, critics: int | None, audience: int | None) -> str:
    return (
        f'<tile-season slot="tile" href="/tv/{slug}" skeleton="panel"><rt-text size="1" context="label" slot="title">'
        f'{html.escape(title)}</rt-text><rt-text slot="critics-score" size="0.75" context="label">{percent(critics)}'
        f'</rt-text><rt-text slot="audience-score" size="0.75" context="label">{percent(audience)}</rt-text>'
        f'<rt-text size="0.875" slot="air-date">{aired}</rt-text></tile-season>'
    )


def percent(score: int | None) -> str:
    """Return a score as the site writes it; nothing where there is none."""
    return "" if score is None else f"{score}%"


def worded(release: Release) -> str:
    """Return a day as the site writes it: "Nov 01, 2026"."""
    return f"{date(release.year, release.month, release.day or 1):%b %d, %Y}"


def _cast(title: Title) -> str:
    """Return the tiles of the cast, which begin with the director."""
    people = [(person, "Director") for person in title.credits.directors]
    people += [(person, character or "Actor") for person, character in title.credits.cast[:CAST_SHOWN]]
    return "".join(
        f'<a href="/{person.celebrity}" data-qa="person-item"><tile-dynamic><div slot="insetText">'
        f'<p class="name" data-qa="person-name">{html.escape(person.name)}</p>'
        f'<p class="role" data-qa="person-role">{html.escape(part)}</p></div></tile-dynamic></a>'
        for person, part in people
    )


def _details(title: Title, facts: RottenTomatoesFacts) -> str:
    """Return the list of details; what the site does not know has no row."""
    basics, credits_, gross = title.basics, title.credits, box_office(title)
    dated = f"Release Date ({'Streaming' if facts.streaming_only else 'Theaters'})"
    wide = "" if title.is_series or facts.streaming_only else ", Wide"
    genres = "tv_series_browse" if title.is_series else "movies_at_home"
    minutes = basics.runtime_minutes
    rows: list[tuple[str, list[tuple[str, str | None]]]] = [
        ("Creator", [(person.name, f"/{person.celebrity}") for person in credits_.creators]),
        ("Director", [(person.name, f"/{person.celebrity}") for person in credits_.directors]),
        ("Screenwriter", [(person.name, f"/{person.celebrity}") for person in credits_.writers]),
        ("Genre", [(genre, f"/browse/{genres}/genres:{genre.lower()}") for genre in basics.genres]),
        ("Original Language", [(basics.country.language, None)]),
        ("Premiere Date" if title.is_series else dated, [(worded(facts.release) + wide, None)]),
        ("Rating", [(f"{title.certificate} (Some Language|Mild Peril)", None)] if title.certificate else []),
        ("Box Office (Gross USA)", [(gross, None)] if gross else []),
        ("Runtime", [] if minutes is None else [(_hours(minutes), None)]),
    ]
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


def _json_ld(title: Title, facts: RottenTomatoesFacts) -> dict[str, Any]:
    """Return what JSON-LD says of a title."""
    name = title.basics.title
    found: dict[str, Any] = {
        "@context": "http://schema.org",
        "@type": kind_of(title).json_ld,
        "name": name,
        "url": title_url("rottentomatoes", id_of(title)),
        **(_parts_json_ld(title) if title.is_series else {}),
    }
    if not title.is_series and facts.slug.endswith(f"_{facts.release.year}"):
        # Where two movies share a title, the site tells them apart here.
        found["name"] = f"{name} ({facts.release.year})"
    if facts.tomatometer is not None:
        counts = {"ratingCount": facts.critic_reviews, "reviewCount": facts.critic_reviews}
        found["aggregateRating"] = rating_json_ld("0", "100", str(facts.tomatometer), name=_CRITICS, **counts)
    return found


def _parts_json_ld(title: Title) -> dict[str, Any]:
    """Return what JSON-LD says of the seasons of a series, or of where a season or an episode stands."""
    series, season = title.part_of, title.season
    if series is None or season is None:
        return {"numberOfSeasons": len(title.numbered)}
    url = title_url("rottentomatoes", id_of(series))
    found: dict[str, Any] = {"partOfSeries": {"@type": "TVSeries", "name": series.basics.title, "url": url}}
    return found if title.episode is not None else {**found, "numberOfEpisodes": len(season.episodes)}


def _hours(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours}h {rest}m" if hours else f"{rest}m"


def sentiment(score: int) -> str:
    """Return the site's word for a share of likes."""
    return "POSITIVE" if score >= _FRESH else "NEGATIVE"
