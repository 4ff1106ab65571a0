"""What commands print, and whoever reads it."""

import os
import signal
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest
import redis
from scrapy.settings import Settings

from moviecrawler.commands.crawl import Command as CrawlCommand
from moviecrawler.commands.crawl import _has_line
from moviecrawler.spiders.imdb import ImdbSpider
from moviecrawler.spiders.metacritic import MetacriticSpider
from moviecrawler.spiders.rottentomatoes import RottenTomatoesSpider
from tests.crawling import scrapy
from tests.processes import environment, start
from tests.waiting import LONGEST
from tests.workers import make_run


@pytest.mark.parametrize(
    "arguments", [["deadletters"], ["catalogue", "import", "wikidata"]], ids=" ".join
)
def test_command_whose_output_is_closed_ends_quietly(
    arguments: list[str], redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    keys = make_run(redis_client)
    for number in range(300):
        redis_client.hset(
            keys.dead, f"{number}", b'{"reason": "no reason", "at": 0}\n2 1 \n' + b"x" * 500
        )
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:  # noqa: PTH123 - a descriptor
        ended = subprocess.run(
            [sys.executable, "-m", "scrapy", *arguments],
            env=environment(
                tmp_path, None, REDIS_URL=redis_url, DATABASE_URL="postgresql://a@127.0.0.1:1/b"
            ),
            cwd=tmp_path,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert "Traceback" not in ended.stderr
    assert "Broken pipe" not in ended.stderr
    assert ended.returncode == 0


def test_command_that_is_interrupted_says_so_in_one_sentence(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "films.csv")
    with (tmp_path / "log").open("wb") as log:
        arguments = ["match", "films.csv", "--against", "titles.csv"]
        process = start(arguments, env=environment(tmp_path, None), cwd=tmp_path, stderr=log)
        with (tmp_path / "films.csv").open("w"):  # once the command reads it
            process.send_signal(signal.SIGINT)
            assert process.wait(LONGEST) == 130
    assert (tmp_path / "log").read_text() == "scrapy match: interrupted\n"


def test_scoreboard_says_where_the_demo_s_movies_are(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    before = scrapy("scoreboard", data=tmp_path)
    assert (before.code, "demo" in before.log) == (1, False)
    (tmp_path / "demo" / "movies.sqlite3").touch()
    assert (
        f"scrapy scoreboard -s DATA_DIR={tmp_path}/demo" in scrapy("scoreboard", data=tmp_path).log
    )


def test_help_of_crawl_names_every_argument_of_every_spider() -> None:
    text = CrawlCommand().long_desc()
    for spider in (ImdbSpider, MetacriticSpider, RottenTomatoesSpider):
        assert spider.site in text
        assert not [name for name in spider.arguments if f"{name}=" not in text]


@pytest.mark.parametrize(
    ("options", "priority", "settings", "has_line"),
    [
        ({}, "project", {"LOG_LEVEL": "INFO"}, True),
        ({}, "cmdline", {"LOG_LEVEL": "INFO"}, False),
        ({}, "cmdline", {"LOG_ENABLED": "0"}, False),
        ({"nolog": True}, "cmdline", {}, False),
        ({"output": ["films.csv"]}, "cmdline", {}, True),
        ({"output": ["-:json"]}, "cmdline", {}, False),
        ({"overwrite_output": ["-:json"]}, "cmdline", {}, False),
    ],
)
def test_a_terminal_has_a_line_unless_it_shows_the_log_or_items(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, object],
    priority: str,
    settings: dict[str, str],
    has_line: bool,
) -> None:
    given = Namespace(**{"nolog": False, "output": None, "overwrite_output": None, **options})
    for is_terminal in (True, False):
        monkeypatch.setattr(
            "moviecrawler.extensions.progress.is_terminal", lambda shown=is_terminal: shown
        )
        assert _has_line(Settings(settings, priority), given) == (has_line and is_terminal)
