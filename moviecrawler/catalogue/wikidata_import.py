"""The ids of one film on several sites, from Wikidata.

The properties of the sites' ids stand in `sites.py`; P4947 is TMDB's of a film, P4983 that of a series. TV.com's (P1267) is not
asked for: that site has closed, and none of the others names it.

Read from its query service, or from a CSV that was saved there (BY_HAND_QUERY). The service is an API for programs, but its
robots.txt disallows it to robots, so it is asked only where the operator has switched ROBOTSTXT_OBEY off. A query that runs
into the service's time limit answers with status 200, and a stack trace in the middle of a row: an answer that isn't whole
is refused.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from moviecrawler.catalogue.comparing import WIKIDATA
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.rows import LARGEST_ID, ImportRow
from moviecrawler.catalogue.spreadsheets import read_rows, shown
from moviecrawler.datasets.downloads import DownloadError
from moviecrawler.errors import ConfigurationError, ExtractionError
from moviecrawler.sites import BY_AUTHORITY, SITES
from moviecrawler.urls import parse_title_id, part_of_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from moviecrawler.catalogue.fetching import Fetcher

SERVICE = "https://query.wikidata.org/sparql"
_FILM = f"?film wdt:{SITES['imdb'].wikidata} ?imdb"
PROPERTIES: dict[str, str] = {
    **{site: SITES[site].wikidata for site in BY_AUTHORITY if site != "imdb"},
    "tmdb": "P4947",
    "tmdb_series": "P4983",
}
"""What is asked for beside IMDb's ids, by the name of its column: a site, or what is one of TMDB's ids."""
BY_HAND_QUERY = f"""\
SELECT ?imdb {" ".join(f"?{column}" for column in PROPERTIES)} WHERE {{
  {_FILM} . FILTER(STRSTARTS(?imdb, "tt"))
  {" UNION ".join(f"{{ ?film wdt:{name} ?{column} }}" for column, name in PROPERTIES.items())}
}}
"""
"""What to run at https://query.wikidata.org, to be saved as CSV."""
_EDITED = 0.001
"""Part of the rows that people may change while the service is asked; its servers are seconds apart from each other too."""
_LOST = 0.1
"""Part of its ids that a crosswalk may lose from one import to the next."""
_KEPT = timedelta(days=1)
"""For how long the service isn't asked again."""
_TROUBLE = ("SPARQL-QUERY:", "java.util.concurrent", "QueryTimeoutException", "com.bigdata.")
"""What stands in an answer that the service broke off."""
_LONGEST_ID = 300
_UNSURE = WIKIDATA / 2
"""What an id counts that Wikidata gives to several films, or of which it gives several to one."""


def query(column: str) -> str:
    """Return the query for one of PROPERTIES. One at a time, as all at once take half of the service's time limit."""
    return f'SELECT ?imdb ?{column} WHERE {{ {_FILM} ; wdt:{PROPERTIES[column]} ?{column} . FILTER(STRSTARTS(?imdb, "tt")) }}'


def count_query(column: str) -> str:
    """Return the query for the number of rows of `query`."""
    return f"SELECT (COUNT(*) AS ?rows) WHERE {{ {{ {query(column)} }} }}"


def read_crosswalk(lines: Iterable[str], name: str) -> list[Mapping[str, str]]:
    """Return the rows of a CSV, by column, of which one is `imdb`; lines keep their ends.

    Raises ExtractionError when it was broken off, and ConfigurationError when it is something else.
    """

    def columns_of(header: list[str]) -> list[str]:
        columns = [column.lstrip("?") for column in header]
        if "imdb" not in columns or not PROPERTIES.keys() & set(columns):
            needed = f"needed are imdb and one of {', '.join(sorted(PROPERTIES))}"
            raise ConfigurationError(f"{name} has the columns {shown(', '.join(columns))}; {needed}")
        return columns

    return [row for row, _ in read_rows(_whole(lines, name), name, columns_of)]


def _whole(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yield the lines of an answer; refuse one that the service broke off."""
    line = ""
    for line in lines:
        if any(sign in line for sign in _TROUBLE):
            raise ExtractionError("crosswalk", name, "the query service broke it off (time limit); ask again later")
        yield line
    if not line.endswith("\n"):
        raise ExtractionError("crosswalk", name, "it ends inside a line, so it is not whole; save it again")


def links(rows: Iterable[Mapping[str, str]]) -> Iterator[ImportRow]:
    """Yield each film's first value of every column, in the rows' order, without values that can't be its site's.

    An id counts less when another row gives this film another value, or this value to another film.
    """
    found: dict[tuple[str, str], str] = {}
    several: set[tuple[str, str]] = set()
    owners: dict[tuple[str, str], str] = {}
    for row in rows:
        imdb_id = _valid("imdb", row["imdb"])
        for column in PROPERTIES:
            value = _valid(column, row.get(column, ""))
            if imdb_id is None or value is None:
                continue
            if found.setdefault((imdb_id, column), value) != value:
                several.add((imdb_id, column))
            if owners.setdefault((column, value), imdb_id) != imdb_id:
                several |= {(imdb_id, column), (owners[column, value], column)}
    for (imdb_id, column), value in found.items():
        of: dict[str, Any] = {"site_ids": {column: value}} if column in SITES else {f"{column}_id": int(value)}
        confidence = _UNSURE if (imdb_id, column) in several else WIKIDATA
        yield ImportRow(imdb_id=imdb_id, id_source="wikidata", id_confidence=confidence, **of)


def _valid(column: str, value: str) -> str | None:
    """Return an id in this project's form; None for what names no title: a person, a game, a studio, nothing.

    A season's is that of its series, as IMDb has no id of a season: whoever gave it meant a series of one season.
    """
    value = value.strip()
    if not value.isprintable() or len(value) > _LONGEST_ID:
        return None
    if column not in SITES:
        return value if value.isdigit() and value.isascii() and 0 < int(value) <= LARGEST_ID else None
    site: Any = column
    try:
        site_id = parse_title_id(site, value)
    except ConfigurationError:
        return None
    part = part_of_series(site, site_id)
    if part is None:
        return site_id
    return part.series_id if part.kind == "season" else None


class WikidataCrosswalk(FileSource):
    """The ids of films and series on the other sites, by their IMDb ids."""

    name = "wikidata"
    is_read_first = True

    def __init__(self, origin: str, data_dir: Path, *, now: datetime) -> None:
        """Read the CSV `origin`, or ask the query service at the URL `origin`, once a day at most."""
        folder = data_dir / "wikidata"
        self._answers = {folder / f"{column}.csv": column for column in PROPERTIES} if "://" in origin else {}
        super().__init__(origin, self._answers or [Path(origin)], f"a CSV saved from {SERVICE}")
        self._now = now

    async def fetch(self, fetcher: Fetcher) -> None:
        """Ask the service for what it was not asked for today; see `FileSource`."""
        for path, column in self._answers.items():
            if not self._is_recent(path):
                await self._ask(fetcher, column, path)

    def read(self) -> Iterator[ImportRow]:
        """Yield one row for each id of a title; see `FileSource`."""
        for path in self.paths:
            yield from links(self._read(path))

    def check_whole(self, before: int | None) -> None:
        """Raise ExtractionError when the crosswalk has lost many of its rows since it was imported `before`.

        An answer that is cut short between two rows shows it in no other way.
        """
        now = sum(1 for _ in self.rows())
        if before is not None and now < before * (1 - _LOST):
            reason = (
                f"it holds {now:,} ids, and held {before:,} when it was imported last, so it was cut short; save it again,"
                " or under another name if that is all"
            )
            raise ExtractionError("crosswalk", self._origin, reason)

    def _read(self, path: Path) -> list[Mapping[str, str]]:
        with self.reading(path) as file:
            try:
                return read_crosswalk((line.decode("utf-8-sig") for line in file), str(path))
            except UnicodeDecodeError as error:
                raise ExtractionError("crosswalk", str(path), f"not UTF-8: {error}") from error

    def _is_recent(self, path: Path) -> bool:
        return path.is_file() and self._now.timestamp() - path.stat().st_mtime < _KEPT.total_seconds()

    async def _ask(self, fetcher: Fetcher, column: str, path: Path) -> None:
        """Keep the service's answer, if it has as many rows as the service counts before and after."""
        before = await self._count(fetcher, column)
        body = await self._query(fetcher, query(column))
        text = body.decode("utf-8")
        rows = len(read_crosswalk(text.splitlines(keepends=True), self._origin))
        counted = sorted((before, await self._count(fetcher, column)))
        edited = _EDITED * counted[1]
        if not counted[0] - edited <= rows <= counted[1] + edited:
            raise ExtractionError(
                "crosswalk", self._origin, f"{rows} rows of {column}, where {counted[0]} were counted; ask again later"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f"{path.name}.{os.getpid()}.part")
        partial.write_bytes(body)
        partial.replace(path)

    async def _count(self, fetcher: Fetcher, column: str) -> int:
        text = (await self._query(fetcher, count_query(column))).decode("utf-8", "replace")
        number = text.splitlines()[-1].strip() if text.startswith("rows") and text.endswith("\n") else ""
        if not number.isdigit():
            raise ExtractionError(
                "crosswalk", self._origin, f"the number of rows came as {text[:80]!r}; ask again later"
            )
        return int(number)

    async def _query(self, fetcher: Fetcher, text: str) -> bytes:
        url = f"{self._origin}?{urlencode({'query': text})}"
        answer = await fetcher.get(url, {"Accept": "text/csv"})
        kind = (answer.headers.get("Content-Type") or b"no type").decode("latin-1")
        if answer.status != 200 or "text/csv" not in kind:  # noqa: PLR2004 - HTTP's own
            raise DownloadError(f"{self._origin}: HTTP status {answer.status}, {kind}; ask again later")
        return answer.body
