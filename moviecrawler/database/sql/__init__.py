"""The SQL of the Postgres store, in files of its own."""

from __future__ import annotations

from functools import partial

from moviecrawler.basics.files import read_package_file

read_sql = partial(read_package_file, __name__)
