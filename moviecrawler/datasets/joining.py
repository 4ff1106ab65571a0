"""Whole titles from the files of IMDb's datasets: one pass over each file, and memory that doesn't grow with the titles.

The files are sorted by id in one way today and were in another before 2024, and two of them may be of different days. So
nothing is taken from their order but that the rows of one title stand together: what is wanted of each file goes to
temporary files, a share of the titles to each, and these are put together in memory, one after the other.
"""

from __future__ import annotations

import asyncio
import struct
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from typing import IO, TYPE_CHECKING, Final, cast
from zlib import crc32

from moviecrawler.datasets.names import IdSet, Names
from moviecrawler.extract.dataset_charts import chart
from moviecrawler.extract.dataset_titles import TitleReader, people_of
from moviecrawler.extract.datasets import (
    AKAS,
    BASICS,
    CREW,
    EPISODE,
    NAMES,
    PRINCIPALS,
    RATINGS,
    Table,
    gunzip,
    text_or_none,
    url_of,
)
from moviecrawler.extract.imdb_values import TITLE_KINDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from moviecrawler.extract.dataset_charts import ChartName
    from moviecrawler.extract.datasets import Damage, Row
    from moviecrawler.items import Movie

_BY_WORD: Final = {
    **{name.removeprefix("title."): name for name in (BASICS, RATINGS, CREW, PRINCIPALS, AKAS, EPISODE)},
    "names": NAMES,
}
"""The datasets, by the words of IMDB_DATASETS."""
_WITH_PEOPLE = frozenset({CREW, PRINCIPALS})
# Episodes first: their series' titles are looked for in title.basics.
_ORDER = (EPISODE, BASICS, RATINGS, CREW, PRINCIPALS, AKAS)
_SHARE = 5_000
"""Titles that are put together at once, about 15 MB of them."""
_MOST_SHARES = 200
"""Temporary files that are open at once."""
_IN_MEMORY = 32 * 1024 * 1024
"""Bytes of all shares that need no file on the disk."""
_BLOCKS_TO_CHECK = 16
"""Blocks of a megabyte that are read between two looks at whether the crawl ends."""
_HEAD = struct.Struct("<BBI")
"""Before the rows of a title: which dataset they are of, the length of its id, and theirs."""


def dataset_names(words: str) -> tuple[str, ...]:
    """Return the datasets that IMDB_DATASETS names, and the two that are read in any case."""
    return tuple(dict.fromkeys([BASICS, RATINGS, *(_BY_WORD[word.strip()] for word in words.split(","))]))


def read_chart(
    files: Mapping[str, Path], name: str, limit: int | None, damage: Damage
) -> tuple[IdSet, dict[str, Movie]]:
    """Return the ids of a chart, and its movies without credits where their places count.

    files: title.basics and title.ratings by name. `name` is `top` or `toptv`, computed by IMDb's formula; `popular` or
    `populartv`, the films or series of the most votes; or `all`, every movie and series in the order of the dataset. Raises ExtractionError for damaged files.
    """
    with files[BASICS].open("rb") as basics, files[RATINGS].open("rb") as ratings:
        if name == "all":
            table = Table(BASICS, gunzip(basics, url_of(BASICS)), damage.add)
            return IdSet(islice(table.each(_movie_or_series), limit)), {}
        blocks = gunzip(basics, url_of(BASICS)), gunzip(ratings, url_of(RATINGS))
        movies = chart(*blocks, cast("ChartName", name), on_error=damage.add)[:limit]
        by_id = {movie.site_id or "": movie for movie in movies}
        return IdSet(map(str.encode, by_id)), by_id


def _movie_or_series(row: Row) -> bytes | None:
    """Return the id in a row of title.basics, if it is that of a movie or series."""
    return row[0] if TITLE_KINDS.get(text_or_none(row[1]) or "") in {"movie", "series"} else None


def read_titles(
    files: Mapping[str, Path], wanted: IdSet, damage: Damage, check: Callable[[], object] = lambda: None
) -> Iterator[Movie]:
    """Yield the wanted titles that are in title.basics, each with all that the files tell of it.

    files: the datasets' files by name, such as `title.crew`; the more of them, the fuller the movies. Damaged rows are added
    to `damage`. `check` is called now and then, and may raise what ends the pass. Raises ExtractionError for damaged files:
    then nothing was yielded yet.
    """
    with ExitStack() as stack:
        tables = {
            name: Table(
                name, _checked(gunzip(stack.enter_context(files[name].open("rb")), url_of(name)), check), damage.add
            )
            for name in files
        }
        count = min(_MOST_SHARES, -(-len(wanted) // _SHARE)) or 1
        folder = files[BASICS].parent
        shares: list[IO[bytes]] = [
            stack.enter_context(tempfile.SpooledTemporaryFile(_IN_MEMORY // count, dir=str(folder)))
            for _ in range(count)
        ]
        people = IdSet()
        reader = TitleReader(tables)
        series = IdSet()
        with_series = IdSet()
        for number, name in enumerate(_ORDER):
            if name not in tables:
                continue
            if name == BASICS:
                with_series |= wanted
                with_series |= series
            for rows, key in tables[name].parts(with_series if name == BASICS else wanted):
                if name == EPISODE and (of_series := reader.series_of(rows, key)):
                    series.add(of_series)
                elif name in _WITH_PEOPLE:
                    for person in people_of(rows):
                        people.add(person)
                if name == BASICS and key in series and (title := reader.title(rows, key)):
                    reader.series_titles[key] = title
                if key in wanted:
                    share = shares[crc32(key) % count]
                    share.write(_HEAD.pack(number, len(key), len(rows)) + key + rows)
        del series, with_series  # 12 MB each
        reader.name_of = _read_names(tables.get(NAMES), people).of
        for share in shares:
            check()
            yield from _put_together(share, reader, damage)


def _checked(blocks: Iterable[bytes], check: Callable[[], object]) -> Iterator[bytes]:
    """Yield the blocks, and call `check` now and then."""
    for number, block in enumerate(blocks):
        if not number % _BLOCKS_TO_CHECK:
            check()
        yield block


def _read_names(table: Table | None, people: IdSet) -> Names:
    names = Names(people)
    if table is not None:
        for person, name in table.each(lambda row: row if text_or_none(row[1]) else None, people):
            names.add(person, name)
    return names


def _put_together(share: IO[bytes], reader: TitleReader, damage: Damage) -> Iterator[Movie]:
    """Yield the titles of a share."""
    titles: dict[bytes, dict[str, bytes]] = {}
    share.seek(0)
    while head := share.read(_HEAD.size):
        number, of_key, of_rows = _HEAD.unpack(head)
        parts = titles.setdefault(share.read(of_key), {})
        # Rows of a title that stand apart are taken together.
        parts[_ORDER[number]] = parts.get(_ORDER[number], b"") + share.read(of_rows)
    share.close()
    while titles:
        key = next(iter(titles))
        rows = titles.pop(key)
        movie = reader.movie(key, rows)
        if movie is not None:
            yield movie
        elif BASICS in rows:
            damage.titles.add(key.decode())


async def off_the_event_loop(movies: Iterator[Movie], size: int) -> AsyncIterator[list[Movie]]:
    """Yield what an iterator that reads files gives, so many at a time, while the event loop stays free."""
    loop = asyncio.get_running_loop()
    # One thread for all: each that allocates so much keeps memory of its own.
    thread = ThreadPoolExecutor(1, "datasets")
    try:
        while batch := await loop.run_in_executor(thread, lambda: list(islice(movies, size))):
            yield batch
    finally:
        thread.shutdown(wait=False)
