"""The replica's series, seasons and episodes: made on demand from (seed, number), as its movies are.

A number is also the series' place in popularity, from 0. What a series is like comes from its place among each 20 (`SHAPES` in `series_facts.py`), so that any 20
neighbours have one of each. Seasons begin on dates: those that have begun by the catalogue's `today` are there, and running series
begin another one within a year of `TODAY`.
"""

from __future__ import annotations

import functools
import itertools
from datetime import date, timedelta
from random import Random
from typing import TYPE_CHECKING, Final

from moviecrawler.replica import words
from moviecrawler.replica.facts import (
    TODAY,
    Basics,
    Country,
    Credits,
    MetacriticFacts,
    Release,
    ReplicaMovie,
    RottenTomatoesFacts,
    slugify,
    vocabulary,
)
from moviecrawler.replica.people import some_people
from moviecrawler.replica.series_facts import Episode, Season, Series, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.replica.movies import SlugSite

MOST_SERIES = 50_000
"""How many series the pairs of words and the ids have room for."""
MOVIES_PER_SERIES, MOST_BY_DEFAULT = 100, 2_000
SERIES_PER_MEMBER = 200
"""Series in a member of a dataset: a multiple of the number of shapes, so that all members have about as many rows."""

_FIRST_ID, _IDS_OF_SERIES = 90_000_000, 128
"""A series has 128 ids, its own and then its episodes'. As text they stand behind those of all movies."""
_PAIRS = len(words.ADJECTIVES) * len(words.NOUNS)
_PAIR_STEP, _PAIR_SHIFT = 20_011, 31_337  # coprime to _PAIRS, and other pairs than the movies' of the same index
_LACKED: Final[dict[SlugSite, int]] = {"metacritic": 9, "rottentomatoes": 8}
"""Of each ten series, the one that a site does not have."""
_GROUP = 10
_BETWEEN_SEASONS, _BETWEEN_EPISODES, _TO_SPECIAL = timedelta(364), timedelta(7), timedelta(180)
_MOSTLY_REVIEWED = 0.75
"""Of its seasons: from there on Rotten Tomatoes gives a series scores of its own."""
_FORMS = ("The {} Files", "{}", "{} Street", "Inside the {}")
_EPISODE_FORMS = ("The {} {}", "{} {}", "A {} {}", "{} and {}")
_CERTIFICATES = ("TV-14", "TV-MA", "TV-PG", None)
_WELL_KNOWN = 50
"""Series of which every aired episode is rated, and whose finales critics write about."""


class SeriesCatalogue:
    """The series 0 to `count` - 1 of one seed, as they are on one day."""

    def __init__(self, seed: int, titles: int, count: int | None = None, today: date = TODAY) -> None:
        """Take how many movies there are beside them, whose people they share; `count` is one for 100 movies unless given."""
        count = min(titles // MOVIES_PER_SERIES, MOST_BY_DEFAULT) if count is None else count
        if not 0 <= count <= MOST_SERIES:
            raise ValueError(f"{count} series; the replica makes 0 to {MOST_SERIES:,}")
        self.seed, self.count, self.today = seed, count, today
        self._titles = titles

    # --- Ids and slugs ------------------------------------------------------------------------------------------------

    def imdb_id(self, number: int, ordinal: int = 0) -> str:
        """Return the id of a series, or of its `ordinal`th episode."""
        return f"tt{_FIRST_ID + number * _IDS_OF_SERIES + ordinal}"

    def number_of_imdb_id(self, imdb_id: str) -> tuple[int, int] | None:
        """Return the number of a series and the ordinal of an episode, 0 for the series; None for an id of neither."""
        if len(imdb_id) != len("tt90000000") or not imdb_id[2:].isdecimal() or int(imdb_id[2:]) < _FIRST_ID:
            return None
        number, ordinal = divmod(int(imdb_id[2:]) - _FIRST_ID, _IDS_OF_SERIES)
        if number >= self.count:
            return None
        is_there = not ordinal or any(place == ordinal for place, *_ in self._plan(number))
        return (number, ordinal) if is_there else None

    def number_of_slug(self, site: SlugSite, slug: str) -> int | None:
        """Return the number of the series with this slug on a site, hyphens and underscores being the same."""
        wanted = slug.replace("-", "_")
        adjectives, nouns, _ = vocabulary()
        for first, second in itertools.pairwise(wanted.split("_")):
            if first in adjectives and second in nouns:
                pair = adjectives[first] * len(words.NOUNS) + nouns[second]
                base = (pair - self.seed - _PAIR_SHIFT) * pow(_PAIR_STEP, -1, _PAIRS) % _PAIRS
                for number in (base, base + 1):
                    if (
                        number < self.count
                        and self.has(site, number)
                        and self.slug(site, number).replace("-", "_") == wanted
                    ):
                        return number
        return None

    def slug(self, site: SlugSite, number: int) -> str:
        """Return what a site calls a series in its addresses."""
        separator = "-" if site == "metacritic" or number % _GROUP == 1 else "_"
        slug = slugify(self.title(number), separator)
        return f"{slug}{separator}{self._starts(number)[0].year}" if shape_of(number).is_restart else slug

    # --- Which series a site has --------------------------------------------------------------------------------------

    def has(self, site: SlugSite, number: int) -> bool:
        """Return whether a site has a series."""
        return number % _GROUP != _LACKED[site]

    def numbers(self, site: SlugSite) -> range | list[int]:
        """Return the numbers of the series that a site has, the most popular first."""
        return [number for number in range(self.count) if self.has(site, number)]

    def season_numbers(self, number: int) -> list[int]:
        """Return the numbers of the seasons that have begun, 0 for the specials."""
        begun = sum(start <= self.today for start in self._starts(number))
        return [*([0] if next(self._plan(number), (0, 0))[1] is None else []), *range(1, begun + 1)]

    # --- Facts --------------------------------------------------------------------------------------------------------

    def title(self, number: int) -> str:
        """Return the title, which a restarted series shares with its first run."""
        base = number - shape_of(number).is_restart
        first, second = divmod((base * _PAIR_STEP + self.seed + _PAIR_SHIFT) % _PAIRS, len(words.NOUNS))
        return _FORMS[base % len(_FORMS)].format(f"{words.ADJECTIVES[first]} {words.NOUNS[second]}")

    def rating(self, number: int) -> tuple[float, int]:
        """Return IMDb's mean and votes of a series."""
        luck = self._luck(number, 0, 1)
        votes = 30 + 1_200_000 / (1 + number) ** 0.7 * (0.5 + 0.5 * luck)
        return round(5.2 + 4.2 * self._luck(number, 0, 2), 1), int(votes)

    @functools.lru_cache(maxsize=64)  # noqa: B019 - as many catalogues as there are replicas; several parts of a page ask for it
    def series(self, number: int) -> Series:
        """Return everything about a series. Raises IndexError when there is no such number."""
        if not 0 <= number < self.count:
            raise IndexError(f"series {number} of {self.count}")
        shape, episodes = shape_of(number), self._episodes(number)
        release = Release.on(self._starts(number)[0])
        basics = self._basics(number)
        numbers = sorted({episode.season or 0 for episode in episodes})
        seasons = tuple(
            self._season(number, season, [episode for episode in episodes if (episode.season or 0) == season])
            for season in numbers
        )
        rng = Random(self.seed << 64 | number << 8 | 255)  # noqa: S311 - test data, and repeatable on purpose
        people = some_people(rng, number % self._titles, 9)
        return Series(
            number=number,
            shape=shape,
            seasons=seasons,
            about=ReplicaMovie(
                index=number,
                imdb_id=self.imdb_id(number),
                basics=basics,
                credits=Credits((), people[2:3], tuple((person, None) for person in people[3:]), creators=people[:2]),
                release=release,
                rating=self.rating(number),
                certificate=_CERTIFICATES[number % len(_CERTIFICATES)],
                plot=f"Everybody in {words.PLACES[number % len(words.PLACES)]} keeps a secret.",
                has_poster=number % 7 != 0,
                budget=None,
                opening_weekend=None,
                domestic_gross=None,
                worldwide_gross=None,
                metacritic=self._of_metacritic(number, release, seasons),
                rottentomatoes=self._of_rottentomatoes(number, release, seasons),
            ),
        )

    def episode(self, series: Series, ordinal: int) -> tuple[Episode, ReplicaMovie]:
        """Return an episode, and what its own page on IMDb says. Raises StopIteration when it has none such."""
        episode = next(episode for episode in series.episodes if episode.ordinal == ordinal)
        about = series.about
        basics = Basics(
            title=episode.title,
            original_title=None,
            english_title=episode.title,
            title_type="tvEpisode",
            year=episode.air_date.year,
            runtime_minutes=about.basics.runtime_minutes,
            genres=about.basics.genres,
            country=about.basics.country,
            upcoming=episode.air_date > self.today,
        )
        return episode, ReplicaMovie(
            index=series.number,
            imdb_id=episode.imdb_id,
            basics=basics,
            credits=Credits(about.credits.creators[:1], about.credits.writers, about.credits.cast[:4]),
            release=Release.on(episode.air_date),
            rating=episode.rating,
            certificate=about.certificate,
            plot=f"{episode.title} is opened.",
            has_poster=True,
            budget=None,
            opening_weekend=None,
            domestic_gross=None,
            worldwide_gross=None,
            metacritic=None,
            rottentomatoes=None,
        )

    def _basics(self, number: int) -> Basics:
        shape, starts = shape_of(number), self._starts(number)
        last = starts[-1] + (shape.episodes[-1] - 1) * _BETWEEN_EPISODES
        title = self.title(number)
        return Basics(
            title=title,
            original_title=None,
            english_title=title,
            title_type="tvMiniSeries" if shape.mini else "tvSeries",
            year=starts[0].year,
            runtime_minutes=22 + number % 40,
            genres=(words.GENRES[number % len(words.GENRES)], words.GENRES[(number + 3) % len(words.GENRES)]),
            country=Country(*words.ENGLISH_COUNTRIES[number % len(words.ENGLISH_COUNTRIES)]),
            upcoming=starts[0] > self.today,
            end_year=None if shape.runs or last > self.today else last.year,
        )

    # --- When what is shown -------------------------------------------------------------------------------------------

    def _starts(self, number: int) -> list[date]:
        """Return when each season begins, also of those that running series begin after TODAY, as far as their ids reach."""
        shape = shape_of(number)
        if shape.runs:
            coming = TODAY + timedelta(1 + number * 37 % 363)
            most = (_IDS_OF_SERIES - 1 - shape.specials) // shape.episodes[-1]
            return [coming + (place - len(shape.episodes)) * _BETWEEN_SEASONS for place in range(most)]
        years = 25 if shape.restarted else 3 + int(18 * self._luck(number, 0, 3))
        last = TODAY - years * _BETWEEN_SEASONS - timedelta(number * 53 % 360)
        return [last + place * _BETWEEN_SEASONS for place in range(1 - len(shape.episodes), 1)]

    def _plan(self, number: int) -> Iterator[tuple[int, int | None, int | None, date]]:
        """Yield ordinal, season, number and date of each episode: the specials first, whose season and number are None."""
        shape, starts = shape_of(number), self._starts(number)
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

    def _episodes(self, number: int) -> list[Episode]:
        rating = self.rating(number)
        return [
            Episode(
                self.imdb_id(number, ordinal),
                ordinal,
                season,
                episode,
                _episode_title(number, ordinal),
                day,
                self._episode_rating(number, ordinal, day, rating),
            )
            for ordinal, season, episode, day in self._plan(number)
        ]

    def _episode_rating(
        self, number: int, ordinal: int, day: date, of_series: tuple[float, int]
    ) -> tuple[float, int] | None:
        luck = self._luck(number, ordinal, 4)
        if day > self.today or (number >= _WELL_KNOWN and luck < 0.04):  # noqa: PLR2004 - a share
            return None
        mean, votes = of_series
        rating = min(9.9, max(1.0, round(mean + 2.4 * self._luck(number, ordinal, 5) - 1.2, 1)))
        return rating, 5 + int(votes * (0.01 + 0.03 * luck))

    def _luck(self, number: int, ordinal: int, purpose: int) -> float:
        """Return a share of 1 that is always the same; a Random for each episode would take ten times as long."""
        mask = (1 << 64) - 1
        mixed = (self.seed << 40 ^ number << 16 ^ ordinal << 5 ^ purpose) + 0x9E3779B97F4A7C15
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & mask
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & mask
        return (mixed ^ mixed >> 31) / (mask + 1)

    # --- Scores of the other sites ------------------------------------------------------------------------------------

    def _season(self, number: int, season: int, episodes: list[Episode]) -> Season:
        start, named = episodes[0].air_date, shape_of(number).names_seasons and season
        adjective = words.ADJECTIVES[(number * 3 + season) % len(words.ADJECTIVES)]
        name = f"The {adjective} {words.PLACES[(number + season) % len(words.PLACES)]}" if named else None
        luck = [self._luck(number, season, purpose) for purpose in range(6, 14)]
        mean = self.rating(number)[0] * 10
        metacritic = rottentomatoes = None
        if self.has("metacritic", number):
            metacritic = MetacriticFacts(
                slug=f"{self.slug('metacritic', number)}/{f'season-{season}' if season else 'specials'}",
                year=start.year,
                release=Release.on(start),
                names_imdb_id=False,
                metascore=min(100, round(mean - 8 + 16 * luck[0])) if season and luck[1] < 0.75 else None,  # noqa: PLR2004 - a share
                critic_reviews=4 + int(40 * luck[2]),
                user_score=round(mean / 10 - 1 + 1.4 * luck[3], 1) if season and luck[4] < 0.9 else None,  # noqa: PLR2004
                user_ratings=4 + int(900 * luck[4]),
            )
        if self.has("rottentomatoes", number):
            is_reviewed = bool(season) and (number % 3 == 0 or luck[5] < 0.6)  # noqa: PLR2004 - a share
            rottentomatoes = RottenTomatoesFacts(
                slug=f"{self.slug('rottentomatoes', number)}/s{season:02}",
                release=Release.on(start),
                streaming_only=False,
                tomatometer=min(100, round(mean - 12 + 30 * luck[6])) if is_reviewed else None,
                critic_reviews=5 + int(90 * luck[7]),
                popcornmeter=min(100, round(mean - 10 + 24 * luck[3])) if season and luck[0] < 0.85 else None,  # noqa: PLR2004
                audience_ratings=50 + int(4_000 * luck[2]),
            )
        return Season(season, name, start, tuple(episodes), metacritic, rottentomatoes)

    def _of_metacritic(self, number: int, release: Release, seasons: tuple[Season, ...]) -> MetacriticFacts | None:
        if not self.has("metacritic", number):
            return None
        scored = [facts for season in seasons if (facts := season.metacritic) and facts.metascore is not None]
        return MetacriticFacts(
            slug=self.slug("metacritic", number),
            year=release.year,
            release=release,
            names_imdb_id=number % 11 != 0,
            metascore=_mean([facts.metascore for facts in scored]),
            critic_reviews=sum(facts.critic_reviews for facts in scored),
            user_score=round(4 + 5 * self._luck(number, 0, 14), 1),
            user_ratings=10 + int(5_000 * self._luck(number, 0, 15)),
        )

    def _of_rottentomatoes(
        self, number: int, release: Release, seasons: tuple[Season, ...]
    ) -> RottenTomatoesFacts | None:
        """Return a series' facts, whose scores are the means of its seasons', where nearly all of them have any."""
        if not self.has("rottentomatoes", number):
            return None
        numbered = [season.rottentomatoes for season in seasons if season.number and season.rottentomatoes]
        critics = [facts for facts in numbered if facts.tomatometer is not None]
        audience = [facts for facts in numbered if facts.popcornmeter is not None]
        enough = _MOSTLY_REVIEWED * len(numbered)
        return RottenTomatoesFacts(
            slug=self.slug("rottentomatoes", number),
            release=release,
            streaming_only=False,
            tomatometer=_mean([facts.tomatometer for facts in critics]) if len(critics) >= enough else None,
            critic_reviews=sum(facts.critic_reviews for facts in critics),
            popcornmeter=_mean([facts.popcornmeter for facts in audience]) if len(audience) >= enough else None,
            audience_ratings=sum(facts.audience_ratings for facts in audience),
        )

    def episode_review(self, series: Series, episode: Episode) -> RottenTomatoesFacts | None:
        """Return what Rotten Tomatoes has of an episode: critics write about the last ones of well-known series only."""
        facts = series.about.rottentomatoes
        if facts is None or episode.season is None:
            return None
        season = series.season(episode.season)
        is_last = season is not None and season.episodes[-1] is episode
        is_reviewed = series.number < _WELL_KNOWN and is_last and episode.air_date <= self.today
        luck = self._luck(series.number, episode.ordinal, 6)
        return RottenTomatoesFacts(
            slug=f"{facts.slug}/s{episode.season:02}/e{episode.number:02}",
            release=Release.on(episode.air_date),
            streaming_only=False,
            tomatometer=40 + int(60 * luck) if is_reviewed else None,
            critic_reviews=8 + int(30 * luck),
            popcornmeter=None,
            audience_ratings=0,
        )

    def user_score(self, series: Series, episode: Episode) -> tuple[float, int] | None:
        """Return Metacritic's user score, of 10, of an episode and how many gave one; None of some, and before it airs."""
        luck = self._luck(series.number, episode.ordinal, 16)
        if episode.air_date > self.today or luck < 0.3:  # noqa: PLR2004 - a share
            return None
        return round(10 * luck, 1), 4 + int(200 * self._luck(series.number, episode.ordinal, 17))

    # --- Rows of the datasets -----------------------------------------------------------------------------------------

    @property
    def members(self) -> list[bool]:
        """Return for each member of a dataset of series whether it is full."""
        full, rest = divmod(self.count, SERIES_PER_MEMBER)
        return [True] * full + [False] * bool(rest)

    def numbers_of(self, member: int) -> range:
        """Return the numbers of the series in a member."""
        return range(member * SERIES_PER_MEMBER, min((member + 1) * SERIES_PER_MEMBER, self.count))

    def basics_rows(self, member: int) -> Iterator[str]:
        """Yield rows of title.basics in the order of their ids: a series, then its episodes."""
        for number in self.numbers_of(member):
            basics = self._basics(number)
            genres, end = ",".join(basics.genres), basics.end_year or r"\N"
            yield (
                f"{self.imdb_id(number)}\t{basics.title_type}\t{basics.title}\t{basics.title}\t0\t{basics.year}\t{end}\t"
                f"{basics.runtime_minutes}\t{genres}"
            )
            rest = f"\\N\t{basics.runtime_minutes}\t{genres}"
            for ordinal, _, _, day in self._plan(number):
                title = _episode_title(number, ordinal)
                yield f"{self.imdb_id(number, ordinal)}\ttvEpisode\t{title}\t{title}\t0\t{day.year}\t{rest}"

    def ratings_rows(self, member: int) -> Iterator[str]:
        """Yield rows of title.ratings."""
        for number in self.numbers_of(member):
            rating = self.rating(number)
            yield f"{self.imdb_id(number)}\t{rating[0]}\t{rating[1]}"
            for ordinal, _, _, day in self._plan(number):
                rated = self._episode_rating(number, ordinal, day, rating)
                if rated is not None:
                    yield f"{self.imdb_id(number, ordinal)}\t{rated[0]}\t{rated[1]}"

    def episode_rows(self, member: int) -> Iterator[str]:
        """Yield rows of title.episode."""
        for number in self.numbers_of(member):
            series = self.imdb_id(number)
            for ordinal, season, episode, _ in self._plan(number):
                shown = "\\N\t\\N" if season is None else f"{season}\t{episode}"
                yield f"{self.imdb_id(number, ordinal)}\t{series}\t{shown}"

    # --- Lists --------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def top(self) -> list[int]:
        """The Top 250 series' numbers in chart order; fewer when there are fewer."""
        return sorted(range(min(self.count, 1_000)), key=lambda number: (-self.rating(number)[0], number))[:250]

    @functools.cached_property
    def top_ranks(self) -> dict[int, int]:
        """The rank, from 1, of each number in the Top 250."""
        return {number: rank for rank, number in enumerate(self.top, start=1)}


def _episode_title(number: int, ordinal: int) -> str:
    place = number * 31 + ordinal
    adjective, noun = words.ADJECTIVES[place * 7 % len(words.ADJECTIVES)], words.NOUNS[place * 11 % len(words.NOUNS)]
    return _EPISODE_FORMS[place % len(_EPISODE_FORMS)].format(adjective, noun)


def _mean(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known)) if known else None
