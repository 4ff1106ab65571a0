"""`boost.json`: have titles fetched soon, on all sites."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING, Any

from moviecrawler.clock import utc_now
from moviecrawler.cluster.webservice import ClusterResource, error_response, parameter, parameters
from moviecrawler.errors import TransientStoreError
from moviecrawler.urls import parse_title_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from twisted.web.server import Request

_MOST = 1000
"""Titles of a request."""
_HEAVIEST = 1e6
_SESSION = "-c statement_timeout=5000 -c TimeZone=UTC"


class Boost(ClusterResource):
    """`boost.json`: `id` is an IMDb id or URL, or several of them with commas, and may be given more than once."""

    def render_POST(self, request: Request) -> dict[str, Any]:
        """Answer with how many titles were named, and how many of them the catalogue knows."""
        texts = [text for texts in parameters(request, "id") for text in texts.split(",") if text.strip()]
        ids = list(dict.fromkeys(parse_title_id("imdb", text) for text in texts))
        if not ids:
            raise error_response("'id' parameter is required")
        if len(ids) > _MOST:
            raise error_response(f"{len(ids):,} titles are named; name at most {_MOST:,}")
        weight = parameter(request, "weight") or "1"
        try:
            heavy = float(weight)
        except ValueError:
            heavy = 0.0
        if not 0 < heavy <= _HEAVIEST:
            raise error_response(f"weight is {weight[:80]!r}; give a number above 0 and up to {_HEAVIEST:,.0f}")
        return {"named": len(ids), "boosted": boost_titles(ids, heavy)}


def boost_titles(ids: Sequence[str], weight: float) -> int:
    """Return how many of the titles the catalogue knows, and boost these. Raises ConfigurationError, and Error for what a client is told."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        raise error_response("DATABASE_URL is not set in the node's environment, so there is no catalogue")
    # The catalogue's modules and psycopg2 cost memory that most nodes need not spend.
    import psycopg2  # noqa: PLC0415

    from moviecrawler.catalogue.store import CatalogueStore  # noqa: PLC0415
    from moviecrawler.database.connection import read_url  # noqa: PLC0415

    parameters = read_url(url)

    def connect() -> Any:
        usual = {"connect_timeout": 5, "application_name": "moviecrawler node", "options": _SESSION}
        return psycopg2.connect(**{**parameters, **usual})

    with closing(CatalogueStore(connect, _join_nothing)) as store:
        try:
            return store.boost(ids, weight, utc_now())
        except TransientStoreError as error:
            raise error_response(f"the catalogue can't be used now: {error}", 503) from error
        except (psycopg2.errors.UndefinedTable, psycopg2.errors.UndefinedColumn, psycopg2.errors.UndefinedFunction):
            told = "the database lacks tables of this version; the next crawl makes them, and so does `scrapy catalogue status`"
            raise error_response(told, 503) from None
        except psycopg2.Error as error:
            raise error_response(f"the catalogue can't be used: {str(error).splitlines()[0]}", 503) from error


def _join_nothing(*_: object) -> None:
    """Do nothing: a boost moves no record."""
