"""`boost.json`: have titles fetched soon, on all sites."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from twisted.web import http

from moviecrawler.clock import utc_now
from moviecrawler.cluster.webservice import ClusterResource, error_response, parameter, parameters
from moviecrawler.urls import parse_title_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twisted.web.server import Request

_MAX_TITLES = 1000
"""Of a request."""
_MAX_WEIGHT = 1e6


class Boost(ClusterResource):
    """`boost.json`: `id` is an IMDb id or URL, or several of them with commas, and may be given more than once."""

    def render_POST(self, request: Request) -> dict[str, Any]:
        """Answer with how many titles were named, and how many of them the catalogue knows."""
        texts = [text for texts in parameters(request, "id") for text in texts.split(",") if text.strip()]
        ids = list(dict.fromkeys(parse_title_id("imdb", text) for text in texts))
        if not ids:
            raise error_response("'id' parameter is required")
        if len(ids) > _MAX_TITLES:
            raise error_response(f"{len(ids):,} titles are named; name at most {_MAX_TITLES:,}")
        weight = parameter(request, "weight") or "1"
        try:
            heavy = float(weight)
        except ValueError:
            heavy = 0.0
        if not 0 < heavy <= _MAX_WEIGHT:
            raise error_response(f"weight is {weight[:80]!r}; give a number above 0 and up to {_MAX_WEIGHT:,.0f}")
        return {"named": len(ids), "boosted": boost_titles(ids, heavy)}


def boost_titles(ids: Sequence[str], weight: float) -> int:
    """Return how many of the titles the catalogue knows, and boost these. Raises ConfigurationError, and Error for what a client is answered."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        raise error_response("DATABASE_URL is not set in the node's environment, so there is no catalogue")
    from moviecrawler.database.short_transactions import AwayError, ShortTransactions  # noqa: PLC0415 - psycopg2's memory

    try:
        with ShortTransactions(url).transaction(write=True) as cursor:
            cursor.execute("SELECT boost_titles(%s, %s, %s)", (list(ids), weight, utc_now()))
            return int(cursor.fetchone()[0])
    except AwayError as error:
        raise error_response(str(error), http.SERVICE_UNAVAILABLE) from error
