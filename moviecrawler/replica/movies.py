"""The replica's movies: made on demand from (seed, index), never stored, the same whenever they are asked for."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, TypeVar

from moviecrawler.replica import words
from moviecrawler.replica.people import some_people
from moviecrawler.replica.series import SeriesCatalogue
from moviecrawler.replica.titles import (
    PAIRS,
    TODAY,
    Basics,
    Country,
    Credits,
    Facts,
    Listed,
    MetacriticFacts,
    Release,
    RottenTomatoesFacts,
    SlugSite,
    Title,
    Titles,
    known,
    slugify,
)

if TYPE_CHECKING:
    from datetime import date

_T = TypeVar("_T")

CHART_SIZE = 250
MOST_TITLES = 5_000_000
"""How many titles the ids have room for."""
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

_GROUP = 20
_ORIGINALS = _GROUP - 2
"""Of every 20 movies the last but one is a sequel and the last a remake of one of the 18 before them."""

_BANDS = (50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000)


class Catalogue(Titles):
    """The movies of one seed, and the series beside them. A movie's facts don't depend on how many there are."""

    pair_step = 30_011
    pair_shift = 0

    def __init__(self, seed: int = 1, titles: int = 1_000, series: int | None = None, today: date = TODAY) -> None:
        if not 1 <= titles <= MOST_TITLES:
            raise ValueError(f"{titles} titles; the replica makes 1 to {MOST_TITLES:,}")
        if seed < 0:
            raise ValueError(f"seed {seed}; use 0 or a positive number")
        self.seed = seed
        self.count = titles
        self.listed = {
            "metacritic": Listed(titles, 10, lambda group: (group * 7 + seed + 5) % 10),
            "rottentomatoes": Listed(titles, 8, lambda group: (group * 7 + seed + 5) % 8),
        }
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
        return index if index < self.count and self.imdb_id(index) == imdb_id else None

    def of_imdb_id(self, imdb_id: str) -> Title | None:
        """Return the movie, the series or the episode with this id, or None when there is none."""
        index = self.index_of_imdb_id(imdb_id)
        return self.series.of_imdb_id(imdb_id) if index is None else self.title(index)

    def _index_of_slot(self, half: int, block: int, slot: int) -> int:
        place = (slot - self.seed) * pow(_SLOT_STEP, -1, ROWS_PER_HALF) % ROWS_PER_HALF
        return block * _BLOCK + place * 2 + half

    def halves(self) -> list[tuple[int, int]]:
        """Return the half blocks (half, block) in the order of their ids as text; none is empty."""
        return [(half, block) for half in (1, 0) for block in range((self.count - half - 1) // _BLOCK + 1)]

    def is_full(self, half: int, block: int) -> bool:
        """Return whether half a block has all its titles."""
        return block * _BLOCK + _BLOCK - 2 + half < self.count

    def indexes_by_id(self, half: int, block: int) -> list[int]:
        """Return the indexes in half a block, in the order of their ids."""
        indexes = (self._index_of_slot(half, block, slot) for slot in range(ROWS_PER_HALF))
        return [index for index in indexes if index < self.count]

    def namesakes(self, index: int) -> tuple[int, int, int]:
        """Return an index and those of the sequel and the remake of its group."""
        last = index - index % _GROUP + _GROUP - 1
        return index, last - 1, last

    # --- Facts --------------------------------------------------------------------------------------------------------

    def random(self, index: int, purpose: int) -> Random:
        """Return the luck that some of a movie's facts come from."""
        # A movie's facts come from several generators, so that one can be had without the others.
        return Random(self.seed << 64 | index << 8 | purpose)  # noqa: S311 - test data, and repeatable on purpose

    def base(self, index: int) -> int:
        """Return which movie this one is a sequel or remake of, or itself."""
        group, place = divmod(index, _GROUP)
        if place < _ORIGINALS:
            return index
        return group * _GROUP + (group * 7 + (3 if place == _ORIGINALS else 11)) % _ORIGINALS

    def basics(self, index: int) -> Basics:
        """Return what the datasets know of a movie."""
        base = self.base(index)
        if base != index:
            return self._derived(index, self.basics(base))
        rng = self.random(index, 0)
        upcoming = index >= CHART_SIZE and chance(rng, 0.04)
        year = TODAY.year + 1 if upcoming else TODAY.year - int(98 * rng.random() ** 2.2)
        first, second = self.words_of(index)
        core = f"{words.ADJECTIVES[first]} {words.NOUNS[second]}"
        if index >= PAIRS:
            core += f" of {words.PLACES[index // PAIRS - 1]}"
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
        return replace(
            base,
            title=base.title + suffix,
            original_title=None,
            english_title=base.english_title + suffix,
            title_type="movie",
            year=year,
            runtime_minutes=80 + int(70 * rng.random()),
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
        if index not in self.listed["metacritic"]:
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
            release=_release(rng, year),
            names_imdb_id=chance(rng, 0.92),
            metascore=None if basics.upcoming or not scored else score,
            critic_reviews=4 + int(60 * rng.random()),
            user_score=None if basics.upcoming or not user_scored else self._score(index, rng, 10) / 10,
            user_ratings=4 + int(3_000 * rng.random() ** 3),
        )

    def rottentomatoes(self, index: int, basics: Basics | None = None) -> RottenTomatoesFacts | None:
        """Return what Rotten Tomatoes has of a movie, or None when it does not have it."""
        if index not in self.listed["rottentomatoes"]:
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
        """Return what a site that has a movie calls it in its addresses."""
        facts: Facts | None = self.metacritic(index) if site == "metacritic" else self.rottentomatoes(index)
        return known(facts).slug

    def _score(self, index: int, rng: Random, spread: int) -> int:
        """Return a score of 0 to 100 near the movie's rating."""
        rating = self.rating(index)
        mean = rating[0] * 10 if rating else 50
        return min(100, max(0, round(mean + spread * (2 * rng.random() - 1))))

    def title(self, index: int) -> Title:
        """Return everything about a movie. Raises IndexError when there is no such index."""
        if not 0 <= index < self.count:
            raise IndexError(f"movie {index} of {self.count}")
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
        return Title(
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
        """The Top 250's indexes in chart order, by IMDb's formula; fewer when there are fewer movies."""

        def weighted(index: int) -> float:
            rating, votes = self.rating(index) or (0.0, 0)
            return (votes * rating + VOTES_TO_RANK * MEAN_VOTE) / (votes + VOTES_TO_RANK)

        candidates = [
            index
            for index in range(min(self.count, _POPULAR_ENOUGH))
            if self.rating(index) is not None and self.basics(index).title_type == "movie"
        ]
        return sorted(candidates, key=lambda index: (-weighted(index), index))[:CHART_SIZE]


def is_remake(index: int) -> bool:
    """Return whether a movie is a remake of another."""
    return index % _GROUP == _GROUP - 1


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
