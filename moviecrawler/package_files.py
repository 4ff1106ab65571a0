"""Reading the files, such as SQL and Lua, that stand beside a package's modules."""

from __future__ import annotations

from importlib.resources import files


def read_package_file(package: str, name: str) -> str:
    """Return the text of a file in a package's folder."""
    return files(package).joinpath(name).read_text("utf-8")
