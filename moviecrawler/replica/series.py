"""The replica's series, with their seasons and episodes as they are on one day.

What a series is like depends on its index (`SHAPES`). Running series begin another season within a
year of TODAY, each on a day of its own.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from moviecrawler.items import Movie, Score
from moviecrawler.replica.items import (
    OTHERS,
    add_own,
    identity,
    imdb_scores,
    on_imdb,
    on_site,
    people,
    rate,
    scores_on,
)
from moviecrawler.replica.options import TODAY
from moviecrawler.replica.titles import FIRST_SERIES_ID, IDS_OF_SERIES, Titles
from moviecrawler.replica.words import WORDS, slugify
from moviecrawler.sites import SCOREBOARD_KINDS
from moviecrawler.sites.replicas import Title

if TYPE_CHECKING:
    from moviecrawler.items import Site
    from moviecrawler.replica.items import SlugSite

_BETWEEN_SEASONS = timedelta(364)
_BETWEEN_EPISODES = timedelta(7)
_TO_SPECIAL = timedelta(180)
_FORMS: Final = ("The {} Files", "{}", "{} Street", "Inside the {}")
_SLUGS: Final[dict[SlugSite, tuple[str, int]]] = {
    "metacritic": ("-", 9),
    "rottentomatoes": ("_", 8),
}
"""What joins the words of slugs, and which of ten series the site lacks."""
_GUESTS: Final = 4
"""How many of its series' cast play in an episode."""


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


class Series(Titles):
    """The series of one seed."""

    def __init__(self, seed: int, count: int, today: date, films: int) -> None:
        super().__init__(seed, count)
        self.today = today
        # Series share their people with films.
        self._films = films
        for index in range(count):
            ids: dict[Site, str] = {"imdb": f"tt{FIRST_SERIES_ID + index * IDS_OF_SERIES}"}
            for site, (separator, lacked) in _SLUGS.items():
                if index % 10 != lacked:
                    year = f" {self.starts(index)[0].year}" if self.shape(index).is_restart else ""
                    ids[site] = f"tv/{slugify(self._name(index) + year, separator)}"
            self._add(index, ids)

    def shape(self, index: int) -> Shape:
        """Return what a series is like."""
        return SHAPES[index % len(SHAPES)]

    def rating(self, index: int) -> tuple[float, int]:
        """Return IMDb's mean and votes of a series."""
        dice = self.dice("series rating", index)
        votes = 30 + 1_200_000 / (1 + index) ** 0.7 * (0.5 + 0.5 * dice.random())
        return round(5.2 + 4.2 * dice.random(), 1), int(votes)

    def _name(self, index: int) -> str:
        base = index - self.shape(index).is_restart
        adjective = WORDS["adjectives"][(base * 7 + self.seed) % len(WORDS["adjectives"])]
        return _FORMS[base % len(_FORMS)].format(
            f"{adjective} {WORDS['nouns'][base * 11 % len(WORDS['nouns'])]}"
        )

    def starts(self, index: int) -> list[date]:
        """Return when each season begins, also of those that running series begin after TODAY."""
        shape = self.shape(index)
        if shape.runs:
            coming = TODAY + timedelta(1 + index * 37 % 363)
            return [coming + n * _BETWEEN_SEASONS for n in range(-shape.seasons, 10)]
        years = 3 + self.dice("series ended", index).below(18)
        last = TODAY - years * _BETWEEN_SEASONS - timedelta(index * 53 % 360)
        return [last + n * _BETWEEN_SEASONS for n in range(1 - shape.seasons, 1)]

    def _make(self, index: int) -> Title:
        imdb = self._on_imdb(index)
        shape = self.shape(index)
        starts = [start for start in self.starts(index) if start <= self.today]
        specials = [
            day for start in starts[: shape.specials] if (day := start + _TO_SPECIAL) <= self.today
        ]
        days = [
            specials,
            *([start + n * _BETWEEN_EPISODES for n in range(shape.episodes)] for start in starts),
        ]
        # The first ids behind the series' own are those of specials, also of those to come.
        firsts = [0, *range(shape.specials, IDS_OF_SERIES, shape.episodes)]
        seasons = {
            season: [
                self._episode(index, imdb, firsts[season] + n, season, n, day)
                for n, day in enumerate(shown, 1)
            ]
            for season, shown in enumerate(days)
        }
        parts = [episode for episodes in seasons.values() for episode in episodes]
        imdb.episode_count = len(parts)
        imdb.season_count = len(starts)
        title = Title({"imdb": imdb}, parts={"imdb": parts})
        for site in OTHERS:
            if index in self.ids[site]:
                self._add_site(
                    site, title, index, {n: episodes for n, episodes in seasons.items() if episodes}
                )
        return rate(title, self.rating(index))

    def _on_imdb(self, index: int) -> Movie:
        dice = self.dice("series", index)
        shape = self.shape(index)
        starts = self.starts(index)
        last = starts[-1] + (shape.episodes - 1) * _BETWEEN_EPISODES
        pool = index % self._films // 50 * 60
        team = dice.sample(range(pool, pool + 200), 9)
        return on_imdb(
            index=index,
            imdb_id=self.ids["imdb"][index],
            kind="series",
            dice=dice,
            is_upcoming=False,
            title=self._name(index),
            title_type="tvSeries",
            year=starts[0].year,
            end_year=None if shape.runs or last > self.today else last.year,
            release_date=starts[0].isoformat(),
            runtime_minutes=22 + index % 40,
            countries=[dice.word("countries")],
            languages=["English"],
            credits=[
                *people("writer", team[:3]),
                *people("creator", team[:2]),
                *people("cast", team[3:]),
            ],
            imdb_top250_tv_rank=self.top_ranks.get(index),
            critic_review_count=1 + self.rating(index)[1] // 450,
        )

    def _episode(
        self, index: int, series: Movie, number: int, season: int, episode: int, day: date
    ) -> Movie:
        """Return IMDb's item of an episode, which is unrated until it is shown.

        Specials, of season 0, have no place there.
        """
        dice = self.dice("episode", index, number)
        mean, votes = self.rating(index)
        imdb_id = f"tt{FIRST_SERIES_ID + index * IDS_OF_SERIES + number}"
        is_rated = day <= self.today and not dice.chance(0.04)
        rating = (
            (min(9.9, round(mean + dice.random() - 0.5, 1)), 5 + dice.below(votes / 25))
            if is_rated
            else None
        )
        title = (
            f"{dice.pick(('The', 'A', 'Another'))} {dice.word('adjectives')} {dice.word('nouns')}"
        )
        credits_ = [
            one for one in series.credits if one.role != "creator" and one.position <= _GUESTS
        ]
        of_series = dict.fromkeys(
            ("end_year", "imdb_top250_tv_rank", "critic_review_count", "popularity_rank")
        )
        return replace(
            series,
            **of_series,  # type: ignore[arg-type]
            **identity("imdb", imdb_id),
            imdb_id=imdb_id,
            title=title,
            kind="episode",
            title_type="tvEpisode",
            plot=f"{title} is opened.",
            year=day.year,
            release_date=day.isoformat(),
            season=season or None,
            episode=episode if season else None,
            series_id=series.site_id,
            series_title=series.title,
            credits=credits_,
            scores=imdb_scores(rating),
        )

    def _add_site(
        self, site: SlugSite, title: Title, index: int, seasons: dict[int, list[Movie]]
    ) -> None:
        """Add what another site says of a series, its seasons and episodes.

        Specials are season 0 there, without scores.
        """
        imdb = title.movies["imdb"]
        site_id = self.ids[site][index]
        is_metacritic = site == "metacritic"
        series = on_site(
            site=site,
            base=imdb,
            site_id=site_id,
            dice=self.dice(f"{site} series", index),
            year=imdb.year,
            release_date=imdb.release_date,
            season_count=len(seasons) if is_metacritic else imdb.season_count,
            scores=self._scores(site, index),
        )
        title.movies[site] = series
        title.listed[site] = []
        title.parts[site] = []
        for number, episodes in seasons.items():
            release = str(episodes[0].release_date)
            scores = self._scores(site, index, number)
            slug = f"season-{number}" if is_metacritic else f"s{number:02}"
            both: dict[str, Any] = {  # what a season's own page and its series' page both say
                **identity(site, f"{site_id}/{slug.replace('season-0', 'specials')}"),
                "title": series.title
                if is_metacritic
                else f"Season {number}"
                if number
                else "Specials",
                "kind": "season",
                "year": int(release[:4]),
                "series_id": site_id,
                "series_title": series.title,
                "season": number,
            }
            row = Movie(**both, release_date=None if is_metacritic else release[:7], source="list")
            page = replace(series, **both, scores=scores, end_year=None, season_count=None)
            if is_metacritic:
                # The page has what it says of the series, and the season's own scores.
                page.imdb_id = None
                page.release_date = None
                page.external_ids = {}
                page.credits = [one for one in series.credits if one.role != "creator"]
                row.scores = [score for score in scores if score.kind == "metascore"]
            else:
                page.release_date = release
                page.episode_count = len(episodes)
                add_own(page, self.dice("own", page.site_id))
                row.scores = [
                    Score(kind=one.kind, value=one.value)
                    for one in scores
                    if one.kind in SCOREBOARD_KINDS
                ]
            title.listed[site].append(row)
            own = [self._on_other_site(page, index, one) for one in episodes if number]
            title.parts[site] += [page, *own]
        if not is_metacritic:
            title.listed[site].reverse()  # the latest season comes first

    def _scores(self, site: SlugSite, index: int, season: int | None = None) -> list[Score]:
        """Return the scores of a series, or of a season.

        Specials have none, nor has every fourth series on Rotten Tomatoes.
        """
        dice = self.dice(f"{site} scores", index, season)
        mean = self.rating(index)[0]
        is_scored = season != 0 if season is not None else site == "metacritic" or index % 4 != 1
        critics = dice.near(mean) if is_scored and dice.chance(0.75) else None
        return scores_on(
            site, critics, dice.near(mean) if is_scored and dice.chance(0.85) else None, dice, 90
        )

    def _on_other_site(self, season: Movie, index: int, episode: Movie) -> Movie:
        """Return what another site's page says of an episode.

        On Metacritic users rate them, and only that is known of its pages; on Rotten Tomatoes
        critics do.
        """
        dice = self.dice(season.site, episode.site_id)
        is_shown = str(episode.release_date) <= self.today.isoformat()
        score = dice.near(self.rating(index)[0]) if is_shown and dice.chance(0.7) else None
        own = {
            name: getattr(episode, name)
            for name in ("title", "kind", "year", "release_date", "episode")
        }
        if season.site == "metacritic":
            slug = f"episode-{episode.episode}-{slugify(episode.title, '-')}"
            count = 4 + dice.below(200)
            return Movie(
                **own,
                **identity("metacritic", f"{season.site_id}/{slug}"),
                series_id=season.series_id,
                series_title=season.series_title,
                season=season.season,
                scores=[Score(kind="metacritic_user", value=score / 10, count=count)]
                if score
                else [],
            )
        own |= identity("rottentomatoes", f"{season.site_id}/e{episode.episode:02}")
        scores = scores_on("rottentomatoes", score, None, dice, 30)
        page = replace(season, **own, plot=episode.plot, episode_count=None, scores=scores)
        return add_own(page, self.dice("own", page.site_id))
