from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.replica.saved import SavedPages
from tests.replica.client import ask

if TYPE_CHECKING:
    from pathlib import Path

INDEX = """\
file\tsite\tkind\turl\tcaptured
old.html\timdb\ttitle\thttps://www.imdb.com/title/tt7777771/\t2024-01
new.html\timdb\ttitle\thttps://www.imdb.com/title/tt7777771/\t<=2025-03
same.html\timdb\ttitle\thttps://www.imdb.com/title/tt7777771/\t<=2025-02
gone.html\timdb\tredirect\thttps://www.imdb.com/title/tt7777772\t2025-01
data.json\timdb\treference\thttps://www.imdb.com/title/tt7777773/reference/\t2025-01
nuxt.json\tmetacritic\tnuxt-data\thttps://www.metacritic.com/movie/invented/\t2025-01
finder.json\tmetacritic\tbackend\thttps://backend.metacritic.com/finder/metacritic/web?limit=24&offset=0\t2025-01
browse.html\trottentomatoes\tbrowse\thttps://www.rottentomatoes.com/browse/movies_at_home/genres:a~sort:b\t2025-01
search.html\timdb\tsearch\t\t2025-01
"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    (tmp_path / "INDEX.tsv").write_text(INDEX, encoding="utf-8")
    for line in INDEX.splitlines()[1:]:
        name = line.split("\t")[0]
        content = {"data.json": '{"props": 1}', "nuxt.json": "[1, 2]", "finder.json": '{"data": 1}'}
        (tmp_path / name).write_text(content.get(name, f"<html>{name}</html>"), encoding="utf-8")
    return tmp_path


def test_saved_pages_are_served_under_their_addresses(saved: Path) -> None:
    with ReplicaProcess(pages=str(saved), robots="live") as replica:
        imdb, metacritic, rottentomatoes = replica.urls.values()
        assert ask(imdb + "/title/tt7777771/").body == b"<html>new.html</html>"
        assert ask(imdb + "/title/tt7777771").body == b"<html>new.html</html>"
        assert ask(imdb + "/title/tt7777771/?other=1").status == 404
        assert ask(imdb + "/title/tt7777772/").status == 404
        assert ask(imdb + "/chart/top/").status == 404
        page = ask(imdb + "/title/tt7777773/reference/")
        assert b'<script id="__NEXT_DATA__" type="application/json">{"props": 1}</script>' in page.body
        assert page.headers["content-type"].startswith("text/html")
        assert (
            b'<script id="__NUXT_DATA__" type="application/json">[1, 2]</script>'
            in ask(metacritic + "/movie/invented/").body
        )
        finder = ask(metacritic + "/finder/metacritic/web?offset=0&limit=24")
        assert (finder.body, finder.headers["content-type"]) == (b'{"data": 1}', "application/json")
        assert ask(metacritic + "/title/tt7777771/").status == 404
        assert ask(rottentomatoes + "/browse/movies_at_home/genres:a~sort:b").body == b"<html>browse.html</html>"
        assert b"Disallow: /\n" not in ask(imdb + "/robots.txt").body


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"INDEX\.tsv"):
        SavedPages(tmp_path)
    (tmp_path / "INDEX.tsv").write_text("name\twhere\na.html\thttps://www.imdb.com/\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="has the columns file, kind, url and captured"):
        SavedPages(tmp_path)
