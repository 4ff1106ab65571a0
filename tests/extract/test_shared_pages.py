"""Every fact that is known of the saved pages, one test a page and fact; and what damaged copies of them give."""

from __future__ import annotations

import functools
import importlib.util
import json
import random
from typing import Any, Literal

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.blocks import classify
from moviecrawler.extract.pages import page_record, read_page
from moviecrawler.items import Movie
from moviecrawler.pipelines.validate import check_movie
from tests.conftest import SHARED_PAGES


def _load_compare() -> Any:
    spec = importlib.util.spec_from_file_location("compare", SHARED_PAGES / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMPARE = _load_compare()
TRUTH: dict[str, dict[str, Any]] = {
    truth["file"]: truth for truth in map(json.loads, (SHARED_PAGES / "TRUTH.jsonl").read_text("utf-8").splitlines())
}
CORE = [file for file, truth in TRUTH.items() if truth["kind"] in COMPARE.CORE]
FACTS = [(file, fact) for file in CORE for fact in COMPARE.FACTS if fact in TRUTH[file]]


@functools.cache
def record(file: str) -> dict[str, Any]:
    return page_record(read_page((SHARED_PAGES / file).read_bytes()))


@pytest.mark.parametrize(("file", "fact"), FACTS, ids=[f"{file}-{fact}" for file, fact in FACTS])
def test_fact(file: str, fact: str) -> None:
    truth = TRUTH[file]
    accepted = [truth[fact], *((truth.get("also_on_page") or {}).get(fact) or [])]
    got = record(file)
    assert any(COMPARE.same(fact, want, got, truth) for want in accepted), (
        f"want {truth[fact]!r}, got {got.get('item', {}).get(fact) or [e['site_id'] for e in got.get('entries', [])][:5]!r}"
    )


@pytest.mark.parametrize("file", CORE)
def test_url_does_not_change_what_is_read(file: str) -> None:
    url = next(
        line.split("\t")[3]
        for line in (SHARED_PAGES / "INDEX.tsv").read_text("utf-8").splitlines()
        if line.startswith(file + "\t")
    )
    body = (SHARED_PAGES / file).read_bytes()
    with_url = page_record(read_page(body, url or None))
    for key, value in record(file).get("item", {}).items():
        if value is not None:  # a trimmed page names itself only by its URL
            assert with_url["item"][key] == value, key
    assert with_url.get("entries") == record(file).get("entries")


@pytest.mark.parametrize("file", sorted(TRUTH))
def test_healthy_page_is_not_taken_for_a_block(file: str) -> None:
    body = (SHARED_PAGES / file).read_bytes()
    expects: Literal["json", "page"] = "json" if file.endswith(".json") else "page"
    if len(body) > 10_000:  # owners have trimmed the others to pieces of pages
        assert classify(200, {}, body, expects=expects, now=0) is None


def _assert_valid_or_refused(body: bytes) -> None:
    try:
        page = read_page(body)
    except ExtractionError:
        return
    if page.movie is not None:
        _assert_believable(page.movie)
    if page.listing is not None:
        for entry in page.listing.entries:
            assert entry.site_id
            assert entry.title
            assert entry.year is None or 1870 <= entry.year <= 2100
            assert all(0 <= score.value <= score.scale for score in entry.scores)


def _assert_believable(movie: Movie) -> None:
    if movie.site_id is not None and movie.kind not in {"game", "music"}:  # which no spider asks for
        check_movie(movie)
    for value in (movie.title, *movie.genres, *movie.countries, *movie.languages, *(c.name for c in movie.credits)):
        assert value.strip()
    for text in (movie.original_title, movie.certificate, movie.plot, movie.poster_url):
        assert text is None or text.strip()


@pytest.mark.parametrize("file", sorted(TRUTH))
def test_page_cut_anywhere_is_valid_or_refused(file: str) -> None:
    body = (SHARED_PAGES / file).read_bytes()
    for place in range(50):
        _assert_valid_or_refused(body[: len(body) * place // 50])


@pytest.mark.parametrize("file", sorted(TRUTH))
def test_page_with_damaged_bytes_is_valid_or_refused(file: str) -> None:
    """A thousand bytes in all, in 74 copies that have from 1 to 275 of them."""
    body = (SHARED_PAGES / file).read_bytes()
    chance = random.Random(file)  # noqa: S311 - the same damage in every run
    for changes in [1] * 40 + [4] * 20 + [20] * 11 + [165, 220, 275]:
        damaged = bytearray(body)
        for _ in range(changes):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        _assert_valid_or_refused(bytes(damaged))
