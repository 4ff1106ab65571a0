"""The people on IMDb's pages without JSON: tables of the crew and the cast, the few at the top, JSON-LD."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from moviecrawler.extract import dig
from moviecrawler.extract.findings import ShapeError, one_of_each
from moviecrawler.extract.legacy.imdb_document import all_text, attribute, first_text, of_class, own_text, person_id
from moviecrawler.items import Credit
from moviecrawler.texts import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from parsel import Selector

    from moviecrawler.extract.findings import Findings
    from moviecrawler.extract.legacy.imdb_document import Document
    from moviecrawler.items import Role

_NOTE = re.compile(
    r"(?<!\s)\s*\((?:as |also |voice|singing voice|uncredited|credit only|archive|unconfirmed|rumored|scenes deleted"
    r"|\d+ episodes?|unknown episodes)[^()]*\)"
)
_MORE = re.compile(r"\b\d+ more\b")
_LINKED = 3
"""How many of a role JSON-LD names: as many can be all of them or the first ones."""
_CAST_SECTIONS = "#titleCast, .cast_list, table.cast, [data-testid^=title-cast], a[href*=fullcredits]"
_CREW_TABLES: tuple[tuple[Role, str, str, str], ...] = (
    ("director", "directors", "Directed by", "ttfc_fc_dr"),
    ("writer", "writers", "Writing Credits", "ttfc_fc_wr"),
)


def look_for_people(found: Findings, document: Document, page_kind: str) -> None:
    """Find each role in the first place that names anybody in it, best first.

    `page_kind` is title, reference, fullcredits, …; "data" for a page of which the script has told the other facts.
    """
    root, is_series = document.root, found.movie.kind == "series"
    for role, name, words, ref in _CREW_TABLES:
        found.look(f"credits.{role}", partial(_crew, root, role, name, words, ref))
    if page_kind != "data":  # whose cards name one character of each
        found.look("credits.cast", partial(_cast, root))
    if page_kind == "fullcredits":
        return
    roles: tuple[Role, ...] = ("director", "writer", "creator")
    for role in roles:
        # The pages of one title have at their top what they announce the rest of elsewhere; reference pages have it all.
        found.look(
            f"credits.{role}",
            partial(_overview, root, role, is_series=is_series, whole=page_kind in {"reference", "data"}),
            partial(_linked_people, document, role, is_series=is_series),
        )
    # The stars at the top are the first of the cast: they are all that a page without any section of the cast names.
    if page_kind != "data" and not root.css(_CAST_SECTIONS):
        found.look("credits.cast", partial(_overview, root, "cast", is_series=is_series, whole=False))
        found.look("credits.cast", partial(_linked_people, document, "cast", is_series=is_series))


def _crew(root: Selector, role: Role, name: str, words: str, ref: str) -> list[Credit]:
    """Read a table of directors or writers: full credits of any age, /combined and /reference."""
    heading = f"@name='{role}' or @name='{name}' or contains(normalize-space(), '{words}')"
    links = root.xpath(
        f"//a[contains(@href, '{ref}')]"
        " | //table[preceding-sibling::*[self::h4 or self::header][1]"
        f"/descendant-or-self::h4[{heading}]]//a[contains(@href, '/name/nm')]"
        f" | //table[.//a[{of_class('glossary')}][{heading}]]//a[contains(@href, '/name/nm')]"
    )
    return one_of_each(role, list(_linked(role, links)))


def _overview(root: Selector, role: Role, *, is_series: bool, whole: bool) -> list[Credit] | None:
    """Read the few names at the top of a title's page. There, a series' creators have the writers' `ref_` code.

    With `whole`, None where it announces more.
    """
    people: list[Credit] = []
    for block in root.css(
        ".credit_summary_item, #overview-top .txt-block, .titlereference-overview-section, #tn15main .info,"
        " [data-testid=title-pc-principal-credit]"
    ):
        links = block.xpath(".//a[contains(@href, '/name/nm')]")
        label = first_text(block, "h4, h5, .ipc-metadata-list-item__label") or own_text(block) or ""
        if _role_of(label, links, is_series=is_series) == role:
            if whole and _MORE.search(all_text(block) or ""):
                return None
            people += _linked(role, links)
    return one_of_each(role, people)


def _role_of(label: str, links: Iterable[Selector], *, is_series: bool) -> Role | None:
    # To 2011 the codes stood in `onclick`: /rg/directorlist/position-1/images/b.gif.
    link = next(iter(links), None)
    code = attribute(link, "href") + attribute(link, "onclick") if link is not None else ""
    of_writers = "_ov_wr" in code or "/writerlist/" in code
    if label.startswith("Creator") or (is_series and of_writers and not label.startswith("Writer")):
        return "creator"
    if "_ov_dr" in code or "/directorlist/" in code or label.startswith("Director"):
        return "director"
    if of_writers or label.startswith("Writer"):
        return "writer"
    return "cast" if "_ov_st" in code or label.startswith("Star") else None


def _linked(role: Role, links: Iterable[Selector]) -> Iterator[Credit]:
    for link in links:
        if name := all_text(link):
            person = person_id(attribute(link, "href"))
            if person is None:
                raise ShapeError("credits", f"a {role} without an id")
            yield Credit(name=name, role=role, position=0, person_id=person)


def _cast(root: Selector) -> list[Credit]:
    people = list(_cast_rows(root))
    if people and not root.css("td.character, td.char, [data-testid=title-cast-item]"):
        raise ShapeError("credits", "no place for whom the cast plays")
    return one_of_each("cast", people)


def _cast_rows(root: Selector) -> Iterator[Credit]:
    """Read the cast's table, since 2021 its cards. Rows without a name are headings, and places for its episodes."""
    for row in root.css("table.cast_list tr, table.cast tr"):
        for credit in _linked(
            "cast", row.xpath(f"./td[not({of_class('primary_photo')})]/a[contains(@href, '/name/nm')]")
        ):
            parts = row.xpath(
                f"./td[{of_class('character')} or {of_class('char')}]//text()[not(ancestor::a[contains(@href, '#')])]"
            )
            credit.character = _character("".join(parts.getall()))
            yield credit
    for card in root.css("[data-testid=title-cast-item]"):
        for credit in _linked("cast", card.css("[data-testid=title-cast-item__actor]")):
            names = (all_text(link) for link in card.css("[data-testid=cast-item-characters-link] span:first-child"))
            credit.character = _character(" / ".join(name for name in names if name))
            yield credit


def _character(text: str) -> str | None:
    """Return who is played, of a cell such as: Vera / The Cartographer / ... (voice) (as A. Petrov)."""
    names = [fold(_NOTE.sub("", name)) for name in fold(text).split(" / ")]
    return " / ".join(name for name in names if name.strip(".…")) or None


def _linked_people(document: Document, role: Role, *, is_series: bool) -> list[Credit] | None:
    """Read JSON-LD's people, one object or a list. Its creators are companies, which have no name, and writers, too."""
    key = {"director": "director", "cast": "actor", "creator" if is_series else "writer": "creator"}.get(role)
    credits_ = []
    for person in dig.listed(document.title_data, key) if key else ():
        name = dig.text(person, "name")
        if name and dig.at(person, "@type") == "Person":
            linked = person_id(dig.text(person, "url") or "")
            if linked is None:
                raise ShapeError("credits", f"a {role} without an id")
            credits_.append(Credit(name=name, role=role, position=0, person_id=linked))
    return one_of_each(role, credits_) if len(credits_) < _LINKED else None
