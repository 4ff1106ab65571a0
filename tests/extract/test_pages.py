"""Pages of unknown kind: how they are told apart, however they were saved; and JSON-LD in all its forms."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract import linked_data
from moviecrawler.extract.embedded import decode_json, decode_text
from moviecrawler.extract.pages import page_record, read_page
from tests.extract.golden import body_of, changed, movie_of

UNKNOWN = "not a page of a title or a list"


@pytest.mark.promise("Of a page in a layout that is not known, nothing is read wrongly.")
@pytest.mark.parametrize(
    "url",
    [
        *("/title/tt0900001/reference/", "/title/tt0900001/fullcredits", "/search/title/", "/name/nm0900001/", "/"),
        *("metacritic/movie/x/details", "metacritic/game/x/", "metacritic/browse/movie/", "metacritic/composer/x"),
        *(
            "rottentomatoes/m/x/reviews",
            "rottentomatoes/search?search=x",
            "rottentomatoes/top/bestofrt/",
            "example/m/x",
        ),
    ],
)
def test_page_that_no_spider_asks_for_is_unknown(url: str) -> None:
    site, _, path = url.partition("/")
    for body in (b"<html></html>", body_of("imdb/title-2025-rank-1046"), body_of("metacritic/nuxt3-movie")):
        with pytest.raises(ExtractionError, match=UNKNOWN):
            read_page(body, f"https://www.{site or 'imdb'}.com/{path}")


@pytest.mark.promise("Of a page in a layout that is not known, nothing is read wrongly.")
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"{}", b"[]", b"<html>", b"\xff\xfe", b'{"data": {"items": []}}'),
        b"<link rel='canonical' href='http://[x'>",
        b'<link rel="canonical" href="https://www.example.com/title/tt0900001/">',
    ],
)
def test_what_says_nothing_of_itself_is_unknown(body: bytes) -> None:
    with pytest.raises(ExtractionError):
        read_page(body)


@pytest.mark.parametrize("case", ["imdb/title-2025-rank-1046", "rottentomatoes/2026-browse-json"])
def test_byte_order_mark_changes_nothing(case: str) -> None:
    assert read_page(b"\xef\xbb\xbf" + body_of(case)) == read_page(body_of(case))


@pytest.mark.parametrize("stated", [b"id='%b'", b"type=x id=%b", b"id=%b data-x"])
def test_data_is_found_however_its_script_is_written(stated: bytes) -> None:
    for case, name in (("imdb/title-2025-rank-1046", b"__NEXT_DATA__"), ("metacritic/nuxt3-movie", b"__NUXT_DATA__")):
        body = body_of(case)
        other = changed(body, b'id="%b"' % name, stated % name)
        upper = other.replace(b"<script", b"<SCRIPT").replace(b"</script", b"</SCRIPT")
        assert read_page(upper) == read_page(other) == read_page(body)


@pytest.mark.parametrize("behind", [b"<!-- saved -->", b"<style>p{}</style>\n", b"<script>a()</script><div></div>"])
def test_what_stands_behind_the_end_of_a_page_changes_nothing(behind: bytes) -> None:
    for case in ("imdb/title-json-ld", "metacritic/movie-json-ld", "rottentomatoes/2026-tv"):
        assert read_page(body_of(case) + behind) == read_page(body_of(case))


def test_end_of_another_document_inside_a_script_is_not_the_end_of_the_page() -> None:
    body = body_of("rottentomatoes/2026-tv")
    cut = body[: body.index(b"</body>")] + b"<script>write('<html><body></body></html>')"
    with pytest.raises(ExtractionError, match="ends before its end tag"):
        read_page(cut)


@pytest.mark.promise("A block page is never stored as data.")
def test_block_page_is_no_page() -> None:
    with pytest.raises(ExtractionError) as refused:
        read_page(b"<html><title>Just a moment...</title></html>", "https://www.imdb.com/title/tt0900001/")
    assert refused.value.field == "block"


@pytest.mark.parametrize("address", ["https://[www.imdb.com/title/tt9100001/", "http://[::1", ""])
def test_damaged_address_is_no_address(address: str) -> None:
    page = b'<html><head><link rel="canonical" href="' + address.encode() + b'"></head><body></body></html>'
    for url in (None, address):
        with pytest.raises(ExtractionError):
            read_page(page, url)


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


# --- JSON-LD --------------------------------------------------------------------------------------------------------

URL = "https://www.metacritic.com/movie/the-salt-road/"
FILM: dict[str, Any] = {
    "@type": "Movie",
    "name": "The Salt Road",
    "url": URL,
    "image": "https://pictures.example/images/M/salt.jpg",
    "director": [{"@type": "Person", "name": "Ines Vale", "url": "https://www.metacritic.com/person/ines-vale/"}],
    "aggregateRating": {"ratingValue": 74, "reviewCount": 33},
    "datePublished": None,
    "duration": "PT2M17S",
}


def linked(data: Any, head: str = "") -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    tag = f'<link rel="canonical" href="{URL}">'
    return (
        f'<html><head>{tag}{head}<script type="application/ld+json">{text}</script></head><body></body></html>'.encode()
    )


@pytest.mark.promise("JSON-LD by schema.org is read where a page has nothing better.")
@pytest.mark.parametrize(
    "form",
    [
        [FILM],
        {"@graph": [{"@type": "WebPage"}, FILM]},
        {**FILM, "@type": ["Movie", "CreativeWork"]},
        {**FILM, "aggregateRating": [FILM["aggregateRating"]]},
        {**FILM, "aggregateRating": {"ratingValue": "74", "reviewCount": "33"}},
        {**FILM, "aggregateRating": {"ratingValue": 74.0, "reviewCount": 33.0}},
        {**FILM, "image": {"@type": "ImageObject", "url": FILM["image"]}},
        {**FILM, "image": [{"@type": "ImageObject", "contentUrl": FILM["image"]}]},
        {**FILM, "datePublished": "", "contentRating": ""},
    ],
)
def test_all_forms_of_json_ld_are_one(form: Any) -> None:
    movie = movie_of(read_page(linked(form)))
    assert movie == movie_of(read_page(linked(FILM)))
    assert (movie.title, movie.runtime_minutes, movie.scores[0].count) == ("The Salt Road", 137, 33)


def test_json_ld_that_is_no_json_is_passed_by_and_a_cut_one_is_not() -> None:
    broken = '<script type="application/ld+json">{"description": "A "quiet" film"}</script>'
    assert linked_data.title_of(linked(FILM, broken))["name"] == "The Salt Road"
    with pytest.raises(ValueError, match="ends inside a script"):
        linked_data.title_of(linked(FILM)[:-60].replace(b"</script", b""))


@pytest.mark.promise("JSON-LD by schema.org is read where a page has nothing better.")
@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        ({"aggregateRating": {"ratingValue": 0, "reviewCount": 0}}, "scores", []),
        ({"aggregateRating": {"ratingValue": "tbd"}}, "scores", []),
        ({"description": "A carter crosses a dry…"}, "plot", None),
        ({"duration": "PT2M"}, "runtime_minutes", None),
        ({"duration": "PT58S"}, "runtime_minutes", 58),
        ({"director": {"name": "Ines Vale"}}, "credits", []),  # may be the last of several
        ({"director": [{"@type": "Person"}]}, "credits", []),
    ],
)
def test_what_json_ld_may_mean_otherwise_is_silent(changes: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(movie_of(read_page(linked({**FILM, **changes}))), field) == value


@pytest.mark.promise("A page of another title is never stored as the one that was asked for.")
@pytest.mark.parametrize(
    "other", [{"url": "https://www.metacritic.com/movie/another/"}, {"@type": "VideoGame"}, {"name": ""}]
)
def test_json_ld_of_another_title_is_refused(other: dict[str, Any]) -> None:
    with pytest.raises(ExtractionError):
        read_page(linked({**FILM, **other}))


def test_original_title_of_imdb_is_not_taken_for_the_one_that_is_shown() -> None:
    body = body_of("imdb/title-json-ld")
    assert page_record(read_page(body))["item"]["title"] == "Die Lampe"
    with pytest.raises(ExtractionError, match="<title> is not"):
        read_page(changed(body, b"<title>Die Lampe", b"<title>Lampen"))
