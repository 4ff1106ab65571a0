import gzip
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from resource import RUSAGE_SELF, getrusage

import pytest

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.sites.sitemaps import LARGEST, LONGEST_ADDRESS, MOST_LOCATIONS, read_sitemap
from tests.extract.limits import processor_time
from tests.processes import CONTEXT

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
PAGES = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {NAMESPACE} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
  <url>
    <loc> https://www.rottentomatoes.com/m/the_paper_lighthouse </loc>
    <image:image><image:loc>https://images.example/lighthouse.jpg</image:loc></image:image>
    <lastmod>2026-03-01T04:05:06Z</lastmod>
  </url>
  <!-- a comment -->
  <url><loc>https://www.rottentomatoes.com/m/salt_&amp;_smoke</loc></url>
</urlset>
""".encode()
INDEX = f"""<?xml version="1.0"?>
<sitemapindex {NAMESPACE}>
  <sitemap><loc>https://www.rottentomatoes.com/sitemaps/movie_1.xml</loc>\
<lastmod>2026-03-01</lastmod></sitemap>
  <sitemap><loc>https://www.rottentomatoes.com/sitemaps/tv-series_1.xml</loc></sitemap>
</sitemapindex>
""".encode()


def test_pages_are_listed_in_order_without_their_images() -> None:
    sitemap = read_sitemap(PAGES)
    assert not sitemap.is_index
    assert sitemap.urls == [
        "https://www.rottentomatoes.com/m/the_paper_lighthouse",
        "https://www.rottentomatoes.com/m/salt_&_smoke",
    ]


def test_index_lists_sitemaps() -> None:
    sitemap = read_sitemap(INDEX)
    assert sitemap.is_index
    assert [url.rpartition("/")[2] for url in sitemap.urls] == ["movie_1.xml", "tv-series_1.xml"]


def test_namespace_white_space_and_gzip_change_nothing() -> None:
    for body in (PAGES.replace(NAMESPACE.encode(), b""), b"\r\n\n " + PAGES, gzip.compress(PAGES)):
        assert read_sitemap(body) == read_sitemap(PAGES)
    assert read_sitemap(b"<urlset/>").urls == []


@pytest.mark.parametrize(
    "body", [PAGES, INDEX, gzip.compress(PAGES)], ids=["pages", "index", "gzip"]
)
def test_sitemap_cut_anywhere_is_refused(body: bytes) -> None:
    for end in range(len(body.rstrip())):
        with pytest.raises(ExtractionError):
            read_sitemap(body[:end])


ENTITY = (
    b"<!DOCTYPE urlset [<!ENTITY e %b>]>"
    b"<urlset><url><loc>https://x.example/&e;</loc></url></urlset>"
)


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html><body>Not here</body></html>",
        b'{"loc": "https://www.rottentomatoes.com/m/x"}',
        *(ENTITY % declared for declared in (b'SYSTEM "file:///etc/hostname"', b'"expanded"')),
    ],
)
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(ExtractionError) as raised:
        read_sitemap(body, "https://www.rottentomatoes.com/sitemaps/sitemap.xml")
    assert raised.value.url == "https://www.rottentomatoes.com/sitemaps/sitemap.xml"


def growth(packed: bytes) -> int:
    """Return by how many kB a process grows that reads a sitemap."""
    with ProcessPoolExecutor(1, CONTEXT) as pool:
        return pool.submit(_growth_of_this_process, packed).result()


def _growth_of_this_process(packed: bytes) -> int:
    before = getrusage(RUSAGE_SELF).ru_maxrss
    with processor_time(30), suppress(ExtractionError):
        read_sitemap(packed)
    return getrusage(RUSAGE_SELF).ru_maxrss - before


def test_gzip_bomb_is_refused_before_it_is_unpacked() -> None:
    bomb = gzip.compress(b" " * 4 * LARGEST, compresslevel=1)
    with pytest.raises(ExtractionError, match="more than"):
        read_sitemap(bomb)
    assert growth(bomb) < 3 * LARGEST / 1000


def test_sitemap_is_read_to_the_number_of_addresses_that_the_protocol_allows() -> None:
    for count in (MOST_LOCATIONS, MOST_LOCATIONS + 1):
        rows = b"".join(
            b"<url><loc>https://www.example.com/m/title_%d</loc></url>" % number
            for number in range(count)
        )
        body = b"<urlset>" + rows + b"</urlset>"
        sitemap = read_sitemap(body)
        assert (len(sitemap.urls), sitemap.is_cut) == (MOST_LOCATIONS, count > MOST_LOCATIONS)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "a million addresses": lambda: (
        b"<url><loc>https://www.example.com/m/title</loc></url>" * 900_000
    ),
    "a million addresses of one page": lambda: (
        b"<url><loc>https://x.example/</loc>" + b"<loc>https://x.example/</loc>" * 1_500_000
    ),
    "images": lambda: b"<url><loc>https://x.example/</loc>" + b"<image/>" * 5_000_000,
    "comments": lambda: b"<!---->" * 5_000_000,
    "an address without an end": lambda: b"<url><loc>https://x.example/" + b"a" * 40_000_000,
    "a tag without an end": lambda: (
        b"<url " + b" ".join(b"a%d='1'" % number for number in range(2_000_000))
    ),
    "a comment without an end": lambda: b"<!--" + b"a" * 40_000_000,
    "elements inside of each other": lambda: b"<url>" * 8_000_000,
    "white space": lambda: b" " * 40_000_000,
}
"""What makes each, as making them takes seconds."""
LONG = {"a million addresses", "a million addresses of one page", "images"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in HOSTILE]
)
def test_hostile_sitemap_is_read_in_bounded_memory_and_time(name: str) -> None:
    packed = gzip.compress(b"<urlset>" + HOSTILE[name](), compresslevel=1)
    # The parser keeps a tag and a comment until their end.
    assert growth(packed) < {
        "a tag without an end": 300_000,
        "a comment without an end": 60_000,
    }.get(name, 30_000)


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "<lastmod>2026-03-01</lastmod>",
        "<loc></loc>",
        "<loc>/m/relative</loc>",
        "<loc>javascript:alert(1)</loc>",
        f"<loc>{'https://x.example/'.ljust(LONGEST_ADDRESS + 1, 'a')}</loc>",
        f"<loc>{'https://x.example/'.ljust(20_000_000, 'a')}</loc>",
    ],
    ids=lambda entry: entry[:40],
)
def test_entry_without_an_address_is_left_out_and_refuses_no_other(entry: str) -> None:
    good = f"<url><loc> {'https://x.example/'.ljust(LONGEST_ADDRESS, 'a')} </loc></url>"
    body = f"<urlset>{good}<url>{entry}</url>{good}</urlset>".encode()
    assert [len(url) for url in read_sitemap(body).urls] == [LONGEST_ADDRESS] * 2
