"""Collects the fields of a title while its page is read.

Each field has a value, is stated absent, or is unknown. A reader is a function that reads one field
at its position in one layout. It returns one of three:

    a value     the page has one
    ABSENT      the position is there and states that there is none: `null` under a known key,
                "tbd", an empty list
    None        the position is not there, or is empty in a way that states nothing

It raises one of UNREADABLE when it can't understand what is there; the field is then unknown, too.
"""

from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import Any, Literal, ParamSpec, TypeVar

from moviecrawler.items import Movie, RelatedTitle, Score


class Absence(Enum):
    """Whether a page states that there is no value."""

    STATED = "stated"


ABSENT = Absence.STATED
NoValue = Literal[Absence.STATED] | None
UNREADABLE = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""The errors of a reader whose data is not what it expects."""
_T = TypeVar("_T")
_P = ParamSpec("_P")


class ShapeError(ValueError):
    """Data at `field` does not have the shape that its reader knows."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class Findings:
    """Collects the fields of `movie`, which has its identity already."""

    def __init__(self, movie: Movie) -> None:
        self.movie = movie
        self._states: dict[str, Literal["found", "absent", "unreadable"]] = {}

    def set_first(self, field: str, *readers: Callable[[], object]) -> None:
        """Set a field to the first value that a reader returns.

        The field is one of `Movie`, or a part such as `scores.imdb`. It is stated absent only where
        no other position has a value or is unreadable. Does nothing where the field has a value, or
        belongs to a score (`scores.imdb.reviews`) that has not been value.
        """
        score = field.rpartition(".")[0]
        is_without_score = "." in score and self._states.get(score) != "found"
        if self._states.get(field) == "found" or is_without_score:
            return
        try:
            value = first(*readers)
        except UNREADABLE:
            self._states[field] = "unreadable"
            return
        if value is ABSENT:
            self._states.setdefault(field, "absent")
        elif value is not None:
            self._states[field] = "found"
            self._set(field, value)

    def _set(self, field: str, value: Any) -> None:
        name, _, part = field.partition(".")
        kind, _, fact = part.partition(".")
        if fact:
            setattr(self.movie.score(kind), fact, value)
        elif name == "credits":
            self.movie.credits += value
        elif name == "related":
            # Some lists of similar titles name the title itself.
            self.movie.related += [title for title in value if title.site_id != self.movie.site_id]
        elif part:
            getattr(self.movie, name).append(value)
        else:
            setattr(self.movie, name, value)

    @property
    def absent(self) -> set[str]:
        """The fields that are stated absent."""
        return {field for field, state in self._states.items() if state == "absent"}


def attempt(read: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T | None:
    """Return what a function returns, or None where the data is unreadable."""
    try:
        return read(*args, **kwargs)
    except UNREADABLE:
        return None


def first(*readers: Callable[[], _T | NoValue]) -> _T | NoValue:
    """Return the first value that a reader returns; else ABSENT when one of them does; else None.

    Raises the error of a reader that failed when none returns a value.
    """
    absent: NoValue = None
    unreadable: Exception | None = None
    for reader in readers:
        try:
            value = reader()
        except UNREADABLE as error:
            unreadable = error
            continue
        if isinstance(value, Absence):
            absent = ABSENT
        elif value is not None and value != []:
            return value
    if unreadable is not None:
        raise unreadable
    return absent


def first_of_each(items: Iterable[_T], key: Callable[[_T], Hashable]) -> list[_T]:
    """Return the items in order, and only the first of those with the same key."""
    known: dict[Hashable, _T] = {}
    for item in items:
        known.setdefault(key(item), item)
    return list(known.values())


def one_of_each_title(titles: Iterable[RelatedTitle]) -> list[RelatedTitle]:
    """Return the related titles of a page in order, without duplicates."""
    return first_of_each(titles, lambda title: title.site_id)


def scores_of(*readers: Callable[[], object]) -> list[Score]:
    """Return the scores of a row of a list; one that can't be read is left out.

    A row of a list states no absence.
    """
    return [score for reader in readers if isinstance(score := attempt(reader), Score)]
