"""Items of somebody's own spider: whatever `ItemAdapter` takes, with the fields of a Movie or a Miss."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import msgspec
from itemadapter import ItemAdapter

from moviecrawler.errors import InvalidItemError
from moviecrawler.fields import silent_beside
from moviecrawler.items import Miss, Movie

_OURS = Movie.__module__
_NEEDED = {
    Movie: ("site", "site_id", "url", "title", "kind", "scraped_at"),
    Miss: tuple(field.name for field in fields(Miss) if field.default is MISSING),
}


def is_foreign(item: Any) -> bool:
    """Return whether an item is a dict, or an attrs, pydantic or dataclass object that is none of this project's items."""
    return type(item).__module__ != _OURS and ItemAdapter.is_item(item)


def adapted(item: Any) -> Movie | Miss:
    """Return the Movie that a foreign item is, or the Miss, where it has an `outcome`.

    Its fields have the names and types of ours; those of lists (`credits`, `scores`, `amounts`) may be dicts. A field
    that it does not have, or whose value is None, says nothing: it erases no stored value. Raises InvalidItemError, with
    the name of the first field that is missing, unknown or of another type.
    """
    given = {name: value for name, value in ItemAdapter(item).asdict().items() if value is not None}
    kind: type[Movie | Miss] = Miss if "outcome" in given else Movie
    known = [field.name for field in fields(kind)]
    for name in _NEEDED[kind]:
        if name not in given:
            raise InvalidItemError(
                name,
                f"is missing; an item needs {', '.join(_NEEDED[kind])}, and this one has {', '.join(given) or 'none'}",
            )
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InvalidItemError(unknown[0], f"is no field of {kind.__name__}; there are {', '.join(known)}")
    try:
        movie = msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$.")
        raise InvalidItemError(where.partition("`")[0] or kind.__name__, what) from None
    if isinstance(movie, Movie) and "silent" not in given:
        movie.silent = silent_beside(movie)
    return movie
