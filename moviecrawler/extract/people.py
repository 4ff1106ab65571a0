"""The people of a title, as all sites have them."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from moviecrawler.extract.findings import first_of_each
from moviecrawler.items import Credit, Role

_PERSON_ID = re.compile(r"/(nm\d{7,10}|(?:person|celebrity)/[^/?#\s]+)")
"""`nm0000206` on IMDb, `person/…` on Metacritic, `celebrity/…` on Rotten Tomatoes."""
_NOTE = re.compile(
    r"(?<!\s)\s*\((?:[^()]{0,200}\b"
    r"(?:voice|uncredited|archive|segment|cameo|credit only|guest star)\b[^()]{0,200}"
    r"|as [^()]*)\)",
    re.IGNORECASE,
)


class Person(NamedTuple):
    """A person as a page names them."""

    name: str
    link: str | None = None
    """The address of their page."""
    character: str | None = None


def without_notes(character: str) -> str:
    """Return a character without notes on how it is played.

    >>> without_notes("Wick (voice) (uncredited)"), without_notes("The Nurse (1950)")
    ('Wick', 'The Nurse (1950)')
    """
    return _NOTE.sub("", character).rstrip(", ")


def one_of_each(role: Role, people: Iterable[Credit]) -> list[Credit]:
    """Return the credits of a role in order, without duplicates, numbered from 1."""
    credits_ = first_of_each(people, lambda credit: credit.person_id or credit.name)
    for position, credit in enumerate(credits_, start=1):
        credit.role = role
        credit.position = position
    return credits_


def new_credits(role: Role, people: Iterable[Person]) -> list[Credit]:
    """Return the credits of a role without duplicates.

    A person's id is in the link to their page.
    """
    return one_of_each(
        role,
        (
            Credit(
                name=person.name,
                role=role,
                position=0,
                person_id=_id_in(person.link),
                character=person.character,
            )
            for person in people
            if person.name
        ),
    )


def _id_in(link: str | None) -> str | None:
    match = _PERSON_ID.search(link or "")
    return match[1] if match else None
