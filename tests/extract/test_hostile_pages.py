"""Pages that were written to hang a reader, or to make it fail in a way that nobody foresaw."""

import importlib
import pkgutil
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from moviecrawler.basics.errors import LONGEST_REASON, ExtractionError
from moviecrawler.extract.embedded import LARGEST_PAGE, decode_json, reader
from moviecrawler.extract.findings import ShapeError
from moviecrawler.extract.trees import DEEPEST, MOST_CHILDREN, MOST_TAGS, tree_of
from moviecrawler.sites import SITES
from moviecrawler.sites.pages import read_page
from moviecrawler.sites.sitemaps import read_sitemap
from tests.extract.limits import TooSlowError, processor_time
from tests.golden import body_of, url_of

ADDRESSES = {
    "imdb": "https://www.imdb.com/title/tt9100001/",
    "metacritic": "https://www.metacritic.com/movie/lantern-row/",
    "rottentomatoes": "https://www.rottentomatoes.com/m/lantern_row",
}
READERS = [profile.reader(form.reader) for profile in SITES.values() for form in profile.pages]
SIZE = 1_000_000
ATTACKS = {
    "links that are never closed": b"<link ",
    "metas that are never closed": b"<meta rel=canonical ",
    "links in links": b"<link rel=canonical property=og:url <",
    "scripts that are never closed": b"<script ",
    "scripts in scripts": b'<script type="application/ld+json">',
    "ids without a tag": b' id="__NEXT_DATA__"',
    "titles that are never closed": b"<title ",
    "addresses in JSON-LD": b'"url": "https://www.metacritic.com/',
    "tiles that are never closed": b"<tile-season ",
}


@pytest.mark.promise("A damaged or hostile page costs bounded time and memory, and no other title.")
@pytest.mark.parametrize("unit", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("site", ["none", *ADDRESSES])
def test_page_of_nothing_but_beginnings_is_read_in_linear_time(unit: bytes, site: str) -> None:
    body = b"<html>" + unit * (SIZE // len(unit)) + b"</html>"
    with processor_time(), suppress(ExtractionError):
        read_page(body, ADDRESSES.get(site))


HEAD = (
    b'<html><head><link rel="canonical" href="%b"/><script id="media-hero-json">{}</script></head>'
    b"<body><h1>Salt</h1>"
)
LARGE_TREES = {
    "more tags than pages have": b"<p>a</p>" * (MOST_TAGS // 2),
    "elements inside of each other": b"<b>" * (DEEPEST + 1),
    "elements beside each other": b"<i>a</i>" * (MOST_CHILDREN + 1),
}


@pytest.mark.parametrize("large", LARGE_TREES.values(), ids=LARGE_TREES)
def test_page_whose_tree_would_be_too_expensive_is_refused_at_once(large: bytes) -> None:
    url = ADDRESSES["rottentomatoes"]
    with processor_time(), pytest.raises(ExtractionError):
        read_page(HEAD % url.encode() + large + b"</body></html>", url)


def test_more_seasons_than_any_series_has_are_refused_at_once() -> None:
    tiles = b"".join(
        b'<tile-season href="/tv/salt_road/s%d"></tile-season>' % number for number in range(3000)
    )
    body = body_of("rottentomatoes/2026-series-tiles").replace(
        b"<carousel-slider", tiles + b"<carousel-slider"
    )
    with processor_time(), pytest.raises(ExtractionError, match="seasons"):
        read_page(body)


def test_element_with_more_attributes_than_any_that_is_read_refuses_no_page() -> None:
    attributes = b" ".join(b"a%d" % number for number in range(40_000))
    body = body_of("rottentomatoes/2026-scorecard")
    with processor_time():
        assert read_page(
            body.replace(b"</body>", b"<p " + attributes + b"></p></body>")
        ) == read_page(body)


def test_tree_just_within_its_bounds_is_made() -> None:
    deep = b"<b>" * (DEEPEST - 3)
    beside = b"<i>a</i>" * MOST_CHILDREN
    script = b"<script>if (a <b) {" + b"x " * 20_000 + b"}</script>"
    assert (
        len(
            tree_of(
                b"<html><body>" + script + b"<div>" + beside + b"</div>" + deep + b"</body></html>"
            ).css("i")
        )
        == MOST_CHILDREN
    )


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"1,", b'{"a":[]},'])
def test_json_of_more_values_than_pages_have_is_refused(unit: bytes) -> None:
    with pytest.raises(ShapeError, match="values"):
        decode_json(b"[" + unit * (6_000_000 // len(unit)) + b"1]")


def test_json_larger_than_a_page_is_refused() -> None:
    with pytest.raises(ShapeError, match="bytes"):
        decode_json(b'"' + b"a" * LARGEST_PAGE + b'"')


# --- Patterns -------------------------------------------------------------------------------------


def patterns() -> dict[str, re.Pattern[Any]]:
    """Return every compiled pattern of the readers, the middlewares and the spiders.

    Patterns inside of other values of a module are included.
    """
    found: dict[str, re.Pattern[Any]] = {}

    def collect(name: str, value: Any) -> None:
        if isinstance(value, re.Pattern):
            found.setdefault(name, value)
        elif isinstance(value, tuple | list | dict):
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                collect(f"{name}[{key}]", part)

    names = ["moviecrawler.sites.ids"]
    for package in ("moviecrawler.extract", "moviecrawler.middlewares", "moviecrawler.spiders"):
        path = importlib.import_module(package).__path__
        names += [module.name for module in pkgutil.walk_packages(path, f"{package}.")]
    for module in map(importlib.import_module, names):
        for name, value in vars(module).items():
            collect(f"{module.__name__}.{name}", value)
    return found


EXAMPLES = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def slow(pattern: re.Pattern[Any], size: int, seconds: float) -> list[str]:
    """Return texts on which a pattern takes longer.

    They are its beginning, and then `size` characters of a part of what it matches.
    """
    is_text = isinstance(pattern.pattern, str)
    source = pattern.pattern if is_text else pattern.pattern.decode("latin-1")
    # Thousands of characters take minutes to draw.
    few = re.sub(r"\{\d{4},", "{9,", source)
    as_text = re.compile(few, pattern.flags & ~re.UNICODE | re.ASCII)
    found: list[str] = []
    tried = set()

    @given(st.from_regex(as_text).map(as_text.search), st.integers(0, 20))
    @EXAMPLES
    def search(match: re.Match[str], start: int) -> None:
        matched = match[0]
        parts = {
            matched[at:end]
            for at in (0, start)
            for end in range(at + 1, min(len(matched), at + 20) + 1)
        }
        for begin, part in [(begin, part) for begin in ("", matched[:20]) for part in parts]:
            if found or (begin, part) in tried:
                continue
            tried.add((begin, part))
            text: Any = begin + part * (size // len(part)) + "\0"
            try:
                with processor_time(seconds):
                    pattern.search(text if is_text else text.encode("latin-1", "replace"))
            except TooSlowError:
                found.append(f"{begin!r} + {part!r} * {size // len(part)}")

    search()
    return found


@pytest.mark.long
def test_search_for_slow_patterns_finds_those_that_are() -> None:
    assert slow(re.compile(r"(?:co-?[\s-]*)*director"), 1000, 0.05)
    assert slow(re.compile(rb"<script\b[^>]*>"), 100_000, 0.05)
    assert not slow(re.compile(rb"<script\b[^<>]*>"), 100_000, 0.05)


@pytest.mark.long
@pytest.mark.parametrize(("name", "pattern"), patterns().items(), ids=patterns())
def test_pattern_takes_linear_time(name: str, pattern: re.Pattern[Any]) -> None:
    # Patterns for bytes are for whole pages, the others for single values.
    size = 100_000 if isinstance(pattern.pattern, bytes) else 10_000
    assert slow(pattern, size, 0.2) == [], name


# --- Failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read",
    [*READERS, read_page, read_sitemap],
    ids=lambda read: read.__name__,
)
def test_every_reader_has_no_other_failure_than_extraction_error(read: Callable[..., Any]) -> None:
    nothing: Any = None
    with pytest.raises(ExtractionError) as raised:
        read(nothing, "https://www.example.com/")
    assert raised.value.url == "https://www.example.com/"


@pytest.mark.parametrize("error", [KeyError, MemoryError, RecursionError])
def test_any_exception_of_a_reader_is_an_error_of_its_page(error: type[Exception]) -> None:
    @reader
    def read(body: bytes) -> None:
        raise error(body)

    with pytest.raises(
        ExtractionError, match=error.__name__ if error is not RecursionError else "page"
    ) as raised:
        read(b"what it was", ADDRESSES["imdb"])
    assert (raised.value.field, raised.value.url) == ("page", ADDRESSES["imdb"])


def test_error_of_a_page_is_short_whatever_the_page_holds() -> None:
    with pytest.raises(ExtractionError) as raised:
        read_page(b"<html></html>", "https://www.imdb.com/title/" + "9" * 1_000_000)
    assert len(str(raised.value)) < 3 * LONGEST_REASON


@pytest.mark.parametrize("digits", [20, 400])
@pytest.mark.parametrize(
    "case",
    [
        "imdb/title-2026-castv2",
        "metacritic/finder-movies",
        "metacritic/nuxt3-movie",
        "rottentomatoes/2026-tv",
    ],
)
def test_number_of_any_size_is_no_failure_but_extraction_error(case: str, digits: int) -> None:
    body = body_of(case)
    url = url_of(case)
    for found in list(re.finditer(rb"(?<=[:,\[])\s*\d+(?=\s*[,}\]])", body))[::3]:
        with suppress(ExtractionError):
            read_page(body[: found.start()] + b"9" * digits + body[found.end() :], url)
