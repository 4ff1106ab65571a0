"""The shared pages, changed in memory: written in another way they say the same, with a source less the same or less."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.pages import page_record, read_page
from tests.extract.saved_pages import CORE, TRUTH, compare, holds
from tests.shared import PAGES

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.shared("pages")
FILES = [file for file in CORE if file.endswith(".html") and "trimmed" not in file]
HOSTS = {"imdb": b"www.imdb.com", "metacritic": b"www.metacritic.com", "rottentomatoes": b"www.rottentomatoes.com"}
NO_MARKUP = re.compile(
    rb"(<script\b[^>]*>.*?</script\s*>|<style\b[^>]*>.*?</style\s*>|<!--.*?-->)", re.DOTALL | re.IGNORECASE
)
TAG = re.compile(rb"<[a-zA-Z][^<>]*>")
ATTRIBUTES = {"plot_prefix": "plot", "poster": "poster_url", "runtime_minutes_any": "runtime_minutes"}
JSON_LD = re.compile(rb"<script\b[^>]*application/ld\+json[^>]*>.*?</script\s*>", re.DOTALL)
DATA = re.compile(
    rb'<script\b[^>]*id="(?:__NEXT_DATA__|__NUXT_DATA__|score-details-json|scoreDetails)"[^>]*>.*?</script\s*>',
    re.DOTALL,
)


def in_tags(body: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return a page with every opening tag changed that stands neither in a script nor in a comment."""
    parts = NO_MARKUP.split(body)
    parts[::2] = [TAG.sub(lambda tag: change(tag[0]), part) for part in parts[::2]]
    return b"".join(parts)


def restyled(body: bytes, _: str) -> bytes:
    styled = in_tags(body, lambda tag: re.sub(rb'\sclass="([^"]*)"', rb' class="new \1 x9"', tag))
    return in_tags(styled, lambda tag: re.sub(rb"=\"([^\"']*)\"", rb"='\1'", tag))


def saved(body: bytes, file: str) -> bytes:
    """As a browser or a script saves a page: whole addresses, another encoding, the answer's headers in front."""
    home = b"https://" + HOSTS[file.partition("/")[0]]
    absolute = in_tags(body, lambda tag: re.sub(rb'(\s(?:href|src)=")(/(?!/))', rb"\1" + home + rb"\2", tag))
    text = re.sub(r"(?i)(charset=[\"']?)utf-?8", r"\1iso-8859-1", absolute.decode(errors="replace"))
    return b"HTTP/1.1 200 OK\r\nServer: Server\r\n\r\n" + text.encode("latin-1", "xmlcharrefreplace")


def archived(body: bytes, file: str) -> bytes:
    host, path = HOSTS[file.partition("/")[0]], b"/web/20150612010203"
    archive = b"https://web.archive.org" + path
    body = re.sub(rb'((?:href|content)=")(https?://(?:www\.|m\.)?' + host[4:] + rb")", rb"\1" + archive + rb"/\2", body)
    body = re.sub(rb'(src=")(https?://)', rb"\1" + archive + rb"im_/\2", body)
    body = re.sub(rb'(href=")(/(?!/|web/))', rb"\1" + path + rb"/http://" + host + rb"\2", body)
    toolbar = (
        b'<!-- BEGIN WAYBACK TOOLBAR INSERT --><div class="title_wrapper"><h1>1,024 captures</h1></div>'
        b"<!-- END WAYBACK TOOLBAR INSERT -->"
    )
    return (
        re.sub(rb"(<body\b[^>]*>)", rb"\1" + toolbar, body, count=1)
        + b"<!-- FILE ARCHIVED ON 01:02:03 Jun 12, 2015 -->"
    )


CHANGES = [restyled, saved, archived]
LOSSES = [
    lambda body, _: JSON_LD.sub(b"", body),
    lambda body, _: DATA.sub(b"", body),
    lambda body, _: DATA.sub(b"", JSON_LD.sub(b"", body)),
]
"""Without JSON-LD, without data, without either."""


def _assert_says_the_same(file: str, change: Callable[[bytes, str], bytes]) -> None:
    truth, got = TRUTH[file], page_record(read_page(change((PAGES / file).read_bytes(), file)))
    wrong = [fact for fact in compare().FACTS if fact in truth and not holds(truth, fact, got)]
    assert not wrong, wrong


@pytest.mark.parametrize("file", FILES[::2])
def test_page_written_in_another_way_says_the_same(file: str) -> None:
    """Each other page is written in one of the ways, and each way is that of a third of them."""
    _assert_says_the_same(file, CHANGES[FILES.index(file) % len(CHANGES)])


@pytest.mark.long
@pytest.mark.parametrize("file", FILES)
def test_page_written_in_any_other_way_says_the_same(file: str) -> None:
    for change in CHANGES:
        _assert_says_the_same(file, change)


def _is_less(fact: str, truth: dict[str, Any], got: dict[str, Any]) -> bool:
    """Return whether a page says nothing of a fact, or a part of it: an approximate count, the first genres."""
    want, entries = truth[fact], got.get("entries") or []
    have: Any = (got.get("item") or {}).get(ATTRIBUTES.get(fact, fact))
    if fact == "next_cursor":
        return not got.get("next")
    if fact == "first_scores":
        return all(
            entry["rating"] in {None, (score or [None])[0]} and entry["votes"] in {None, (score or [None, None])[1]}
            for entry, score in zip(entries, want, strict=False)
        )
    if fact == "scores":
        counts = {score["kind"]: (score["value"], score.get("count")) for score in want}
        return all(
            score["kind"] in counts
            and score["value"] == counts[score["kind"]][0]
            and score["count"] in {None, counts[score["kind"]][1]}
            for score in have
        )
    return fact not in {"site_id", "title", "title_kind", "count", "first"} and (
        have in (None, [], False) or (fact == "genres" and set(have) < set(want))
    )


def _assert_says_the_same_or_less(file: str, change: Callable[[bytes, str], bytes]) -> None:
    body, truth = (PAGES / file).read_bytes(), TRUTH[file]
    facts = [fact for fact in compare().FACTS if fact in truth]
    less = change(body, file)
    if less == body:
        return
    try:
        got = page_record(read_page(less))
    except ExtractionError:
        return
    wrong = [fact for fact in facts if not holds(truth, fact, got) and not _is_less(fact, truth, got)]
    assert not wrong, wrong


@pytest.mark.parametrize("file", FILES[1::2])
def test_page_without_one_of_its_sources_says_the_same_or_less_or_is_refused(file: str) -> None:
    """Each other page is without one or both of them, and each way is that of a third of these."""
    _assert_says_the_same_or_less(file, LOSSES[FILES.index(file) % len(LOSSES)])


@pytest.mark.long
@pytest.mark.parametrize("file", FILES)
def test_page_without_any_of_its_sources_says_the_same_or_less_or_is_refused(file: str) -> None:
    for change in LOSSES:
        _assert_says_the_same_or_less(file, change)
