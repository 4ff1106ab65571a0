"""The dashboard's SQL queries."""

from __future__ import annotations

from functools import partial

from moviecrawler.basics.files import read_package_file

read_sql = partial(read_package_file, __name__)
