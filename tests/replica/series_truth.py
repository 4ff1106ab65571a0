"""What a right reader gets from the replica's pages of seasons, and from a series' list of its seasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.replica.traits import sides_of
from tests.replica.truth import truth_of

if TYPE_CHECKING:
    from moviecrawler.items import Movie, ScoreKind, Site
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import Season

Scores = dict["ScoreKind", tuple[float, int | None]]
"""Value and count of each score."""


def season_scores(site: Site, season: Season, *, listed: bool = False) -> Scores:
    """Return the scores of a season's own page, or of the list of seasons on its series' page."""
    if site == "metacritic" and (facts := season.metacritic) is not None:
        shown: dict[ScoreKind, tuple[float | None, int]] = {"metascore": (facts.metascore, facts.critic_reviews)}
        if not listed:
            shown["metacritic_user"] = facts.user_score, facts.user_ratings
        return {kind: (float(value), count) for kind, (value, count) in shown.items() if value is not None}
    if site == "rottentomatoes" and (of_season := season.rottentomatoes) is not None:
        if not listed:
            return {kind: (float(side.value), side.ratings) for kind, side in sides_of(of_season).items()}
        shares: dict[ScoreKind, int | None] = {
            "tomatometer": of_season.tomatometer,
            "popcornmeter": of_season.popcornmeter,
        }
        return {kind: (float(share), None) for kind, share in shares.items() if share is not None}
    return {}


def season_id(site: Site, season: Season) -> str | None:
    """Return a season's id on a site; None when the site does not have its series, and on IMDb, which has no pages of seasons."""
    facts = None if site == "imdb" else season.facts(site)
    return None if facts is None else f"tv/{facts.slug}"


def scores_of(movie: Movie) -> Scores:
    """Return the scores of an item as they stand in the truth."""
    return {score.kind: (score.value, score.count) for score in movie.scores}


def every_title(catalogue: Catalogue, site: Site, *, listed: bool = False) -> dict[str, tuple[str, Scores]]:
    """Return kind and scores, by id, of every series and season of a site as their own pages show them, and of IMDb's episodes.

    `listed`: of seasons, what their series' pages say.
    """
    found: dict[str, tuple[str, Scores]] = {}
    for index in range(catalogue.series.count):
        series = catalogue.series.title(index)
        movie = truth_of(catalogue, site, series)
        if movie is None:
            continue
        found[movie.site_id or ""] = ("series", scores_of(movie))
        if site == "imdb":
            for one in series.episodes:
                found[one.imdb_id] = ("episode", {} if one.rating is None else {"imdb": one.rating})
        else:
            for season in series.seasons:
                found[season_id(site, season) or ""] = ("season", season_scores(site, season, listed=listed))
    return found
