from __future__ import annotations

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import imdb_markup
from tests.conftest import PROJECT

PAGE = (PROJECT / "tests" / "pages" / "imdb" / "title-2017" / "page.html").read_bytes()


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95])
def test_a_page_that_was_cut_off_is_an_error(share: float) -> None:
    with pytest.raises(ExtractionError, match="ends early"):
        imdb_markup.title(PAGE[: int(len(PAGE) * share)], None)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (b'property="og:url" content="http://www.imdb.com/title/tt9100002/', b'property="og:url" content="/title/tt9100003/', "site_id"),
        (b"<title>Harbour Lights (1995)", b"<title>Harbour Lights (1015)", "page"),
        (b'<span itemprop="ratingValue">7.4<', b'<span itemprop="ratingValue">74<', "scores"),
        (b'itemprop="ratingCount">29,679<', b'itemprop="ratingCount"><', "scores"),
        (b"<span>70</span>", b"<span>170</span>", "scores"),
        (b'datetime="PT112M"', b'datetime="112"', "page"),
        (b"&euro;7,000,000", b"&curren;7,000,000", "amounts"),
        (b'9 June 1995 (USA)<meta itemprop="datePublished" content="1995-06-09">', b"9 Hune 1995 (USA)", "release_date"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_an_error(old: bytes, new: bytes, field: str) -> None:
    assert old in PAGE
    with pytest.raises(ExtractionError) as error:
        imdb_markup.title(PAGE.replace(old, new), None)
    assert error.value.field == field


def test_a_page_of_another_kind_is_an_error() -> None:
    page = b"<html><head><title>IMDb</title></head><body><h1>Welcome</h1></body></html>"
    for read in (imdb_markup.title, imdb_markup.full_credits, imdb_markup.listing, imdb_markup.episodes):
        with pytest.raises(ExtractionError):
            read(page, "https://www.imdb.com/title/tt9100002/")
