"""Pages of unknown kind: how they are told apart, however they were saved."""

from __future__ import annotations

import re

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.pages import page_record, read_page
from tests.extract.golden import body_of


def without_addresses(body: bytes) -> bytes:
    return re.sub(rb"<(?:link|meta)\b[^>]*(?:canonical|og:url)[^>]*>", b"", body)


@pytest.mark.parametrize(
    ("case", "url"),
    [
        ("imdb/title-2014", "http://www.imdb.com/title/tt9100001/"),
        ("imdb/search-2012", "http://akas.imdb.com/search/title?title_type=feature"),
        ("metacritic/movie-2017", "https://www.metacritic.com/movie/glass-orchard"),
        ("rottentomatoes/2021-score-details", "https://www.rottentomatoes.com/m/night_ferry"),
    ],
)
def test_address_that_a_browser_wrote_into_the_page_is_its_address(case: str, url: str) -> None:
    bare = without_addresses(body_of(case))
    saved = b"<!DOCTYPE html>\n<!-- saved from url=(0099)" + url.encode() + b" -->\n" + bare
    assert page_record(read_page(saved)) == page_record(read_page(bare, url))


@pytest.mark.parametrize("case", ["imdb/title-2025-rank-1046", "imdb/page-props-2025", "metacritic/finder-movies"])
def test_byte_order_mark_changes_nothing(case: str) -> None:
    body = body_of(case)
    assert read_page(b"\xef\xbb\xbf" + body) == read_page(body)


@pytest.mark.parametrize("stated", [b"id='%b'", b"type=x id=%b", b"id=%b data-x"])
def test_data_is_found_however_its_script_is_written(stated: bytes) -> None:
    for case, name in (("imdb/title-2025-rank-1046", b"__NEXT_DATA__"), ("metacritic/nuxt3-movie", b"__NUXT_DATA__")):
        body = body_of(case)
        other = body.replace(b'id="%b"' % name, stated % name)
        assert other != body
        assert read_page(other) == read_page(body)


@pytest.mark.parametrize("behind", [b"<!-- archived -->", b"<style>p{}</style>\n", b"<script>a()</script><div></div>"])
def test_what_stands_behind_the_end_of_a_page_changes_nothing(behind: bytes) -> None:
    for case in ("imdb/title-2017", "metacritic/movie-2017", "rottentomatoes/2019-mop-ratings"):
        body = body_of(case)
        assert read_page(body + behind) == read_page(body)


@pytest.mark.parametrize("address", ["https://[www.imdb.com/title/tt9100001/", "http://[::1", ""])
def test_damaged_address_is_no_address(address: str) -> None:
    page = b'<html><head><link rel="canonical" href="' + address.encode() + b'"></head><body></body></html>'
    for url in (None, address):
        with pytest.raises(ExtractionError):
            read_page(page, url)


def test_end_of_another_document_inside_a_script_is_not_the_end_of_the_page() -> None:
    cut = b"<html><body><h1>Night Ferry</h1><script>write('<html><body></body></html>')"
    with pytest.raises(ExtractionError):
        read_page(cut, "https://www.imdb.com/title/tt9100001/")
