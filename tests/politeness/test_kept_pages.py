import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from scrapy.http import Response

from moviecrawler.politeness import kept_pages
from moviecrawler.politeness.kept_pages import MAX_PAGES, keep_page

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
URL = "https://www.imdb.com/title/tt0111161/"


def keep(
    folder: Path,
    response: Response,
    second: int = 0,
    site: str = "imdb",
) -> None:
    keep_page(
        folder,
        site,
        "challenge",
        response,
        NOW + timedelta(seconds=second),
        via="datacenter:3",
    )


def test_a_kept_page_says_what_was_answered_and_by_which_way(tmp_path: Path) -> None:
    headers = {"X-Amzn-Waf-Action": "challenge", "Set-Cookie": "session=mine"}
    keep(tmp_path / "kept", Response(URL, status=202, headers=headers, body=b"<script>"))
    page, about = sorted((tmp_path / "kept").iterdir())
    assert (page.name, about.suffix) == ("imdb-challenge-20261121T120000000.html", ".json")
    assert page.read_bytes() == b"<script>"
    assert json.loads(about.read_bytes()) == {
        "url": URL,
        "why": "",
        "status": 202,
        "via": "datacenter:3",
        "at": "2026-11-21T12:00:00Z",
        "headers": {"X-Amzn-Waf-Action": "challenge"},
    }


def test_the_newest_few_of_each_site_and_kind_are_kept_and_no_more_of_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_pages, "MAX_BODY_BYTES", 100)
    keep(tmp_path, Response(URL, body=b"x"), site="metacritic")
    for second in range(MAX_PAGES + 5):
        keep(tmp_path, Response(URL, body=b"x" * 200), second)
    assert len(list(tmp_path.glob("metacritic-*.html"))) == 1
    names = sorted(path.name for path in tmp_path.glob("imdb-*.html"))
    assert len(names) == len(list(tmp_path.glob("imdb-*.json"))) == MAX_PAGES
    assert names[0] == "imdb-challenge-20261121T120005000.html"
    assert all(path.stat().st_size == 100 for path in tmp_path.glob("imdb-*.html"))


def test_a_page_that_can_not_be_kept_is_told_and_does_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "kept").write_text("a file")
    keep(tmp_path / "kept", Response(URL, body=b"x"))
    assert "can't be kept" in caplog.text
