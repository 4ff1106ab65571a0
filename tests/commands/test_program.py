"""The program `moviecrawler`: the commands of `scrapy` from any folder, and their completion."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(sys.executable).with_name("moviecrawler")
ENVIRONMENT = {"PATH": f"{PROGRAM.parent}:/usr/bin:/bin", "HOME": "/nonexistent"}
COMPLETING = """
eval "$(register-python-argcomplete moviecrawler)"
COMP_LINE=$1
COMP_POINT=${#COMP_LINE}
COMP_TYPE=9
_python_argcomplete moviecrawler
echo "${COMPREPLY[*]}"
"""


def _run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.promise("The program moviecrawler has the same commands in every folder.")
@pytest.mark.parametrize("project", ["", "another_projects.settings"])
def test_commands_are_there_in_any_folder(project: str, tmp_path: Path) -> None:
    if project:
        (tmp_path / "scrapy.cfg").write_text(f"[settings]\ndefault = {project}\n")
        (tmp_path / "another_projects").mkdir()
        (tmp_path / "another_projects" / "settings.py").write_text("BOT_NAME = 'another'\n")
    listed = _run(str(PROGRAM), "list", folder=tmp_path)
    assert listed.stdout.split() == ["imdb", "metacritic", "rottentomatoes"]
    scores = _run(sys.executable, "-m", "moviecrawler", "scoreboard", folder=tmp_path)
    assert scores.returncode == 1
    assert "crawl first, such as with: moviecrawler crawl imdb" in scores.stderr


def test_settings_that_can_t_be_imported_are_named(tmp_path: Path) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = gone.settings\n")
    ended = _run(str(PROGRAM), "list", folder=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.startswith("moviecrawler: the settings gone.settings can't be imported: ")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("moviecrawler sco", "scoreboard "),
        ("moviecrawler scoreboard --format ", "table csv json parquet"),
        ("moviecrawler crawl r", "rottentomatoes "),
        ("moviecrawler crawl metacritic -a list=m", "metascore "),
        ("moviecrawler crawl imdb -a vi", "via=auto via=pages via=datasets"),
        ("moviecrawler crawl imdb -s DATABASE_", "DATABASE_URL="),
    ],
)
def test_a_shell_completes_what_is_typed(typed: str, offered: str, tmp_path: Path) -> None:
    completed = _run("bash", "-c", COMPLETING, "bash", typed, folder=tmp_path)
    assert completed.stdout.rstrip("\n") == offered, completed.stderr
