"""Imports the ids of titles on several sites from Wikidata.

They are in a CSV that was saved from its query service. The service's robots.txt disallows its API,
so a person runs QUERY there. `sites/` has the properties of the sites' ids; P4947 and P4983 are
TMDB's ids of films and series. A file with a stack trace in the middle of a row, which a time-out
of the service leaves, is refused.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import ConfigurationError, ExtractionError
from moviecrawler.basics.texts import shown
from moviecrawler.catalogue.file_source import FileSource
from moviecrawler.catalogue.rows import LARGEST_ID, ImportRow
from moviecrawler.catalogue.spreadsheets import opened, read_rows
from moviecrawler.matching.comparing import WIKIDATA
from moviecrawler.sites import BY_AUTHORITY, ID_SITE, SITES
from moviecrawler.sites.ids import find_title_id, part_of_series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from moviecrawler.catalogue.loading import Done

PROPERTIES: dict[str, str] = {
    **{
        site: wikidata
        for site in BY_AUTHORITY
        if (wikidata := SITES[site].wikidata) and site != ID_SITE
    },
    "tmdb": "P4947",
    "tmdb_series": "P4983",
}
"""The properties of the query besides IMDb's ids, by column: a site, or one of TMDB's kinds of
id."""
QUERY = f"""\
SELECT ?imdb {" ".join(f"?{column}" for column in PROPERTIES)} WHERE {{
  ?film wdt:{SITES[ID_SITE].wikidata} ?imdb . FILTER(STRSTARTS(?imdb, "tt"))
  {" UNION ".join(f"{{ ?film wdt:{name} ?{column} }}" for column, name in PROPERTIES.items())}
}}
"""
"""The query to run at https://query.wikidata.org, whose result is saved as CSV."""
_MAX_LOST_SHARE = 0.1
"""Share of its titles that a file may lose from one import to the next."""
_ERROR_TEXTS = ("SPARQL-QUERY:", "java.util.concurrent", "QueryTimeoutException", "com.bigdata.")
"""Texts in a result that the service broke off."""
_MAX_ID_CHARS = 300
_UNSURE = WIKIDATA / 2
"""Points of an id that Wikidata gives to several films, or of several ids of one film."""


def _whole(lines: Iterable[str], name: str) -> Iterator[str]:
    """Yield the lines of a file. Raises ExtractionError when the service broke it off."""
    line = ""
    for line in lines:
        if any(sign in line for sign in _ERROR_TEXTS):
            raise ExtractionError(
                "crosswalk", name, "the query service broke it off (time limit); run it again later"
            )
        yield line
    if not line.endswith("\n"):
        raise ExtractionError(
            "crosswalk", name, "it ends inside a line, so it is not complete; save it again"
        )


def links(rows: Iterable[Mapping[str, str]]) -> Iterator[ImportRow]:
    """Yield each film's first valid id of every column, in the rows' order.

    An id is unsure when the film has another one too, or another film has the same; a film's unsure
    ids come in a row before its sure ones. TMDB's are left out then: no page is compared with them.
    """
    ids_of: dict[str, dict[str, str]] = defaultdict(dict)
    unsure: set[tuple[str, str]] = set()
    owners: dict[tuple[str, str], str] = {}
    for row in rows:
        imdb_id = _valid(ID_SITE, row["imdb"])
        if imdb_id is None:
            continue
        for column in PROPERTIES:
            value = _valid(column, row.get(column, ""))
            if value is None:
                continue
            if ids_of[imdb_id].setdefault(column, value) != value:
                unsure.add((imdb_id, column))
            owner = owners.setdefault((column, value), imdb_id)
            if owner != imdb_id:
                unsure |= {(imdb_id, column), (owner, column)}
    for imdb_id, ids in ids_of.items():
        doubtful = {column for column in ids if (imdb_id, column) in unsure}
        for confidence, columns in (
            (_UNSURE, doubtful & SITES.keys()),
            (WIKIDATA, ids.keys() - doubtful),
        ):
            if columns:
                yield ImportRow(
                    imdb_id=imdb_id,
                    site_ids={site: ids[site] for site in SITES if site in columns},
                    id_source="wikidata",
                    id_confidence=confidence,
                    tmdb_id=int(ids["tmdb"]) if "tmdb" in columns else None,
                    tmdb_series_id=int(ids["tmdb_series"]) if "tmdb_series" in columns else None,
                )


def _valid(column: str, value: str) -> str | None:
    """Return an id in this project's form.

    None for one of no title, such as a person, a game or a studio.

    A season's id becomes that of its series: IMDb has no ids of seasons, so a series of one season
    is meant.
    """
    value = value.strip()
    if not value.isprintable() or len(value) > _MAX_ID_CHARS:
        return None
    if column not in SITES:
        return (
            value if value.isdigit() and value.isascii() and 0 < int(value) <= LARGEST_ID else None
        )
    site_id = find_title_id(column, value)
    if site_id is None:
        return None
    part = part_of_series(column, site_id)
    if part is None:
        return site_id
    return part.series_id if part.kind == "season" else None


class WikidataCrosswalk(FileSource):
    """The ids of films and series on the other sites, by their IMDb ids."""

    name = "wikidata"
    is_read_first = True

    def __init__(self, path: Path) -> None:
        """Read the CSV at `path`."""
        super().__init__(str(path), [path], "a CSV saved from https://query.wikidata.org")

    def read(self) -> Iterator[ImportRow]:
        """Yield the rows of `links`; see `FileSource`."""
        (path,) = self.paths

        def columns_of(header: list[str]) -> list[str]:
            columns = [column.lstrip("?") for column in header]
            if "imdb" not in columns or not PROPERTIES.keys() & set(columns):
                needed = f"needed are imdb and one of {', '.join(sorted(PROPERTIES))}"
                raise ConfigurationError(
                    f"{path} has the columns {shown(', '.join(columns))}; {needed}"
                )
            return columns

        with opened(path) as file:
            yield from links(
                row.by_column() for row in read_rows(_whole(file, str(path)), str(path), columns_of)
            )

    def check(self, done: Done) -> None:
        """Raise ExtractionError when many rows are gone.

        A file that was cut off between two rows shows it in no other way.
        """
        rows = self.rows_read  # all, as the file is read first
        if done.former is not None and rows < done.former * (1 - _MAX_LOST_SHARE):
            reason = (
                f"it has the ids of {rows:,} titles, and had those of {done.former:,} at the last"
                " import, so it was cut off; save it again, or under another name if it is complete"
            )
            raise ExtractionError("crosswalk", self._origin, reason)
