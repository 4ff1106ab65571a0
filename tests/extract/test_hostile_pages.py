"""Pages that were written to hang a reader, or to make it fail in a way that nobody foresaw."""

from __future__ import annotations

import importlib
import pkgutil
import re
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.errors import LONGEST_REASON, ExtractionError
from moviecrawler.extract.embedded import LARGEST_PAGE, decode_json, reader
from moviecrawler.extract.findings import ShapeError
from moviecrawler.extract.pages import READERS, read_page
from moviecrawler.extract.sitemaps import read_sitemap
from moviecrawler.extract.trees import DEEPEST, MOST_CHILDREN, MOST_TAGS, tree_of
from tests.extract.golden import body_of, changed, url_of
from tests.extract.limits import TooSlowError, processor_time

if TYPE_CHECKING:
    from collections.abc import Callable

ADDRESSES = {
    "imdb": "https://www.imdb.com/title/tt9100001/",
    "metacritic": "https://www.metacritic.com/movie/lantern-row/",
    "rottentomatoes": "https://www.rottentomatoes.com/m/lantern_row",
}
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
}


@pytest.mark.promise("A damaged or hostile page costs bounded time and memory, and no other title.")
@pytest.mark.parametrize("unit", ATTACKS.values(), ids=ATTACKS)
@pytest.mark.parametrize("site", ["none", *ADDRESSES])
def test_page_of_nothing_but_beginnings_is_read_in_linear_time(unit: bytes, site: str) -> None:
    body = b"<html>" + unit * (SIZE // len(unit)) + b"</html>"
    with processor_time(), suppress(ExtractionError):
        read_page(body, ADDRESSES.get(site))


HEAD = (
    b'<html><head><link rel="canonical" href="%b"/><script id="media-hero-json">{}</script></head><body><h1>Salt</h1>'
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


def test_element_with_more_attributes_than_any_that_is_read_refuses_no_page() -> None:
    attributes = b" ".join(b"a%d" % number for number in range(40_000))
    body = body_of("rottentomatoes/2026-scorecard")
    with processor_time():
        assert read_page(changed(body, b"</body>", b"<p " + attributes + b"></p></body>")) == read_page(body)


def test_tree_just_within_its_bounds_is_made() -> None:
    deep = b"<b>" * (DEEPEST - 3)
    beside = b"<i>a</i>" * MOST_CHILDREN
    script = b"<script>if (a <b) {" + b"x " * 20_000 + b"}</script>"
    assert (
        len(tree_of(b"<html><body>" + script + b"<div>" + beside + b"</div>" + deep + b"</body></html>").css("i"))
        == MOST_CHILDREN
    )


@pytest.mark.parametrize("unit", [b"[],", b"{},", b"1,", b'{"a":[]},'])
def test_json_of_more_values_than_pages_have_is_refused(unit: bytes) -> None:
    with pytest.raises(ShapeError, match="values"):
        decode_json(b"[" + unit * (6_000_000 // len(unit)) + b"1]")


def test_json_larger_than_a_page_is_refused() -> None:
    with pytest.raises(ShapeError, match="bytes"):
        decode_json(b'"' + b"a" * LARGEST_PAGE + b'"')


# --- Patterns ---------------------------------------------------------------------------------------------------------


def patterns() -> dict[str, re.Pattern[Any]]:
    """Return every compiled pattern that a module of the readers or of the middlewares holds, also inside of tuples."""
    found: dict[str, re.Pattern[Any]] = {}

    def collect(name: str, value: Any) -> None:
        if isinstance(value, re.Pattern):
            found.setdefault(name, value)
        elif isinstance(value, tuple | list):
            for place, part in enumerate(value):
                collect(f"{name}[{place}]", part)
        elif isinstance(value, dict):
            for key, part in value.items():
                collect(f"{name}[{key}]", part)

    for package in ("moviecrawler.extract", "moviecrawler.middlewares", "moviecrawler.spiders"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                collect(f"{module.name}.{name}", value)
    for name, value in vars(importlib.import_module("moviecrawler.urls")).items():
        collect(f"urls.{name}", value)
    return found


def pumps(pattern: re.Pattern[Any]) -> set[str]:
    """Return texts that a pattern's parts match, each from another place in it on: what to repeat to make it start again."""
    from re import _parser  # type: ignore[attr-defined] # noqa: PLC0415 - private, and the only one that reads patterns

    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    found: set[str] = set()

    def text_of(item: Any) -> str:
        name, value = str(item[0]), item[1]
        if name in {"LITERAL", "NOT_LITERAL"}:
            return chr(value) if name == "LITERAL" else "a" if chr(value) != "a" else "b"
        if name == "ANY":
            return "a"
        if name == "IN":
            return text_of_set(value)
        if name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}:
            return text_of_all(value[2]) * max(int(value[0]), 1)
        if name == "SUBPATTERN":
            return text_of_all(value[3])
        if name == "BRANCH":
            return max((text_of_all(branch) for branch in value[1]), key=len)
        return ""

    def text_of_set(items: Any) -> str:
        candidates = ["a", "1", " ", "A", "-", "\n", "é", '"', "/"]
        negated = str(items[0][0]) == "NEGATE"
        chars = set()
        for name, value in items:
            if str(name) == "LITERAL":
                chars.add(chr(value))
            elif str(name) == "RANGE":
                chars.update(map(chr, range(value[0], min(value[1], value[0] + 200) + 1)))
            elif str(name) == "CATEGORY":
                chars.update(
                    {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a1"}.get(str(value), "a-")
                )
        if negated:
            return next(char for char in candidates if char not in chars)
        return min(chars)

    def text_of_all(items: Any) -> str:
        # A run of letters is one text: no pattern begins anew inside of it.
        runs = groupby(items, key=lambda item: str(item[0]) == "LITERAL")
        texts = [
            text
            for is_literal, run in runs
            for text in (["".join(map(text_of, run))] if is_literal else map(text_of, run))
        ]
        for start in range(len(texts)):
            for end in range(start + 1, len(texts) + 1):
                found.add("".join(texts[start:end]))
        for item in items:
            if str(item[0]) == "BRANCH":
                found.update(text_of_all(branch) for branch in item[1][1])
        return "".join(texts)

    text_of_all(_parser.parse(source, pattern.flags))
    return {pump for pump in found if pump}


def slow(pattern: re.Pattern[Any], size: int, seconds: float) -> list[str]:
    """Return the texts whose repetition, `size` characters in all, a pattern searches for longer than `seconds`."""
    found = []
    everything = pumps(pattern)
    for pump in everything:
        for begin in ("", max(everything, key=len)):
            text: Any = begin + pump * (size // len(pump)) + "\0"
            if isinstance(pattern.pattern, bytes):
                text = text.encode("utf-8", "replace")
            try:
                with processor_time(seconds):
                    pattern.search(text)
                    pattern.match(text)
            except TooSlowError:
                found.append(f"{begin!r} + {pump!r} * {size // len(pump)}")
    return found


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


# --- Failures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read", [*(read for _, _, read in READERS), read_page, read_sitemap], ids=lambda read: read.__name__
)
def test_every_reader_has_no_other_failure_than_extraction_error(read: Callable[..., Any]) -> None:
    nothing: Any = None
    with pytest.raises(ExtractionError) as raised:
        read(nothing, "https://www.example.com/")
    assert raised.value.url == "https://www.example.com/"


@pytest.mark.parametrize(
    "error",
    [OverflowError, TypeError, KeyError, AttributeError, ZeroDivisionError, MemoryError, RecursionError, LookupError],
)
def test_any_exception_of_a_reader_is_an_error_of_its_page(error: type[Exception]) -> None:
    @reader
    def read(body: bytes, url: str) -> None:
        raise error(body, url)

    with pytest.raises(ExtractionError, match=error.__name__ if error is not RecursionError else "page") as raised:
        read(b"what it was", ADDRESSES["imdb"])
    assert (raised.value.field, raised.value.url) == ("page", ADDRESSES["imdb"])


def test_error_of_a_page_is_short_whatever_the_page_holds() -> None:
    with pytest.raises(ExtractionError) as raised:
        read_page(b"<html></html>", "https://www.imdb.com/title/" + "9" * 1_000_000)
    assert len(str(raised.value)) < 3 * LONGEST_REASON


@pytest.mark.parametrize("digits", [20, 400])
@pytest.mark.parametrize(
    "case", ["imdb/title-2026-castv2", "metacritic/finder-movies", "metacritic/nuxt3-movie", "rottentomatoes/2026-tv"]
)
def test_number_of_any_size_is_no_failure_but_extraction_error(case: str, digits: int) -> None:
    body, url = body_of(case), url_of(case)
    for found in list(re.finditer(rb"(?<=[:,\[])\s*\d+(?=\s*[,}\]])", body))[::3]:
        with suppress(ExtractionError):
            read_page(body[: found.start()] + b"9" * digits + body[found.end() :], url)
