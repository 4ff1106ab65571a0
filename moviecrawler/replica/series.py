"""The replica's series, with their seasons and episodes as they are on one day.

What a series is like depends on its index (`SHAPES`). Running series begin another season within a
year of TODAY, each on a day of its own.
"""

from dataclasses import replace
from datetime import date, timedelta
from typing import NamedTuple

from moviecrawler.items import Movie
from moviecrawler.replica.items import Rating, add_facts, imdb_scores, people, rate
from moviecrawler.replica.options import TODAY
from moviecrawler.replica.titles import FIRST_SERIES_ID, IDS_OF_SERIES, OTHERS, Titles
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.ids import title_url
from moviecrawler.sites.replicas import WORDS, Name, SeriesDraft, Title, replica_of
from moviecrawler.sites.titles import new_title

_BETWEEN_SEASONS = timedelta(364)
_BETWEEN_EPISODES = timedelta(7)
_TO_SPECIAL = timedelta(180)
_FORMS = ("The {} Files", "{}", "{} Street", "Inside the {}")
_GUESTS = 4
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


SHAPES = (
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
            name = Name(
                index=index,
                kind="series",
                english=self._name(index),
                year=self.starts(index)[0].year,
                is_repeated=self.shape(index).is_restart,
            )
            imdb_id = f"tt{FIRST_SERIES_ID + index * IDS_OF_SERIES}"
            self._add(name, imdb_id, self.dice("series slugs", index))

    def shape(self, index: int) -> Shape:
        """Return what a series is like."""
        return SHAPES[index % len(SHAPES)]

    def rating(self, index: int) -> Rating:
        """Return IMDb's rating of a series."""
        dice = self.dice("series rating", index)
        votes = 30 + 1_200_000 / (1 + index) ** 0.7 * (0.5 + 0.5 * dice.random())
        return Rating(mean=round(5.2 + 4.2 * dice.random(), 1), votes=int(votes))

    def _name(self, index: int) -> str:
        base = index - 1 if self.shape(index).is_restart else index
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
        title = Title({ID_SITE: imdb}, parts={ID_SITE: parts})
        for site in OTHERS:
            if site_id := self.ids[site].get(index):
                draft = SeriesDraft(
                    site_id=site_id,
                    index=index,
                    facts=imdb,
                    seed=self.seed,
                    dice=self.dice(f"{site} series", index),
                    year=imdb.year,
                    rating=self.rating(index).mean,
                    today=self.today,
                    seasons={number: episodes for number, episodes in seasons.items() if episodes},
                )
                pages = replica_of(site).series(draft)
                title.movies[site] = pages.series
                title.listed[site] = pages.listed
                title.parts[site] = pages.parts
        return rate(title, self.rating(index))

    def _on_imdb(self, index: int) -> Movie:
        dice = self.dice("series", index)
        shape = self.shape(index)
        starts = self.starts(index)
        last = starts[-1] + (shape.episodes - 1) * _BETWEEN_EPISODES
        pool = index % self._films // 50 * 60
        team = dice.sample(range(pool, pool + 200), 9)
        movie = new_title(ID_SITE, self.ids[ID_SITE][index], self._name(index), "series")
        movie.title_type = "tvSeries"
        movie.year = starts[0].year
        if not shape.runs and last <= self.today:
            movie.end_year = last.year
        movie.release_date = starts[0].isoformat()
        movie.runtime_minutes = 22 + index % 40
        movie.countries = [dice.word("countries")]
        movie.languages = ["English"]
        movie.credits = [
            *people("writer", team[:3]),
            *people("creator", team[:2]),
            *people("cast", team[3:]),
        ]
        movie.imdb_top250_tv_rank = self.top_ranks.get(index)
        movie.critic_review_count = 1 + self.rating(index).votes // 450
        add_facts(movie, index, dice, is_upcoming=False)
        return movie

    def _episode(
        self, index: int, series: Movie, number: int, season: int, episode: int, day: date
    ) -> Movie:
        """Return IMDb's item of an episode, which is unrated until it is shown.

        Specials, of season 0, have no place there.
        """
        dice = self.dice("episode", index, number)
        whole = self.rating(index)
        imdb_id = f"tt{FIRST_SERIES_ID + index * IDS_OF_SERIES + number}"
        rating = None
        if day <= self.today and not dice.chance(0.04):
            mean = min(9.9, round(whole.mean + dice.random() - 0.5, 1))
            rating = Rating(mean=mean, votes=5 + dice.below(whole.votes / 25))
        title = (
            f"{dice.pick(('The', 'A', 'Another'))} {dice.word('adjectives')} {dice.word('nouns')}"
        )
        credits_ = [
            one for one in series.credits if one.role != "creator" and one.position <= _GUESTS
        ]
        return replace(
            series,
            site_id=imdb_id,
            url=title_url(ID_SITE, imdb_id),
            imdb_id=imdb_id,
            title=title,
            kind="episode",
            title_type="tvEpisode",
            plot=f"{title} is opened.",
            year=day.year,
            end_year=None,
            release_date=day.isoformat(),
            season=season or None,
            episode=episode if season else None,
            series_id=series.site_id,
            series_title=series.title,
            credits=credits_,
            scores=imdb_scores(rating),
            imdb_top250_tv_rank=None,
            critic_review_count=None,
            popularity_rank=None,
        )
