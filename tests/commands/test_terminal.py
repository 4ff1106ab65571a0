"""What a crawl shows on a terminal, and nowhere else."""

import os
import pty
import re
import select
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import change
from tests.processes import FAST, environment, start
from tests.services.replica import IDS


def shown(*arguments: str, data: Path, replica: ReplicaProcess) -> str:
    """Return what a command writes to a terminal."""
    terminal, end = pty.openpty()
    env = {**environment(data, replica, **FAST), "TERM": "xterm", "RETRY_TIMES": "0"}
    written = b""
    with Path(os.ttyname(end)).open("wb", buffering=0) as screen:
        process = start([*arguments], env=env, cwd=data, stdout=screen, stderr=screen)
        has_ended = False
        while not has_ended:
            has_ended = process.poll() is not None
            while select.select([terminal], [], [], 0.1)[0]:
                written += os.read(terminal, 65_536)
    assert process.wait() in {0, 1}
    os.close(end)
    os.close(terminal)
    return written.decode()


@pytest.mark.promise("On a terminal a crawl shows one line of progress, with warnings above it.")
def test_a_terminal_shows_one_line_and_warnings_and_the_log_is_in_its_file(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    change(replica, latency=1500)
    arguments = ("crawl", "imdb", "-a", f"ids={IDS[0]},{IDS[1]}", "-a", "via=pages")
    text = shown(*arguments, "--logfile", "crawl.log", data=tmp_path, replica=replica)
    assert "imdb 0/2; waiting for" in text
    assert "INFO" not in text
    assert text.rstrip().splitlines()[-5].endswith("s (finished)")
    assert "INFO" in (tmp_path / "crawl.log").read_text("utf-8")
    change(replica, latency=0, faults={"500": 1})
    failed = shown(*arguments, data=tmp_path, replica=replica)
    assert f"WARNING: {IDS[0]} failed: HTTP status 500\r\n" in failed
    assert "Traceback" not in failed


@pytest.mark.parametrize("option", [["-L", "INFO"], ["--nolog"], ["-s", "LOG_LEVEL=error"]])
def test_with_a_log_of_ones_choice_there_is_no_line(
    option: list[str], replica: ReplicaProcess, tmp_path: Path
) -> None:
    text = shown("crawl", "imdb", "-a", "limit=1", *option, data=tmp_path, replica=replica)
    assert "imdb 0/" not in text
    assert ("INFO" in text) == ("INFO" in option)


def test_the_demo_shows_the_progress_of_each_site(replica: ReplicaProcess, tmp_path: Path) -> None:
    text = shown("demo", "--titles", "8", data=tmp_path, replica=replica)
    assert re.search(r"imdb 8/8, metacritic (\d+)/\1, rottentomatoes (\d+)/\2", text)
