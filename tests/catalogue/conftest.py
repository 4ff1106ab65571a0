"""What tests of the catalogue's tables share."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.catalogue.catalogued import Catalogued

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def store(database_url: str) -> Iterator[Catalogued]:
    with closing(Catalogued(database_url)) as store:
        yield store
