"""The programs and the project of `moviecrawler/examples/README.md` do what the page says."""

import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.processes import environment
from tests.shared import PROJECT

PAGE = (PROJECT / "moviecrawler/examples/README.md").read_text("utf-8")
FLAGS = re.MULTILINE | re.DOTALL
PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=FLAGS)
COMMANDS = re.findall(r"^    (\S.*)$", PROSE, re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project of the files that are the page's blocks."""
    for name, text in re.findall(r"^```python\n# (\S+)\n(.*?)^```", PAGE, FLAGS):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = films.settings\n")
    return tmp_path


def run(command: str, project: Path, replica: ReplicaProcess) -> subprocess.CompletedProcess[str]:
    program, *arguments = command.split()
    path = Path(sys.executable).with_name(program)
    env = environment(project / "data", replica)
    del env["SCRAPY_SETTINGS_MODULE"]
    return subprocess.run(
        [path, *arguments],
        cwd=project,
        env=env,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def stored(folder: Path) -> Counter[str]:
    """Return how many records of each site are stored."""
    with closing(sqlite3.connect(folder / "data" / "movies.sqlite3")) as connection:
        return Counter(site for (site,) in connection.execute("SELECT site FROM records"))


@pytest.mark.promise("Movie spiders run from any program and in any Scrapy project.")
@pytest.mark.parametrize("command", COMMANDS)
def test_what_the_page_shows_does_what_it_says(
    command: str, project: Path, replica: ReplicaProcess
) -> None:
    ended = run(command, project, replica)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    match command.split()[1]:
        case "crawl.py":
            assert stored(project) == {"metacritic": 3}
            assert "rottentomatoes: 2 titles asked for: 2 absent" in ended.stderr
            assert "INFO" not in ended.stderr
        case "in_turn.py":
            assert ended.stdout == "metacritic 2\nrottentomatoes 2\n"
            assert stored(project) == {"metacritic": 2, "rottentomatoes": 2}
        case _:
            assert ended.stdout == "items: 5\n"
            assert "metacritic: 4 titles asked for: 4 stored; " in ended.stderr
            assert stored(project) == {"metacritic": 4}
            lines = (project / "newest.jsonl").read_text("utf-8").splitlines()
            assert len([line for line in lines if json.loads(line)["scores"]]) == 4


def test_scrapys_own_command_crawls_in_the_project_and_other_spiders_are_left_alone(
    project: Path, replica: ReplicaProcess
) -> None:
    (project / "films/spiders/plain.py").write_text(
        "import scrapy\n\n\nclass Plain(scrapy.Spider):\n    name = 'plain'\n\n"
        "    custom_settings = {'ITEM_PIPELINES': {}}\n\n"
        "    async def start(self):\n        yield {'agent': self.settings['USER_AGENT']}\n"
    )
    crawled = run("scrapy crawl rottentomatoes -a limit=1", project, replica)
    assert "rottentomatoes: 1 titles asked for: 1 stored; " in crawled.stderr
    plain = run("scrapy crawl plain -O plain.jsonl", project, replica)
    assert plain.returncode == 0
    assert "moviecrawler.pipelines" not in plain.stderr
    assert (project / "plain.jsonl").read_text("utf-8").startswith('{"agent": "Scrapy/')
