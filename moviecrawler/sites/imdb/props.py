"""Decodes IMDb's `__NEXT_DATA__`, of which only what is read is built.

Most of the script are translations, tracking and further reading.
"""

from typing import Any, TypedDict

import msgspec

from moviecrawler.extract.dig import JsonObject
from moviecrawler.extract.embedded import decode_json_as, script
from moviecrawler.sites.imdb.title import KEYS


class _Linked(TypedDict, total=False):
    id: Any
    titleText: Any


class _Edge(TypedDict, total=False):
    node: _Linked | None


class _Edges(TypedDict, total=False):
    edges: list[_Edge | None] | None


class _Total(TypedDict, total=False):
    total: Any


_LARGE = {
    "moreLikeThisTitles": _Edges | None,
    "reviews": _Total | None,
    "criticReviewsTotal": _Total | None,
}
"""What is read of the keys with the most below them."""
_Title = TypedDict("_Title", dict.fromkeys(KEYS, Any) | _LARGE, total=False)  # type: ignore[misc]


class PageProps(msgspec.Struct, rename="camel"):
    """What is read of a page's script; None where it has no such key."""

    above_the_fold_data: _Title | None = None
    main_column_data: _Title | None = None
    page_data: object = None
    """A chart."""
    content_data: object = None
    """The page of full credits."""

    @property
    def titles(self) -> list[JsonObject]:
        """The objects about a page's title."""
        objects: tuple[object, ...] = (self.above_the_fold_data, self.main_column_data)
        return [title for title in objects if isinstance(title, dict) and title]


class _Props(msgspec.Struct, rename="camel"):
    page_props: PageProps


class _NextData(msgspec.Struct):
    props: _Props


def page_props(body: bytes) -> PageProps:
    """Return what a page's script holds; all is None when the page has no such script.

    Raises ShapeError when it has no page properties, or the page ends inside it.
    """
    raw = script(body, "__NEXT_DATA__")
    return PageProps() if raw is None else decode_json_as(raw, _NextData).props.page_props
