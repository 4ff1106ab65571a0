"""What tests of the pages about titles share."""

from types import SimpleNamespace
from typing import Any

import pytest

from moviecrawler.dashboard.sources import Sources
from moviecrawler.dashboard.titles import Titles


@pytest.fixture
def titles(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Titles:
    """Return the page of titles of a database, without a node around it."""
    node: Any = SimpleNamespace(name="node1")
    monkeypatch.setenv("DATABASE_URL", database_url)
    return Titles(Sources(node), "/titles", {})
