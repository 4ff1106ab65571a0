"""Which ids the titles of a list have on each site, for `scrapy crawl all`."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moviecrawler.basics.errors import ConfigurationError, ExtractionError
from moviecrawler.catalogue.id_lists import id_of, ids_of_rows, read_list, rows_of
from moviecrawler.catalogue.spreadsheets import SheetRow, known_columns
from moviecrawler.database.sqlite import read_sqlite
from moviecrawler.matching.comparing import WIKIDATA
from moviecrawler.sites import ID_SITE, SITES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from scrapy.settings import BaseSettings

    from moviecrawler.sites import Site

_STORED = """
SELECT other.site, other.site_id, other.imdb_id
FROM records r
JOIN records other ON other.record_id = r.record_id OR other.title_id = r.title_id
WHERE r.site = ? AND r.site_id = ?
"""
_CATALOGUED = """
SELECT other.site, other.site_id, NULL
FROM title_sites t
JOIN title_sites other USING (title_id)
WHERE t.site = %s AND t.site_id = %s AND other.site_id IS NOT NULL
    AND (other.id_verified OR other.id_confidence >= %s)
"""


@dataclass(kw_only=True)
class Film:
    """A title of a list."""

    location: str
    """Where the list names it."""
    ids: dict[Site, str] = field(default_factory=dict)
    """Its id on each site where that is known."""

    def add(self, ids: Iterable[tuple[Site, str]]) -> None:
        """Add ids on other sites, unless they belong to another IMDb title."""
        found = dict(ids)
        own = self.ids.get(ID_SITE)
        if own is None or found.get(ID_SITE, own) == own:
            self.ids = {**found, **self.ids}


def read_films(settings: BaseSettings, ids: str | None, file: str | None) -> list[Film]:
    """Return the titles that the arguments `ids` and `file` name by ids or URLs of any site.

    Raises ConfigurationError for a file that can't be read, and for an id that no site has, or
    that may be a title of several.
    """
    homes = {site: settings[profile.home_setting] for site, profile in SITES.items()}

    def is_id(text: str) -> bool:
        return any(id_of(site, text, homes[site]) for site in SITES)

    rows = [_row_of(text, f"ids: {text}") for text in (ids or "").split(",") if text.strip()]
    films = _films_of(rows, homes)
    if file is None:
        return films
    text = read_list(file)
    lines = {
        number: line.strip()
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    first = next(iter(lines.values()), "")
    if is_id(first) or not (set(",;\t") & set(first) or known_columns([first])[0]):
        rows = [_row_of(line, f"{file}, line {number}") for number, line in lines.items()]
    else:
        rows = rows_of(text, file, is_id)
    films += _films_of(rows, homes)
    if not any(film.ids for film in films):
        raise ConfigurationError(f"file {file!r} names no title by an id or URL of any site")
    return films


def _films_of(rows: list[SheetRow[str]], homes: dict[Site, str]) -> list[Film]:
    films = [Film(location=" of ".join(row.location.split(", ")[::-1])) for row in rows]
    for site, home in homes.items():
        for film, site_id in zip(films, ids_of_rows(site, rows, home), strict=True):
            if site_id is not None:
                film.ids[site] = site_id
    for film, row in zip(films, rows, strict=True):
        _check(film, row)
    return films


def _row_of(text: str, location: str) -> SheetRow[str]:
    return SheetRow(location=location, columns=[""], cells=[text.strip()])


def _check(film: Film, row: SheetRow[str]) -> None:
    """Raise ConfigurationError for a row that is one id, which is that of no site or of several."""
    if row.columns != [""] or len(film.ids) == 1:
        return
    if not film.ids:
        raise ConfigurationError(f"{film.location} is not an id or URL of {', '.join(SITES)}")
    if "://" not in row.cells[0]:
        raise ConfigurationError(
            f"{film.location} may be a title of {' and '.join(film.ids)}; give its URL"
        )


def find_ids(settings: BaseSettings, films: Sequence[Film], wikidata: str | None) -> None:
    """Add all ids that are known.

    They are in the embedded database, which also has those that pages of other sites name, in the
    catalogue and in Wikidata's file. Raises MovieCrawlerError when one can't be read.
    """
    with (
        suppress(FileNotFoundError, sqlite3.Error),
        closing(read_sqlite(Path(settings["DATA_DIR"]))) as connection,
    ):
        _find(films, lambda *key: connection.execute(_STORED, key).fetchall())
    if settings.get("DATABASE_URL"):
        # Imports Postgres' client.
        from moviecrawler.catalogue.store import open_catalogue  # noqa: PLC0415

        with closing(open_catalogue(settings)) as catalogue, catalogue.transaction() as cursor:

            def ask(site: Site, site_id: str) -> Any:
                cursor.execute(_CATALOGUED, (site, site_id, WIKIDATA))
                return cursor.fetchall()

            _find(films, ask)
    if wikidata is not None:
        # What imports Wikidata's file takes 0.05 s to import.
        from moviecrawler.catalogue.wikidata_import import WikidataCrosswalk  # noqa: PLC0415

        groups: dict[tuple[Site, str], list[tuple[Site, str]]] = {}
        try:
            for row in WikidataCrosswalk(Path(wikidata)).read():
                if row.id_confidence >= WIKIDATA and row.imdb_id:
                    group = [(ID_SITE, row.imdb_id), *row.site_ids.items()]
                    groups |= dict.fromkeys(group, group)
        except ExtractionError as error:
            raise ConfigurationError(f"wikidata is {wikidata!r}: {error}") from error
        _find(films, lambda *key: groups.get(key, ()))


def _find(films: Sequence[Film], ask: Callable[[Site, str], Iterable[Any]]) -> None:
    """Add to each film the ids of the titles that have one of its ids."""
    for film in films:
        for key in list(film.ids.items()):
            for site, site_id, *imdb_ids in ask(*key):
                film.add([(site, site_id), *((ID_SITE, i) for i in imdb_ids if i)])
