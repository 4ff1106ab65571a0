"""A new user's first hour: the README's demo, then the commands of the guides, in one folder."""

import re
import shlex
import urllib.request
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites.ids import title_url
from tests.crawling import Finished, scrapy
from tests.services.replica import IDS, ReplicaOf
from tests.shared import PROJECT

GUIDES = PROJECT / "moviecrawler" / "guides"
MOST_LINES = 50
"""Lines of a guide: what a screen shows."""
PRINTED = {
    "demo": "12 movies in ",
    "crawl": "next: ",
    "progress": "finished",
    "deadletters": "",
    "scoreboard --export": "",
    "scoreboard": "Tomatometer",
    "changes": "",
    "extract": '"title":',
    "match": "accepted",
    "catalogue": "",
}
"""What a command prints, by its beginning; the first that fits counts."""
_SHOWN = re.compile(
    r"""
    ^[ ]{4}scrapy[ ](.+?)(?:[ ]+\#.*)?$           # scrapy crawl imdb    # IMDb's Top 250
    |`scrapy[ ](demo[^`]+|progress|deadletters)`  # `scrapy demo --titles 12`
    """,
    re.MULTILINE | re.VERBOSE,
)


def _commands(path: Path) -> list[str]:
    return [line or word for line, word in _SHOWN.findall(path.read_text("utf-8"))]


@pytest.fixture
def small(replica_of: ReplicaOf) -> ReplicaProcess:
    """Return a replica of a few whole pages, with series."""
    return replica_of(titles=16, series=2)


@pytest.fixture
def prepared(tmp_path: Path, small: ReplicaProcess) -> Path:
    """Return a folder with the files that the commands name."""
    rows = "".join(f"{site_id},\n" for site_id in IDS[:3])
    (tmp_path / "films.csv").write_text(f"imdb_id,metacritic_id\n{rows}")
    (tmp_path / "watchlist.csv").write_text(f"Const\n{IDS[0]}\n")
    (tmp_path / "titles.csv").write_text("Name,Year\nThe Falling Mask,2010\n")
    (tmp_path / "FILE.csv").write_text(f"imdb,metacritic\n{IDS[0]},movie/the-falling-mask\n")
    with urllib.request.urlopen(title_url("imdb", IDS[0], small.urls["imdb"])) as page:
        (tmp_path / "page.html").write_bytes(page.read())
    return tmp_path


@pytest.mark.promise("A new user's first hour goes as the README says.")
def test_each_command_of_the_readme_and_the_guides_does_what_it_says(
    prepared: Path, small: ReplicaProcess, database_url: str
) -> None:
    alone = _commands(PROJECT / "README.md")
    alone += _commands(GUIDES / "first_crawl.md") + _commands(GUIDES / "my_own_list.md")
    assert alone[0].startswith("demo")
    assert len(alone) > 12
    for command in alone:
        _check(command, prepared, small)
    assert (prepared / "data" / "movies.csv").exists()
    for command in _commands(GUIDES / "every_day.md"):
        _check(command, prepared, small, DATABASE_URL=database_url)


def _check(command: str, folder: Path, replica: ReplicaProcess, **settings: str) -> None:
    ended = _run(command, folder, replica, **settings)
    expected = next(text for start, text in PRINTED.items() if command.startswith(start))
    assert ended.code == 0, (command, ended.log)
    assert expected in ended.output + ended.log, (command, ended.log)
    assert "Traceback" not in ended.output + ended.log, command


def _run(command: str, folder: Path, replica: ReplicaProcess, **settings: str) -> Finished:
    # The replica does not have IMDb's own titles.
    arguments = shlex.split(command.replace("tt0111161", IDS[0]).replace("tt0068646", IDS[1]))
    settings |= {"DATA_DIR": "data", "IMDB_DATASETS": "ratings,episode", "RETRY_BACKOFF": "0.02"}
    return scrapy(*arguments, data=folder, replica=replica, **settings)


@pytest.mark.parametrize("guide", sorted(GUIDES.iterdir()), ids=lambda path: path.stem)
def test_a_guide_fits_on_a_screen(guide: Path) -> None:
    assert len(guide.read_text("utf-8").splitlines()) <= MOST_LINES
