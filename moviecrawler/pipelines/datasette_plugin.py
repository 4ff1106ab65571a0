"""Datasette's plugin: a title of a view leads to its row in `titles`, and from there to all else.

Datasette finds it by its entry point, and only in the environment of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette import hookimpl
from markupsafe import Markup

if TYPE_CHECKING:
    import sqlite3


@hookimpl  # type: ignore[untyped-decorator]
def render_cell(
    row: sqlite3.Row, value: Any, column: str, table: str, database: str, datasette: Any
) -> Markup | None:
    """Return the cell of a title as a link, where its row says which title it is."""
    if column != "title" or table == "titles" or "title_id" not in row.keys():  # noqa: SIM118
        return None
    if value is None or row["title_id"] is None:
        return None
    url = datasette.urls.row(database, "titles", str(row["title_id"]))
    return Markup('<a href="{}">{}</a>').format(url, value)
