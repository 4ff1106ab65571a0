"""Whether titles of different sites are the same title: a score with its reasons, and the join of many titles. Pure.

Evidence adds up: equal IMDb ids 4; an id given by hand 4, from Wikidata 2, from the site's own lists ¼; equal titles 1, a
further title ¾, similar ones ½; the same year 1, a year apart ½; the same director 1; about the same runtime ¼. Other
directors, other runtimes and years further apart count -1. A pair is accepted from 1½ on, with an id or a title that is
similar at least: never on a title alone, never when IMDb ids or kinds contradict each other. Years far apart are forgiven
to an equal title by the same director with about the same runtime: a film that was released again. What is not accepted
but scores 1 at least, or may be released again, is for a person to decide.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TYPE_CHECKING, Literal

from moviecrawler.catalogue.spelling import (
    is_latin,
    normalise,
    parts,
    similar,
    similar_words,
    sound,
    sounds_similar,
    split_words,
)
from moviecrawler.items import Credit, Movie

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from moviecrawler.catalogue.rows import IdSource, Wanted
    from moviecrawler.items import Site

Decision = Literal["accepted", "review", "refused"]

ACCEPTED_FROM = 1.5
REVIEW_FROM = 1.0
SAME_ID = 4.0
"""What an equal IMDb id counts: more than all else together."""
BY_HAND = 4.0
WIKIDATA = 2.0
LISTED = 0.25
DAYS_REMEMBERED = 90
"""For how long a refused page isn't compared with the same title again."""

_EQUAL, _ALTERNATIVE, _SIMILAR = 1.0, 0.75, 0.5
_SURE_WITHOUT_TITLE = 2.5
"""From there on an id that Wikidata names needs no similar title: films are renamed in other countries."""
_RUNTIME_SPREAD = 0.1
"""Cuts of one film differ by less, and so does a film that is released again; when it is made again, it seldom does."""
_LEAST_SPREAD = 5
"""Minutes by which runtimes may differ in any case: a short film's tenth is nothing."""
_SAME_RUNTIME = 2
"""Minutes by which two sites round and count the credits differently."""
_STEM = 4
"""Letters."""
_LARGEST_BLOCK = 2_500
"""Pairs that are compared because of one thing in common. What more titles share says nothing about them, and comparing
all of them would take time by the square of their number."""

_FILMS = frozenset({"movie", "short", "video"})
"""IMDb tells these apart; the other sites call all of them movies."""

_MAY_BE_OTHER = _FILMS | {"series", "other"}
"""IMDb's specials (a comedian's hour) are films on one site and series on another."""

_FROM_ELSEWHERE: dict[IdSource, tuple[float, str]] = {
    "given": (BY_HAND, "given by hand"),
    "wikidata": (WIKIDATA, "named by Wikidata"),
    "sitemap": (LISTED, "in the site's sitemap"),
    "list": (LISTED, "in a list of the site"),
}
"""What it counts where the page was found; that its id was guessed, or leads here by what else is compared, is nothing."""


@dataclass(slots=True, kw_only=True)
class Match:
    """How far two titles of different sites are the same."""

    score: float
    reasons: list[str]
    """What speaks for it and, with "but" in front, what speaks against it."""
    decision: Decision

    @property
    def accepted(self) -> bool:
        """Whether it is sure enough to be stored as one title."""
        return self.decision == "accepted"


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
    sounds: dict[str, str]
    """How each of the names sounds, by name."""
    years: set[int]
    directors: list[list[str]]
    """Words of each name."""
    alternatives: set[str] = field(default_factory=set)
    """Normalised further titles."""


def match(a: Movie, b: Movie) -> Match:
    """Return how far two titles of different sites are the same."""
    if a.site == b.site:
        return _refused(f"both are of {a.site}")
    return _compare(_prepare(a), _prepare(b))


def verify(wanted: Wanted, movie: Movie, evidence: IdSource | None, alternative_titles: Collection[str] = ()) -> Match:
    """Return how far a page is that of a title of the catalogue.

    `evidence` says how the page was found; `alternative_titles` are further names under which the title is known.
    """
    known = Movie(
        site="imdb",
        site_id=wanted.imdb_id,
        url=None,
        title=wanted.title,
        original_title=wanted.original_title,
        kind=wanted.kind or movie.kind,
        year=wanted.year,
        runtime_minutes=wanted.runtime_minutes,
        season=movie.season if wanted.kind is None else None,
        episode=movie.episode if wanted.kind is None else None,
        credits=[Credit(name=name, role="director", position=n) for n, name in enumerate(wanted.directors, 1)],
    )
    ours, theirs = _prepare(known), _prepare(movie)
    ours.alternatives = {normalise(title) for title in alternative_titles}
    return _compare(ours, theirs, _FROM_ELSEWHERE.get(evidence) if evidence else None)


def match_keys(movie: Movie, years_apart: int = 0) -> tuple[set[str], list[set[str]]]:
    """Return keys by which a title is found among many: those of its id and names, and those of each word's beginning.

    A title whose keys reach one year to either side (`years_apart` 1) shares one at least with each title of whose keys
    reach none and that `match` accepts: one of its names, or one of a word's beginning where they are spelt differently.
    Beginnings are shared with many others.
    """
    title = _prepare(movie)
    years = {year + apart for year in title.years for apart in range(-years_apart, years_apart + 1)}
    names = title.names | title.parts | {f"~{heard}" for heard in title.sounds.values()}
    dated = {f"{name} ({year})" for name in names for year in years}
    undated = {str(key) for keys in (_id_keys, _director_keys) for key in keys(title)}
    return dated | undated, [{f"{stem}… ({year})" for year in years} for stem in sorted(_stems(title))]


def spelt_alike(movie: Movie, titles: Iterable[str]) -> bool:
    """Return whether one of the titles is a movie's own or similar to it, without which `match` never accepts the two."""
    own = _names(title for title in (movie.title, movie.original_title) if title)
    others = _names(titles)
    return bool(own.keys() & others.keys()) or any(
        _spelling(one, other, own[one], others[other]) is not None for one in own for other in others
    )


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
        return not any(
            titles[a].movie.site == titles[b].movie.site or _contradiction(titles[a], titles[b])
            for a in rows[row_of[i]]
            for b in rows[row_of[j]]
        )

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


def _prepare(movie: Movie) -> _Title:
    titles = [title for title in (movie.title, movie.original_title) if title]
    years = {movie.year} if movie.year is not None else set()
    if movie.release_date is not None:
        years.add(int(movie.release_date[:4]))
    sounds = _names(titles)
    return _Title(
        movie=movie,
        imdb_id=movie.imdb_id or (movie.site_id if movie.site == "imdb" else None),
        names=set(sounds),
        parts={part for title in titles for part in parts(title)},
        sounds=sounds,
        years=years,
        directors=[words for credit in movie.people("director") if (words := split_words(credit.name))],
    )


def _names(titles: Iterable[str]) -> dict[str, str]:
    """Return titles normalised, each with how it sounds."""
    return {normalise(title): sound(title) for title in titles}


# --- Two titles -------------------------------------------------------------------------------------------------------


def _refused(reason: str) -> Match:
    return Match(score=0.0, reasons=[f"but {reason}"], decision="refused")


def _compare(a: _Title, b: _Title, found: tuple[float, str] | None = None) -> Match:
    """Return how far two titles are one; `found` is what it counts where one was found, and says of it."""
    against = _contradiction(a, b)
    if against is not None:
        return _refused(against)
    same_id = a.imdb_id is not None and a.imdb_id == b.imdb_id
    title, gap, same_director = _title_evidence(a, b), _year_gap(a, b), _same_director(a, b)
    runtimes = _runtime_evidence(a.movie, b.movie)
    evidence = [
        (SAME_ID, "same IMDb id") if same_id else None,
        found,
        title,
        _year_evidence(a, b, gap),
        None if same_director is None else (1.0, "same director") if same_director else (-1.0, "other directors"),
        runtimes,
    ]
    score = sum(points for points, _ in filter(None, evidence))
    reasons = [reason if points > 0 else f"but {reason}" for points, reason in filter(None, evidence)]
    named = SAME_ID if same_id else found[0] if found else 0.0
    equal, far_apart = title is not None and title[0] > _SIMILAR, gap is not None and gap > 1
    other_runtime = runtimes is not None and runtimes[0] < 0
    if named >= BY_HAND:
        # The id that a page names may be that of a pilot or a dub: then neither title nor year agree.
        accepted = title is not None or not far_apart
    elif named >= WIKIDATA:
        accepted = score >= (ACCEPTED_FROM if title is not None else _SURE_WITHOUT_TITLE)
    elif title is None:
        accepted = False
    elif equal and far_apart:
        # A film that is released again may carry the year of that. So does one that is made again, by someone else.
        accepted = title[0] == _EQUAL and same_director is True and not other_runtime
    else:
        # A sequel is often a subtitle and a year away. A title that the site lists is no second reason for it.
        accepted = score - named >= ACCEPTED_FROM and (equal or gap == 0)
    may_be_released_again = equal and same_director is None and runtimes is not None and not other_runtime
    undecided = score >= REVIEW_FROM or may_be_released_again
    return Match(
        score=score,
        reasons=reasons,
        decision="accepted" if accepted else "review" if undecided else "refused",
    )


def _contradiction(a: _Title, b: _Title) -> str | None:
    """Return why two titles can't be one, whatever else they share; None when they can."""
    one, other = a.movie, b.movie
    kinds = {one.kind, other.kind}
    if len(kinds) > 1 and not kinds <= _FILMS and not ("other" in kinds and kinds <= _MAY_BE_OTHER):
        return f"one is a {one.kind}, one a {other.kind}"
    if a.imdb_id and b.imdb_id and a.imdb_id != b.imdb_id:
        return f"IMDb ids {a.imdb_id} and {b.imdb_id}"
    # Metacritic's pages of seasons name the IMDb id of the series.
    if (one.season, one.episode) != (other.season, other.episode):
        return "other season or episode"
    return None


def _title_evidence(a: _Title, b: _Title) -> tuple[float, str] | None:
    if a.names & b.names:
        return _EQUAL, "same title"
    if a.alternatives & b.names or a.names & b.alternatives:
        return _ALTERNATIVE, "a title under which it is known too"
    if a.names & b.parts or a.parts & b.names:
        return _SIMILAR, "same title but for a subtitle"
    spellings = (_spelling(one, other, a.sounds[one], b.sounds[other]) for one in a.names for other in b.names)
    return max(filter(None, spellings), default=None)


def _spelling(one: str, other: str, sound_of_one: str, sound_of_other: str) -> tuple[float, str] | None:
    """Return what it says that two normalised titles, which are not equal, are spelt in a similar way."""
    if is_latin(one) == is_latin(other):
        return (_SIMILAR, "similar title") if similar(one, other) else None
    if not sounds_similar(sound_of_one, sound_of_other):
        return None
    return (_EQUAL if sound_of_one == sound_of_other else _SIMILAR), "same title in another script"


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
            if set(one) == set(other) or similar_words(one[-1], other[-1]):
                return True
            if is_latin("".join(one)) != is_latin("".join(other)):
                if sounds_similar(sound(one[-1]), sound(other[-1])):
                    return True
                unsure = True  # letters without vowels, or names read in another language
    return None if unsure else False


def _runtime_evidence(one: Movie, other: Movie) -> tuple[float, str] | None:
    # Of a series, some sites give an episode's runtime and some that of all of them.
    if one.runtime_minutes is None or other.runtime_minutes is None or one.kind not in _FILMS:
        return None
    shorter, longer = sorted((one.runtime_minutes, other.runtime_minutes))
    if longer - shorter <= _SAME_RUNTIME:
        return 0.25, "same runtime"
    if longer - shorter > max(_RUNTIME_SPREAD * longer, _LEAST_SPREAD):
        return -1.0, f"runtimes of {one.runtime_minutes} and {other.runtime_minutes} min"
    return None


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
    names = title.names | title.parts | {f"~{heard}" for heard in title.sounds.values()}
    return {(name, year) for name in names for year in _near(title.years)}


def _director_keys(title: _Title) -> Iterable[object]:
    """Return what makes candidates of titles whose years are unknown or far apart."""
    return {(name, words[-1]) for name in title.names for words in title.directors}


def _stem_keys(title: _Title) -> Iterable[object]:
    """Return what makes candidates of titles that are spelt differently, mostly at the end of a word."""
    return {(stem, year) for stem in _stems(title) for year in _near(title.years)}


def _stems(title: _Title) -> set[str]:
    stems = {word[:_STEM] for name in title.names for word in name.split() if len(word) >= _STEM}
    return stems | {f"~{heard[:_STEM]}" for heard in title.sounds.values()}


def _near(years: set[int]) -> set[int]:
    """Return years of which two titles share one exactly when they are at most a year apart."""
    return years | {year + 1 for year in years}
