"""What a right reader gets from the replica's pages of series, seasons and episodes, and from a series' list of its seasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.items import Movie, Score
from moviecrawler.replica import metacritic_series, rottentomatoes_series
from moviecrawler.replica.traits import sides_of, traits_of_series
from moviecrawler.urls import title_url
from tests.replica import more_truth
from tests.replica import truth as movie_truth

if TYPE_CHECKING:
    from moviecrawler.items import ScoreKind, Site
    from moviecrawler.replica.facts import MetacriticFacts, RottenTomatoesFacts
    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.series_facts import Episode, Season, Series

Scores = dict["ScoreKind", tuple[float, int | None]]
"""Value and count of each score."""


def series_truth(catalogue: Catalogue, site: Site, number: int) -> Movie | None:
    """Return what a site's page says of a series; None when it has no such page."""
    whole = catalogue.series.series(number)
    about = whole.about
    traits = traits_of_series(catalogue, about)
    if site == "imdb":
        found = movie_truth.imdb_truth(about, None)
        found.imdb_top250_tv_rank = catalogue.series.top_ranks.get(number)
        found.end_year, found.season_count = about.basics.end_year, len(whole.numbered)
        found.episode_count = len(whole.episodes)
        more_truth.say_more_of_imdb(found, catalogue, traits)
    elif site == "metacritic":
        if about.metacritic is None:
            return None
        found = movie_truth.metacritic_truth(about, about.metacritic, metacritic_series.SHOW)
        more_truth.say_more_of_metacritic(found, catalogue, about, about.metacritic, traits, metacritic_series.SHOW)
        found.season_count = len(whole.seasons)
    else:
        if about.rottentomatoes is None:
            return None
        found = movie_truth.rottentomatoes_truth(about, about.rottentomatoes, f"tv/{about.rottentomatoes.slug}")
        kind = rottentomatoes_series.SERIES
        more_truth.say_more_of_rottentomatoes(found, catalogue, about, about.rottentomatoes, traits, kind)
        end = about.basics.end_year
        found.end_year = None if end == about.basics.year else end  # "2012" is the first year alone
        found.season_count = len(whole.numbered)
    found.kind = "series"
    return found


def season_scores(site: Site, season: Season, *, listed: bool = False) -> Scores:
    """Return the scores of a season's own page, or of the list of seasons on its series' page."""
    if site == "metacritic":
        return _metacritic_scores(season.metacritic, listed=listed)
    return _rottentomatoes_scores(season.rottentomatoes, listed=listed)


def _metacritic_scores(facts: MetacriticFacts | None, *, listed: bool) -> Scores:
    found: Scores = {}
    if facts is not None and facts.metascore is not None:
        found["metascore"] = (float(facts.metascore), facts.critic_reviews)
    if facts is not None and facts.user_score is not None and not listed:
        found["metacritic_user"] = (facts.user_score, facts.user_ratings)
    return found


def _rottentomatoes_scores(facts: RottenTomatoesFacts | None, *, listed: bool) -> Scores:
    if facts is None:
        return {}
    if listed:
        shares: dict[ScoreKind, int | None] = {"tomatometer": facts.tomatometer, "popcornmeter": facts.popcornmeter}
        return {kind: (float(share), None) for kind, share in shares.items() if share is not None}
    return {kind: (float(side.value), side.count) for kind, side in sides_of(facts).items()}


def season_id(site: Site, season: Season) -> str | None:
    """Return a season's id on a site; None when the site does not have its series."""
    facts = season.metacritic if site == "metacritic" else season.rottentomatoes
    return None if facts is None else f"tv/{facts.slug}"


def episode_truth(catalogue: Catalogue, series: Series, episode: Episode) -> Movie:
    """Return what IMDb's page says of an episode."""
    _, about = catalogue.series.episode(series, episode.ordinal)
    found = movie_truth.imdb_truth(about, None)
    more_truth.say_more_of_imdb(found, catalogue, traits_of_series(catalogue, about))
    found.kind, found.series_id, found.series_title = "episode", series.about.imdb_id, series.about.basics.title
    found.season, found.episode = episode.season, episode.number
    return found


def metacritic_episode_truth(catalogue: Catalogue, series: Series, season: Season, episode: Episode) -> Movie:
    """Return what Metacritic's page says of an episode."""
    site_id = metacritic_series.episode_id(season, episode) or ""
    users = catalogue.series.user_score(series, episode)
    return Movie(
        site="metacritic",
        site_id=site_id,
        url=title_url("metacritic", site_id),
        title=episode.title,
        kind="episode",
        series_id=f"tv/{series.about.metacritic.slug}" if series.about.metacritic else None,
        series_title=series.about.basics.title,
        season=season.number,
        episode=episode.number,
        year=episode.air_date.year,
        release_date=episode.air_date.isoformat(),
        scores=[] if users is None else [Score(kind="metacritic_user", value=users[0], count=users[1])],
    )


def scores_of(movie: Movie) -> Scores:
    """Return the scores of an item as they stand in the truth."""
    return {score.kind: (score.value, score.count) for score in movie.scores}


def every_title(catalogue: Catalogue, site: Site) -> dict[str, tuple[str, Scores]]:
    """Return kind and scores, by id, of every series and season of a site as their own pages show them, and of IMDb's episodes."""
    found: dict[str, tuple[str, Scores]] = {}
    for number in range(catalogue.series.count):
        whole, movie = catalogue.series.series(number), series_truth(catalogue, site, number)
        if movie is None:
            continue
        found[movie.site_id or ""] = ("series", scores_of(movie))
        if site == "imdb":
            for one in whole.episodes:
                scores: Scores = {} if one.rating is None else {"imdb": one.rating}
                found[one.imdb_id] = ("episode", scores)
        else:
            for season in whole.seasons:
                found[season_id(site, season) or ""] = ("season", season_scores(site, season))
    return found
