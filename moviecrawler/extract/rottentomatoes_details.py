"""The markup of Rotten Tomatoes' title pages: the list of details, the plot, the cast.

Pages of today are not parsed as a whole: only the slices that hold the details and the cast are.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

from moviecrawler.extract.embedded import decode_text
from moviecrawler.extract.findings import ShapeError
from moviecrawler.extract.trees import text_of, tree_of
from moviecrawler.texts import fold

Person = tuple[str, str | None, str | None]
"""A name, the link that it has, and whom the person plays."""

_NOTE = re.compile(
    r"(?<!\s)\s*\((?:[^()]{0,200}\b(?:voice|uncredited|archive footage|cameo)\b[^()]{0,200}|as [^()]*)\)", re.IGNORECASE
)
_SYNOPSIS = re.compile(
    rb"""\s(?:id=["']?movieSynopsis|data-qa=["']?(?:movie-info-synopsis|synopsis-value))(?=[\s"'>])"""
)
_BEHIND_PARAGRAPH = re.compile(rb"<(?:p|div|dl|ul|table|section)\b", re.IGNORECASE)
_CLOSED_BY_HEADING = re.compile(rb"(?<!\s)\s*</p>\s*(?=<h2)", re.IGNORECASE)
_TAG = re.compile(r"<(/?[a-zA-Z][a-zA-Z0-9-]*)[^<>]*>|<!--.*?(?:-->|$)", re.DOTALL)
_NO_PROSE = frozenset({"script", "h2", "button"})
"""Elements whose text is none of the plot's."""
_JOB = re.compile(
    r"^(?:(?:executive|co|associate|line|assistant|original|film|art|set|costume|production|music|sound)[\s-]*)*"
    r"(?:director(?: of photography)?|writer|screenwriter|screenplay|story|novel|book|author|creator|producer|showrunner|"
    r"cinematograph(?:er|y)|edit(?:or|ing)|composer|music|design(?:er)?|decorat(?:or|ion)|direction|casting)$",
    re.IGNORECASE,
)
"""What stands in the place of a character at somebody of the crew."""

_LABELS: dict[str, str] = {
    "rating": "certificate",
    "genre": "genres",
    "directed by": "director",
    "director": "director",
    "directors": "director",
    "written by": "writer",
    "writer": "writer",
    "writers": "writer",
    "screenwriter": "writer",
    "screenwriters": "writer",
    "creator": "creator",
    "creators": "creator",
    "created by": "creator",
    "in theaters": "release_date",
    "release date (theaters)": "release_date",
    "premiere date": "release_date",
    "release date": "release_date",
    "runtime": "runtime",
    "original language": "language",
    "us box office": "domestic",
    "box office": "domestic",
    "box office (gross usa)": "domestic",
}
"""The rows of the details list that are read, by their labels of all generations in lower case."""


@dataclass(slots=True)
class Detail:
    """One row of the details list: its whole text, and its parts with the links that they have."""

    text: str
    parts: list[tuple[str, str | None]]


def details_of(body: bytes) -> dict[str, Detail] | None:
    """Return the list of details of pages since 2024, parsed from that slice of the page alone; None without one."""
    labelled, last = body.find(b'data-qa="item-label"'), body.rfind(b'data-qa="item-value"')
    if labelled == -1:
        return None
    end = body.find(b"</", last)
    if last < labelled or end == -1:
        raise ShapeError("details", "the page ends inside its list of details")
    rows: list[tuple[str, list[tuple[str, str | None]]]] = []
    slice_ = tree_of(body[body.rfind(b"<", 0, labelled) : end])
    for element in slice_.css('[data-qa="item-label"], [data-qa="item-value"]'):
        if element.attrib["data-qa"] == "item-label":
            rows.append((text_of(element), []))
        elif rows and text_of(element):
            rows[-1][1].append((text_of(element), element.attrib.get("href")))
    return known_details(
        {label: Detail(", ".join(text for text, _ in parts), parts) for label, parts in reversed(rows)}
    )


def known_details(rows: dict[str, Detail]) -> dict[str, Detail] | None:
    """Return the rows that are read, by the names that they have here; None without any: the labels are others then."""
    named = {_LABELS.get(label.strip().rstrip(":").lower(), ""): detail for label, detail in rows.items()}
    return {name: detail for name, detail in named.items() if name and detail.text} or None


def synopsis(body: bytes) -> str | None:
    """Return the plot from the markup of any generation.

    In 2014 a heading stood inside of its paragraph (`<p id="movieSynopsis"><h2>`), and every parser of HTML ends the
    paragraph there: so it is cut out of the page by its end tag.
    """
    opened = _SYNOPSIS.search(body)
    if not opened:
        return None
    tag = re.match(rb"<([a-zA-Z-]+)", body[body.rfind(b"<", 0, opened.start()) :])
    start = body.find(b">", opened.end()) + 1
    if not start:
        raise ShapeError("plot", "the page ends inside of it")
    if closed := _CLOSED_BY_HEADING.match(body, start):
        # A browser has saved it: the text goes on behind the paragraph, up to the next element that is none of it.
        start = closed.end()
        found = _BEHIND_PARAGRAPH.search(body, start)
        end = found.start() if found else -1
    else:
        end = body.find(b"</" + tag[1] + b">", start) if tag else -1
    if end == -1:
        raise ShapeError("plot", "the page ends inside of it")
    return fold(html.unescape(_prose(decode_text(body[start:end])))) or None


def _prose(markup: str) -> str:
    """Return a text without its tags, headings, scripts and buttons; one that is not closed is left out to the end."""
    kept: list[str] = []
    at, closing = 0, ""
    for tag in _TAG.finditer(markup):
        name = (tag[1] or "").lower()
        if not closing:
            kept.append(markup[at : tag.start()])
            if name in _NO_PROSE or (name == "a" and "showMoreSynopsis" in tag[0]):
                closing = f"/{name}"
        elif name == closing:
            closing = ""
        at = tag.end()
    return " ".join(kept if closing else [*kept, markup[at:]])


def cast_tiles(body: bytes) -> list[Person]:
    """Return the cast of pages since 2024, parsed from that slice of the page alone."""
    first, last = body.find(b'data-qa="person-item"'), body.rfind(b'data-qa="person-')
    if first == -1:
        return []
    end = body.find(b"</", last)
    if end == -1:
        raise ShapeError("cast", "the page ends inside of it")
    people = []
    tiles = tree_of(body[body.rfind(b"<", 0, first) : end]).css('[data-qa="person-item"]')
    have_roles = bool(tiles.css('[data-qa="person-role"]'))
    for tile in tiles:
        name = text_of(tile.css('[data-qa="person-name"]'))
        if not name or (not have_roles and text_of(tile) != name):
            raise ShapeError("cast", "a tile without a name, or with more than the name in an unknown form")
        part = part_of([text_of(tile.css('[data-qa="person-role"]'))])
        if part is not None:
            people.append((name, tile.attrib.get("href"), part or None))
    return people


def part_of(lines: list[str]) -> str | None:
    """Return whom somebody plays, "" when the page doesn't say, or None for crew, who stand among the cast since 2021.

    Until 2020 the lines began with "as "; then a character can be called "Director".
    """
    texts = [text for text in map(fold, lines) if text and text not in {"as", "Actor"}]
    characters = [text.removeprefix("as ") for text in texts if text.startswith("as ") or not _JOB.match(text)]
    if texts and not characters:
        return None
    return " / ".join(_NOTE.sub("", character) for character in characters)
