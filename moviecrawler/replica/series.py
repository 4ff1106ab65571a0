"""The replica's series, seasons and episodes: made on demand from (seed, index), as its movies are.

What a series is like comes from its place among each 20 (`SHAPES`), so that any 20 neighbours have one of each. Seasons begin on
dates: those that have begun by the catalogue's `today` are there, and running series begin another one within a year of `TODAY`.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from datetime import date, timedelta
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from moviecrawler.replica import words
from moviecrawler.replica.people import some_people
from moviecrawler.replica.titles import (
    TODAY,
    Basics,
    Country,
    Credits,
    Episode,
    Listed,
    MetacriticFacts,
    Release,
    RottenTomatoesFacts,
    Season,
    SlugSite,
    Title,
    Titles,
    known,
    slugify,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_SERIES = 50_000
"""How many series the pairs of words and the ids have room for."""
MOVIES_PER_SERIES, MOST_BY_DEFAULT = 100, 2_000

_FIRST_ID, _IDS_OF_SERIES = 90_000_000, 128
"""A series has 128 ids, its own and then its episodes'. As text they stand behind those of all movies."""
_BETWEEN_SEASONS, _BETWEEN_EPISODES, _TO_SPECIAL = timedelta(364), timedelta(7), timedelta(180)
_MOSTLY_REVIEWED = 0.75
"""The share of a series' seasons that have a score from which on Rotten Tomatoes gives the series one."""
_FORMS = ("The {} Files", "{}", "{} Street", "Inside the {}")
_EPISODE_FORMS = ("The {} {}", "{} {}", "A {} {}", "{} and {}")
_CERTIFICATES = ("TV-14", "TV-MA", "TV-PG", None)
_WELL_KNOWN = 50
"""Series of which every aired episode is rated, and whose finales critics write about."""


class Shape(NamedTuple):
    """What a series is like."""

    episodes: tuple[int, ...]
    """How many episodes each season has that has begun by TODAY."""
    runs: bool = False
    mini: bool = False
    names_seasons: bool = False
    """Whether it is an anthology, each of whose seasons has a name."""
    specials: int = 0
    """Episodes of no season, which other sites than IMDb have as season 0."""
    first_episode: int = 1
    """0 where a pilot stands before the first."""
    split: int | None = None
    """The season that was shown in two parts, the second of which Rotten Tomatoes has a tile for."""
    restarted: bool = False
    """Whether it ended long ago, and the next one is its new start under the same name."""
    is_restart: bool = False


SHAPES: Final = (
    Shape((10,) * 3, runs=True, specials=3),
    Shape((13,) * 5),
    Shape((6,), mini=True),
    Shape((8,) * 4, runs=True, names_seasons=True),
    Shape((22,) * 4, restarted=True),
    Shape((10, 10), runs=True, is_restart=True),
    Shape((13, 13, 13, 13, 16), split=5),
    Shape((10,) * 8, runs=True),
    Shape((10,) * 6, runs=True),
    Shape((8,) * 4),
    Shape((8,), mini=True),
    Shape((10,) * 4),
    Shape((10,) * 3, runs=True),
    Shape((12,) * 7),
    Shape((13,)),
    Shape((8,) * 5, runs=True),
    Shape((6,) * 4, names_seasons=True),
    Shape((8,) * 7),
    Shape((10, 10), runs=True, first_episode=0),
    Shape((13,) * 4),
)


def _shape_of(index: int) -> Shape:
    return SHAPES[index % len(SHAPES)]


class SeriesCatalogue(Titles):
    """The series of one seed, as they are on one day."""

    pair_step = 20_011
    pair_shift = 31_337  # other pairs than the movies' of the same index

    def __init__(self, seed: int, titles: int, count: int | None = None, today: date = TODAY) -> None:
        """Take how many movies there are, whose people they share; `count` is one for 100 movies unless given."""
        count = min(titles // MOVIES_PER_SERIES, MOST_BY_DEFAULT) if count is None else count
        if not 0 <= count <= MOST_SERIES:
            raise ValueError(f"{count} series; the replica makes 0 to {MOST_SERIES:,}")
        self.seed, self.count, self.today = seed, count, today
        self.listed = {"metacritic": Listed(count, 10, lambda _: 9), "rottentomatoes": Listed(count, 10, lambda _: 8)}
        self._titles = titles

    # --- Ids and slugs ------------------------------------------------------------------------------------------------

    def imdb_id(self, index: int, ordinal: int = 0) -> str:
        """Return the id of a series, or of its `ordinal`th episode."""
        return f"tt{_FIRST_ID + index * _IDS_OF_SERIES + ordinal}"

    def of_imdb_id(self, imdb_id: str) -> Title | None:
        """Return the series or the episode with this id; None when there is none."""
        if len(imdb_id) != len("tt90000000") or not imdb_id[2:].isdecimal() or int(imdb_id[2:]) < _FIRST_ID:
            return None
        index, ordinal = divmod(int(imdb_id[2:]) - _FIRST_ID, _IDS_OF_SERIES)
        if index >= self.count:
            return None
        series = self.title(index)
        if not ordinal:
            return series
        episode = next((episode for episode in series.episodes if episode.ordinal == ordinal), None)
        return None if episode is None else self.episode(series, episode)

    def namesakes(self, index: int) -> tuple[int, int]:
        """Return an index and the next one, which may be its new start."""
        return index, index + 1

    def slug(self, site: SlugSite, index: int) -> str:
        """Return what a site that has a series calls it in its addresses."""
        separator = "-" if site == "metacritic" or index % 10 == 1 else "_"
        slug = slugify(self._name(index), separator)
        return f"{slug}{separator}{self._starts(index)[0].year}" if _shape_of(index).is_restart else slug

    def metacritic(self, index: int) -> MetacriticFacts | None:
        """Return what Metacritic has of a series, or None when it does not have it."""
        return self.title(index).metacritic

    def of_slug(self, site: SlugSite, slug: str) -> Title | None:
        """Return the series, the season or the episode with exactly this slug; None when there is none."""
        of_series = slug.partition("/")[0]
        series = super().of_slug(site, of_series)
        if series is None or of_series == slug:
            return series
        for season in series.seasons:
            own = known(season.facts(site)).slug
            if slug == own:
                return self.season(series, season)
            if slug.startswith(f"{own}/"):
                episodes = [self.episode(series, episode) for episode in season.episodes if episode.number is not None]
                return next((one for one in episodes if known(one.facts(site)).slug == slug), None)
        return None

    def season_numbers(self, index: int) -> list[int]:
        """Return the numbers of the seasons that have begun, 0 for the specials."""
        begun = sum(start <= self.today for start in self._starts(index))
        return [*([0] if next(self.plan(index), (0, 0))[1] is None else []), *range(1, begun + 1)]

    # --- Facts --------------------------------------------------------------------------------------------------------

    def _name(self, index: int) -> str:
        # A restarted series has the name of its first run.
        base = index - _shape_of(index).is_restart
        first, second = self.words_of(base)
        return _FORMS[base % len(_FORMS)].format(f"{words.ADJECTIVES[first]} {words.NOUNS[second]}")

    def rating(self, index: int) -> tuple[float, int]:
        """Return IMDb's mean and votes of a series."""
        luck = self._luck(index, 0, 1)
        votes = 30 + 1_200_000 / (1 + index) ** 0.7 * (0.5 + 0.5 * luck)
        return round(5.2 + 4.2 * self._luck(index, 0, 2), 1), int(votes)

    @functools.lru_cache(maxsize=64)  # noqa: B019 - as many catalogues as there are replicas; several parts of a page ask for it
    def title(self, index: int) -> Title:
        """Return everything about a series. Raises IndexError when there is no such index."""
        if not 0 <= index < self.count:
            raise IndexError(f"series {index} of {self.count}")
        release, episodes = Release.on(self._starts(index)[0]), self._episodes(index)
        seasons = tuple(
            self._season(index, number, [episode for episode in episodes if (episode.season or 0) == number])
            for number in sorted({episode.season or 0 for episode in episodes})
        )
        rng = Random(self.seed << 64 | index << 8 | 255)  # noqa: S311 - test data, and repeatable on purpose
        people = some_people(rng, index % self._titles, 9)
        return Title(
            index=index,
            imdb_id=self.imdb_id(index),
            basics=self.basics(index),
            credits=Credits((), people[2:3], tuple((person, None) for person in people[3:]), creators=people[:2]),
            release=release,
            rating=self.rating(index),
            certificate=_CERTIFICATES[index % len(_CERTIFICATES)],
            plot=f"Everybody in {words.PLACES[index % len(words.PLACES)]} keeps a secret.",
            has_poster=index % 7 != 0,
            metacritic=self._of_metacritic(index, release, seasons),
            rottentomatoes=self._of_rottentomatoes(index, release, seasons),
            seasons=seasons,
            split=_shape_of(index).split,
        )

    def season(self, series: Title, season: Season) -> Title:
        """Return what a season's own pages say, which have its series' people."""
        return replace(
            series,
            basics=replace(
                series.basics, title=season.title, title_type="tvSeason", year=season.air_date.year, end_year=None
            ),
            release=Release.on(season.air_date),
            metacritic=season.metacritic,
            rottentomatoes=season.rottentomatoes,
            part_of=series,
            season=season,
        )

    def episode(self, series: Title, episode: Episode) -> Title:
        """Return what an episode's own pages say."""
        season = next(season for season in series.seasons if season.number == (episode.season or 0))
        return replace(
            series,
            imdb_id=episode.imdb_id,
            basics=replace(
                series.basics,
                title=episode.title,
                title_type="tvEpisode",
                year=episode.air_date.year,
                upcoming=episode.air_date > self.today,
                end_year=None,
            ),
            credits=Credits(series.credits.creators[:1], series.credits.writers, series.credits.cast[:4]),
            release=Release.on(episode.air_date),
            rating=episode.rating,
            plot=f"{episode.title} is opened.",
            has_poster=True,
            metacritic=self._episode_on_metacritic(series, season, episode),
            rottentomatoes=self._episode_on_rottentomatoes(series, season, episode),
            seasons=(),
            part_of=series,
            season=season,
            episode=episode,
        )

    def basics(self, index: int) -> Basics:
        """Return what the datasets know of a series."""
        shape, starts = _shape_of(index), self._starts(index)
        last = starts[-1] + (shape.episodes[-1] - 1) * _BETWEEN_EPISODES
        return Basics(
            title=self._name(index),
            title_type="tvMiniSeries" if shape.mini else "tvSeries",
            year=starts[0].year,
            runtime_minutes=22 + index % 40,
            genres=(words.GENRES[index % len(words.GENRES)], words.GENRES[(index + 3) % len(words.GENRES)]),
            country=Country(*words.ENGLISH_COUNTRIES[index % len(words.ENGLISH_COUNTRIES)]),
            upcoming=starts[0] > self.today,
            end_year=None if shape.runs or last > self.today else last.year,
        )

    # --- When what is shown -------------------------------------------------------------------------------------------

    def _starts(self, index: int) -> list[date]:
        """Return when each season begins, also of those that running series begin after TODAY, as far as their ids reach."""
        shape = _shape_of(index)
        if shape.runs:
            coming = TODAY + timedelta(1 + index * 37 % 363)
            most = (_IDS_OF_SERIES - 1 - shape.specials) // shape.episodes[-1]
            return [coming + (place - len(shape.episodes)) * _BETWEEN_SEASONS for place in range(most)]
        years = 25 if shape.restarted else 3 + int(18 * self._luck(index, 0, 3))
        last = TODAY - years * _BETWEEN_SEASONS - timedelta(index * 53 % 360)
        return [last + place * _BETWEEN_SEASONS for place in range(1 - len(shape.episodes), 1)]

    def plan(self, index: int) -> Iterator[tuple[int, int | None, int | None, date]]:
        """Yield ordinal, season, number and date of each episode: the specials first, whose season and number are None."""
        shape, starts = _shape_of(index), self._starts(index)
        for place in range(shape.specials):
            if (day := starts[place] + _TO_SPECIAL) <= self.today:
                yield place + 1, None, None, day
        ordinal = shape.specials
        for place, start in enumerate(starts):
            if start > self.today:
                return
            first = 0 if place else shape.first_episode - 1
            for episode in range(shape.episodes[min(place, len(shape.episodes) - 1)]):
                ordinal += 1
                yield ordinal, place + 1, episode + 1 + first, start + episode * _BETWEEN_EPISODES

    def _episodes(self, index: int) -> list[Episode]:
        rating = self.rating(index)
        return [
            Episode(
                self.imdb_id(index, ordinal),
                ordinal,
                season,
                number,
                episode_title(index, ordinal),
                day,
                self.episode_rating(index, ordinal, day, rating),
            )
            for ordinal, season, number, day in self.plan(index)
        ]

    def episode_rating(
        self, index: int, ordinal: int, day: date, of_series: tuple[float, int]
    ) -> tuple[float, int] | None:
        """Return IMDb's mean and votes of an episode that is shown on a day; None when it is unrated."""
        luck = self._luck(index, ordinal, 4)
        if day > self.today or (index >= _WELL_KNOWN and luck < 0.04):  # noqa: PLR2004 - a share
            return None
        mean, votes = of_series
        rating = min(9.9, max(1.0, round(mean + 2.4 * self._luck(index, ordinal, 5) - 1.2, 1)))
        return rating, 5 + int(votes * (0.01 + 0.03 * luck))

    def _luck(self, index: int, ordinal: int, purpose: int) -> float:
        """Return a share of 1 that is always the same; a Random for each episode would take ten times as long."""
        mask = (1 << 64) - 1
        mixed = (self.seed << 40 ^ index << 16 ^ ordinal << 5 ^ purpose) + 0x9E3779B97F4A7C15
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & mask
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & mask
        return (mixed ^ mixed >> 31) / (mask + 1)

    # --- Scores of the other sites ------------------------------------------------------------------------------------

    def _season(self, index: int, number: int, episodes: list[Episode]) -> Season:
        start = episodes[0].air_date
        adjective = words.ADJECTIVES[(index * 3 + number) % len(words.ADJECTIVES)]
        name = f"The {adjective} {words.PLACES[(index + number) % len(words.PLACES)]}"
        luck = [self._luck(index, number, purpose) for purpose in range(6, 14)]
        mean = self.rating(index)[0] * 10
        metacritic = rottentomatoes = None
        if index in self.listed["metacritic"]:
            metacritic = MetacriticFacts(
                slug=f"{self.slug('metacritic', index)}/{f'season-{number}' if number else 'specials'}",
                release=Release.on(start),
                names_imdb_id=False,
                metascore=min(100, round(mean - 8 + 16 * luck[0])) if number and luck[1] < 0.75 else None,  # noqa: PLR2004 - a share
                critic_reviews=4 + int(40 * luck[2]),
                user_score=round(mean / 10 - 1 + 1.4 * luck[3], 1) if number and luck[4] < 0.9 else None,  # noqa: PLR2004
                user_ratings=4 + int(900 * luck[4]),
            )
        if index in self.listed["rottentomatoes"]:
            is_reviewed = bool(number) and (index % 3 == 0 or luck[5] < 0.6)  # noqa: PLR2004 - a share
            rottentomatoes = RottenTomatoesFacts(
                slug=f"{self.slug('rottentomatoes', index)}/s{number:02}",
                release=Release.on(start),
                tomatometer=min(100, round(mean - 12 + 30 * luck[6])) if is_reviewed else None,
                critic_reviews=5 + int(90 * luck[7]),
                popcornmeter=min(100, round(mean - 10 + 24 * luck[3])) if number and luck[0] < 0.85 else None,  # noqa: PLR2004
                audience_ratings=50 + int(4_000 * luck[2]),
            )
        is_named = _shape_of(index).names_seasons and number
        return Season(number, name if is_named else None, start, tuple(episodes), metacritic, rottentomatoes)

    def _of_metacritic(self, index: int, release: Release, seasons: tuple[Season, ...]) -> MetacriticFacts | None:
        if index not in self.listed["metacritic"]:
            return None
        scored = [(facts.metascore, facts.critic_reviews) for season in seasons if (facts := season.metacritic)]
        return MetacriticFacts(
            slug=self.slug("metacritic", index),
            release=release,
            names_imdb_id=index % 11 != 0,
            metascore=_mean([score for score, _ in scored]),
            critic_reviews=sum(reviews for score, reviews in scored if score is not None),
            user_score=round(4 + 5 * self._luck(index, 0, 14), 1),
            user_ratings=10 + int(5_000 * self._luck(index, 0, 15)),
        )

    def _of_rottentomatoes(
        self, index: int, release: Release, seasons: tuple[Season, ...]
    ) -> RottenTomatoesFacts | None:
        """Return a series' facts, whose scores are the means of its seasons', where most of them have one."""
        if index not in self.listed["rottentomatoes"]:
            return None
        numbered = [season.rottentomatoes for season in seasons if season.number and season.rottentomatoes]
        return RottenTomatoesFacts(
            slug=self.slug("rottentomatoes", index),
            release=release,
            tomatometer=_mean([facts.tomatometer for facts in numbered], _MOSTLY_REVIEWED),
            critic_reviews=sum(facts.critic_reviews for facts in numbered if facts.tomatometer is not None),
            popcornmeter=_mean([facts.popcornmeter for facts in numbered], _MOSTLY_REVIEWED),
            audience_ratings=sum(facts.audience_ratings for facts in numbered if facts.popcornmeter is not None),
        )

    def _episode_on_rottentomatoes(self, series: Title, season: Season, episode: Episode) -> RottenTomatoesFacts | None:
        """Return what the site has of an episode: critics write about the last ones of well-known series only."""
        if season.rottentomatoes is None or episode.number is None:
            return None
        is_last = season.episodes[-1] is episode
        is_reviewed = series.index < _WELL_KNOWN and is_last and episode.air_date <= self.today
        luck = self._luck(series.index, episode.ordinal, 6)
        return RottenTomatoesFacts(
            slug=f"{season.rottentomatoes.slug}/e{episode.number:02}",
            release=Release.on(episode.air_date),
            tomatometer=40 + int(60 * luck) if is_reviewed else None,
            critic_reviews=8 + int(30 * luck),
            popcornmeter=None,
            audience_ratings=0,
        )

    def _episode_on_metacritic(self, series: Title, season: Season, episode: Episode) -> MetacriticFacts | None:
        """Return what the site has of an episode, which only users rate, once it has aired; it has no specials' pages."""
        if season.metacritic is None or episode.number is None:
            return None
        luck = self._luck(series.index, episode.ordinal, 16)
        is_rated = episode.air_date <= self.today and luck >= 0.3  # noqa: PLR2004 - a share
        return MetacriticFacts(
            slug=f"{season.metacritic.slug}/episode-{episode.number}-{slugify(episode.title, '-')}",
            release=Release.on(episode.air_date),
            names_imdb_id=False,
            metascore=None,
            critic_reviews=0,
            user_score=round(10 * luck, 1) if is_rated else None,
            user_ratings=4 + int(200 * self._luck(series.index, episode.ordinal, 17)),
        )

    @functools.cached_property
    def top(self) -> list[int]:
        """The Top 250 series' indexes in chart order; fewer when there are fewer."""
        return sorted(range(min(self.count, 1_000)), key=lambda index: (-self.rating(index)[0], index))[:250]


def episode_title(index: int, ordinal: int) -> str:
    """Return the title of a series' episode."""
    place = index * 31 + ordinal
    adjective, noun = words.ADJECTIVES[place * 7 % len(words.ADJECTIVES)], words.NOUNS[place * 11 % len(words.NOUNS)]
    return _EPISODE_FORMS[place % len(_EPISODE_FORMS)].format(adjective, noun)


def _mean(values: list[int | None], enough: float = 0.0) -> int | None:
    """Return the mean of those that are not None; None where there is none, or less than a share of them."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known)) if known and len(known) >= enough * len(values) else None
