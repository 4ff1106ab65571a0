"""A command that can't do what it is asked to says why in one sentence, without a secret."""

import re
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from moviecrawler.database.sqlite import FILE, open_sqlite
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import counts, scrapy

MISTAKES = re.findall(
    r"^scrapy (.+)\n    (\d): (.+)$",
    Path(__file__).with_name("mistakes.txt").read_text("utf-8"),
    re.MULTILINE,
)
MADE = {
    "foreign": "CREATE TABLE films (name)",
    "newer": "PRAGMA user_version = 99",
    "readonly": "",
}
"""Databases that users may have, by their folders, with what has made them."""


def write_files(folder: Path) -> None:
    """Write what users take for something else."""
    for name in ("damaged", "folder", "incomplete", *MADE):
        (folder / name).mkdir()
    (folder / "damaged" / FILE).write_bytes(b"no database" * 1000)
    (folder / "folder" / FILE).mkdir()
    (folder / "wide.txt").write_text("tt0111161\ndull film\n", "utf-16")
    for name, statement in MADE.items():
        with closing(sqlite3.connect(folder / name / FILE)) as connection:
            connection.execute(statement)
    (folder / "readonly" / FILE).chmod(0o400)
    with closing(open_sqlite(folder / "incomplete")) as connection:
        connection.execute("DROP TABLE titles")


@pytest.mark.promise("A user's mistake is one sentence with what to do, and never a traceback.")
@pytest.mark.promise(
    "A wrong argument or setting ends a crawl before its first request, in one sentence."
)
@pytest.mark.parametrize(("command", "code", "expected"), MISTAKES)
def test_what_is_wrong_is_one_sentence_and_asks_no_site(
    command: str, code: str, expected: str, replica: ReplicaProcess, tmp_path: Path
) -> None:
    write_files(tmp_path)
    finished = scrapy(*shlex.split(command), data=tmp_path, replica=replica)
    assert finished.code == int(code), finished.log
    assert expected in finished.log.strip().splitlines()[-1]
    assert "titles asked for" not in finished.log
    assert "s3cret" not in finished.log
    assert "Traceback" not in finished.log
    assert sum(counts(replica, site)["robots"] for site in replica.urls) == 0
