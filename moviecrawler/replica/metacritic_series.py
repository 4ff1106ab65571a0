"""Metacritic's pages of series, of their seasons and episodes, and its JSON host's answers.

A series' page lists its seasons with their Metascores. A season's page has the series as its product; the season's own scores stand at the
series' address with a query, such as `?season=season-2`. What is an episode's own stands in its page's JSON-LD; what
the payload holds there is not known, and is its season's here.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from moviecrawler.replica import metacritic
from moviecrawler.replica.facts import slugify
from moviecrawler.replica.metacritic import Kind, component, list_component, product, score_components, summary
from moviecrawler.replica.traits import traits_of_series
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.replica.bodies import Body
    from moviecrawler.replica.facts import MetacriticFacts, ReplicaMovie
    from moviecrawler.replica.series_facts import Episode, Season, Series

SHOW = Kind("show", "tv", "shows", 1, "tv-show", "TVSeries", 2_010_000_000)


class SeriesPages(metacritic.Pages):
    """Metacritic's pages of the series of a catalogue."""

    kind = SHOW

    def season(self, slug: str, season_slug: str) -> Body | None:
        """Return the page of a season, such as "season-2" or "specials"; None when there is none."""
        found = self._season_of_slug(slug, season_slug)
        if found is None:
            return None
        series, _, own = found
        json_ld = {**metacritic.title_json_ld(series.about, own, SHOW), "@type": "TVSeason"}
        return self._page(own.slug, series.about, self._parts_of_season(series, own), json_ld)

    def episode(self, slug: str, season_slug: str, episode_slug: str) -> Body | None:
        """Return the page of an episode, such as "episode-5-the-kiln"; None when there is none, as of specials."""
        found = self._season_of_slug(slug, season_slug)
        if found is None:
            return None
        series, season, own = found
        named = f"{own.slug}/{episode_slug}"
        one = next((one for one in season.episodes if episode_id(season, one) == f"{SHOW.path}/{named}"), None)
        if one is None:
            return None
        json_ld = _episode_json_ld(series, season, one, self._catalogue.series.user_score(series, one))
        return self._page(named, series.about, self._parts_of_season(series, own), json_ld)

    def _season_of_slug(self, slug: str, season_slug: str) -> tuple[Series, Season, MetacriticFacts] | None:
        """Return a season with its series and its facts."""
        found = self._of_slug(slug)
        if found is None:
            return None
        series, named = self._catalogue.series.series(found[0].index), f"{slug}/{season_slug}"
        seasons = ((series, season, season.metacritic) for season in series.seasons if season.metacritic)
        return next((place for place in seasons if place[2].slug == named), None)

    def _parts_of_season(self, series: Series, own: MetacriticFacts) -> list[dict[str, Any]]:
        return self._parts(series, self._facts(series.number), own, f"?season={own.slug.rpartition('/')[2]}")

    def _components(self, movie: ReplicaMovie, facts: MetacriticFacts) -> list[dict[str, Any]]:
        return self._parts(self._catalogue.series.series(movie.index), facts, facts, "")

    def _parts(self, series: Series, facts: MetacriticFacts, own: MetacriticFacts, query: str) -> list[dict[str, Any]]:
        """Return the parts of a page of a series, or of one of its seasons, whose scores are its `own`."""
        traits = traits_of_series(self._catalogue, series.about)
        address = f"/tv/{facts.slug}"
        seasons = [
            _season(series, address, season, season.metacritic) for season in series.seasons if season.metacritic
        ]
        whole = product(series.about, facts, traits, SHOW) | {"seasonCount": len(seasons)}
        return [
            component("product", "Product", whole),
            component("where-to-watch", "WhereToWatch", metacritic.where_to_watch(facts, traits, SHOW)),
            *score_components(address, own, query),
            list_component("seasons", "SeasonList", seasons),
        ]

    def _of_slug(self, slug: str) -> tuple[ReplicaMovie, MetacriticFacts] | None:
        number = self._catalogue.series.number_of_slug("metacritic", slug)
        if number is None or self._catalogue.series.slug("metacritic", number) != slug:
            return None
        return self._movie(number), self._facts(number)

    @functools.cached_property
    def _numbers(self) -> Sequence[int]:
        return self._catalogue.series.numbers("metacritic")

    def _count(self) -> int:
        return len(self._numbers)

    def _nth(self, place: int) -> int:
        return self._numbers[place]

    def _movie(self, index: int) -> ReplicaMovie:
        return self._catalogue.series.series(index).about

    def _facts(self, index: int) -> MetacriticFacts:
        facts = self._movie(index).metacritic
        if facts is None:
            raise IndexError(f"Metacritic lacks series {index}")
        return facts


def _season(series: Series, address: str, season: Season, facts: MetacriticFacts) -> dict[str, Any]:
    """Return a row of the list of seasons, each of which has its series' title."""
    slug = facts.slug.rpartition("/")[2]
    critics = summary(f"{address}/critic-reviews/?season={slug}", 100, facts.metascore, facts.critic_reviews)
    return {
        "title": series.about.basics.title,
        "seasonNumber": season.number,
        "releaseYear": facts.year,
        "episodeCount": len(season.episodes),
        "criticScoreSummary": critics,
        "url": f"{address}/{slug}/",
        "seasonSlug": slug,
    }


def episode_id(season: Season, episode: Episode) -> str | None:
    """Return the id of an episode, such as "tv/the-amber-files/season-2/episode-5-the-kiln"; the site has no specials' pages."""
    if season.metacritic is None or episode.number is None:
        return None
    return f"{SHOW.path}/{season.metacritic.slug}/episode-{episode.number}-{slugify(episode.title, '-')}"


def _episode_json_ld(
    series: Series, season: Season, episode: Episode, users: tuple[float, int] | None
) -> dict[str, Any]:
    """Return what JSON-LD says of an episode, which only users rate."""
    found: dict[str, Any] = {
        "@context": "https://schema.org",
        "@type": "TVEpisode",
        "name": episode.title,
        "url": title_url("metacritic", episode_id(season, episode) or ""),
        "datePublished": episode.air_date.isoformat(),
        "episodeNumber": episode.number,
        "partOfSeason": {"@type": "TVSeason", "seasonNumber": season.number},
        "partOfSeries": {"@type": "TVSeries", "name": series.about.basics.title},
    }
    if users is not None:
        found["aggregateRating"] = {
            "@type": "AggregateRating",
            "name": "Metacritic User Score",
            "bestRating": 10,
            "worstRating": 0,
            "ratingValue": users[0],
            "ratingCount": users[1],
        }
    return found
