"""A new user's first hour: the README's commands in its order, in one folder."""

import re
import shlex
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites.ids import title_url
from tests.crawling import Finished, scrapy
from tests.services.replica import IDS, ForkedReplica
from tests.shared import PROJECT

README = (PROJECT / "README.md").read_text("utf-8")
_SHOWN = re.compile(
    r"""
    ^[ ]{4}scrapy[ ](.+?)(?:[ ]+\#.*)?$         # scrapy crawl imdb    # IMDb's Top 250
    |`scrapy[ ](demo[^`]+|progress|deadletters)`  # `scrapy demo --titles 12`
    """,
    re.MULTILINE | re.VERBOSE,
)
COMMANDS = [line or word for line, word in _SHOWN.findall(README.partition("## How it works")[0])]
PRINTED = {
    "demo": "12 movies in ",
    "crawl": "next: nothing is left",
    "progress": "finished",
    "deadletters": "",
    "scoreboard --export": "",
    "scoreboard": "Tomatometer",
    "changes": "",
    "extract": '"title":',
}
"""What a command prints, by its beginning; the first that fits counts."""


@pytest.fixture
def replica() -> Iterator[ReplicaProcess]:
    """Start a replica with series, too."""
    with ForkedReplica(titles=16, series=2) as replica:
        yield replica


@pytest.fixture
def folder(tmp_path: Path, replica: ReplicaProcess) -> Path:
    """Return a folder with the files that the commands name."""
    rows = "".join(f"{site_id},\n" for site_id in IDS[:3])
    (tmp_path / "films.csv").write_text(f"imdb_id,metacritic_id\n{rows}")
    with urllib.request.urlopen(title_url("imdb", IDS[0], replica.urls["imdb"])) as page:
        (tmp_path / "page.html").write_bytes(page.read())
    return tmp_path


@pytest.mark.promise("A new user's first hour goes as the README says.")
def test_each_command_of_the_readme_does_what_it_says(
    folder: Path, replica: ReplicaProcess
) -> None:
    assert len(COMMANDS) > 12
    assert COMMANDS[0].startswith("demo")
    for command in COMMANDS:
        ended = _run(command, folder, replica)
        expected = next(text for start, text in PRINTED.items() if command.startswith(start))
        assert ended.code == 0, (command, ended.log)
        assert expected in ended.output + ended.log, (command, ended.log)
        assert "Traceback" not in ended.output + ended.log, command
    assert (folder / "data" / "movies.csv").exists()


def _run(command: str, folder: Path, replica: ReplicaProcess) -> Finished:
    # The replica has no title of IMDb's own.
    arguments = shlex.split(command.replace("tt0111161", IDS[0]))
    settings = {"DATA_DIR": "data", "IMDB_DATASETS": "ratings,episode", "RETRY_BACKOFF": "0.02"}
    return scrapy(*arguments, data=folder, replica=replica, **settings)
