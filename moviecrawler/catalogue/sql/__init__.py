"""The SQL of the catalogue, in files of its own.

Its tables are made by `database/sql/catalogue.sql`.
"""

from __future__ import annotations

from functools import partial

from moviecrawler.basics.files import read_package_file

read_sql = partial(read_package_file, __name__)
