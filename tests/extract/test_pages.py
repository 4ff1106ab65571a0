"""Pages of unknown kind, and texts and JSON that are nearly right."""

from typing import Any

import pytest

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.extract.embedded import check_whole, decode_json, decode_text
from moviecrawler.extract.findings import ShapeError
from moviecrawler.sites.pages import read_page
from tests.golden import body_of

PAGES = ["imdb/title-2025-rank-1046", "metacritic/nuxt3-movie"]
OTHERS = {
    "imdb": [
        "title/tt0900001/reference/",
        "title/tt0900001/fullcredits/cast",
        "search/title/",
        "name/nm0900001/",
        "",
    ],
    "metacritic": ["movie/x/details", "game/x/", "browse/movie/", "composer/x"],
    "rottentomatoes": ["m/x/reviews", "search?search=x", "top/bestofrt/"],
    "example": ["m/x"],
}


@pytest.mark.promise("Of a page in a layout that is not known, nothing is read wrongly.")
@pytest.mark.parametrize(
    ("site", "path"), [(site, path) for site, paths in OTHERS.items() for path in paths]
)
def test_page_that_no_spider_asks_for_is_unknown(site: str, path: str) -> None:
    for body in (b"<html></html>", *map(body_of, PAGES)):
        with pytest.raises(ExtractionError, match="not a page of a title or a list"):
            read_page(body, f"https://www.{site}.com/{path}")


@pytest.mark.promise("Of a page in a layout that is not known, nothing is read wrongly.")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{}",
        b"[]",
        b"<html>",
        b"\xff\xfe",
        b'{"data": {"items": []}}',
        b"<link rel='canonical' href='http://[x'>",
        b'<link rel="canonical" href="https://www.example.com/title/tt0900001/">',
    ],
)
def test_page_that_names_no_address_of_a_site_is_unknown(body: bytes) -> None:
    for url in (None, "", "http://[::1", "https://[www.imdb.com/title/tt9100001/"):
        with pytest.raises(ExtractionError):
            read_page(body, url)


def test_page_that_ends_inside_a_script_is_not_whole_though_the_script_writes_an_end_tag() -> None:
    check_whole(b"<html><script>write('</html>')</script></html>")
    with pytest.raises(ShapeError, match="ends before its end tag"):
        check_whole(b"<html><script>write('</html>')")


@pytest.mark.parametrize("head", ["", '<meta charset="utf-8">', '<meta charset="iso-8859-1">'])
def test_text_is_what_most_of_its_bytes_are(head: str) -> None:
    text = f"<html><head>{head}</head><body>Café Zúñiga – naïve</body></html>"
    assert decode_text(text.encode()) == text
    assert decode_text(text.encode("cp1252")) == text
    assert decode_text(text.encode() + b"\xe9") == text + "\ufffd"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'"a\\ud83d"', "a\ufffd"),
        (b'"\\udf00\\ud83c\\udf00"', "\ufffd\U0001f300"),
        (b'"\xc3\xa9\xc3\xa9\x01\xff"', "éé\x01\ufffd"),
        (b"\xef\xbb\xbf[1]", [1]),
    ],
)
def test_json_that_is_nearly_right_is_decoded(raw: bytes, value: Any) -> None:
    assert decode_json(raw) == value
