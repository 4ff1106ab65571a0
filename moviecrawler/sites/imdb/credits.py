"""Reads the people in the objects of IMDb's GraphQL API.

They are read at each position that a role has had since 2022.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from moviecrawler.extract.dig import (
    JsonObject,
    get_integer,
    get_items,
    get_path,
    get_text,
    parse_at,
    parse_texts,
)
from moviecrawler.extract.findings import ABSENT, NoValue, ShapeError
from moviecrawler.extract.people import one_of_each, without_notes
from moviecrawler.items import Credit, Role

PERSON_ID = re.compile(r"nm\d{7,10}")

# Labels are translated and come in singular and plural ("Director", "Directors"); ids stay what
# they are.
_CATEGORY = "amzn1.imdb.concept.name_credit_category."
_GROUP = "amzn1.imdb.concept.name_credit_group."
_ROLES: dict[str | None, Role] = {
    "cast": "cast",
    _GROUP + "7caf7d16-5db9-4f4f-8864-d4c6e711c686": "cast",
    "director": "director",
    _CATEGORY + "ace5cb4c-8708-4238-9542-04641e7c8171": "director",
    "writer": "writer",
    _CATEGORY + "c84ecaff-add5-4f2e-81db-102a41881fe3": "writer",
    "creator": "creator",
    _GROUP + "85198717-6c2d-481e-93a5-47858774bcce": "creator",
}
_PARTS_PLAYED = {"characters", "creditedRoles"}
_HEADS = ("principalCredits", "principalCreditsV2", "crewV2")
"""The groups in the head of a page."""
CREDIT_KEYS = ("directors", "writers", "creators", "cast", "castV2", "principalCast", *_HEADS)
"""All keys of an object that hold people."""


def credit_readers(
    sources: list[JsonObject], role: Role
) -> Iterator[Callable[[], list[Credit] | NoValue]]:
    """Yield a reader for each position of a role's list.

    Each returns None for a list that may be cut off.
    """
    for source in sources:
        yield partial(_of_main_column, source, role)
    if role == "cast":
        # In the main column it replaced `cast`; in the head it has the first four people.
        for source in sources[1:]:
            yield partial(parse_at, partial(_of_groups, role), source, "castV2")
        return
    # The lists in the head of a page have the first three or four people.
    for source in reversed(sources):
        for key in _HEADS:
            yield partial(_of_head, source, key, role)


def _of_main_column(source: Mapping[str, object], role: Role) -> list[Credit] | NoValue:
    if role != "cast":
        return parse_at(partial(_of_groups, role), source, f"{role}s")
    edges = parse_at(get_items, source, "cast", "edges")
    if edges is None:
        return None
    listed = [] if edges is ABSENT else [get_path(edge, "node") for edge in edges]
    if None in listed:
        raise ShapeError("credits", "an entry of the cast without a person")
    # Until 2022-03 only principalCast had the first four of the cast.
    four = parse_at(get_items, source, "principalCast")
    if isinstance(four, list):
        listed = _in_groups(four) + listed
    return _credits(role, listed) if listed else ABSENT


def _of_head(source: Mapping[str, object], key: str, role: Role) -> list[Credit] | None:
    """Read a group in the head of a page; None when it leaves out people."""
    for group in get_items(source, key):
        named = get_text(group, "category", "id") or get_text(group, "grouping", "groupingId")
        if _ROLES.get(named) == role:
            listed = get_items(group, "credits")
            is_whole = get_integer(group, "totalCredits") == len(listed)
            return _credits(role, listed) if is_whole else None
    return None


def _of_groups(role: Role, groups: object) -> list[Credit]:
    """Read groups of credits, which have no group for a role that nobody has."""
    return _credits(role, _in_groups(groups))


def _in_groups(groups: object) -> list[object]:
    listed = [credit for group in get_items(groups) for credit in get_items(group, "credits")]
    if groups and not listed:
        raise ShapeError("credits", "groups without credits")
    return listed


def _credits(role: Role, listed: list[object]) -> list[Credit]:
    return one_of_each(role, [_credit(raw, role) for raw in listed if raw is not None])


def _credit(raw: object, role: Role) -> Credit:
    """Return one credit: an object of the API, in one of its two versions."""
    if role == "cast" and isinstance(raw, dict) and not _PARTS_PLAYED & raw.keys():
        raise ShapeError("credits", "a member of the cast without a key for characters")
    return _new_credit(
        role,
        get_text(raw, "name", "nameText", "text"),
        get_text(raw, "name", "id"),
        _characters(raw) if role == "cast" else (),
    )


def _new_credit(
    role: Role, name: str | None, person_id: str | None, characters: Iterable[str]
) -> Credit:
    if name is None or person_id is None or not PERSON_ID.fullmatch(person_id):
        raise ShapeError("credits", f"a {role} with the name {name!r} and the id {person_id!r}")
    played = " / ".join(dict.fromkeys(filter(None, characters)))
    return Credit(name=name, role=role, position=0, person_id=person_id, character=played or None)


def _characters(raw: object) -> Iterator[str]:
    """Yield whom a member of the cast plays.

    Raises ShapeError when it isn't said where it should be.
    """
    for character in get_items(raw, "characters"):
        yield _name_of(character)
    for edge in get_items(raw, "creditedRoles", "edges"):
        if parse_at(get_path, edge, "node", "characters") is None:
            raise ShapeError("credits", "a role without a key for characters")
        for character in get_items(edge, "node", "characters", "edges"):
            yield _name_of(get_path(character, "node"))


def _name_of(character: object) -> str:
    name = get_text(character) if isinstance(character, str) else get_text(character, "name")
    if name is None:
        raise ShapeError("credits", "a character without a name")
    return name


# --- The page of full credits ---------------------------------------------------------------------


def of_full_credits(categories: object, role: Role) -> list[Credit] | None:
    """Read a role's list on the page of full credits; None where it has none.

    The cast has its first 250 there; another list that leaves out people is not read.
    """
    for category in get_items(categories):
        if _ROLES.get(get_text(category, "id")) == role:
            rows = get_items(category, "section", "items")
            is_whole = get_integer(category, "section", "total") in {None, len(rows)}
            people = [_full_credit(row, role) for row in rows]
            return one_of_each(role, people) if is_whole or role == "cast" else None
    return None


def _full_credit(row: object, role: Role) -> Credit:
    characters = parse_texts()(get_path(row, "characters")) if role == "cast" else None
    return _new_credit(
        role, get_text(row, "rowTitle"), get_text(row, "id"), map(without_notes, characters or ())
    )
