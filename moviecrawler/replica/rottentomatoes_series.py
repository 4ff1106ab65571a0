"""Rotten Tomatoes' pages of series, seasons and episodes.

A series' page has a tile for each season with its Tomatometer and Popcornmeter, without what they count. A special that was shown inside a
season has a tile, too, which is no season's.
"""

from __future__ import annotations

import html
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from moviecrawler.replica import rottentomatoes
from moviecrawler.replica.rottentomatoes import Kind, person_json_ld, rating_json_ld
from moviecrawler.replica.traits import traits_of_series
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from moviecrawler.replica.bodies import Body
    from moviecrawler.replica.facts import ReplicaMovie, RottenTomatoesFacts
    from moviecrawler.replica.series_facts import Episode, Season, Series

SERIES = Kind("TvSeries", "TVSeries", 880_000_000)
SEASON = Kind("TvSeason", "TVSeason", 881_000_000)
EPISODE = Kind("TvEpisode", "TVEpisode", 882_000_000)


class SeriesPages(rottentomatoes.Pages):
    """Rotten Tomatoes' pages of the series of a catalogue."""

    def canonical_slug(self, slug: str) -> str | None:
        """Return how the site writes a slug, whose hyphens and underscores may be the wrong ones; None if unknown."""
        number = self._catalogue.series.number_of_slug("rottentomatoes", slug)
        return None if number is None else self._catalogue.series.slug("rottentomatoes", number)

    def title(self, slug: str, season: int | None = None, episode: int | None = None) -> Body | None:
        """Return the page of a series, a season or an episode; None when there is none."""
        number = self._catalogue.series.number_of_slug("rottentomatoes", slug)
        if number is None:
            return None
        series = self._catalogue.series.series(number)
        if season is None:
            return self._series_page(series)
        found = series.season(season)
        if found is None or episode is None:
            return None if found is None else self._season_page(series, found)
        one = next((one for one in found.episodes if one.number == episode), None)
        return None if one is None else self._episode_page(series, found, one)

    def _series_page(self, series: Series) -> Body:
        about, facts = series.about, _known(series.about.rottentomatoes)
        tiles = "".join(_tiles(series))
        seasons = [
            {"@type": "TVSeason", "name": season.title, "url": _address(season.rottentomatoes)}
            for season in reversed(series.seasons)
        ]
        json_ld = _json_ld(about, facts, SERIES) | {
            "numberOfSeasons": len(series.numbered),
            "containsSeason": seasons,
        }
        years = f"{about.basics.year}-{about.basics.end_year or ''}"
        props = [str(about.basics.year) if about.basics.end_year == about.basics.year else years]
        more = f'<section id="seasons"><carousel-slider>{tiles}</carousel-slider></section>'
        return self._part(facts, SERIES, about, props, json_ld, more)

    def _season_page(self, series: Series, season: Season) -> Body:
        facts = _known(season.rottentomatoes)
        about = _season_movie(series, season)
        json_ld = _json_ld(about, facts, SEASON) | {
            "partOfSeries": _part_of(series),
            "numberOfEpisodes": len(season.episodes),
            "episode": [
                {"@type": "TVEpisode", "name": one.title, "url": f"{_address(facts)}/e{one.number:02}"}
                for one in season.episodes
                if one.number is not None
            ],
        }
        return self._part(facts, SEASON, about, [str(facts.release.year)], json_ld)

    def _episode_page(self, series: Series, season: Season, episode: Episode) -> Body | None:
        facts = self._catalogue.series.episode_review(series, episode)
        if facts is None:
            return None
        _, about = self._catalogue.series.episode(series, episode.ordinal)
        json_ld = _json_ld(about, facts, EPISODE) | {
            "partOfSeries": _part_of(series),
            "partOfSeason": {"@type": "TVSeason", "name": season.title, "url": _address(season.rottentomatoes)},
            "episodeNumber": episode.number,
        }
        return self._part(facts, EPISODE, about, [str(facts.release.year)], json_ld)

    def _part(
        self,
        facts: RottenTomatoesFacts,
        kind: Kind,
        about: ReplicaMovie,
        props: list[str],
        json_ld: dict[str, Any],
        more: str = "",
    ) -> Body:
        traits = traits_of_series(self._catalogue, about)
        return self._page(f"tv/{facts.slug}", kind, about, facts, traits, props, json_ld, more)


def _season_movie(series: Series, season: Season) -> ReplicaMovie:
    """Return what the page of a season says, which has its series' people."""
    basics = replace(series.about.basics, title=season.title, year=season.air_date.year, end_year=None)
    return replace(series.about, basics=basics, release=_known(season.rottentomatoes).release)


def _tiles(series: Series) -> list[str]:
    """Return the tiles of the seasons, the last first."""
    found = []
    for season in reversed(series.seasons):
        facts = _known(season.rottentomatoes)
        aired = f"{season.air_date:%b %Y}"
        if season.number == series.shape.split:
            found.append(_tile(f"{facts.slug}.2", f"{season.title}, Part 2", aired, None, None))
        found.append(_tile(facts.slug, season.title, aired, facts.tomatometer, facts.popcornmeter))
    return found


def _tile(slug: str, title: str, aired: str, tomatometer: int | None, popcornmeter: int | None) -> str:
    critics, audience = ("" if share is None else f"{share}%" for share in (tomatometer, popcornmeter))
    return (
        f'<tile-season slot="tile" href="/tv/{slug}" skeleton="panel"><rt-text size="1" context="label" slot="title">'
        f'{html.escape(title)}</rt-text><rt-text slot="critics-score" size="0.75" context="label">{critics}</rt-text>'
        f'<rt-text slot="audience-score" size="0.75" context="label">{audience}</rt-text>'
        f'<rt-text size="0.875" slot="air-date">{aired}</rt-text></tile-season>'
    )


def _json_ld(about: ReplicaMovie, facts: RottenTomatoesFacts, kind: Kind) -> dict[str, Any]:
    found: dict[str, Any] = {
        "@context": "http://schema.org",
        "@type": kind.json_ld,
        "name": about.basics.title,
        "url": _address(facts),
        "description": f"Discover reviews, ratings, and trailers for {about.basics.title} on Rotten Tomatoes.",
        "dateCreated": facts.release.iso,
        "genre": list(about.basics.genres),
        "actor": [person_json_ld(person) for person, _ in about.credits.cast[:5]],
    }
    if facts.tomatometer is not None:
        found["aggregateRating"] = rating_json_ld(facts)
    return found


def _part_of(series: Series) -> dict[str, Any]:
    facts = _known(series.about.rottentomatoes)
    return {
        "@type": "TVSeries",
        "name": series.about.basics.title,
        "startDate": facts.release.iso,
        "url": _address(facts),
    }


def _address(facts: RottenTomatoesFacts | None) -> str:
    return title_url("rottentomatoes", f"tv/{_known(facts).slug}")


def _known(facts: RottenTomatoesFacts | None) -> RottenTomatoesFacts:
    assert facts is not None  # noqa: S101 - a series that the site has
    return facts
