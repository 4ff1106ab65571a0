"""The catalogue's store, connected to the database of the Postgres store, whose tables it shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviecrawler.catalogue.store import CatalogueStore
from moviecrawler.errors import ConfigurationError
from moviecrawler.pipelines.postgres import open_database
from moviecrawler.pipelines.titles import rejoin

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def open_catalogue(settings: BaseSettings) -> CatalogueStore:
    """Return the catalogue of the database that DATABASE_URL names; it is connected with its first use.

    Raises ConfigurationError when none is named.
    """
    url = settings.get("DATABASE_URL")
    if not url:
        raise ConfigurationError(
            "DATABASE_URL is not set, and the catalogue is in Postgres; set it to one such as"
            " postgresql://user:password@localhost:5432/movies"
        )
    return CatalogueStore(lambda: open_database(url), rejoin)
