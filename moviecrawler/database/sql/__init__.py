"""The SQL of the Postgres store, in files of its own, and the migrations of its schema."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from moviecrawler.package_files import read_package_file

read_sql = partial(read_package_file, __name__)


def migrations() -> dict[int, str]:
    """Return the SQL of each version of the schema, in order; a file's name begins with its version in four digits.

    Raises ValueError when two have one version, as of two branches that were merged.
    """
    scripts = sorted(files(__name__).joinpath("migrations").iterdir(), key=lambda script: script.name)
    found: dict[int, str] = {}
    for script in scripts:
        if int(script.name[:4]) in found:
            raise ValueError(f"{script.name} has the version of another migration; rename it to the next one")
        found[int(script.name[:4])] = script.read_text("utf-8")
    return found


def is_additive(script: str) -> bool:
    """Return whether a version of moviecrawler that does not know a migration works with what it has made."""
    return script.startswith("-- additive")
