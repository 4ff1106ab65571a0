"""The SQL of the catalogue, in files of its own. Its tables are made by the Postgres store's migrations."""

from __future__ import annotations

from importlib.resources import files

_FOLDER = files(__name__)


def read_sql(name: str) -> str:
    """Return the text of one of the files in this folder."""
    return (_FOLDER / name).read_text("utf-8")
