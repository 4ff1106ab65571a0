"""The SQL of the Postgres store, in files of its own, and the migrations of its schema."""

from __future__ import annotations

from functools import partial
from importlib.resources import files

from moviecrawler.package_files import read_package_file

read_sql = partial(read_package_file, __name__)


def migrations() -> dict[int, str]:
    """Return the SQL of each version of the schema, in order; a file's name begins with its version in four digits."""
    scripts = sorted(files(__name__).joinpath("migrations").iterdir(), key=lambda script: script.name)
    return {int(script.name[:4]): script.read_text("utf-8") for script in scripts}


def is_additive(script: str) -> bool:
    """Return whether a version of moviecrawler that does not know a migration works with what it has made."""
    return script.startswith("-- additive")
