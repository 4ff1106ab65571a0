"""The replica's movies: made on demand from (seed, index), never stored, the same whenever they are asked for.

An index is also the movie's place in popularity, from 0. Ids and slugs lead back to the index by arithmetic and by
the words in them, so that a million titles need no memory.
"""

from __future__ import annotations

import functools
import itertools
import re
from random import Random
from typing import TYPE_CHECKING, Literal, TypeVar

from moviecrawler.replica import words
from moviecrawler.replica.facts import (
    GROUP,
    TODAY,
    Basics,
    Country,
    Credits,
    MetacriticFacts,
    Release,
    ReplicaMovie,
    RottenTomatoesFacts,
    is_remake,
    slugify,
    vocabulary,
)
from moviecrawler.replica.options import MOST_TITLES
from moviecrawler.replica.people import some_people
from moviecrawler.replica.series import SeriesCatalogue

if TYPE_CHECKING:
    from datetime import date

_T = TypeVar("_T")

CHART_SIZE = 250
POPULAR_SIZE = 100
VOTES_TO_RANK = 25_000
MEAN_VOTE = 6.9
"""The `m` and `C` of IMDb's published formula for its Top 250."""

_POPULAR_ENOUGH = 2_000
"""How many titles have the votes to be in the Top 250."""

_BLOCK = 10_000
ROWS_PER_HALF = _BLOCK // 2
"""Titles in half a block: the unit in which ids are handed out, and of the datasets' members."""
_SLOT_STEP = 2_221  # coprime to the slots of half a block: neighbours in popularity are not neighbours in id
_LONG_START, _LONG_STRIDE = 10_000_000, 10
_SHORT_START, _SHORT_STRIDE = 4_000_000, 2

_PAIRS = len(words.ADJECTIVES) * len(words.NOUNS)
_PAIR_STEP = 30_011  # coprime to _PAIRS

_ORIGINALS = GROUP - 2

SlugSite = Literal["metacritic", "rottentomatoes"]
"""The sites that name movies by slugs, and that don't have all of them."""

_LACKS_ONE_OF: dict[SlugSite, int] = {"metacritic": 10, "rottentomatoes": 8}

_BANDS = (50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000)


class Catalogue:
    """The movies 0 to `titles` - 1 of one seed, and the series beside them.

    A movie's facts depend on the seed and its index alone, not on how many titles there are.
    """

    def __init__(self, seed: int = 1, titles: int = 1_000, series: int | None = None, today: date = TODAY) -> None:
        if not 1 <= titles <= MOST_TITLES:
            raise ValueError(f"{titles} titles; the replica makes 1 to {MOST_TITLES:,}")
        if seed < 0:
            raise ValueError(f"seed {seed}; use 0 or a positive number")
        self.seed = seed
        self.titles = titles
        self.series = SeriesCatalogue(seed, titles, series, today)

    # --- Ids and slugs ------------------------------------------------------------------------------------------------

    def imdb_id(self, index: int) -> str:
        """Return a movie's `tt` id: seven digits for even indexes, eight for odd ones.

        Seven-digit ids begin with 4 to 9 and eight-digit ones with 1 to 3, so that the order of ids as text, which is
        that of IMDb's datasets, is known without sorting.
        """
        block, place = divmod(index, _BLOCK)
        slot = (place // 2 * _SLOT_STEP + self.seed) % ROWS_PER_HALF
        if index % 2:
            number = _LONG_START + (block * ROWS_PER_HALF + slot) * _LONG_STRIDE + (slot * 7) % _LONG_STRIDE
        else:
            number = _SHORT_START + (block * ROWS_PER_HALF + slot) * _SHORT_STRIDE + (slot // 3) % _SHORT_STRIDE
        return f"tt{number}"

    def index_of_imdb_id(self, imdb_id: str) -> int | None:
        """Return the index of the movie with this id, or None when there is none."""
        if not re.fullmatch(r"tt\d{7,8}", imdb_id, re.ASCII):
            return None
        number = int(imdb_id[2:])
        if number >= _LONG_START:
            half, position = 1, (number - _LONG_START) // _LONG_STRIDE
        elif number >= _SHORT_START:
            half, position = 0, (number - _SHORT_START) // _SHORT_STRIDE
        else:
            return None
        index = self._index_of_slot(half, *divmod(position, ROWS_PER_HALF))
        return index if index < self.titles and self.imdb_id(index) == imdb_id else None

    def _index_of_slot(self, half: int, block: int, slot: int) -> int:
        place = (slot - self.seed) * pow(_SLOT_STEP, -1, ROWS_PER_HALF) % ROWS_PER_HALF
        return block * _BLOCK + place * 2 + half

    def halves(self) -> list[tuple[int, int]]:
        """Return the half blocks (half, block) in the order of their ids as text; none is empty."""
        return [(half, block) for half in (1, 0) for block in range((self.titles - half - 1) // _BLOCK + 1)]

    def is_full(self, half: int, block: int) -> bool:
        """Return whether half a block has all its titles."""
        return block * _BLOCK + _BLOCK - 2 + half < self.titles

    def indexes_by_id(self, half: int, block: int) -> list[int]:
        """Return the indexes in half a block, in the order of their ids."""
        indexes = (self._index_of_slot(half, block, slot) for slot in range(ROWS_PER_HALF))
        return [index for index in indexes if index < self.titles]

    def index_of_slug(self, site: SlugSite, slug: str) -> int | None:
        """Return the index of the movie with this slug on a site, hyphens and underscores being the same.

        None when the site has no such movie.
        """
        wanted = slug.replace("-", "_")
        for index in self._indexes_of_words(wanted.split("_")):
            if index < self.titles:
                facts = self.metacritic(index) if site == "metacritic" else self.rottentomatoes(index)
                if facts is not None and facts.slug.replace("-", "_") == wanted:
                    return index
        return None

    def _indexes_of_words(self, tokens: list[str]) -> list[int]:
        adjectives, nouns, places = vocabulary()
        for position, (first, second) in enumerate(itertools.pairwise(tokens)):
            if first in adjectives and second in nouns:
                place = places.get("".join(tokens[position + 3 : position + 4]), 0)
                pair = adjectives[first] * len(words.NOUNS) + nouns[second]
                base = place * _PAIRS + (pair - self.seed) * pow(_PAIR_STEP, -1, _PAIRS) % _PAIRS
                last = base - base % GROUP + GROUP - 1
                return [base, last - 1, last]
        return []

    # --- Which titles a site lacks ----------------------------------------------------------------------------------------

    def has(self, site: SlugSite, index: int) -> bool:
        """Return whether a site has a movie. It lacks one of each group, so that the others can be counted."""
        group, place = divmod(index, _LACKS_ONE_OF[site])
        return place != self._lacked(site, group)

    def count(self, site: SlugSite) -> int:
        """Return how many movies a site has."""
        groups, rest = divmod(self.titles, _LACKS_ONE_OF[site])
        return self.titles - groups - (self._lacked(site, groups) < rest)

    def nth(self, site: SlugSite, place: int) -> int:
        """Return the index of the movie that is the site's `place`th in popularity, from 0."""
        group, within = divmod(place, _LACKS_ONE_OF[site] - 1)
        return group * _LACKS_ONE_OF[site] + within + (within >= self._lacked(site, group))

    def _lacked(self, site: SlugSite, group: int) -> int:
        return (group * 7 + self.seed + 5) % _LACKS_ONE_OF[site]

    # --- Facts --------------------------------------------------------------------------------------------------------

    def random(self, index: int, purpose: int) -> Random:
        """Return the luck that some of a movie's facts come from."""
        # A movie's facts come from several generators, so that one can be had without the others.
        return Random(self.seed << 64 | index << 8 | purpose)  # noqa: S311 - test data, and repeatable on purpose

    def base(self, index: int) -> int:
        """Return which movie this one is a sequel or remake of, or itself."""
        group, place = divmod(index, GROUP)
        if place < _ORIGINALS:
            return index
        return group * GROUP + (group * 7 + (3 if place == _ORIGINALS else 11)) % _ORIGINALS

    def basics(self, index: int) -> Basics:
        """Return what the datasets know of a movie."""
        base = self.base(index)
        if base != index:
            return self._derived(index, self.basics(base))
        rng = self.random(index, 0)
        upcoming = index >= CHART_SIZE and chance(rng, 0.04)
        year = TODAY.year + 1 if upcoming else TODAY.year - int(98 * rng.random() ** 2.2)
        place, rest = divmod(index, _PAIRS)
        first, second = divmod((rest * _PAIR_STEP + self.seed) % _PAIRS, len(words.NOUNS))
        core = f"{words.ADJECTIVES[first]} {words.NOUNS[second]}"
        if place:
            core += f" of {words.PLACES[place - 1]}"
        english = _styled(core, rng)
        title, original = english, None
        country = Country(*pick(rng, words.ENGLISH_COUNTRIES))
        if chance(rng, 0.06):
            firsts, seconds, joint, where = pick(rng, words.FOREIGN_TITLES)
            title, country = firsts[first % len(firsts)] + joint + seconds[second % len(seconds)], Country(*where)
        elif chance(rng, 0.1):
            beginning, end, where = pick(rng, words.ORIGINAL_TITLES)
            original, country = f"{beginning} {end}", Country(*where)
        return Basics(
            title=title,
            original_title=original,
            english_title=english,
            title_type="tvMovie" if index >= CHART_SIZE and chance(rng, 0.03) else "movie",
            year=year,
            runtime_minutes=None if upcoming or chance(rng, 0.02) else 58 + int(110 * rng.random() ** 1.5),
            genres=tuple(dict.fromkeys(pick(rng, words.GENRES) for _ in range(1 + int(3 * rng.random())))),
            country=country,
            upcoming=upcoming,
        )

    def _derived(self, index: int, base: Basics) -> Basics:
        rng = self.random(index, 0)
        remake = is_remake(index)
        gap = 9 + int(30 * rng.random()) if remake else 2 + int(3 * rng.random())
        year = base.year + gap if base.year + gap < TODAY.year else base.year - gap
        suffix = "" if remake else pick(rng, (" II", " 2", ": Part Two", " Returns"))
        return Basics(
            title=base.title + suffix,
            original_title=None,
            english_title=base.english_title + suffix,
            title_type="movie",
            year=year,
            runtime_minutes=80 + int(70 * rng.random()),
            genres=base.genres,
            country=base.country,
            upcoming=False,
        )

    def rating(self, index: int, basics: Basics | None = None) -> tuple[float, int] | None:
        """Return IMDb's mean (1.0 to 9.9) and votes (5 and up) of a movie, or None when it is unrated."""
        rng = self.random(index, 1)
        if index >= CHART_SIZE and (chance(rng, 0.03) or (basics or self.basics(index)).upcoming):
            return None
        quality = (rng.random() + rng.random() + rng.random()) / 3
        rating = min(9.9, max(1.0, round(2.8 + 6.4 * quality + (0.9 if index < CHART_SIZE else 0), 1)))
        if index < _POPULAR_ENOUGH:
            votes = VOTES_TO_RANK + 2_600_000 / (1 + index) ** 0.75 * (0.7 + 0.3 * rng.random())
        else:
            votes = (VOTES_TO_RANK - 1) * (_POPULAR_ENOUGH / index) ** 1.2 * (0.2 + 0.8 * rng.random())
        return rating, max(5, int(votes))

    def credits(self, index: int) -> Credits:
        """Return who made a movie."""
        rng = self.random(index, 2)
        directors = some_people(rng, index, 2 if chance(rng, 0.15) else 1)
        writers = some_people(rng, index, 1 + int(3 * rng.random()))
        if chance(rng, 0.4):
            writers = tuple(dict.fromkeys((directors[0], *writers)))
        cast = some_people(rng, index, 6 + int(19 * rng.random()))
        return Credits(directors, writers, tuple((person, _character(rng)) for person in cast))

    def metacritic(self, index: int, basics: Basics | None = None) -> MetacriticFacts | None:
        """Return what Metacritic has of a movie, or None when it does not have it."""
        if not self.has("metacritic", index):
            return None
        rng = self.random(index, 3)
        basics = basics or self.basics(index)
        year = basics.year + chance(rng, 0.06)
        scored, user_scored = chance(rng, 0.88), chance(rng, 0.92)
        slug = slugify(basics.english_title, "-")
        if is_remake(index) or chance(rng, 0.15):
            slug += f"-{year}"
        score = self._score(index, rng, 12)
        return MetacriticFacts(
            slug=slug,
            year=year,
            release=_release(rng, year),
            names_imdb_id=chance(rng, 0.92),
            metascore=None if basics.upcoming or not scored else score,
            critic_reviews=4 + int(60 * rng.random()),
            user_score=None if basics.upcoming or not user_scored else self._score(index, rng, 10) / 10,
            user_ratings=4 + int(3_000 * rng.random() ** 3),
        )

    def rottentomatoes(self, index: int, basics: Basics | None = None) -> RottenTomatoesFacts | None:
        """Return what Rotten Tomatoes has of a movie, or None when it does not have it."""
        if not self.has("rottentomatoes", index):
            return None
        rng = self.random(index, 4)
        basics = basics or self.basics(index)
        year = basics.year + chance(rng, 0.05)
        return RottenTomatoesFacts(
            slug=_rottentomatoes_slug(index, basics.english_title, year, rng),
            release=_release(rng, year),
            streaming_only=chance(rng, 0.05),
            tomatometer=None if basics.upcoming or chance(rng, 0.08) else self._score(index, rng, 25),
            critic_reviews=5 + int(350 * rng.random() ** 2),
            popcornmeter=None if basics.upcoming or chance(rng, 0.06) else self._score(index, rng, 20),
            audience_ratings=pick(rng, _BANDS) + int(40 * rng.random()),
        )

    def slug(self, site: SlugSite, index: int) -> str:
        """Return what a site calls a movie in its addresses. Raises IndexError when it does not have it."""
        facts = self.metacritic(index) if site == "metacritic" else self.rottentomatoes(index)
        if facts is None:
            raise IndexError(f"{site} lacks movie {index}")
        return facts.slug

    def _score(self, index: int, rng: Random, spread: int) -> int:
        """Return a score of 0 to 100 near the movie's rating."""
        rating = self.rating(index)
        mean = rating[0] * 10 if rating else 50
        return min(100, max(0, round(mean + spread * (2 * rng.random() - 1))))

    def movie(self, index: int) -> ReplicaMovie:
        """Return everything about a movie. Raises IndexError when there is no such index."""
        if not 0 <= index < self.titles:
            raise IndexError(f"movie {index} of {self.titles}")
        basics = self.basics(index)
        rng = self.random(index, 5)
        budget = None if basics.upcoming or chance(rng, 0.3) else 100_000 * (1 + int(2_000 * rng.random() ** 3))
        opening = domestic = worldwide = None
        if not basics.upcoming and chance(rng, 0.7):
            opening = 1_000 + int(60_000_000 * rng.random() ** 4)
            domestic = opening * 2 + int(opening * rng.random())
            worldwide = domestic + int(domestic * 1.5 * rng.random())
        release = _release(rng, basics.year + chance(rng, 0.04))
        if chance(rng, 0.03):
            release = Release(release.year, release.month, None)
        hero, deed, trouble = pick(rng, words.HEROES), pick(rng, words.DEEDS), pick(rng, words.TROUBLES)
        return ReplicaMovie(
            index=index,
            imdb_id=self.imdb_id(index),
            basics=basics,
            credits=self.credits(index),
            release=release,
            rating=self.rating(index, basics),
            certificate=None if basics.upcoming or chance(rng, 0.1) else pick(rng, words.CERTIFICATES),
            plot=None if chance(rng, 0.02) else f"{hero} {deed} {pick(rng, words.PLACES)} {trouble}",
            has_poster=chance(rng, 0.96),
            budget=budget,
            opening_weekend=opening,
            domestic_gross=domestic,
            worldwide_gross=worldwide,
            metacritic=self.metacritic(index, basics),
            rottentomatoes=self.rottentomatoes(index, basics),
        )

    # --- Lists --------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def top(self) -> list[int]:
        """The Top 250's indexes in chart order, by IMDb's formula; fewer when there are fewer titles."""

        def weighted(index: int) -> float:
            rating, votes = self.rating(index) or (0.0, 0)
            return (votes * rating + VOTES_TO_RANK * MEAN_VOTE) / (votes + VOTES_TO_RANK)

        candidates = [
            index
            for index in range(min(self.titles, _POPULAR_ENOUGH))
            if self.rating(index) is not None and self.basics(index).title_type == "movie"
        ]
        return sorted(candidates, key=lambda index: (-weighted(index), index))[:CHART_SIZE]

    @functools.cached_property
    def top_ranks(self) -> dict[int, int]:
        """The rank, from 1, of each index in the Top 250."""
        return {index: rank for rank, index in enumerate(self.top, start=1)}

    @property
    def popular(self) -> range:
        """The most popular 100, in order."""
        return range(min(self.titles, POPULAR_SIZE))


def pick(rng: Random, options: tuple[_T, ...]) -> _T:
    """Return one of some options."""
    # Random.choice may change from one Python to the next; random() will not.
    return options[int(len(options) * rng.random())]


def chance(rng: Random, share: float) -> bool:
    """Return whether something is so that is so of a share of all."""
    return rng.random() < share


def _character(rng: Random) -> str | None:
    name = f"{pick(rng, words.CHARACTER_TITLES)}{pick(rng, words.CHARACTERS)} {pick(rng, words.LAST_NAMES)}"
    if chance(rng, 0.05):
        return None
    return f"{name} / {pick(rng, words.CHARACTERS)}" if chance(rng, 0.07) else name


def _release(rng: Random, year: int) -> Release:
    return Release(year, 1 + int((10 if year == TODAY.year else 12) * rng.random()), 1 + int(28 * rng.random()))


def _styled(core: str, rng: Random) -> str:
    return pick(rng, words.TITLE_FORMS).format(
        core=core,
        article="An" if core[0] in "AEIOU" else "A",
        subtitle=pick(rng, words.SUBTITLES),
        number=13 + int(86 * rng.random()),
        owner=pick(rng, words.OWNERS),
    )


def _rottentomatoes_slug(index: int, title: str, year: int, rng: Random) -> str:
    """Return a slug as irregular as the site's own: dated, without its article, numbered, or with hyphens."""
    slug = slugify(title, "_")
    if is_remake(index) or chance(rng, 0.2):
        return f"{slug}_{year}"
    if chance(rng, 0.12):
        return slug.removeprefix("the_")
    if chance(rng, 0.06):
        return f"1{index:06}-{slug}"
    return slug.replace("_", "-") if chance(rng, 0.1) else slug
