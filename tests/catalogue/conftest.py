"""What tests of the catalogue's tables share."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from scrapy.settings import Settings

from moviecrawler.catalogue.store import open_catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.catalogue.store import CatalogueStore


@pytest.fixture
def store(database_url: str) -> Iterator[CatalogueStore]:
    with closing(open_catalogue(Settings({"DATABASE_URL": database_url}))) as store:
        yield store
