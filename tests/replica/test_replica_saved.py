from pathlib import Path

import pytest

from moviecrawler.errors import ConfigurationError
from moviecrawler.items import Site
from moviecrawler.replica.sources import SavedPages
from moviecrawler.sites import SITES
from tests.replica.client import ask
from tests.services.replica import ForkedReplica

ROWS: list[tuple[str, Site, str, str, str]] = [
    ("old.html", "imdb", "title", "/title/tt7777771/", "2024-01"),
    ("new.html", "imdb", "title", "/title/tt7777771/", "<=2025-03"),
    ("same.html", "imdb", "title", "/title/tt7777771/", "<=2025-02"),
    ("gone.html", "imdb", "redirect", "/title/tt7777772", "2025-01"),
    ("data.json", "imdb", "title", "/title/tt7777773/", "2025-01"),
    ("nuxt.json", "metacritic", "nuxt-data", "/movie/invented/", "2025-01"),
    (
        "browse.html",
        "rottentomatoes",
        "browse",
        "/browse/movies_at_home/genres:a~sort:b",
        "2025-01",
    ),
]
FINDER = (
    "finder.json\tmetacritic\tbackend\t"
    "https://backend.metacritic.com/finder/metacritic/web?limit=24&offset=0\t2025-01"
)


def test_saved_pages_are_served_under_their_addresses(tmp_path: Path) -> None:
    lines = ["file\tsite\tkind\turl\tcaptured", FINDER]
    lines += [
        "\t".join((file, site, kind, SITES[site].home + path, when))
        for file, site, kind, path, when in ROWS
    ]
    (tmp_path / "INDEX.tsv").write_text("\n".join(lines), encoding="utf-8")
    contents = {file: f"<html>{file}</html>" for file, *_ in ROWS}
    contents |= {"data.json": '{"props": 1}', "nuxt.json": "[1, 2]", "finder.json": '{"data": 1}'}
    for file, content in contents.items():
        (tmp_path / file).write_text(content, encoding="utf-8")
    with ForkedReplica(pages=str(tmp_path), robots="live") as replica:
        imdb = replica.urls["imdb"]
        metacritic = replica.urls["metacritic"]
        rottentomatoes = replica.urls["rottentomatoes"]
        assert (
            ask(imdb + "/title/tt7777771/").body
            == ask(imdb + "/title/tt7777771").body
            == b"<html>new.html</html>"
        )
        for missing in ("/title/tt7777771/?other=1", "/title/tt7777772/", "/chart/top/"):
            assert ask(imdb + missing).status == 404
        page = ask(imdb + "/title/tt7777773/")
        assert (
            b'<script id="__NEXT_DATA__" type="application/json">{"props": 1}</script>' in page.body
        )
        assert page.headers["content-type"].startswith("text/html")
        nuxt = b'<script id="__NUXT_DATA__" type="application/json">[1, 2]</script>'
        assert nuxt in ask(metacritic + "/movie/invented/").body
        finder = ask(metacritic + "/finder/metacritic/web?offset=0&limit=24")
        assert (finder.body, finder.headers["content-type"]) == (b'{"data": 1}', "application/json")
        assert ask(rottentomatoes + ROWS[-1][3]).body == b"<html>browse.html</html>"
        assert b"Disallow: /\n" not in ask(imdb + "/robots.txt").body


def test_a_folder_without_an_index_is_refused(tmp_path: Path) -> None:
    (tmp_path / "INDEX.tsv").write_text(
        "name\twhere\na.html\thttps://www.imdb.com/\n", encoding="utf-8"
    )
    with pytest.raises(ConfigurationError, match="has the columns file, kind, url and captured"):
        SavedPages(tmp_path)
