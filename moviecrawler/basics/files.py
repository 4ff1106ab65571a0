"""Reading whole files, of the package and of users; running those of SQL in SQLite."""

import os
import sqlite3
import stat
from importlib.resources import files


def read_package_file(package: str, name: str) -> str:
    """Return the text of a file, such as SQL or Lua, in a package's folder."""
    return files(package).joinpath(name).read_text("utf-8")


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Run statements inside a transaction, which SQLite's own method would commit."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            connection.execute(statement)
            statement = ""
    connection.execute(statement)


def read_file(path: str, most: int) -> bytes:
    """Return the content of a file of at most `most` bytes.

    Raises OSError, also for what is not a regular file: a device may never end, and a pipe may
    never begin. Raises ValueError for a larger one, or for a path that can't be one.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is not a regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return content
