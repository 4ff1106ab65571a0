"""The replica's collection: generated items of films and series, which are what its pages say.

A title is made of the seed and its place in popularity, the same each time, when a page of it is first asked for; the ids of all
titles are made at the start.
"""

from __future__ import annotations

import functools
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from moviecrawler.items import Amount, Award, Movie, RelatedTitle
from moviecrawler.replica.items import (
    Title,
    character,
    imdb_scores,
    on_site,
    people,
    release_in,
    score_near,
    scores_on,
)
from moviecrawler.replica.options import TODAY
from moviecrawler.replica.series import Series
from moviecrawler.replica.words import WORDS, Dice, slugify
from moviecrawler.urls import title_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from moviecrawler.items import AmountKind, Site
    from moviecrawler.replica.items import SlugSite

MOVIES_PER_SERIES: Final = 100
CHART_SIZE: Final = 250
VOTES_TO_RANK, MEAN_VOTE = 25_000, 6.9
"""The `m` and `C` of IMDb's published formula for its Top 250."""
_POPULAR_ENOUGH: Final = 2_000
"""How many films have the votes to be in the Top 250."""
_GROUP: Final = 20
"""Of every 20 films the last is a remake of the eighth before it, under the same title."""
_TO_REMAKE: Final = 8
_PAIRS: Final = len(WORDS["adjectives"]) * len(WORDS["nouns"])
_PAIR_STEP: Final = 30_011  # coprime to the pairs: neighbours in popularity have other words
_THEMES: Final = 61
"""Films whose places differ by so much share keywords, and recommend one another."""
_CACHED: Final = 2_000


class Outline(NamedTuple):
    """What is known of a film before its items are made."""

    title: str
    english: str
    """What slugs are made of; another text than the title where that is in another script."""
    original: str | None
    year: int
    title_type: str
    is_upcoming: bool
    country: str
    language: str


class Collection:
    """The films and series of one seed, as they are on one day. The most popular titles come first."""

    def __init__(self, seed: int = 1, titles: int = 1_000, series: int | None = None, today: date = TODAY) -> None:
        """Make the ids of so many films and series; `series` is one for 100 films unless given."""
        self.seed, self.titles = seed, titles
        self._outlines: list[Outline] = []
        self._ids: dict[Site, dict[int, str]] = {"imdb": {}, "metacritic": {}, "rottentomatoes": {}}
        self._places: dict[tuple[Site, str], int] = {}
        for index in range(titles):
            self._outlines.append(self._outline(index))
            self._add_ids(index)
        count = titles // MOVIES_PER_SERIES if series is None else series
        self.series = Series(seed, count, today, titles)
        self.film = functools.lru_cache(_CACHED)(self._film)

    # --- Titles -------------------------------------------------------------------------------------------------------

    def imdb_id(self, index: int) -> str:
        """Return a film's `tt` id: seven digits for even places, eight for odd ones."""
        slot = index // 2 * 2_221 + self.seed
        return f"tt{10_000_000 + slot * 7 % 60_000_000}" if index % 2 else f"tt{1_000_000 + slot * 3 % 8_999_999}"

    @property
    def imdb_ids(self) -> list[str]:
        """The ids of all films on IMDb, the most popular first."""
        return list(self._ids["imdb"].values())

    def site_ids(self, site: Site) -> dict[int, str]:
        """Return the ids of all films that a site has by their places, the most popular first."""
        return self._ids[site]

    def find(self, site: Site, site_id: str) -> tuple[Title, Movie] | None:
        """Return the title and the item of the page with an id; None when the site has no such page.

        Hyphens and underscores of Rotten Tomatoes' ids are the same; the item has the id as the site writes it.
        """
        index = self._places.get(_key(site, site_id))
        title = self.series.find(site, site_id) if index is None else self.film(index)
        if title is None:
            return None
        return next(
            ((title, movie) for movie in title.pages(site) if _key(site, str(movie.site_id)) == _key(site, site_id)),
            None,
        )

    def pages(self, site: Site) -> Iterator[Movie]:
        """Yield the items of all pages of titles that a site has: films, series, seasons and episodes."""
        for title in chain(map(self.film, range(self.titles)), map(self.series.title, range(self.series.count))):
            yield from title.pages(site)

    def every(self, site: Site) -> dict[str, Movie]:
        """Return these items by their ids."""
        return {str(movie.site_id): movie for movie in self.pages(site)}

    # --- Ids and names of films ---------------------------------------------------------------------------------------

    def _dice(self, purpose: str, index: int) -> Dice:
        return Dice(self.seed, purpose, index)

    def _outline(self, index: int) -> Outline:
        dice = self._dice("outline", index)
        if _is_remake(index):
            first = self._outlines[index - _TO_REMAKE]
            return first._replace(original=None, year=first.year - 9 - dice.below(30), is_upcoming=False)
        is_well_known = index < CHART_SIZE
        is_upcoming = dice.chance(0.04) and not is_well_known
        lap, pair = divmod(index * _PAIR_STEP + self.seed, _PAIRS)
        adjective, noun = divmod(pair, len(WORDS["nouns"]))
        core = f"{WORDS['adjectives'][adjective]} {WORDS['nouns'][noun]}"
        if index >= _PAIRS:
            core += f" of {WORDS['places'][lap % len(WORDS['places'])]}"
        english = str(dice.word("forms")).format(
            core=core,
            article="An" if core[0] in "AEIOU" else "A",
            subtitle=dice.word("subtitles"),
            number=13 + dice.below(86),
            owner=dice.word("owners"),
        )
        title, original, country, language = english, None, dice.word("countries"), "English"
        if dice.chance(0.06):
            firsts, seconds, joint, country, language = dice.word("foreign")
            title = dice.pick(firsts.split()) + joint + dice.pick(seconds.split())
        elif dice.chance(0.1):
            original, country, language = dice.word("originals")
        year = TODAY.year + 1 if is_upcoming else TODAY.year - int(98 * dice.random() ** 2.2)
        title_type = "tvMovie" if dice.chance(0.03) and not is_well_known else "movie"
        return Outline(title, english, original, year, title_type, is_upcoming, country, language)

    def _add_ids(self, index: int) -> None:
        """Give a film its ids, whose slugs are as irregular as the sites' own; each site but IMDb lacks some films."""
        dice, is_remake, outline = self._dice("slugs", index), _is_remake(index), self._outlines[index]
        found: dict[Site, str] = {"imdb": self.imdb_id(index)}
        if index % 10 != 5:  # noqa: PLR2004 - one of ten is lacking
            slug = slugify(outline.english, "-")
            found["metacritic"] = f"movie/{slug}-{outline.year}" if is_remake or dice.chance(0.15) else f"movie/{slug}"
        if index % 8 != 3:  # noqa: PLR2004 - one of eight is lacking
            slug = slugify(outline.english, "_")
            if is_remake or dice.chance(0.2):
                slug += f"_{outline.year}"
            elif dice.chance(0.12):
                slug = slug.removeprefix("the_")
            elif dice.chance(0.06):
                slug = f"1{index:06}-{slug}"
            elif dice.chance(0.1):
                slug = slug.replace("_", "-")
            found["rottentomatoes"] = f"m/{slug}"
        for site, site_id in found.items():
            free = site_id if _key(site, site_id) not in self._places else f"{site_id}-{index}"
            self._places[_key(site, free)], self._ids[site][index] = index, free

    # --- Items of films -----------------------------------------------------------------------------------------------

    def rating(self, index: int) -> tuple[float, int] | None:
        """Return IMDb's mean (1.0 to 9.9) and votes (5 and up) of a film; None when it is unrated."""
        dice = self._dice("rating", index)
        if self._outlines[index].is_upcoming or (index >= CHART_SIZE and dice.chance(0.03)):
            return None
        quality = (dice.random() + dice.random() + dice.random()) / 3
        mean = min(9.9, max(1.0, round(2.8 + 6.4 * quality + (0.9 if index < CHART_SIZE else 0), 1)))
        if index < _POPULAR_ENOUGH:
            votes = VOTES_TO_RANK + 2_600_000 / (1 + index) ** 0.75 * (0.7 + 0.3 * dice.random())
        else:
            votes = (VOTES_TO_RANK - 1) * (_POPULAR_ENOUGH / index) ** 1.2 * (0.2 + 0.8 * dice.random())
        return mean, max(5, int(votes))

    def critics_score(self, site: SlugSite, index: int) -> int | None:
        """Return a film's Metascore or Tomatometer; None where it has none."""
        dice = self._dice(f"{site} critics", index)
        if self._outlines[index].is_upcoming or dice.chance(0.1) or index not in self._ids[site]:
            return None
        return self._score_near(index, dice)

    def year(self, site: SlugSite, index: int) -> int:
        """Return the year that another site has of a film, which may be one off IMDb's."""
        return self._outlines[index].year + self._dice(f"{site} year", index).chance(0.06)

    def _score_near(self, index: int, dice: Dice) -> int:
        return score_near((self.rating(index) or (5.0, 0))[0], dice)

    def _film(self, index: int) -> Title:
        imdb = self._on_imdb(index)
        movies: dict[Site, Movie] = {"imdb": imdb}
        for site in _OTHERS:
            if index not in self._ids[site]:
                continue
            dice, year = self._dice(site, index), self.year(site, index)
            users = None if self._outlines[index].is_upcoming or dice.chance(0.07) else self._score_near(index, dice)
            ratings = 50 + int(100_000 * dice.random() ** 4)
            # Rotten Tomatoes tells no day in theaters of what only streams.
            is_streaming = site == "rottentomatoes" and dice.chance(0.05)
            movies[site] = on_site(
                *(site, imdb, self._ids[site][index], dice),
                year=year,
                release_date=None if is_streaming else release_in(year, dice),
                related=self._similar(site, index),
                scores=scores_on(site, self.critics_score(site, index), 5 + dice.below(300), users, ratings),
            )
        return Title(movies)

    def _on_imdb(self, index: int) -> Movie:
        outline, dice = self._outlines[index], self._dice("imdb", index)
        rating, imdb_id = self.rating(index), self.imdb_id(index)
        release, place, theme = release_in(outline.year, dice), dice.word("places"), index % _THEMES * 5
        own = [WORDS["nouns"][(theme + n) % len(WORDS["nouns"])].lower() for n in range(2 + dice.below(3))]
        genres = list(dict.fromkeys(dice.word("genres") for _ in range(1 + dice.below(3))))
        pool = range(index // 50 * 60, index // 50 * 60 + 200)  # neighbours share their people
        directors, writers = dice.sample(pool, 1 + dice.chance(0.15)), dice.sample(pool, 1 + dice.below(3))
        if dice.chance(0.4):
            writers = list(dict.fromkeys([directors[0], *writers]))
        cast = dice.sample(pool, 5 + dice.below(14))
        plot = f"{dice.word('heroes')} {dice.word('deeds')} {place} {dice.word('troubles')}"
        related = self._similar("imdb", index)
        if _is_remake(index):
            first = self.imdb_id(index - _TO_REMAKE)
            related.append(
                RelatedTitle(relation="connection", site_id=first, title=outline.title, connection="Version of")
            )
        has_poster = dice.chance(0.96)
        return Movie(
            site="imdb",
            site_id=imdb_id,
            imdb_id=imdb_id,
            url=title_url("imdb", imdb_id),
            title=outline.title,
            original_title=outline.original,
            kind="movie",
            title_type=outline.title_type,
            year=outline.year,
            release_date=release[:7] if dice.chance(0.03) else release,
            runtime_minutes=None if outline.is_upcoming or dice.chance(0.02) else 58 + int(110 * dice.random() ** 1.5),
            genres=genres,
            countries=[outline.country],
            languages=[outline.language],
            certificate=None if outline.is_upcoming or dice.chance(0.1) else dice.word("certificates"),
            plot=None if dice.chance(0.02) else plot,
            poster_url=f"https://m.media-amazon.com/images/M/MV5B{imdb_id}._V1_.jpg" if has_poster else None,
            poster_width=1000 if has_poster else None,
            poster_height=1500 if has_poster else None,
            credits=[
                *people("director", directors),
                *people("writer", writers),
                *people("cast", cast, [character(dice) for _ in cast]),
            ],
            scores=imdb_scores(rating, self.critics_score("metacritic", index)),
            amounts=[] if outline.is_upcoming else _amounts(dice),
            keywords=[] if dice.chance(0.03) else [*own, f"set in {place}".lower()],
            interests=list(dict.fromkeys([f"{WORDS['adjectives'][index % _THEMES]} {genres[0]}", *genres])),
            awards=_awards(dice),
            related=related,
            imdb_top250_rank=self.top_ranks.get(index),
            critic_review_count=(rating[1] // 450 or None) if rating else None,
            popularity_rank=index + 1,
        )

    def _similar(self, site: Site, index: int) -> list[RelatedTitle]:
        """Return the films of the same theme next to one in popularity, as far as the site has them."""
        near = [place for place in (index + _THEMES, index - _THEMES) if 0 <= place < self.titles]
        found = [(self._ids[site][place], self._outlines[place].title) for place in near if place in self._ids[site]]
        return [RelatedTitle(relation="similar", site_id=site_id, title=title) for site_id, title in found]

    # --- Charts -------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def top(self) -> list[int]:
        """The places of the Top 250's films in chart order, by IMDb's formula; fewer when there are fewer."""

        def weighted(index: int) -> float:
            mean, votes = self.rating(index) or (0.0, 0)
            return (votes * mean + VOTES_TO_RANK * MEAN_VOTE) / (votes + VOTES_TO_RANK)

        candidates = range(min(self.titles, _POPULAR_ENOUGH))
        rated = [n for n in candidates if self.rating(n) is not None and self._outlines[n].title_type == "movie"]
        return sorted(rated, key=lambda index: (-weighted(index), index))[:CHART_SIZE]

    @functools.cached_property
    def top_ranks(self) -> dict[int, int]:
        """The rank, from 1, of each film in that chart."""
        return {index: rank for rank, index in enumerate(self.top, start=1)}


_OTHERS: Final[tuple[SlugSite, ...]] = ("metacritic", "rottentomatoes")


def _key(site: Site, site_id: str) -> tuple[Site, str]:
    return site, site_id.replace("-", "_") if site == "rottentomatoes" else site_id


def _is_remake(index: int) -> bool:
    return index % _GROUP == _GROUP - 1


def _amounts(dice: Dice) -> list[Amount]:
    found: dict[AmountKind, int] = {}
    if dice.chance(0.7):
        found["budget"] = 100_000 * (1 + int(2_000 * dice.random() ** 3))
    if dice.chance(0.7):
        found["opening_weekend"] = opening = 1_000 + int(60_000_000 * dice.random() ** 4)
        found["domestic"] = domestic = opening * 2 + dice.below(opening)
        found["worldwide"] = domestic + dice.below(domestic * 1.5)
    return [Amount(kind=kind, value=value, currency="USD") for kind, value in found.items()]


def _awards(dice: Dice) -> list[Award]:
    """Return all awards together, and the most telling one."""
    if dice.chance(0.6):
        return []
    wins, nominations = dice.below(9), 1 + dice.below(4)
    one = Award(event="Golden Lantern", wins=wins // 2, nominations=nominations)
    return [Award(event=None, wins=wins, nominations=nominations + 2), one]
