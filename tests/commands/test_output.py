"""What commands print, and whoever reads it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from moviecrawler.frontier.keys import Keys
from tests.crawling import environment, scrapy


@pytest.mark.parametrize(
    "arguments", [["deadletters"], ["progress", "--json"], ["catalogue", "import", "wikidata"]], ids=" ".join
)
def test_command_whose_output_is_closed_ends_quietly(
    arguments: list[str], redis_url: str, redis_client: redis.Redis, tmp_path: Path
) -> None:
    keys = Keys("imdb", "default")
    redis_client.zadd(keys.runs, {keys.run: 1})
    redis_client.hset(keys.state, mapping={"born": "x", "started_at": 1, "total": 1})
    for number in range(300):
        redis_client.hset(keys.dead_letters, f"{number}", b'{"reason": "no reason"}\n' + b"x" * 500)
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:  # noqa: PTH123 - a descriptor
        ended = subprocess.run(
            [sys.executable, "-m", "scrapy", *arguments],
            env=environment(tmp_path, None, REDIS_URL=redis_url, DATABASE_URL="postgresql://a@127.0.0.1:1/b"),
            cwd=tmp_path,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert "Traceback" not in ended.stderr
    assert "Broken pipe" not in ended.stderr
    assert ended.returncode == (1 if "wikidata" in arguments else 0)


def test_scoreboard_says_where_the_demo_s_movies_are(tmp_path: Path) -> None:
    before = scrapy("scoreboard", data=tmp_path)
    assert (before.code, "demo" in before.log) == (1, False)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "movies.csv").write_text("")
    assert f"scrapy scoreboard -s DATA_DIR={tmp_path}/demo" in scrapy("scoreboard", data=tmp_path).log
