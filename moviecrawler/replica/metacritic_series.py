"""Metacritic's pages of series and of their seasons, and its JSON host's answers.

A series' page lists its seasons with their Metascores. A season's page has the series as its product; the season's own scores stand at the
series' address with a query, such as `?season=season-2`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from moviecrawler.replica import metacritic
from moviecrawler.replica.metacritic import Kind, component, list_component, product, score_components, summary
from moviecrawler.replica.traits import traits_of_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moviecrawler.replica.bodies import Body
    from moviecrawler.replica.facts import MetacriticFacts, ReplicaMovie
    from moviecrawler.replica.series_facts import Season, Series

SHOW = Kind("show", "tv", "shows", 1, "tv-show", "TVSeries", 2_010_000_000)


class SeriesPages(metacritic.Pages):
    """Metacritic's pages of the series of a catalogue."""

    kind = SHOW

    def season(self, slug: str, season_slug: str) -> Body | None:
        """Return the page of a season, such as "season-2" or "specials"; None when there is none."""
        found = self._of_slug(slug)
        if found is None:
            return None
        about, facts = found
        series = self._catalogue.series.series(about.index)
        named = f"{slug}/{season_slug}"
        own = next(
            (part.metacritic for part in series.seasons if part.metacritic and part.metacritic.slug == named), None
        )
        if own is None:
            return None
        components = self._parts(series, facts, own, f"?season={season_slug}")
        json_ld = {**metacritic.title_json_ld(about, own, SHOW), "@type": "TVSeason"}
        return self._page(named, about, components, json_ld)

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
