"""Decodes IMDb's `__NEXT_DATA__`, of which only what is read is built.

Most of the script are translations, tracking and further reading.
"""

from typing import Any, TypedDict

from moviecrawler.extract.dig import JsonObject, get_path
from moviecrawler.extract.embedded import decode_json, decode_json_as, script
from moviecrawler.extract.findings import ShapeError
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


class _PageProps(TypedDict, total=False):
    aboveTheFoldData: _Title | None
    mainColumnData: _Title | None
    pageData: Any
    contentData: Any


class _Props(TypedDict, total=False):
    pageProps: _PageProps


class _NextData(TypedDict, total=False):
    props: _Props


def page_props(body: bytes) -> JsonObject | None:
    """Return what a page's script holds; None when the page has no such script.

    Raises ShapeError when it has no page properties, or the page ends inside it.
    """
    raw = script(body, "__NEXT_DATA__")
    if raw is None:
        return None
    try:
        data: object = decode_json_as(raw, _NextData)
    except ShapeError:  # something is not of the expected type
        data = decode_json(raw)
    props = get_path(data, "props", "pageProps")
    if not isinstance(props, dict):
        raise ShapeError("page", "the script has no pageProps")
    return props
