"""Runs what `moviecrawler/examples/DATA.md` shows.

`python -m tests.data_document` writes the document anew, with what comes out.
"""

import os
import re
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from moviecrawler.database.records import read_by_key
from moviecrawler.database.sqlite import SqliteTables, open_sqlite
from moviecrawler.items import Movie
from moviecrawler.pipelines.sqlite import SqliteStore
from moviecrawler.replica.process import ReplicaProcess
from tests.runs import record_of
from tests.shared import PROJECT

DOCUMENT = PROJECT / "moviecrawler" / "examples" / "DATA.md"
TITLES = 12
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_DAY = re.compile(r"20\d\d-\d\d-\d\d")
_VARYING = re.compile(rf"{_DAY.pattern}( \d\d:\d\d)?|\b[\d.]+ s\b|(?<=durable in )\d+")
"""Times, and what depends on how fast something is."""
_AGED = {"records": ("added_at", "updated_at"), "score_history": ("since",), "offers": ("since",)}


def same(text: str) -> list[str]:
    """Return the lines of a text without what is another at each run, such as their order."""
    return sorted(_VARYING.sub("…", text).splitlines())


def document(programs: Path = Path(sys.executable).parent) -> str:
    """Return the document with what its commands print now; `programs` is a folder of these."""
    with TemporaryDirectory() as folder, ReplicaProcess(titles=TITLES) as replica:
        shown = Shown(Path(folder), programs, replica.settings)
        shown.run(f"moviecrawler demo --titles {TITLES}")
        text = DOCUMENT.read_text("utf-8")
        return _BLOCK.sub(lambda block: f"```console\n{shown.block(block[1])}```", text)


class Shown:
    """A folder in which the commands are run, one after the other."""

    def __init__(self, folder: Path, programs: Path, settings: dict[str, str]) -> None:
        self._folder = folder
        self._environment = {
            **os.environ,
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DATA_DIR": "data/demo",
            "COLUMNS": "100",
            **settings,
        }
        self._environment.pop("SCRAPY_SETTINGS_MODULE", None)
        self._is_later = False

    def block(self, text: str) -> str:
        """Return a block with what its commands print."""
        return "".join(
            f"$ {command}\n{self._output(command, shown)}"
            for command, shown in _COMMAND.findall(text)
        )

    def _output(self, command: str, shown: str) -> str:
        if command.startswith("cat "):
            (self._folder / command.removeprefix("cat ")).write_text(shown, "utf-8")
            return shown
        if "moviecrawler changes" in command:
            if not self._is_later:
                _pass_a_week(self._folder / "data" / "demo")
                self._is_later = True
            day = datetime.now(UTC) - timedelta(days=3)
            command = _DAY.sub(f"{day:%Y-%m-%d}", command)
        return self.run(command)

    def run(self, command: str) -> str:
        """Return what a command of a shell prints."""
        ran = subprocess.run(  # noqa: S602 - as who reads the document would
            command,
            shell=True,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return ran.stdout


def _pass_a_week(folder: Path) -> None:
    """Make all that is stored a week older, and store another reading of one title."""
    with closing(open_sqlite(folder)) as connection:
        for table, columns in _AGED.items():
            for column in columns:
                older = f"strftime('%Y-%m-%dT%H:%M:%S+00:00', {column}, '-7 days')"
                connection.execute(f"UPDATE {table} SET {column} = {older}")  # noqa: S608
        query = "SELECT site, site_id FROM records WHERE title = 'The Falling Mask'"
        keys = connection.execute(query).fetchall()
        stored = read_by_key(SqliteTables(connection), keys)
    store = SqliteStore(folder)
    store.open()
    store.write([record_of(_changed(each.movie)) for each in stored])
    store.close()


def _changed(movie: Movie) -> Movie:
    """Return the next reading of a title, by which its scores and offers are others."""
    scores = [
        replace(score, value=score.value + (0.2 if score.value < 10 else 2))
        for score in movie.scores
    ]
    return replace(
        movie,
        scores=scores,
        offers=movie.offers[1:],
        scraped_at=datetime.now(UTC),
    )


if __name__ == "__main__":
    DOCUMENT.write_text(document(), "utf-8")
