from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from scrapy.http import Response

from moviecrawler.middlewares.refusal_samples import MAX_BODY_BYTES, MAX_SAMPLES, keep_sample
from moviecrawler.proxies.pools import basic_authorization, credentials_in

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
URL = "https://www.imdb.com/title/tt0111161/"


def keep(folder: Path, response: Response, second: int = 0, site: str = "imdb", **others: tuple[bytes, ...]) -> None:
    keep_sample(folder, site, "challenge", "datacenter:3", response, NOW + timedelta(seconds=second), **others)


def test_a_sample_says_what_was_answered_and_by_which_way(tmp_path: Path) -> None:
    headers = {"X-Amzn-Waf-Action": "challenge", "Set-Cookie": "session=mine"}
    keep(tmp_path / "blocked", Response(URL, status=202, headers=headers, body=b"<script>"))
    (path,) = (tmp_path / "blocked").iterdir()
    assert path.name == "imdb-challenge-20261121T120000000.txt"
    about, body = path.read_bytes().split(b"\n\n", 1)
    assert body == b"<script>"
    assert json.loads(about) == {
        "url": URL,
        "status": 202,
        "via": "datacenter:3",
        "at": "2026-11-21T12:00:00Z",
        "headers": {"X-Amzn-Waf-Action": "challenge"},
        "body_bytes": 8,
    }


def test_the_newest_few_of_each_site_and_kind_are_kept_and_no_more_of_each(tmp_path: Path) -> None:
    keep(tmp_path, Response(URL, body=b"x"), site="metacritic")
    for second in range(MAX_SAMPLES + 5):
        keep(tmp_path, Response(URL, body=b"x" * 2 * MAX_BODY_BYTES), second)
    names = sorted(path.name for path in tmp_path.glob("imdb-*"))
    assert len(names) == MAX_SAMPLES
    assert names[0] == "imdb-challenge-20261121T120005000.txt"
    assert all(MAX_BODY_BYTES <= path.stat().st_size < MAX_BODY_BYTES + 1000 for path in tmp_path.glob("imdb-*"))
    assert len(list(tmp_path.glob("metacritic-*"))) == 1


def test_credentials_that_a_proxy_echoes_are_taken_out(tmp_path: Path) -> None:
    sent = basic_authorization("customer", "pa55word")
    body = b"You sent " + sent + b", that is customer:pa55word"
    secrets = credentials_in(sent)
    keep(tmp_path, Response(URL, status=403, headers={"X-Echo": sent}, body=body), secrets=secrets)
    (path,) = tmp_path.iterdir()
    text = path.read_bytes()
    assert b"pa55word" not in text
    assert b"customer" not in text
    assert sent.removeprefix(b"Basic ") not in text
    assert text.count(b"[removed]") == 4


def test_a_sample_that_can_not_be_kept_is_told_and_does_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "blocked").write_text("a file")
    keep(tmp_path / "blocked", Response(URL, body=b"x"))
    assert "can't be kept" in caplog.text


@pytest.mark.parametrize("shown", range(1, 9))
def test_credentials_at_the_end_of_what_is_kept_leave_no_beginning(shown: int, tmp_path: Path) -> None:
    secret = b"pa55word"
    body, header = b"x" * (MAX_BODY_BYTES - shown) + secret, b"x" * (500 - shown) + secret
    keep(tmp_path, Response(URL, headers={"X-Echo": header}, body=body), secrets=(secret,))
    (path,) = tmp_path.iterdir()
    assert b"xp" not in path.read_bytes()
