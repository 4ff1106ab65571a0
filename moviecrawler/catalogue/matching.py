"""Whether titles of different sites are the same title: a score with its reasons, and the join of many titles. Pure.

Evidence adds up: equal IMDb ids 4; equal titles 1, similar ones ½; the same year 1, a year apart ½; the same director
1. Other directors and years further apart count -1. A pair is accepted from 1½ on, with an equal id or a title that is
similar at least: never on a title alone, never when ids or kinds contradict each other. Years far apart are forgiven to
an equal title by the same director with about the same runtime: a film that was released again.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import combinations, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from moviecrawler.items import Movie, Site

ACCEPTED_FROM = 1.5
SAME_ID = 4.0
"""What an equal IMDb id counts: more than all else together."""
_SIMILAR = 0.8
"""From this ratio of common letters on, two titles may be spellings of one."""
_SHORTEST_SIMILAR = 5
"""Letters; of four, one that differs makes another word ("Cars", "Cats")."""
_RUNTIME_SPREAD = 0.1
"""A film that is released again keeps its runtime within a tenth; when a director makes it again, it seldom does."""
_STEM = 4
"""Letters."""
_LARGEST_BLOCK = 2_500
"""Pairs that are compared because of one thing in common. What more titles share says nothing about them, and comparing
all of them would take time by the square of their number."""

_FILMS = frozenset({"movie", "short", "video"})
"""IMDb tells these apart; the other sites call all of them movies."""

# Letters that Unicode doesn't take apart into a base and an accent, and signs that are words.
_SPELT = str.maketrans(
    {**dict(zip("øłđðı", "olddi", strict=True)), "þ": "th", "æ": "ae", "œ": "oe", "&": " and ", "+": " and "}
)
_ACCENTS = re.compile("[\u0300-\u036f]")  # the marks of other scripts are vowels, and stay
_INSIDE_WORDS = re.compile("['’‘ʼ`.]")  # noqa: RUF001 - "Ocean's", "S.W.A.T."
_LABEL = re.compile(r"\s*(?:\((?:18|19|20)\d\d\)|\[[^\]]*\])\s*$")  # "Dune (2021)", "Metropolis [re-release]"
_BETWEEN_PARTS = re.compile(r":\s+|：|\s+[-–—]\s+|\s*[()]\s*")  # noqa: RUF001 - what stands before a subtitle
_MERE_NUMBER = re.compile(r"(?:(?:part|vol|volume|chapter|episode|season)\s)?(\d+)")
_WORDS = re.compile(r"[a-z]+|\d+")
_LETTER_MEETS_DIGIT = re.compile(r"(?<=\d)(?=[^\d\s])|(?<=[^\d\s])(?=\d)")
_ARTICLES = ("the ", "a ", "an ")
_NUMERALS = {
    word: str(number)
    for numerals in (
        "one two three four five six seven eight nine ten",
        "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx",
    )
    for number, word in enumerate(numerals.split(), 1)
}


@dataclass(slots=True, kw_only=True)
class Match:
    """How far two titles of different sites are the same."""

    score: float
    reasons: list[str]
    """What speaks for it and, with "but" in front, what speaks against it."""
    accepted: bool


@dataclass(slots=True, kw_only=True)
class JoinedTitle:
    """One title, as far as the sites have it."""

    movies: dict[Site, Movie]
    """At least one, and at most one of each site."""
    matches: list[Match] = field(default_factory=list)
    """What joined them, one fewer than there are movies; the surest first."""


@dataclass(slots=True)
class _Title:
    """A movie with what is compared of it."""

    movie: Movie
    imdb_id: str | None
    names: set[str]
    """Normalised title and original title."""
    parts: set[str]
    """What is left of them without a subtitle, or without all but the subtitle."""
    years: set[int]
    directors: list[list[str]]
    """Words of each name."""


def normalise(title: str) -> str:
    """Return a title in the form in which all spellings of it are equal.

    No difference is made by case, accents, punctuation, an English article in front, roman numerals or number words
    instead of digits, "&" for "and", and a year or a label in brackets behind. Letters of every script stay, and a title
    of nothing but signs stays as it is.

    >>> normalise("The Fast & the Furious"), normalise("Rocky II"), normalise("Amélie (2001)"), normalise("Alien³")
    ('fast and the furious', 'rocky 2', 'amelie', 'alien 3')
    """
    words = [_NUMERALS.get(word, word) for word in _words(_LABEL.sub("", title))]
    plain = " ".join(words)
    for article in _ARTICLES:
        plain = plain.removeprefix(article)
    return plain or " ".join(title.casefold().split())


def match(a: Movie, b: Movie) -> Match:
    """Return how far two titles of different sites are the same."""
    return _compare(_prepare(a), _prepare(b))


def match_keys(movie: Movie, years_apart: int = 0) -> tuple[set[str], list[set[str]]]:
    """Return keys by which a title is found among many: those of its id and names, and those of each word's beginning.

    A title whose keys reach one year to either side (`years_apart` 1) shares one at least with each title of whose keys
    reach none and that `match` accepts: one of its names, or one of a word's beginning where they are spelt differently.
    Beginnings are shared with many others.
    """
    title = _prepare(movie)
    years = {year + apart for year in title.years for apart in range(-years_apart, years_apart + 1)}
    dated = {f"{name} ({year})" for name in title.names | title.parts for year in years}
    undated = {str(key) for keys in (_id_keys, _director_keys) for key in keys(title)}
    return dated | undated, [{f"{stem}… ({year})" for year in years} for stem in sorted(_stems(title))]


def spelt_alike(movie: Movie, titles: Iterable[str]) -> bool:
    """Return whether one of the titles is a movie's own or similar to it, without which `match` never accepts the two."""
    own = {normalise(title) for title in (movie.title, movie.original_title) if title}
    others = {normalise(title) for title in titles}
    return bool(own & others) or any(_similar(one, other) for one in own for other in others)


def join(movies: Iterable[Movie]) -> list[JoinedTitle]:
    """Return one row a title, in the order in which the movies first name it; every movie stands in exactly one row.

    The surest matches are made first. A movie that fits two movies of another site equally well is joined to neither,
    unless it is by IMDb id, when either is right. The same movies in the same order always give the same rows, in a
    time that grows about linearly with their number.
    """
    titles = [_prepare(movie) for movie in movies]
    row_of = list(range(len(titles)))
    rows = [[number] for number in row_of]
    matches: list[list[Match]] = [[] for _ in titles]

    def may_join(i: int, j: int) -> bool:
        return not any(_contradiction(titles[a], titles[b]) for a in rows[row_of[i]] for b in rows[row_of[j]])

    accepted: dict[float, list[tuple[int, int, Match]]] = defaultdict(list)
    for i, j, found in _accepted_pairs(titles):
        accepted[found.score].append((i, j, found))
    for score in sorted(accepted, reverse=True):
        pairs = sorted((pair for pair in accepted[score] if may_join(*pair[:2])), key=lambda pair: pair[:2])
        choices: dict[tuple[int, Site], int] = defaultdict(int)
        for i, j, _ in pairs:
            choices[i, titles[j].movie.site] += 1
            choices[j, titles[i].movie.site] += 1
        for i, j, found in pairs:
            only = choices[i, titles[j].movie.site] == choices[j, titles[i].movie.site] == 1
            if (only or score >= SAME_ID) and may_join(i, j):
                kept, lost = sorted((row_of[i], row_of[j]))
                rows[kept] += rows[lost]
                matches[kept] = sorted([*matches[kept], *matches[lost], found], key=lambda m: -m.score)
                for number in rows[lost]:
                    row_of[number] = kept
    return [
        JoinedTitle(movies={titles[n].movie.site: titles[n].movie for n in rows[row]}, matches=matches[row])
        for row in sorted(set(row_of))
    ]


# --- One title --------------------------------------------------------------------------------------------------------


def _words(text: str) -> list[str]:
    """Return a text's words in small letters, without accents; numbers are words of their own."""
    plain = unicodedata.normalize("NFKD", text).casefold().translate(_SPELT)
    plain = unicodedata.normalize("NFC", _INSIDE_WORDS.sub("", _ACCENTS.sub("", plain)))
    if plain.isascii():
        return _WORDS.findall(plain)
    kept = "".join(c if unicodedata.category(c)[0] in "LNM" else " " for c in plain)  # letters, numbers, marks
    return _LETTER_MEETS_DIGIT.sub(" ", kept).split()


def _prepare(movie: Movie) -> _Title:
    titles = [title for title in (movie.title, movie.original_title) if title]
    years = {movie.year} if movie.year is not None else set()
    if movie.release_date is not None:
        years.add(int(movie.release_date[:4]))
    return _Title(
        movie=movie,
        imdb_id=movie.imdb_id or (movie.site_id if movie.site == "imdb" else None),
        names={normalise(title) for title in titles},
        parts={part for title in titles for part in _parts(_LABEL.sub("", title))},
        years=years,
        directors=[words for credit in movie.people("director") if (words := _words(credit.name))],
    )


def _parts(title: str) -> Iterator[str]:
    parts = [part for part in _BETWEEN_PARTS.split(title) if part]
    if len(parts) > 1:
        number = _MERE_NUMBER.fullmatch(normalise(parts[-1]))
        # "Dune: Part One" is called "Dune" as well; "Dune: Part Two" is not, and many are called "Part Two".
        if number is None or number[1] == "1":
            yield normalise(parts[0])
        if number is None:
            yield normalise(parts[-1])
            yield normalise(f"{parts[0]} {parts[-1]}")


# --- Two titles -------------------------------------------------------------------------------------------------------


def _compare(a: _Title, b: _Title) -> Match:
    against = _contradiction(a, b)
    if against is not None:
        return Match(score=0.0, reasons=[f"but {against}"], accepted=False)
    same_id = a.imdb_id is not None and a.imdb_id == b.imdb_id
    title, gap, same_director = _title_evidence(a, b), _year_gap(a, b), _same_director(a, b)
    evidence = [
        (SAME_ID, "same IMDb id") if same_id else None,
        title,
        _year_evidence(a, b, gap),
        None if same_director is None else (1.0, "same director") if same_director else (-1.0, "other directors"),
    ]
    score = sum(points for points, _ in filter(None, evidence))
    reasons = [reason if points > 0 else f"but {reason}" for points, reason in filter(None, evidence)]
    far_apart = gap is not None and gap > 1
    if same_id:
        # The id that a page names may be that of a pilot or a dub: then neither title nor year agree.
        accepted = title is not None or not far_apart
    elif title is None:
        accepted = False
    elif title[0] == 1 and far_apart:
        # A film that is released again may carry the year of that. So does one that is made again, by someone else.
        accepted = same_director is True and not _runtimes_differ(a.movie, b.movie)
    else:
        # A sequel is often a subtitle and a year away.
        accepted = score >= ACCEPTED_FROM and (title[0] == 1 or gap == 0)
    return Match(score=score, reasons=reasons, accepted=accepted)


def _contradiction(a: _Title, b: _Title) -> str | None:
    """Return why two titles can't be one, whatever else they share; None when they can."""
    one, other = a.movie, b.movie
    if one.site == other.site:
        return f"both are of {one.site}"
    if one.kind != other.kind and not {one.kind, other.kind} <= _FILMS:
        return f"one is a {one.kind}, one a {other.kind}"
    if a.imdb_id and b.imdb_id and a.imdb_id != b.imdb_id:
        return f"IMDb ids {a.imdb_id} and {b.imdb_id}"
    # Metacritic's pages of seasons name the IMDb id of the series.
    if (one.season, one.episode) != (other.season, other.episode):
        return "other season or episode"
    return None


def _title_evidence(a: _Title, b: _Title) -> tuple[float, str] | None:
    if a.names & b.names:
        return 1.0, "same title"
    if a.names & b.parts or a.parts & b.names:
        return 0.5, "same title but for a subtitle"
    if any(_similar(one, other) for one in a.names for other in b.names):
        return 0.5, "similar title"
    return None


def _similar(one: str, other: str) -> bool:
    shorter, longer = sorted((len(one), len(other)))
    if shorter < _SHORTEST_SIMILAR or 2 * shorter < _SIMILAR * (shorter + longer):
        return False
    # "Rocky 2" and "Rocky 3" have most letters in common.
    if [word for word in one.split() if word.isdigit()] != [word for word in other.split() if word.isdigit()]:
        return False
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.quick_ratio() >= _SIMILAR and matcher.ratio() >= _SIMILAR


def _year_gap(a: _Title, b: _Title) -> int | None:
    """Return how many years two titles are apart; 1 where only a date of release agrees; None when unknown."""
    if a.movie.year is not None and a.movie.year == b.movie.year:
        return 0
    return min((max(1, abs(one - other)) for one in a.years for other in b.years), default=None)


def _year_evidence(a: _Title, b: _Title, gap: int | None) -> tuple[float, str] | None:
    if gap is None:
        return None
    if gap == 0:
        return 1.0, "same year"
    return (0.5 if gap == 1 else -1.0), f"years {min(a.years)} and {min(b.years)}"


def _same_director(a: _Title, b: _Title) -> bool | None:
    """Return whether the titles share a director; None when a site names none, or writes them in another script."""
    unsure = not a.directors or not b.directors
    for one in a.directors:
        for other in b.directors:
            # "Bong Joon Ho" and "Joon-ho Bong"; "The Wachowskis" and "Lana Wachowski".
            if set(one) == set(other) or _similar(one[-1], other[-1]) or one[-1] == other[-1]:
                return True
            unsure = unsure or _is_latin(one) != _is_latin(other)
    return None if unsure else False


def _is_latin(words: list[str]) -> bool:
    return "".join(words).isascii()


def _runtimes_differ(one: Movie, other: Movie) -> bool:
    if one.runtime_minutes is None or other.runtime_minutes is None:
        return False
    longer = max(one.runtime_minutes, other.runtime_minutes)
    return abs(one.runtime_minutes - other.runtime_minutes) > _RUNTIME_SPREAD * longer


# --- Many titles ------------------------------------------------------------------------------------------------------


def _accepted_pairs(titles: list[_Title]) -> Iterator[tuple[int, int, Match]]:
    """Yield the numbers of each two titles that are accepted as one, once, and their match.

    Compared are those with an id, a name, or the beginning of a rare word in common; the last, which is the most work,
    only where a title still lacks its match on the other's site.
    """
    compared: set[tuple[int, int]] = set()
    matched: set[tuple[int, Site]] = set()
    for keys, done in ((_id_keys, set()), (_name_keys, set()), (_director_keys, set()), (_stem_keys, matched)):
        for i, j in _pairs(titles, keys, done):
            if (i, j) not in compared:
                compared.add((i, j))
                found = _compare(titles[i], titles[j])
                if found.accepted:
                    matched |= {(i, titles[j].movie.site), (j, titles[i].movie.site)}
                    yield i, j, found


def _pairs(
    titles: list[_Title], keys: Callable[[_Title], Iterable[object]], done: set[tuple[int, Site]]
) -> Iterator[tuple[int, int]]:
    """Yield the numbers of each two titles of different sites that have a key in common and are not `done` there."""
    blocks: dict[object, dict[Site, list[int]]] = defaultdict(dict)
    for number, title in enumerate(titles):
        for key in keys(title):
            blocks[key].setdefault(title.movie.site, []).append(number)
    for block in blocks.values():
        for (our_site, ours), (their_site, theirs) in combinations(block.items(), 2):
            left = [number for number in ours if (number, their_site) not in done]
            right = [number for number in theirs if (number, our_site) not in done]
            if len(left) * len(right) <= _LARGEST_BLOCK:
                yield from ((min(pair), max(pair)) for pair in product(left, right))


def _id_keys(title: _Title) -> Iterable[object]:
    return (title.imdb_id,) if title.imdb_id else ()


def _name_keys(title: _Title) -> Iterable[object]:
    return {(name, year) for name in title.names | title.parts for year in _near(title.years)}


def _director_keys(title: _Title) -> Iterable[object]:
    """Return what makes candidates of titles whose years are unknown or far apart."""
    return {(name, words[-1]) for name in title.names for words in title.directors}


def _stem_keys(title: _Title) -> Iterable[object]:
    """Return what makes candidates of titles that are spelt differently, mostly at the end of a word."""
    return {(stem, year) for stem in _stems(title) for year in _near(title.years)}


def _stems(title: _Title) -> set[str]:
    return {word[:_STEM] for name in title.names for word in name.split() if len(word) >= _STEM}


def _near(years: set[int]) -> set[int]:
    """Return years of which two titles share one exactly when they are at most a year apart."""
    return years | {year + 1 for year in years}
