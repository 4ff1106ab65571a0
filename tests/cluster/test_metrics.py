"""Which crawls Prometheus is told of."""

from __future__ import annotations

from typing import Any

import pytest

from moviecrawler.cluster.metrics import is_told


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({}, False),
        ({"ended_at": 6399}, False),
        ({"ended_at": 6400}, True),
        ({"ended_at": 6401}, True),
        ({"ended_at": None}, True),
        ({"workers": 1}, True),
        ({"to_go": 1}, True),
    ],
)
def test_crawl_that_is_over_is_told_of_for_an_hour(changed: dict[str, Any], told: bool) -> None:
    assert is_told({"now": 10_000, "ended_at": 100, "workers": 0, "to_go": 0, **changed}) is told
