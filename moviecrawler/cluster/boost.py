"""`boost.json`: have titles fetched soon, on all sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapyd.webservice import param

from moviecrawler.clock import utc_now
from moviecrawler.cluster.webservice import ClusterResource, error_response
from moviecrawler.urls import parse_title_id

if TYPE_CHECKING:
    from twisted.web.server import Request

_MAX_TITLES = 1000
"""Titles that one request may name."""
_MAX_WEIGHT = 1e6


class Boost(ClusterResource):
    """`boost.json`: `id` is an IMDb id or URL, or several of them with commas, and may be given more than once."""

    @param("id", dest="given", multiple=True)
    @param("weight", required=False)
    def render_POST(self, request: Request, *, given: list[str], weight: str | None) -> dict[str, Any]:
        """Answer with how many titles were named, and how many of them the catalogue knows."""
        given = ",".join(given).split(",")
        ids = list(dict.fromkeys(parse_title_id("imdb", text) for text in given if text.strip()))
        if not ids:
            raise error_response("'id' parameter is required")
        if len(ids) > _MAX_TITLES:
            raise error_response(f"{len(ids):,} titles are named; name at most {_MAX_TITLES:,}")
        weight = weight or "1"
        try:
            number = float(weight)
        except ValueError:
            number = 0.0
        if not 0 < number <= _MAX_WEIGHT:
            raise error_response(f"weight is {weight[:80]!r}; give a number above 0 and up to {_MAX_WEIGHT:,.0f}")
        with self.node.database.transaction(write=True) as cursor:
            cursor.execute("SELECT boost_titles(%s, %s, %s)", (ids, number, utc_now()))
            return {"named": len(ids), "boosted": cursor.fetchone()[0]}
