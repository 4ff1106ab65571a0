"""Creates the schema of both databases, and brings an older one up to date.

An empty database gets all tables as `tables.py` declares them; `migrations/` has a script per later
version and database, each of which is a transaction. Views and functions have no versions: they are
replaced when their texts, or the rows of `sites` and `score_kinds` of which views are made, have
changed.
"""

from __future__ import annotations

import logging
from hashlib import blake2b
from importlib.resources import files
from typing import TYPE_CHECKING, Protocol

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.database.records import Tables
from moviecrawler.database.sql import read_sql
from moviecrawler.database.tables import CATALOGUE, SCORE_KINDS, SITES, TABLES, Table
from moviecrawler.database.views import ShownKind, csv_views, view_texts
from moviecrawler.sites import SCORE_SITES, SCORES
from moviecrawler.sites import SITES as PROFILES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.database.records import Row
    from moviecrawler.database.tables import Dialect

logger = logging.getLogger(__name__)

VERSION = 10
"""The version of the schema that `tables.py` declares."""


class SchemaTables(Tables, Protocol):
    """A database whose schema is brought up to date."""

    name: str
    """As messages name it."""
    dialect: Dialect

    def stream(self, statement: str, *values: object) -> Iterator[Row]:
        """Yield the rows of a statement in which {mark} is a value, without keeping them."""

    def version(self) -> int:
        """Return the version of the schema; 0 if there are no tables, -1 if they are another's."""

    def set_version(self, version: int) -> None:
        """Note the version."""

    def run(self, script: str) -> None:
        """Run statements, inside the transaction."""

    def drop_views(self) -> None:
        """Drop all views of ours."""


def is_up_to_date(tables: SchemaTables) -> bool:
    """Return whether a database has this version's schema.

    Raises ConfigurationError for one of a newer version, or another program's.
    """
    version = tables.version()
    if version > VERSION:
        raise ConfigurationError(
            f"{tables.name} has version {version} of the schema, and this version of moviecrawler"
            f" supports {VERSION} at most; use the newer one that has written it"
        )
    if version < 0:
        raise ConfigurationError(
            f"{tables.name} has tables that no version of moviecrawler has made;"
            " name another database"
        )
    if version < VERSION or _missing_rows(tables):
        return False
    return tables.select("SELECT views FROM state", ()) == [(_fingerprint(_texts(tables)),)]


def update_schema(tables: SchemaTables) -> bool:
    """Create the schema, or go one step towards this version's, inside one transaction.

    Return whether it is up to date then. A process that is killed leaves the steps that are done.
    """
    version = tables.version()
    if version == 0:
        own: tuple[Table, ...] = ()
        if tables.dialect == "postgres":
            tables.run(read_sql("catalogue.sql"))
            own = CATALOGUE
        for table in (*TABLES, *own):
            tables.run(";\n".join(table.statements(tables.dialect)))
        tables.run("INSERT INTO state (state_id) VALUES (1)")
        tables.set_version(VERSION)
    elif version < VERSION:
        if script := _migration(version + 1, tables.dialect):
            tables.run(script)
        tables.set_version(version + 1)
        return False
    missing = _missing_rows(tables)
    for table in (SITES, SCORE_KINDS):
        tables.upsert(table, missing.get(table.name, []))
    texts = _texts(tables)
    tables.drop_views()
    for text in texts:
        tables.run(text)
    tables.run(f"UPDATE state SET views = '{_fingerprint(texts)}'")
    return True


def _migration(version: int, dialect: Dialect) -> str:
    """Return the script of a version; it is empty where that has nothing new for a database."""
    script = files("moviecrawler.database").joinpath("migrations", f"{version}-{dialect}.sql")
    return script.read_text("utf-8") if script.is_file() else ""


def _missing_rows(tables: Tables) -> dict[str, list[Row]]:
    """Return the rows of the sites and scores of this process that a database lacks."""
    shown = [kind for kind, form in SCORES.items() if form.columns]
    rows: dict[str, list[Row]] = {
        "sites": [
            (site, profile.name, profile.authority, profile.default_list)
            for site, profile in PROFILES.items()
        ],
        "score_kinds": [
            (
                kind,
                SCORE_SITES[kind],
                form.name,
                form.lowest,
                form.scale,
                form.average_scale,
                form.audience == "users",
                form.rates_seasons,
                shown.index(kind) + 1 if form.columns else None,
                *(form.columns or (None, None)),
            )
            for kind, form in SCORES.items()
        ],
    }
    missing = {}
    for table, wanted in rows.items():
        known = set(tables.select(f"SELECT * FROM {table}", ()))
        if lacking := [row for row in wanted if row not in known]:
            missing[table] = lacking
    return missing


def _texts(tables: SchemaTables) -> list[str]:
    """Return the statements that create functions and views."""
    sites: dict[str, str] = dict(
        tables.select("SELECT site, main_list FROM sites ORDER BY authority", ())
    )
    columns = "kind, site, highest, audience, rates_seasons, value_column, count_column"
    query = f"SELECT {columns} FROM score_kinds WHERE shown IS NOT NULL ORDER BY shown, kind"
    kinds = [ShownKind(*row) for row in tables.select(query, ())]
    views = view_texts(sites, kinds)
    if tables.dialect == "postgres":
        return [read_sql("functions.sql"), *views, read_sql("analysis.sql")]
    return [*views, *csv_views(kinds).values()]


def _fingerprint(texts: list[str]) -> str:
    return blake2b("".join(texts).encode(), digest_size=16).hexdigest()
