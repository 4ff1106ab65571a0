"""Matches titles of different sites. Pure.

`matching.comparing` compares two titles. The pairs with most points are matched first, and only if
a pair is half a point ahead of every other pair of its two titles: a page that may be of two films
is matched with neither. Votes decide between titles of one name, as a site with reviews means the
film that people know. Seasons and episodes are not compared: they match when their series and their
numbers do.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import TYPE_CHECKING, NamedTuple

from moviecrawler.matching.comparing import (
    BY_HAND,
    LISTED,
    NO_EVIDENCE,
    RIVALS_WITHIN,
    SAME_ID,
    WIKIDATA,
    Evidence,
    Match,
    compare,
    contradiction,
    have_something_in_common,
)
from moviecrawler.matching.facts import IdSource, TitleFacts
from moviecrawler.matching.forms import Title, block_keys, name_keys, prepare
from moviecrawler.sites import ID_SITE
from moviecrawler.sites.ids import current_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moviecrawler.items import Movie, Site

DAYS_REMEMBERED = 90
"""Days for which a refused page isn't compared with the same title again."""

LARGEST_BLOCK = 2_500
"""Most pairs that are compared because of one key. A key that more titles share is no evidence, and
comparing all of them would take too long."""
RIVAL_FROM = 0.5
"""Points from which a refused pair may still keep another pair from being accepted."""
_MOST_OF_ONE_ID = 20
"""Records of one site that may name one IMDb id. An id that more name is no evidence."""
_YEARS_APART = 2
"""Years by which a page and a title may differ when the database finds them by their names."""

_EVIDENCE: dict[IdSource | None, Evidence] = {
    "given": Evidence(BY_HAND, "given by hand"),
    "wikidata": Evidence(WIKIDATA, "named by Wikidata"),
    "sitemap": Evidence(LISTED, "in the site's sitemap"),
    "list": Evidence(LISTED, "in a list of the site"),
}
"""By the source of a page's id. A matched id has none, as its evidence was counted then."""


@dataclass(slots=True, kw_only=True)
class MatchedTitle:
    """The records of one title."""

    movies: dict[Site, Movie]
    """At least one, and at most one of each site."""
    matches: list[Match] = field(default_factory=list)
    """The matches between them, the surest first: one fewer than there are movies."""


class Pair(NamedTuple):
    """Two titles, by their numbers, that may be the same."""

    a: int
    b: int
    match: Match


def verify(expected: TitleFacts, movie: Movie, evidence: IdSource | None) -> Match:
    """Compare a page with a title of the catalogue; `evidence` says how the page was found.

    A page that fits another title of the same name about as well is put under review.
    """
    page = title_of(movie)
    of_id = _EVIDENCE.get(evidence, NO_EVIDENCE)
    match = compare(prepare(ID_SITE, expected), page, of_id)
    if match.accepted and of_id.points < WIKIDATA and match.score < SAME_ID:
        for rival in expected.rivals:
            other = compare(prepare(ID_SITE, rival), page)
            if is_rival(other) and other.weight > match.weight - of_id.points - RIVALS_WITHIN:
                match.reasons.append(f"but it may be {rival.imdb_id or rival.title} as well")
                match.decision = "review"
                break
    return match


def match_keys(movie: Movie, *, asking: bool = False) -> set[str]:
    """Return keys by which a title is found among many.

    The keys for `asking` cover neighbouring years: they include a key of every title that `compare`
    may match with this one.
    """
    title = title_of(movie)
    reach = _YEARS_APART if asking else 0
    years = {year + apart for year in title.years for apart in range(-reach, reach + 1)}
    # Names with directors find re-releases of any year.
    undated = {f"{name}/{person[-1]}" for name in title.names for person in title.directors}
    if title.imdb_id:
        undated.add(title.imdb_id)
    return undated.union(f"{key} ({year})" for key in name_keys(title) for year in years)


def newer_records(
    movies: Sequence[Movie], aliases: Mapping[Site, Mapping[str, str]]
) -> dict[int, int]:
    """Return which records are older ones of a title that its site has a newer record of.

    Two records of a site are one title when the id of one is an alias of the other's, or when both
    name the same IMDb id and `compare` accepts them.

    Args:
        movies: The records.
        aliases: Of each site, the current id by each former one.

    Returns:
        The index of the newest record by the index of each older one.
    """
    by_id = {(movie.site, movie.site_id): number for number, movie in enumerate(movies)}
    newer: dict[int, int] = {}
    by_imdb_id: dict[tuple[Site, str], list[int]] = defaultdict(list)
    for number, movie in enumerate(movies):
        current = current_id(movie.site_id or "", aliases.get(movie.site, {}))
        of_alias = by_id.get((movie.site, current), number)
        if of_alias != number:
            newer[number] = of_alias
        elif movie.imdb_id is not None and movie.site != ID_SITE:
            by_imdb_id[movie.site, movie.imdb_id].append(number)
    for numbers in by_imdb_id.values():
        if len(numbers) > _MOST_OF_ONE_ID:
            continue
        numbers.sort(key=lambda number: (movies[number].scraped_at, number), reverse=True)
        titles = {number: title_of(movies[number]) for number in numbers}
        for position, number in enumerate(numbers):
            for newest in numbers[:position]:
                if newest not in newer and compare(titles[number], titles[newest]).accepted:
                    newer[number] = newest
                    break
    return {number: newer.get(newest, newest) for number, newest in newer.items()}


def match_titles(movies: Iterable[Movie], crowded: set[str] | None = None) -> list[MatchedTitle]:
    """Group movies by title, in the order of the first movie of each.

    Every movie is in exactly one group. A movie that fits two movies of another site about equally
    well is matched with neither, unless their IMDb ids are equal. The result depends on the movies
    and their order alone; the time grows about linearly with their number.

    Args:
        movies: The movies.
        crowded: Gets the keys that too many movies share to be evidence.
    """
    listed = list(movies)
    titles = dict(enumerate(map(title_of, listed)))
    rows = [[number] for number in titles]  # the records of the title of each
    matches: dict[int, list[Match]] = defaultdict(list)

    def may_match(i: int, j: int) -> bool:
        return not any(
            titles[a].site == titles[b].site or contradiction(titles[a], titles[b])
            for a in rows[i]
            for b in rows[j]
        )

    for pair in surest_pairs(
        _pairs_of(titles, crowded), lambda number: titles[number].site, may_match
    ):
        kept, lost = sorted((rows[pair.a], rows[pair.b]))
        both = [*matches[kept[0]], *matches[lost[0]], pair.match]
        matches[kept[0]] = sorted(both, key=lambda match: -match.score)
        kept.extend(lost)
        for number in lost:
            rows[number] = kept
    return [
        MatchedTitle(movies={listed[n].site: listed[n] for n in row}, matches=matches[first])
        for first, row in enumerate(rows)
        if row[0] == first
    ]


def surest_pairs(
    pairs: Iterable[Pair], site_of: Callable[[int], str], may_match: Callable[[int, int], bool]
) -> Iterator[Pair]:
    """Yield the pairs that are surely one title, the surest first.

    The caller matches each pair before it takes the next one; `may_match` then says which pairs are
    still possible.
    """
    ordered = sorted(pairs, key=lambda pair: (-pair.match.weight, pair.a, pair.b))
    # The pairs of a title with titles of one site.
    by_site: dict[tuple[int, str], list[Pair]] = defaultdict(list)
    for pair in ordered:
        by_site[pair.a, site_of(pair.b)].append(pair)
        by_site[pair.b, site_of(pair.a)].append(pair)

    def is_ahead(pair: Pair) -> bool:
        rivals = (*by_site[pair.a, site_of(pair.b)], *by_site[pair.b, site_of(pair.a)])
        return pair.match.score >= SAME_ID or not any(
            rival is not pair
            and rival.match.weight > pair.match.weight - RIVALS_WITHIN
            and may_match(rival.a, rival.b)
            for rival in rivals
        )

    left = [pair for pair in ordered if pair.match.accepted]
    is_changed = True
    while is_changed:  # a matched pair may leave another one without rivals
        is_changed = False
        undecided = []
        for pair in left:
            if not may_match(pair.a, pair.b):
                continue
            if is_ahead(pair):
                is_changed = True
                yield pair
            else:
                undecided.append(pair)
        left = undecided


def is_rival(match: Match) -> bool:
    """Return whether a pair may be one title, or may keep another pair from being accepted."""
    return match.is_candidate and (match.decision != "refused" or match.score >= RIVAL_FROM)


def title_of(movie: Movie) -> Title:
    """Return a movie in the form that is compared."""
    rating = movie.score("imdb") if movie.site == ID_SITE else None
    makers = movie.people("creator" if movie.kind == "series" else "director")
    return prepare(
        movie.site,
        TitleFacts(
            imdb_id=movie.imdb_id or (movie.site_id if movie.site == ID_SITE else None),
            title=movie.title,
            original_title=movie.original_title,
            kind=movie.kind,
            year=movie.year,
            release_date=movie.release_date,
            runtime_minutes=movie.runtime_minutes,
            end_year=movie.end_year,
            season=movie.season,
            episode=movie.episode,
            season_count=movie.season_count,
            directors=[credit.name for credit in makers if credit.name],
            other_titles=[other.title for other in movie.other_titles],
            votes=rating.count if rating else None,
        ),
    )


# --- Many titles ----------------------------------------------------------------------------------


def _pairs_of(titles: Mapping[int, Title], crowded: set[str] | None) -> Iterator[Pair]:
    """Yield each pair of titles of different sites that may be one, once."""
    compared: set[tuple[int, int]] = set()
    for i, j in _candidates(titles, crowded):
        if (i, j) in compared:
            continue
        compared.add((i, j))
        # Most titles that share a key share only a subtitle.
        if have_something_in_common(titles[i], titles[j]):
            match = compare(titles[i], titles[j])
            if is_rival(match):
                yield Pair(i, j, match)


def _candidates(titles: Mapping[int, Title], crowded: set[str] | None) -> Iterator[tuple[int, int]]:
    blocks: dict[str, dict[str, list[int]]] = defaultdict(dict)
    for number, title in titles.items():
        for key in set(block_keys(title)):
            blocks[key].setdefault(title.site, []).append(number)
    for key, block in blocks.items():
        for ours, theirs in combinations(block.values(), 2):
            if len(ours) * len(theirs) <= LARGEST_BLOCK:
                yield from ((min(pair), max(pair)) for pair in product(ours, theirs))
            elif crowded is not None:
                crowded.add(key)
