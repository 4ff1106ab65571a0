from __future__ import annotations

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.legacy import imdb_lists, imdb_titles
from moviecrawler.fields import present_in
from tests.extract.golden import body_of, movie_of

PAGE = body_of("imdb/title-2017")


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.95])
def test_a_page_that_was_cut_off_is_an_error(share: float) -> None:
    with pytest.raises(ExtractionError, match="ends inside"):
        imdb_titles.title(PAGE[: int(len(PAGE) * share)], None)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (b"<title>Harbour Lights (1995)", b"<title>Harbour Lights (1015)", "year"),
        (b'<span itemprop="ratingValue">7.4<', b'<span itemprop="ratingValue">74<', "scores.imdb"),
        (b'itemprop="ratingCount">29,679<', b'itemprop="ratingCount"><', "scores.imdb.count"),
        (b"<span>70</span>", b"<span>170</span>", "scores.metascore"),
        (b'datetime="PT112M"', b'datetime="112"', "runtime_minutes"),
        (b"&euro;7,000,000", b"&curren;7,000,000", "amounts.budget"),
        (b'9 June 1995 (USA)<meta itemprop="datePublished" content="1995-06-09">', b"9 Hune 1995 (USA)", "release_date"),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_silent_or_read_elsewhere(old: bytes, new: bytes, field: str) -> None:
    assert old in PAGE
    whole = movie_of(imdb_titles.title(PAGE))
    movie = movie_of(imdb_titles.title(PAGE.replace(old, new)))
    lost = present_in(whole) - present_in(movie)
    assert {name for name in lost if not name.startswith(f"{field}.")} <= {field}
    assert field in movie.silent or field in present_in(movie)


@pytest.mark.parametrize("case", ["title-2017", "title-series-2019-hu"])
def test_a_page_saved_by_a_browser_has_whole_addresses_and_says_the_same(case: str) -> None:
    page = body_of(f"imdb/{case}")
    saved = page.replace(b'href="#', b'href="https://www.imdb.com/title/tt9100002/#')
    saved = saved.replace(b'href="/', b'href="https://www.imdb.com/')
    assert movie_of(imdb_titles.title(saved)) == movie_of(imdb_titles.title(page))


def test_a_page_that_names_two_titles_is_an_error() -> None:
    own, other = (b'property="og:url" content="http://www.imdb.com/title/tt910000' + digit for digit in (b"2", b"3"))
    assert own in PAGE
    with pytest.raises(ExtractionError) as error:
        imdb_titles.title(PAGE.replace(own, other), None)
    assert error.value.field == "site_id"


def test_a_page_of_another_kind_is_an_error() -> None:
    page = b"<html><head><title>IMDb</title></head><body><h1>Welcome</h1></body></html>"
    for read in (imdb_titles.title, imdb_titles.full_credits, imdb_lists.listing, imdb_lists.episodes):
        with pytest.raises(ExtractionError):
            read(page, "https://www.imdb.com/title/tt9100002/")
