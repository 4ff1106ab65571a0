"""What is just within a bound is read, and what is just beyond it is not."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.extract import devalue, embedded, trees
from moviecrawler.extract.embedded import decode_json, decode_text, script, stated_addresses
from moviecrawler.extract.findings import ShapeError
from moviecrawler.extract.offers import plain_address
from moviecrawler.extract.trees import tree_of
from moviecrawler.sites import SITES
from moviecrawler.sites.rottentomatoes.markup import consensus_of, offers_of, similar_of
from moviecrawler.sites.sitemaps import read_sitemap
from moviecrawler.sites.titles import (
    LONGEST_TITLE,
    MOST_SEASONS,
    listed_seasons,
    new_title,
    stated_title,
)

PAGE = b"<html><body><p a b " + b"c" * 2000 + b">d</p></body></html>"
SALT = new_title("rottentomatoes", "tv/salt", "Salt")


@pytest.fixture
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have bounds that small things reach."""
    monkeypatch.setattr(trees, "MOST_TAGS", 6)
    monkeypatch.setattr(trees, "LARGEST_PAGE", len(PAGE) + 2)
    monkeypatch.setattr(embedded, "LARGEST_PAGE", 12)
    monkeypatch.setattr(embedded, "_ALWAYS_READ", 6)
    monkeypatch.setattr(embedded, "_MOST_VALUES", 2)


@pytest.mark.usefixtures("_narrow")
@pytest.mark.parametrize(
    ("read", "within", "beyond"),
    [
        (tree_of, PAGE + b"  ", PAGE + b"   "),
        (tree_of, PAGE, PAGE + b"<"),
        (decode_json, b'"1234567890"', b'"12345678901"'),
        (decode_json, b"[[[]]]", b" [[[]]]"),
        (decode_json, b"[    1,2]", b"[  1,2,3]"),
    ],
)
def test_pages_and_scripts(read: Callable[[bytes], object], within: bytes, beyond: bytes) -> None:
    read(within)
    with pytest.raises(ShapeError):
        read(beyond)


def test_visits_of_a_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devalue, "_VISITS_OF_EACH", 1)
    within: Any = devalue.unflatten(b"[[1,1],7]")
    assert [*within] == [7, 7]
    beyond: Any = devalue.unflatten(b"[[1,1,1],7]")
    with pytest.raises(ShapeError, match="too often"):
        list(beyond)


@pytest.mark.parametrize("most", [3, 4])
def test_attributes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The name of a tag counts as one, too.
    monkeypatch.setattr(trees, "MOST_ATTRIBUTES", most)
    assert len(tree_of(PAGE).css("p")) == 1
    assert len(tree_of(PAGE).css("p[a]")) == most - 3


@pytest.mark.parametrize("length", [4096, 4097])
def test_tags(length: int) -> None:
    tag = b'<link rel="canonical" href="/a'.ljust(length - 2, b"a") + b'">'
    assert len(list(stated_addresses(tag))) == 4097 - length


def test_scripts_that_begin_a_page_and_signs_behind_a_tag() -> None:
    assert script(b'<script id="a">7</script>', "a") == b"7"
    assert script(b"<script>a</script>", "a") is None
    with pytest.raises(ShapeError):
        script(b'<script id="a">7', "a")


def test_text_of_which_half_of_the_foreign_bytes_are_bad() -> None:
    assert decode_text(b"\xc3\xa9\xff\xff") == "é\ufffd\ufffd"
    assert decode_text(b"\xc3\xa9\xff\xff\xff") == "Ã©ÿÿÿ"


def test_addresses() -> None:
    url = "https://lamp.example/"
    assert plain_address(url.ljust(2000, "a")) == url.ljust(2000, "a")
    assert plain_address(url.ljust(2001, "a")) is None


@pytest.mark.parametrize("beyond", [0, 1])
def test_titles_seasons_and_texts(beyond: int) -> None:
    refused = pytest.raises(ShapeError) if beyond else nullcontext()
    with refused:
        assert stated_title("a" * (LONGEST_TITLE + beyond))
    rows = [
        new_title("rottentomatoes", f"tv/salt/s{number:02}", "Salt")
        for number in range(MOST_SEASONS + beyond)
    ]
    with refused:
        assert len(listed_seasons(SALT, rows)) == MOST_SEASONS
    named = new_title("rottentomatoes", "tv/salt/s01", "a" * (LONGEST_TITLE + beyond))
    assert len(listed_seasons(SALT, [named])) == 1 - beyond
    text = b"<p data-qa=critics-consensus>" + b"a" * (2_000 + beyond) + b"</p>"
    with refused:
        assert consensus_of(tree_of(text))


def test_the_first_of_two_sections() -> None:
    offer = (
        '<i id="where-to-watch"><where-to-watch-meta affiliate="%s"><b slot="license">Buy</b></i>'
    )
    similar = '<i id="more-like-this"><a href="/m/%s" slot="title">Salt</a></i>'
    offers: Any = offers_of(tree_of("".join(offer % name for name in "ab").encode()))
    assert [offer.provider for offer in offers] == ["a"]
    titles: Any = similar_of(tree_of("".join(similar % name for name in "ab").encode()))
    assert [title.site_id for title in titles] == ["m/a"]


@pytest.mark.parametrize(("depth", "told"), [(20, "mismatch"), (21, "inside of each other")])
def test_elements_of_a_sitemap(depth: int, told: str) -> None:
    with pytest.raises(ExtractionError, match=told):
        read_sitemap(b"<urlset>" + b"<a>" * (depth - 1) + b"</urlset>")


def test_the_page_of_a_title_is_that_of_no_list() -> None:
    profile = SITES["imdb"]
    assert profile.list_form("https://www.imdb.com/chart/top/").reader == "chart"
    for path in ("title/tt0900001/", "name/nm0900001/"):
        with pytest.raises(ExtractionError, match="not a page of a list of IMDb's"):
            profile.list_form(f"https://www.imdb.com/{path}")
