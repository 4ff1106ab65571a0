"""The replica's collection: generated items of films and series, which are what its pages say."""

from collections.abc import Iterator
from datetime import date
from itertools import chain
from typing import NamedTuple

from moviecrawler.items import Amount, AmountKind, Award, Movie, RelatedTitle, Site
from moviecrawler.replica.items import Rating, add_facts, character, people, rate
from moviecrawler.replica.options import TODAY
from moviecrawler.replica.series import Series
from moviecrawler.replica.titles import CHART_SIZE, OTHERS, Titles
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.replicas import (
    FOREIGN,
    ORIGINALS,
    WORDS,
    FilmDraft,
    Name,
    SeededRandom,
    Title,
    replica_of,
)
from moviecrawler.sites.titles import new_title

MOVIES_PER_SERIES = 100
_VOTES_TO_RANK = 25_000
_MEAN_VOTE = 6.9
"""The `m` and `C` of IMDb's published formula for its Top 250."""
_GROUP = 20
_TO_REMAKE = 8
"""Of every 20 films the last is a remake of the eighth before it, under the same title."""
_PAIRS = len(WORDS["adjectives"]) * len(WORDS["nouns"])
_PAIR_STEP = 30_011  # coprime to the pairs: neighbours in popularity have other words
_TO_SIMILAR = 61
"""How far films are from one another that recommend one another."""

_AMOUNTS: dict[AmountKind, int] = {
    "budget": 200_000,
    "opening_weekend": 50_000,
    "domestic": 100_000,
    "worldwide": 300_000,
}
"""Dollars of which a film costs and earns up to 900 times as many. What it has earned at home is in
steps that a page can abbreviate, such as "$53.1M"."""


class Outline(NamedTuple):
    """What is known of a film before its items are made."""

    title: str
    english: str
    """What slugs are made of where the title is in another script."""
    original: str | None
    year: int
    country: str
    language: str
    is_upcoming: bool
    """Whether it is unreleased and unrated."""


class Collection(Titles):
    """The films of one seed, and its series as they are on one day."""

    def __init__(
        self, seed: int = 1, titles: int = 1_000, series: int | None = None, today: date = TODAY
    ) -> None:
        """Make the ids of so many films and series; `series` is one for 100 films unless given."""
        super().__init__(seed, titles)
        self._outlines: list[Outline] = []
        for index in range(titles):
            self._outlines.append(self._outline(index))
            outline = self._outlines[index]
            name = Name(
                index=index,
                kind="movie",
                english=outline.english,
                year=outline.year,
                is_repeated=_is_remake(index),
            )
            self._add(name, _imdb_id(index, seed), self.dice("slugs", index))
        self.series = Series(
            seed, titles // MOVIES_PER_SERIES if series is None else series, today, titles
        )

    def find(self, site: Site, site_id: str) -> tuple[Title, Movie] | None:
        """Return what `Titles.find` does, also of series."""
        return super().find(site, site_id) or self.series.find(site, site_id)

    def pages(self, site: Site) -> Iterator[Movie]:
        """Yield the items of all pages that a site has: films, series, seasons and episodes."""
        return chain(super().pages(site), self.series.pages(site))

    def _outline(self, index: int) -> Outline:
        dice = self.dice("outline", index)
        if _is_remake(index):
            first = self._outlines[index - _TO_REMAKE]
            year = min(first.year, TODAY.year) - 9 - dice.below(30)
            return first._replace(original=None, year=year, is_upcoming=False)
        is_upcoming = dice.chance(0.04) and index >= CHART_SIZE
        pair = (index * _PAIR_STEP + self.seed) % _PAIRS
        adjective, noun = divmod(pair, len(WORDS["nouns"]))
        english = dice.word("forms").format(
            f"{WORDS['adjectives'][adjective]} {WORDS['nouns'][noun]}"
        )
        title = english
        original: str | None = None
        country = dice.word("countries")
        language = "English"
        if dice.chance(0.06):
            foreign = dice.pick(FOREIGN)
            first_word = dice.pick(foreign.first_words.split())
            title = first_word + foreign.joint + dice.pick(foreign.second_words.split())
            country = foreign.country
            language = foreign.language
        elif dice.chance(0.1):
            own = dice.pick(ORIGINALS)
            original = own.title
            country = own.country
            language = own.language
        year = TODAY.year + 1 if is_upcoming else TODAY.year - int(98 * dice.random() ** 2.2)
        return Outline(
            title=title,
            english=english,
            original=original,
            year=year,
            country=country,
            language=language,
            is_upcoming=is_upcoming,
        )

    def rating(self, index: int) -> Rating | None:
        """Return what `Titles.rating` does."""
        if self._outlines[index].is_upcoming:
            return None
        dice = self.dice("rating", index)
        quality = dice.random() + dice.random() + dice.random()
        mean = 2.8 + 2 * quality + (0.9 if index < CHART_SIZE else 0)
        votes = 2_600_000 / (1 + index) ** 0.75 * (0.7 + 0.3 * dice.random())
        return Rating(mean=round(mean, 1), votes=int(votes))

    def _weight(self, index: int) -> float:
        rating = self.rating(index)
        if rating is None or rating.votes < _VOTES_TO_RANK:
            return 0.0
        votes = rating.votes
        return (votes * rating.mean + _VOTES_TO_RANK * _MEAN_VOTE) / (votes + _VOTES_TO_RANK)

    def critics(self, site: Site, index: int) -> int | None:
        """Return a film's score by critics on a site, of 0 to 100; None where it has none."""
        return self._score(index, self.dice(f"{site} critics", index), 0.1)

    def _score(self, index: int, dice: SeededRandom, share_without: float) -> int | None:
        rating = self.rating(index)
        return None if rating is None or dice.chance(share_without) else dice.near(rating.mean)

    def year(self, site: Site, index: int) -> int:
        """Return the year that another site has of a film, which may be one off IMDb's."""
        year = self._outlines[index].year
        return year + 1 if self.dice(f"{site} year", index).chance(0.06) else year

    def _make(self, index: int) -> Title:
        facts = self._on_imdb(index)
        title = Title({ID_SITE: facts})
        for site in OTHERS:
            if site_id := self.ids[site].get(index):
                dice = self.dice(site, index)
                draft = FilmDraft(
                    site_id=site_id,
                    index=index,
                    facts=facts,
                    seed=self.seed,
                    dice=dice,
                    year=self.year(site, index),
                    critics=self.critics(site, index),
                    users=self._score(index, dice, 0.07),
                    similar=self._similar(site, index),
                )
                title.movies[site] = replica_of(site).film(draft)
        return rate(title, self.rating(index))

    def _on_imdb(self, index: int) -> Movie:
        outline = self._outlines[index]
        dice = self.dice("imdb", index)
        rating = self.rating(index)
        pool = range(index // 50 * 60, index // 50 * 60 + 200)  # neighbours share their people
        team = dice.sample(pool, 8 + dice.below(14))
        wins = dice.below(9)
        related = self._similar("imdb", index)
        if _is_remake(index):
            first = self.ids["imdb"][index - _TO_REMAKE]
            related.append(
                RelatedTitle(
                    relation="connection",
                    site_id=first,
                    title=outline.title,
                    connection="Version of",
                )
            )
        movie = new_title(ID_SITE, self.ids[ID_SITE][index], outline.title, "movie")
        movie.original_title = outline.original
        movie.title_type = "movie"
        movie.year = outline.year
        movie.release_date = dice.day_in(outline.year)
        if not outline.is_upcoming:
            movie.runtime_minutes = 58 + dice.below(110)
        movie.countries = [outline.country]
        movie.languages = [outline.language]
        movie.credits = [
            *people("director", team[: 2 if dice.chance(0.15) else 1]),
            *people("writer", team[dice.below(2) : 3]),
            *people("cast", team[3:], lambda: character(dice)),
        ]
        movie.amounts = [
            Amount(kind=kind, value=(1 + dice.below(900)) * dollars, currency="USD")
            for kind, dollars in _AMOUNTS.items()
            if not outline.is_upcoming and dice.chance(0.7)
        ]
        # All of them together, and the most telling one.
        movie.awards = [
            Award(event=event, wins=wins, nominations=3)
            for event in (None, "Golden Lantern")
            if wins > 4  # noqa: PLR2004 - most films have none
        ]
        movie.related = related
        movie.imdb_top250_rank = self.top_ranks.get(index)
        if rating is not None:
            movie.critic_review_count = rating.votes // 450 or None
        add_facts(movie, index, dice, is_upcoming=outline.is_upcoming)
        return movie

    def _similar(self, site: Site, index: int) -> list[RelatedTitle]:
        """Return the films that a film's page recommends, as far as the site has them.

        They are those before and behind it in popularity.
        """
        return [
            RelatedTitle(
                relation="similar", site_id=self.ids[site][other], title=self._outlines[other].title
            )
            for other in (index + _TO_SIMILAR, index - _TO_SIMILAR)
            if other in self.ids[site]
        ]


def _is_remake(index: int) -> bool:
    return index % _GROUP == _GROUP - 1


def _imdb_id(index: int, seed: int) -> str:
    """Return a film's id, of seven digits for even places, and of eight for odd ones."""
    slot = index // 2 * 2_221 + seed
    if index % 2:
        return f"tt{10_000_000 + slot * 7 % 60_000_000}"
    return f"tt{1_000_000 + slot * 3 % 8_999_999}"
