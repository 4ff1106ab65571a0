"""Finds which ids the titles of a list have on each site, for `scrapy crawl all`."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from moviecrawler.basics.errors import ConfigurationError, ExtractionError
from moviecrawler.database.reading import reading_sqlite
from moviecrawler.matching.comparing import WIKIDATA
from moviecrawler.sites import ID_SITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from scrapy.settings import BaseSettings

    from moviecrawler.catalogue.id_lists import Film
    from moviecrawler.sites import Site

    Known = tuple[Site, str, str | None]
    """A site, the id of a title there, and its IMDb id."""

_STORED = """
SELECT other.site, other.site_id, other.imdb_id
FROM records r
JOIN records other ON other.record_id = r.record_id OR other.title_id = r.title_id
WHERE r.site = ? AND r.site_id = ?
"""
_CATALOGUED = """
SELECT other.site, other.site_id, titles.imdb_id
FROM title_sites t
JOIN title_sites other USING (title_id)
JOIN titles USING (title_id)
WHERE t.site = %s AND t.site_id = %s AND other.site_id IS NOT NULL
    AND (other.id_verified OR other.id_confidence >= %s)
"""


def find_ids(settings: BaseSettings, films: Sequence[Film], wikidata: str | None) -> None:
    """Add all ids that are known.

    They are in the embedded database, which also has those that pages of other sites name, in the
    catalogue and in Wikidata's file. Raises MovieCrawlerError when one can't be read.
    """
    with (
        suppress(FileNotFoundError),
        reading_sqlite(Path(settings["DATA_DIR"])) as tables,
    ):
        _add(films, lambda *key: tables.connection.execute(_STORED, key))
    if settings.get("DATABASE_URL"):
        # Imports Postgres' client.
        from moviecrawler.catalogue.store import open_catalogue  # noqa: PLC0415

        with closing(open_catalogue(settings)) as catalogue, catalogue.transaction() as cursor:

            def find(site: Site, site_id: str) -> Iterator[Known]:
                cursor.execute(_CATALOGUED, (site, site_id, WIKIDATA))
                yield from cursor.fetchall()

            _add(films, find)
    if wikidata is not None:
        known = _read_wikidata(Path(wikidata))
        _add(films, lambda *key: known.get(key, ()))


def _read_wikidata(path: Path) -> dict[tuple[Site, str], Sequence[Known]]:
    """Return the ids of each title by each of them."""
    # What imports Wikidata's file takes 0.05 s to import.
    from moviecrawler.catalogue.wikidata_import import WikidataCrosswalk  # noqa: PLC0415

    known: dict[tuple[Site, str], Sequence[Known]] = {}
    try:
        for row in WikidataCrosswalk(path).read():
            if row.id_confidence >= WIKIDATA and row.imdb_id:
                ids = {ID_SITE: row.imdb_id, **row.site_ids}
                group = [(site, site_id, row.imdb_id) for site, site_id in ids.items()]
                known |= dict.fromkeys(ids.items(), group)
    except ExtractionError as error:
        raise ConfigurationError(f"wikidata is {str(path)!r}: {error}") from error
    return known


def _add(films: Sequence[Film], find: Callable[[Site, str], Iterable[Known]]) -> None:
    """Add to each film the ids of the titles that have one of its ids.

    Those of another IMDb title are left out.
    """
    for film in films:
        for key in list(film.ids.items()):
            for site, site_id, imdb_id in find(*key):
                if imdb_id is None or film.ids.setdefault(ID_SITE, imdb_id) == imdb_id:
                    film.ids.setdefault(site, site_id)
