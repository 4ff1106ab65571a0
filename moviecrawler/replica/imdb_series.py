"""IMDb's pages of series, of their seasons' episodes, and of an episode, and its charts of series."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from moviecrawler.replica import imdb
from moviecrawler.replica.facts import Release
from moviecrawler.replica.traits import traits_of_series

if TYPE_CHECKING:
    from moviecrawler.replica.bodies import Body
    from moviecrawler.replica.series_facts import Episode, Series

POPULAR_SIZE = 100
_UNKNOWN = "Unknown"
"""The season of episodes of none."""


class SeriesPages(imdb.Pages):
    """IMDb's pages of the series of a catalogue."""

    def title(self, imdb_id: str) -> Body | None:
        """Return the page of a series or an episode, or None when there is none of this id."""
        series = self._catalogue.series
        found = series.number_of_imdb_id(imdb_id)
        if found is None:
            return None
        number, ordinal = found
        whole = series.series(number)
        if ordinal:
            episode, about = series.episode(whole, ordinal)
            place = _place(whole, episode)
            return self.title_page(about, traits_of_series(self._catalogue, about), None, series=place)
        rank = series.top_ranks.get(number, len(series.top) + 1 + number)
        about = whole.about
        return self.title_page(about, traits_of_series(self._catalogue, about), rank, episodes=_outline(whole))

    def episodes(self, imdb_id: str, season: str | None) -> Body | None:
        """Return the page of one season's episodes, the first unless it is named; episodes of no season are in "Unknown"."""
        found = self._catalogue.series.number_of_imdb_id(imdb_id)
        if found is None or found[1]:
            return None
        whole = self._catalogue.series.series(found[0])
        seasons = [str(part.number) if part.number else _UNKNOWN for part in whole.seasons]
        shown = season or next(iter(seasons), "1")
        listed = [_row(episode) for episode in whole.episodes if str(episode.season or _UNKNOWN) == shown]
        basics, rating = whole.about.basics, whole.about.rating or (None, 0)
        entity = {
            "id": whole.about.imdb_id,
            "titleText": {"text": basics.title},
            "originalTitleText": {"text": basics.title},
            "titleType": {"id": basics.title_type},
            "releaseYear": {"year": basics.year, "endYear": basics.end_year},
            "ratingsSummary": {"aggregateRating": rating[0], "voteCount": rating[1]},
            "series": None,
        }
        section = {
            "selectedTab": "seasons",
            "seasons": [{"id": name, "value": name} for name in seasons],
            "episodes": {"items": listed, "total": len(listed), "hasNextPage": False, "endCursor": None},
            "currentSeason": shown,
        }
        head = f"<title>{html.escape(basics.title)} - Episodes - IMDb</title>".encode()
        props = {"contentData": {"entityMetadata": entity, "section": section}}
        return self.page("/title/[tconst]/episodes", head, props)

    def top(self) -> Body:
        """Return the Top 250 series."""
        series = self._catalogue.series
        return self.chart("toptv", [series.series(number).about for number in series.top])

    def popular(self) -> Body:
        """Return the most popular series."""
        series = self._catalogue.series
        return self.chart("tvmeter", [series.series(n).about for n in range(min(series.count, POPULAR_SIZE))])


def _place(series: Series, episode: Episode) -> dict[str, Any]:
    """Return where an episode stands in its series; a special has no number."""
    basics = series.about.basics
    numbers = {"episodeNumber": episode.number, "seasonNumber": episode.season}
    return {
        "episodeNumber": numbers if episode.season is not None else None,
        "series": {
            "id": series.about.imdb_id,
            "titleText": {"text": basics.title},
            "originalTitleText": {"text": basics.title},
            "titleType": {"id": basics.title_type},
            "releaseYear": {"year": basics.year, "endYear": basics.end_year},
        },
    }


def _outline(series: Series) -> dict[str, Any]:
    """Return what a series' page says of its episodes."""
    total = {"total": len(series.episodes)}
    years = sorted({episode.air_date.year for episode in series.episodes})
    return {
        "episodes": total,
        "seasons": [{"number": season.number} for season in series.numbered],
        "years": [{"year": year} for year in years],
        "totalEpisodes": total,
        "unknownSeasonEpisodes": {"total": sum(episode.season is None for episode in series.episodes)},
    }


def _row(episode: Episode) -> dict[str, Any]:
    release, rating = Release.on(episode.air_date), episode.rating or (None, 0)
    return {
        "id": episode.imdb_id,
        "type": "tvEpisode",
        "season": str(episode.season or _UNKNOWN),
        "episode": _UNKNOWN if episode.number is None else str(episode.number),
        "titleText": episode.title,
        "releaseDate": {"year": release.year, "month": release.month, "day": release.day},
        "releaseYear": release.year,
        "aggregateRating": rating[0],
        "voteCount": rating[1],
    }
