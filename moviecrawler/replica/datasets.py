"""IMDb's datasets of the replica's movies and series, made as they are read.

Every file is a chain of gzip members: the header line, then one for each half block of ids (or of people), then one for each 200 series. All
full members of a kind have the same size, to which they are padded in their headers' extra field: so that the file's length and the member at
any offset are known without making the rest.
"""

from __future__ import annotations

import functools
import zlib
from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from isal import isal_zlib

from moviecrawler.replica.movies import ROWS_PER_HALF
from moviecrawler.replica.people import people, people_of
from moviecrawler.replica.series import SHAPES, episode_title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from moviecrawler.replica.movies import Catalogue
    from moviecrawler.replica.titles import Basics

LAST_MODIFIED = "Sun, 01 Nov 2026 00:40:00 GMT"

_LEVEL = 1
_RAW_DEFLATE = -15
_HEADER = b"\x1f\x8b\x08\x04\x00\x00\x00\x00\x00\xff"  # with an extra field
_SUBFIELD = b"mc"
_FRAME = len(_HEADER) + 2 + len(_SUBFIELD) + 2 + 8
"""What a member has around its data and padding: header, length and head of the extra field, checksum and size."""
_NULL = r"\N"
_SERIES_PER_MEMBER = 10 * len(SHAPES)  # so that all members have about as many rows

_ROOM = 36_000
"""How much larger than the first a full member may be; some are smaller, and 64 kB is the most that can be padded."""


@dataclass(frozen=True)
class _Section:
    """A part of a dataset whose full members have one size."""

    rows: Callable[[Catalogue, int], Iterable[str]]
    """Returns the lines of the `n`th member."""
    members: Callable[[Catalogue], list[bool]]
    """Returns for each member whether it is full."""


@dataclass(frozen=True)
class _Table:
    """One of the datasets."""

    columns: str
    sections: tuple[_Section, ...]


class Dataset:
    """One file of a catalogue."""

    def __init__(self, catalogue: Catalogue, name: str) -> None:
        """Open a dataset by its file name. Raises KeyError when IMDb has none of that name."""
        self._table = TABLES[name]
        self._catalogue = catalogue
        series = catalogue.series
        self.etag = f'"{name}-{catalogue.seed}-{catalogue.count}-{series.count}-{series.today}"'

    @functools.cached_property
    def _members(self) -> list[tuple[_Section, int, bool]]:
        """Section, number within it, and whether it is full, of each member after the header's."""
        return [
            (section, number, is_full)
            for section in self._table.sections
            for number, is_full in enumerate(section.members(self._catalogue))
        ]

    @functools.cached_property
    def _ends(self) -> list[int]:
        """The offset behind each member."""
        sizes = [
            self._full_size(section) if is_full else len(self._member(number))
            for number, (section, _, is_full) in enumerate(self._members, start=1)
        ]
        return list(accumulate([len(self._member(0)), *sizes]))

    @functools.cache  # noqa: B019 - as many as there are datasets
    def _full_size(self, section: _Section) -> int:
        """Bytes of every full member: those of the first, and room for larger ones."""
        first = section.members(self._catalogue).index(True)
        return len(_gzip_member(_lines(section.rows(self._catalogue, first)), None)) + _ROOM

    @property
    def size(self) -> int:
        """Bytes of the whole file."""
        return self._ends[-1]

    def read(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the file's bytes from `start` up to `end`, a member at a time."""
        number = bisect_right(self._ends, start)
        while start < end:
            begin = self._ends[number] - len(self._member(number))
            piece = self._member(number)[start - begin : end - begin]
            yield piece
            start += len(piece)
            number += 1

    @functools.lru_cache(maxsize=16)  # noqa: B019 - for all files at once; each is read in ranges that begin where the last one ended
    def _member(self, number: int) -> bytes:
        if not number:
            return _gzip_member(_lines([self._table.columns]), None)
        section, place, is_full = self._members[number - 1]
        return _gzip_member(_lines(section.rows(self._catalogue, place)), self._full_size(section) if is_full else None)


def _lines(rows: Iterable[str]) -> bytes:
    return "".join(f"{row}\n" for row in rows).encode()


def _gzip_member(content: bytes, size: int | None) -> bytes:
    """Return a gzip member, padded to `size` bytes if given. Raises ValueError when it can't be."""
    compressor = isal_zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW_DEFLATE)
    deflated = compressor.compress(content) + compressor.flush()
    padding = 0 if size is None else size - len(deflated) - _FRAME
    if not 0 <= padding < 0xFFFF - 4:
        raise ValueError(f"a member of {len(deflated) + _FRAME} bytes can't be padded to {size}")
    return b"".join(
        (
            _HEADER,
            (padding + 4).to_bytes(2, "little"),
            _SUBFIELD,
            padding.to_bytes(2, "little"),
            bytes(padding),
            deflated,
            isal_zlib.crc32(content).to_bytes(4, "little"),
            len(content).to_bytes(4, "little"),
        )
    )


# --- Rows -----------------------------------------------------------------------------------------------------------


def _halves(catalogue: Catalogue) -> list[bool]:
    return [catalogue.is_full(*half) for half in catalogue.halves()]


def _indexes(catalogue: Catalogue, member: int) -> list[int]:
    return catalogue.indexes_by_id(*catalogue.halves()[member])


def _basics(catalogue: Catalogue, member: int) -> Iterator[str]:
    for index in _indexes(catalogue, member):
        yield _basics_row(catalogue.imdb_id(index), catalogue.basics(index))


def _basics_row(imdb_id: str, basics: Basics) -> str:
    original, runtime = basics.original_title or basics.title, basics.runtime_minutes or _NULL
    return (
        f"{imdb_id}\t{basics.title_type}\t{basics.title}\t{original}\t0\t{basics.year}\t{basics.end_year or _NULL}\t"
        f"{runtime}\t{','.join(basics.genres)}"
    )


def _ratings(catalogue: Catalogue, member: int) -> Iterator[str]:
    for index in _indexes(catalogue, member):
        rating = catalogue.rating(index)
        if rating is not None:
            yield f"{catalogue.imdb_id(index)}\t{rating[0]}\t{rating[1]}"


def _crew(catalogue: Catalogue, member: int) -> Iterator[str]:
    for index in _indexes(catalogue, member):
        made = catalogue.credits(index)
        directors, writers = (",".join(person.imdb_id for person in who) for who in (made.directors, made.writers))
        yield f"{catalogue.imdb_id(index)}\t{directors}\t{writers}"


def _principals(catalogue: Catalogue, member: int) -> Iterator[str]:
    for index in _indexes(catalogue, member):
        site_id, made = catalogue.imdb_id(index), catalogue.credits(index)
        parts = [("actor", person, character) for person, character in made.cast]
        parts += [("director", person, None) for person in made.directors]
        parts += [("writer", person, None) for person in made.writers]
        for ordering, (category, person, character) in enumerate(parts, start=1):
            # As JSON: nobody's name has anything to be escaped.
            played = '["' + character.replace(" / ", '","') + '"]' if character else _NULL
            yield f"{site_id}\t{ordering}\t{person.imdb_id}\t{category}\t{_NULL}\t{played}"


def _people_members(catalogue: Catalogue) -> list[bool]:
    full, rest = divmod(people_of(catalogue.count), ROWS_PER_HALF)
    return [True] * full + [False] * bool(rest)


def _names(catalogue: Catalogue, member: int) -> Iterator[str]:
    first = member * ROWS_PER_HALF
    for person in people(first, min(first + ROWS_PER_HALF, people_of(catalogue.count))):
        yield f"{person.imdb_id}\t{person.name}\t{_NULL}\t{_NULL}\tactor\t{_NULL}"


def _akas(catalogue: Catalogue, member: int) -> Iterator[str]:
    for index in _indexes(catalogue, member):
        site_id, basics = catalogue.imdb_id(index), catalogue.basics(index)
        yield f"{site_id}\t1\t{basics.original_title or basics.title}\t{_NULL}\t{_NULL}\toriginal\t{_NULL}\t1"
        yield f"{site_id}\t2\t{basics.title}\tUS\ten\timdbDisplay\t{_NULL}\t0"
        yield f"{site_id}\t3\t{basics.title} {index}\tXWW\t{_NULL}\tworking\x02festival\t{_NULL}\t0"


def _series_members(catalogue: Catalogue) -> list[bool]:
    full, rest = divmod(catalogue.series.count, _SERIES_PER_MEMBER)
    return [True] * full + [False] * bool(rest)


def _series_of(catalogue: Catalogue, member: int) -> range:
    return range(member * _SERIES_PER_MEMBER, min((member + 1) * _SERIES_PER_MEMBER, catalogue.series.count))


def _series_basics(catalogue: Catalogue, member: int) -> Iterator[str]:
    """Yield rows in the order of their ids: a series, then its episodes."""
    series = catalogue.series
    for index in _series_of(catalogue, member):
        basics = series.basics(index)
        yield _basics_row(series.imdb_id(index), basics)
        rest = f"{_NULL}\t{basics.runtime_minutes}\t{','.join(basics.genres)}"
        for ordinal, _, _, day in series.plan(index):
            title = episode_title(index, ordinal)
            yield f"{series.imdb_id(index, ordinal)}\ttvEpisode\t{title}\t{title}\t0\t{day.year}\t{rest}"


def _series_ratings(catalogue: Catalogue, member: int) -> Iterator[str]:
    series = catalogue.series
    for index in _series_of(catalogue, member):
        rating = series.rating(index)
        yield f"{series.imdb_id(index)}\t{rating[0]}\t{rating[1]}"
        for ordinal, _, _, day in series.plan(index):
            rated = series.episode_rating(index, ordinal, day, rating)
            if rated is not None:
                yield f"{series.imdb_id(index, ordinal)}\t{rated[0]}\t{rated[1]}"


def _episodes(catalogue: Catalogue, member: int) -> Iterator[str]:
    series = catalogue.series
    for index in _series_of(catalogue, member):
        for ordinal, season, episode, _ in series.plan(index):
            shown = f"{_NULL}\t{_NULL}" if season is None else f"{season}\t{episode}"
            yield f"{series.imdb_id(index, ordinal)}\t{series.imdb_id(index)}\t{shown}"


TABLES = {
    "title.basics.tsv.gz": _Table(
        "tconst\ttitleType\tprimaryTitle\toriginalTitle\tisAdult\tstartYear\tendYear\truntimeMinutes\tgenres",
        (_Section(_basics, _halves), _Section(_series_basics, _series_members)),
    ),
    "title.ratings.tsv.gz": _Table(
        "tconst\taverageRating\tnumVotes",
        (_Section(_ratings, _halves), _Section(_series_ratings, _series_members)),
    ),
    "title.crew.tsv.gz": _Table("tconst\tdirectors\twriters", (_Section(_crew, _halves),)),
    "title.principals.tsv.gz": _Table(
        "tconst\tordering\tnconst\tcategory\tjob\tcharacters", (_Section(_principals, _halves),)
    ),
    "title.akas.tsv.gz": _Table(
        "titleId\tordering\ttitle\tregion\tlanguage\ttypes\tattributes\tisOriginalTitle", (_Section(_akas, _halves),)
    ),
    "title.episode.tsv.gz": _Table(
        "tconst\tparentTconst\tseasonNumber\tepisodeNumber", (_Section(_episodes, _series_members),)
    ),
    "name.basics.tsv.gz": _Table(
        "nconst\tprimaryName\tbirthYear\tdeathYear\tprimaryProfession\tknownForTitles",
        (_Section(_names, _people_members),),
    ),
}
"""The datasets by file name."""
