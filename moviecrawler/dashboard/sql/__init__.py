"""The queries of the dashboard, in files of their own."""

from __future__ import annotations

from importlib.resources import files

_FOLDER = files(__name__)


def read_sql(name: str) -> str:
    """Return the text of one of the files in this folder."""
    return (_FOLDER / name).read_text("utf-8")
