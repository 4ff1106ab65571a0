"""The replica's series, with their seasons and episodes as they are on one day.

What a series is like comes from its place (`SHAPES`). Running series begin another season within a year of TODAY,
each on a day of its own.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from moviecrawler.items import Movie, Score
from moviecrawler.replica.items import (
    Title,
    consensus,
    external_ids,
    imdb_scores,
    on_site,
    people,
    score_near,
    scores_on,
)
from moviecrawler.replica.options import TODAY
from moviecrawler.replica.words import WORDS, Dice, slugify
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.items import Site
    from moviecrawler.replica.items import SlugSite

_FIRST_ID, _IDS_OF_SERIES = 90_000_000, 500
"""A series has 500 of IMDb's ids: its own, and then its episodes'."""
_BETWEEN_SEASONS, _BETWEEN_EPISODES, _TO_SPECIAL = timedelta(364), timedelta(7), timedelta(180)
_FORMS: Final = ("The {} Files", "{}", "{} Street", "Inside the {}")


class Shape(NamedTuple):
    """What a series is like on TODAY."""

    seasons: int
    episodes: int
    """In each season."""
    runs: bool = False
    specials: int = 0
    """Episodes of no season, which other sites than IMDb have as season 0."""
    is_restart: bool = False
    """Whether it has the name of the series before it, which ended long ago."""


SHAPES: Final = (
    Shape(3, 10, runs=True, specials=3),
    Shape(5, 13),
    Shape(1, 6),
    Shape(4, 8, runs=True),
    Shape(4, 22),
    Shape(2, 10, runs=True, is_restart=True),
)


class Series:
    """The series of one seed."""

    def __init__(self, seed: int, count: int, today: date, films: int) -> None:
        """Take how many series and films there are; both share their people."""
        self.seed, self.count, self.today, self._films = seed, count, today, films
        self.title = functools.lru_cache(500)(self._title)
        self._ids: dict[Site, dict[int, str]] = {"imdb": {index: self.imdb_id(index) for index in range(count)}}
        others: tuple[tuple[Site, str, int], ...] = (("metacritic", "-", 9), ("rottentomatoes", "_", 8))
        for site, separator, lacked in others:
            listed = (index for index in range(count) if index % 10 != lacked)
            self._ids[site] = {index: f"tv/{self._slug(index, separator)}" for index in listed}
        self._places = {(site, site_id): index for site, ids in self._ids.items() for index, site_id in ids.items()}

    def imdb_id(self, index: int, episode: int = 0) -> str:
        """Return the id of a series, or of one of its episodes."""
        return f"tt{_FIRST_ID + index * _IDS_OF_SERIES + episode}"

    def site_ids(self, site: Site) -> dict[int, str]:
        """Return the ids of all series that a site has by their places, the most popular first."""
        return self._ids[site]

    def find(self, site: Site, site_id: str) -> Title | None:
        """Return the series that an id is of, or is of a part of; None when there is none."""
        if site == "imdb":
            index = (int(site_id[2:]) - _FIRST_ID) // _IDS_OF_SERIES
            return self.title(index) if 0 <= index < self.count else None
        whole = "/".join(site_id.split("/")[:2])
        found = self._places.get((site, whole.replace("-", "_") if site == "rottentomatoes" else whole))
        return None if found is None else self.title(found)

    def _dice(self, *purpose: object) -> Dice:
        return Dice(self.seed, *purpose)

    def shape(self, index: int) -> Shape:
        """Return what a series is like."""
        return SHAPES[index % len(SHAPES)]

    def rating(self, index: int) -> tuple[float, int]:
        """Return IMDb's mean and votes of a series."""
        dice = self._dice("series rating", index)
        votes = 30 + 1_200_000 / (1 + index) ** 0.7 * (0.5 + 0.5 * dice.random())
        return round(5.2 + 4.2 * dice.random(), 1), int(votes)

    @functools.cached_property
    def top(self) -> list[int]:
        """The places of the Top 250 series in chart order; fewer when there are fewer."""
        return sorted(range(min(self.count, 1_000)), key=lambda index: (-self.rating(index)[0], index))[:250]

    @functools.cached_property
    def top_ranks(self) -> dict[int, int]:
        """The rank, from 1, of each series in that chart."""
        return {index: rank for rank, index in enumerate(self.top, start=1)}

    # --- Names and days -----------------------------------------------------------------------------------------------

    def name(self, index: int) -> str:
        """Return a series' title."""
        base = index - self.shape(index).is_restart
        adjective = WORDS["adjectives"][(base * 7 + self.seed) % len(WORDS["adjectives"])]
        noun = WORDS["nouns"][base * 11 % len(WORDS["nouns"])]
        return _FORMS[base % len(_FORMS)].format(f"{adjective} {noun}")

    def _slug(self, index: int, separator: str) -> str:
        slug = slugify(self.name(index), separator)
        return f"{slug}{separator}{self.starts(index)[0].year}" if self.shape(index).is_restart else slug

    def starts(self, index: int) -> list[date]:
        """Return when each season begins, also of those that running series begin after TODAY."""
        shape = self.shape(index)
        if shape.runs:
            coming = TODAY + timedelta(1 + index * 37 % 363)
            return [coming + n * _BETWEEN_SEASONS for n in range(-shape.seasons, 10)]
        years = 3 + Dice(self.seed, "series ended", index).below(18)
        last = TODAY - years * _BETWEEN_SEASONS - timedelta(index * 53 % 360)
        return [last + n * _BETWEEN_SEASONS for n in range(1 - shape.seasons, 1)]

    def plan(self, index: int) -> Iterator[tuple[int, int | None, int | None, date]]:
        """Yield the number of the id, season, number and day of each episode; season and number of specials, the first, are None."""
        shape, starts = self.shape(index), self.starts(index)
        for n in range(shape.specials):
            if starts[n] + _TO_SPECIAL <= self.today:
                yield n + 1, None, None, starts[n] + _TO_SPECIAL
        number = shape.specials
        for season, start in enumerate((start for start in starts if start <= self.today), start=1):
            for episode in range(shape.episodes):
                number += 1
                yield number, season, episode + 1, start + episode * _BETWEEN_EPISODES

    # --- Items --------------------------------------------------------------------------------------------------------

    def _title(self, index: int) -> Title:
        imdb = self._on_imdb(index)
        episodes = [self._episode(index, imdb, *planned) for planned in self.plan(index)]
        imdb.episode_count, imdb.season_count = len(episodes), len({one.season for one in episodes if one.season})
        title = Title({"imdb": imdb}, parts={"imdb": episodes})
        for site in ("metacritic", "rottentomatoes"):
            if index in self.site_ids(site):
                self._add_site(site, title, index)
        metascore = title.movies["metacritic"].score("metascore") if "metacritic" in title.movies else None
        imdb.scores = imdb_scores(self.rating(index), metascore.value if metascore else None)
        return title

    def _on_imdb(self, index: int) -> Movie:
        dice, shape, starts = self._dice("series", index), self.shape(index), self.starts(index)
        imdb_id, last = self.imdb_id(index), starts[-1] + (shape.episodes - 1) * _BETWEEN_EPISODES
        pool = index % self._films // 50 * 60
        team = dice.sample(range(pool, pool + 200), 9)
        genres = dice.sample(WORDS["genres"], 2)
        has_poster = dice.chance(0.85)
        return Movie(
            site="imdb",
            site_id=imdb_id,
            imdb_id=imdb_id,
            url=title_url("imdb", imdb_id),
            title=self.name(index),
            kind="series",
            title_type="tvSeries",
            year=starts[0].year,
            end_year=None if shape.runs or last > self.today else last.year,
            release_date=starts[0].isoformat(),
            runtime_minutes=22 + index % 40,
            genres=genres,
            countries=[dice.word("countries")],
            languages=["English"],
            certificate=dice.pick(("TV-14", "TV-MA", "TV-PG", None)),
            plot=f"Everybody in {dice.word('places')} keeps a secret.",
            poster_url=f"https://m.media-amazon.com/images/M/MV5B{imdb_id}._V1_.jpg" if has_poster else None,
            poster_width=1000 if has_poster else None,
            poster_height=1500 if has_poster else None,
            credits=[*people("writer", team[:3]), *people("creator", team[:2]), *people("cast", team[3:])],
            keywords=["secret", f"set in {dice.word('places')}".lower()],
            interests=genres,
            imdb_top250_tv_rank=self.top_ranks.get(index),
            critic_review_count=1 + self.rating(index)[1] // 450,
            popularity_rank=index + 1,
        )

    def _episode(
        self, index: int, series: Movie, number: int, season: int | None, episode: int | None, shown: date
    ) -> Movie:
        """Return IMDb's item of an episode, which is unrated until it is shown."""
        dice, imdb_id, (mean, votes) = (
            self._dice("episode", index, number),
            self.imdb_id(index, number),
            self.rating(index),
        )
        is_rated = shown <= self.today and not dice.chance(0.04)
        rating = (min(9.9, round(mean + dice.random() - 0.5, 1)), 5 + dice.below(votes / 25)) if is_rated else None
        title = f"{dice.pick(('The', 'A', 'Another'))} {dice.word('adjectives')} {dice.word('nouns')}"
        return replace(
            series,
            site_id=imdb_id,
            imdb_id=imdb_id,
            url=title_url("imdb", imdb_id),
            title=title,
            kind="episode",
            title_type="tvEpisode",
            year=shown.year,
            end_year=None,
            release_date=shown.isoformat(),
            plot=f"{title} is opened.",
            credits=[credit for credit in series.credits if credit.role != "creator" and credit.position <= 4],  # noqa: PLR2004
            scores=imdb_scores(rating, None),
            imdb_top250_tv_rank=None,
            critic_review_count=None,
            popularity_rank=None,
            series_id=series.site_id,
            series_title=series.title,
            season=season,
            episode=episode,
        )

    def _add_site(self, site: SlugSite, title: Title, index: int) -> None:
        """Add what another site says of a series, its seasons and episodes; specials are season 0 there, without scores."""
        imdb, site_id = title.movies["imdb"], self.site_ids(site)[index]
        seasons: dict[int, list[Movie]] = {}
        for episode in title.parts["imdb"]:
            seasons.setdefault(episode.season or 0, []).append(episode)
        series = title.movies[site] = on_site(
            *(site, imdb, site_id, self._dice(f"{site} series", index)),
            year=imdb.year,
            release_date=imdb.release_date,
            season_count=len(seasons) if site == "metacritic" else imdb.season_count,
            scores=self._scores(site, index),
        )
        listed, parts = title.listed.setdefault(site, []), title.parts.setdefault(site, [])
        for number, episodes in sorted(seasons.items()):
            scores, is_metacritic = self._scores(site, index, number), site == "metacritic"
            row, dice = self._row(series, number, episodes, scores), self._dice(f"{site} season", index, number)
            listed.insert(len(listed) if is_metacritic else 0, row)
            page = replace(series, **{name: getattr(row, name) for name in _OF_PART}, scores=scores)
            page.end_year = page.season_count = None
            if is_metacritic:  # the page has what it says of the series, and the season's own scores
                page.imdb_id = page.release_date = None
                page.external_ids, page.credits = {}, [one for one in series.credits if one.role != "creator"]
            else:
                page.release_date, page.episode_count = episodes[0].release_date, len(episodes)
                page.external_ids, page.consensus = external_ids(site, imdb, dice), consensus(page.scores, dice)
            parts += [page, *(self._on_other_site(page, index, one, episodes[-1]) for one in episodes if one.season)]

    def _scores(self, site: SlugSite, index: int, season: int | None = None) -> list[Score]:
        """Return the scores of a series, or of a season; specials have none, nor has every fourth series on Rotten Tomatoes."""
        dice, mean = self._dice(f"{site} scores", index, season), self.rating(index)[0]
        is_scored = season != 0 if season is not None else site == "metacritic" or index % 4 != 1
        critics = score_near(mean, dice) if is_scored and dice.chance(0.75) else None
        users = score_near(mean, dice) if is_scored and dice.chance(0.85) else None
        return scores_on(site, critics, 5 + dice.below(90), users, 50 + dice.below(4_000))

    @staticmethod
    def _row(series: Movie, number: int, episodes: list[Movie], scores: list[Score]) -> Movie:
        """Return a season as the page of its series lists it."""
        title = f"Season {number}" if number else "Specials"
        release, part = str(episodes[0].release_date), f"s{number:02}"
        if series.site == "metacritic":
            title, part = series.title, f"season-{number}" if number else "specials"
            scores = [score for score in scores if score.kind == "metascore"]
        else:
            shown = [score for score in scores if score.kind in {"tomatometer", "popcornmeter"}]
            scores = [Score(kind=score.kind, value=score.value) for score in shown]
        return Movie(
            site=series.site,
            site_id=f"{series.site_id}/{part}",
            url=title_url(series.site, f"{series.site_id}/{part}"),
            title=title,
            kind="season",
            year=int(release[:4]),
            release_date=None if series.site == "metacritic" else release[:7],
            scores=scores,
            series_id=series.site_id,
            series_title=series.title,
            season=number,
            source="list",
        )

    def _on_other_site(self, season: Movie, index: int, episode: Movie, last: Movie) -> Movie:
        """Return what another site's page says of an episode.

        On Metacritic users rate them, and only that is known of its pages; on Rotten Tomatoes critics write about the last episodes.
        """
        dice = self._dice(f"{season.site} episode", index, episode.site_id)
        has_aired = str(episode.release_date) <= self.today.isoformat()
        own = {name: getattr(episode, name) for name in ("title", "kind", "year", "release_date", "plot", "episode")}
        if season.site == "metacritic":
            site_id = f"{season.site_id}/episode-{episode.episode}-{slugify(episode.title, '-')}"
            score = Score(kind="metacritic_user", value=(1 + dice.below(100)) / 10, count=4 + dice.below(200))
            place = {name: getattr(season, name) for name in ("series_id", "series_title", "season")}
            return Movie(
                site="metacritic",
                site_id=site_id,
                url=title_url("metacritic", site_id),
                scores=[score] if has_aired and dice.chance(0.7) else [],
                **{**own, **place, "plot": None},
            )
        site_id = f"{season.site_id}/e{episode.episode:02}"
        critics = score_near(self.rating(index)[0], dice) if has_aired and episode is last else None
        scores = scores_on("rottentomatoes", critics, 8 + dice.below(30), None, 0)
        found = replace(season, **own, site_id=site_id, url=title_url("rottentomatoes", site_id), scores=scores)
        found.external_ids, found.consensus = external_ids("rottentomatoes", episode, dice), consensus(scores, dice)
        found.episode_count = None
        return found


_OF_PART: Final = ("site_id", "url", "title", "kind", "year", "series_id", "series_title", "season")
"""What a season's row and its own page both say."""
