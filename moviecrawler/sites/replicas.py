"""What the replica hands to a site's module `replica`, and what that makes of it.

The pages of a site are functions of made-up titles: they know neither server nor faults.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from random import Random
from typing import Literal, Protocol, TypeVar, cast

import msgspec
from anyascii import anyascii

from moviecrawler.basics.files import read_package_file
from moviecrawler.extract.linked_data import KINDS
from moviecrawler.items import Movie, Offer, RelatedTitle, Score, ScoreKind, Site
from moviecrawler.sites import SCORES, SITES
from moviecrawler.sites.titles import new_title

_T = TypeVar("_T")


class Foreign(msgspec.Struct):
    """What titles in another script are made of."""

    first_words: str
    joint: str
    second_words: str
    country: str
    language: str


class Original(msgspec.Struct):
    """A film's title in its own language."""

    title: str
    country: str
    language: str


class _Tables(msgspec.Struct):
    words: dict[str, str | list[str]]
    foreign: list[Foreign]
    originals: list[Original]
    offers: list[Offer]


_TABLES = msgspec.convert(
    tomllib.loads(read_package_file("moviecrawler.sites", "words.toml")), _Tables
)
FOREIGN = _TABLES.foreign
ORIGINALS = _TABLES.originals
WORDS = {
    name: words.split() if isinstance(words, str) else words
    for name, words in _TABLES.words.items()
}


class SeededRandom(Random):
    """Random numbers that are the same for the same parts of a seed, on every version of Python."""

    def __init__(self, *seed: object) -> None:
        super().__init__(" ".join(map(str, seed)))

    def chance(self, share: float) -> bool:
        """Return True with the probability `share`."""
        return self.random() < share

    def below(self, end: float) -> int:
        """Return a whole number from 0 to below `end`."""
        return int(end * self.random())

    def pick(self, options: Sequence[_T]) -> _T:
        """Return one of some options."""
        return options[self.below(len(options))]

    def word(self, name: str) -> str:
        """Return one word of a list of `words.toml`."""
        return self.pick(WORDS[name])

    def near(self, rating: float) -> int:
        """Return a score of 0 to 100 near a rating of 1 to 10."""
        return min(100, max(0, round(rating * 10 + 20 * (2 * self.random() - 1))))

    def offers(self) -> list[Offer]:
        """Return some of the offers of `words.toml`, or none."""
        return _TABLES.offers[self.pick((0, 1, 2, 3, 5)) :]

    def day_in(self, year: int | None) -> str:
        """Return a day in a year."""
        return f"{year:04}-{1 + self.below(10):02}-{1 + self.below(28):02}"


def slugify(text: str, separator: str) -> str:
    """Return a text as the sites' slugs have it.

    It is in ASCII and lower case, punctuation is dropped, and words are joined.
    """
    plain = anyascii(text).lower().replace("'", "")
    return separator.join(re.findall("[a-z0-9]+", plain))


def person_name(number: int) -> str:
    """Return the name of a person; of 27,000 in a row no two have the same."""
    first = WORDS["first_names"]
    last = WORDS["last_names"]
    # The numbers of first and last names have no common divisor, so every pair comes once.
    return f"{first[number * 37 % len(first)]} {last[number * 50 % len(last)]}"


@dataclass(slots=True)
class Title:
    """A film, or a series with its seasons and episodes.

    It is what the pages of each site that has it say.
    """

    movies: dict[Site, Movie]
    """The items of the title's own pages."""
    listed: dict[Site, list[Movie]] = field(default_factory=dict)
    """The seasons as the series' page lists them, in its order."""
    parts: dict[Site, list[Movie]] = field(default_factory=dict)
    """The items of the pages of its seasons and episodes."""

    def pages(self, site: Site) -> list[Movie]:
        """Return the items of all its pages on a site."""
        return [self.movies[site], *self.parts.get(site, ())]


LINKED_TYPES = {kind: name for name, kind in KINDS.items()}
"""What JSON-LD calls each kind of title."""


class Titles(Protocol):
    """The titles of one kind, by their index: 0 is the most popular one."""

    count: int
    ids: dict[Site, dict[int, str]]
    """The ids of all titles that a site has by their index."""

    def __hash__(self) -> int:
        """Return what tells them from others."""

    @property
    def top_ranks(self) -> Mapping[int, int]:
        """The rank of each title among the best by its index, in order."""

    def title(self, index: int, /) -> Title:
        """Return a title."""


class Collection(Titles, Protocol):
    """The films, and the series."""

    @property
    def series(self) -> Titles:
        """The series."""

    def find(self, site: Site, site_id: str) -> tuple[Title, Movie] | None:
        """Return a title and the item of one of its pages; None where a site has none."""

    def critics(self, site: Site, index: int) -> int | None:
        """Return a film's score by critics on a site, of 0 to 100; None where it has none."""

    def year(self, site: Site, index: int) -> int:
        """Return a film's year on a site other than that of the ids."""


@dataclass(frozen=True, kw_only=True)
class Name:
    """What the ids of a film or a series are made of."""

    index: int
    kind: Literal["movie", "series"]
    english: str
    """Its title, in Latin script."""
    year: int
    is_repeated: bool
    """Whether an earlier title has the same name."""


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """What a site makes the items of a title's pages of."""

    site_id: str
    index: int
    facts: Movie
    """The item of its page on the site of the ids, without scores. What it says is true
    everywhere."""
    seed: int
    dice: SeededRandom
    year: int | None
    """Of a film, it may be one off that of the facts."""

    def dice_for(self, *purpose: object) -> SeededRandom:
        """Return random numbers for a purpose, which names the site."""
        return SeededRandom(self.seed, *purpose)


@dataclass(frozen=True, kw_only=True)
class FilmDraft(_Draft):
    """A film."""

    critics: int | None
    users: int | None
    """Scores of 0 to 100; None where there is none."""
    similar: list[RelatedTitle]
    """Those that its page recommends."""


@dataclass(frozen=True, kw_only=True)
class SeriesDraft(_Draft):
    """A series."""

    rating: float
    """Scores are near this, of 1 to 10."""
    today: date
    seasons: dict[int, list[Movie]]
    """The facts of the episodes of each season that has some; season 0 has the specials."""

    def score(self, dice: SeededRandom, share: float, *, is_scored: bool = True) -> int | None:
        """Return a score of 0 to 100, which there is with the probability `share`."""
        return dice.near(self.rating) if is_scored and dice.chance(share) else None

    def score_of_episode(self, dice: SeededRandom, facts: Movie) -> int | None:
        """Return the score of an episode, which has none until it is shown."""
        is_shown = str(facts.release_date) <= self.today.isoformat()
        return self.score(dice, 0.7, is_scored=is_shown)


@dataclass(slots=True)
class SeriesPages:
    """The items of a series' pages on a site."""

    series: Movie
    listed: list[Movie] = field(default_factory=list)
    """The seasons as the series' page lists them, in its order."""
    parts: list[Movie] = field(default_factory=list)
    """Those of the pages of its seasons and episodes."""


@dataclass(frozen=True, kw_only=True)
class Markup:
    """A page that a template of the site's folder makes."""

    template: str
    """The file's name, such as `replica.html`, or `replica_list.json` of what is not a page."""
    variables: Mapping[str, object]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The answer by which a site asks for a browser: a page of less than 2 kB."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    head: str
    """What its `<head>` has."""


class SiteReplica(Protocol):
    """The module `replica` of a site's package."""

    ROBOTS: str
    LIVE_ROBOTS: str
    """As the site itself has it today."""
    CHALLENGE: Refusal
    MOVED: int
    """The status that leads from another spelling of an address to its own."""

    # The site of the ids has no use for the first three: the titles are its own.

    def title_id(self, name: Name, dice: SeededRandom) -> str | None:
        """Return the id of a film or a series; None where the site lacks it."""

    def film(self, draft: FilmDraft) -> Movie:
        """Return the item of a film's page."""

    def series(self, draft: SeriesDraft) -> SeriesPages:
        """Return the items of the pages of a series."""

    def title_page(self, title: Title, movie: Movie) -> Markup:
        """Return the page of a title, or of a season or an episode of it."""

    def list_page(
        self, titles: Collection, path: str, query: Mapping[str, str], host: str
    ) -> Markup | None:
        """Return a page of a list, without slashes around its path; None where it is none.

        Raises ValueError for a parameter that can't be read.
        """


@cache
def replica_of(site: Site) -> SiteReplica:
    """Return what makes a site's pages."""
    return cast("SiteReplica", SITES[site].module("replica"))


def new_item(
    site: Site,
    draft: FilmDraft | SeriesDraft,
    person_id: Callable[[str], str | None],
    cast_size: int,
) -> Movie:
    """Return the item of a title's page, with what the facts say that all sites have.

    `person_id` makes an id of a name, or None; of the cast the first `cast_size` are there.
    """
    facts = draft.facts
    movie = new_title(site, draft.site_id, facts.title, facts.kind)
    movie.year = draft.year
    movie.runtime_minutes = facts.runtime_minutes
    movie.genres = facts.genres
    movie.certificate = facts.certificate
    movie.plot = facts.plot
    movie.credits = [
        replace(credit, person_id=person_id(credit.name or ""))
        for credit in facts.credits
        if credit.role != "cast" or credit.position <= cast_size
    ]
    return movie


def new_part(whole: Movie, site_id: str, title: str, release_date: str) -> Movie:
    """Return what any page says of a season or an episode; `whole` is its series or season."""
    part = new_title(whole.site, site_id, title, series_title=whole.series_title or whole.title)
    part.year = int(release_date[:4])
    part.release_date = release_date
    return part


def with_facts_of(whole: Movie, part: Movie) -> Movie:
    """Return a season or an episode with all that its own page repeats of its series or season."""
    return replace(
        whole,
        site_id=part.site_id,
        url=part.url,
        title=part.title,
        kind=part.kind,
        imdb_id=None,
        year=part.year,
        end_year=None,
        release_date=part.release_date,
        series_id=part.series_id,
        series_title=part.series_title,
        season=part.season,
        episode=part.episode,
        season_count=None,
        episode_count=None,
    )


_CERTIFIED = 0.75
_FRESH = 0.6


def new_score(
    kind: ScoreKind,
    value: float,
    count: int,
    fresh: str = "POSITIVE",
    rotten: str = "NEGATIVE",
) -> Score:
    """Return a score, with those of the facts beside it that its site publishes."""
    form = SCORES[kind]
    share = value / form.scale
    liked = int(count * share)
    neutral = (count - liked) // 2 if "neutral" in form.facts else 0
    facts: dict[str, object] = {
        "count": count,
        "liked": liked,
        "neutral": neutral,
        "disliked": count - liked - neutral,
        "average": round((form.average_scale or 0) * share, 1),
        "reviews": count // 3,
        "certified": share >= _CERTIFIED,
        "sentiment": fresh if share >= _FRESH else rotten,
    }
    score = Score(kind=kind, value=float(value))
    for name in form.facts:
        setattr(score, name, facts[name])
    return score
