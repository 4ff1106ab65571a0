"""Decodes IMDb's `__NEXT_DATA__`, of which only the keys that are read are built.

They are named here and in the tables of `imdb_title`. Most of the script are translations, tracking
and further reading.
"""

from typing import Any, TypedDict

from moviecrawler.extract.dig import JsonObject, get_path
from moviecrawler.extract.embedded import decode_json, script
from moviecrawler.extract.findings import ShapeError
from moviecrawler.sites.imdb.title import KEYS


def _object(name: str, **members: Any) -> Any:
    """Return the type of an object of which only these members are built."""
    # Mypy wants them written out.
    return TypedDict(name, members, total=False)  # type: ignore[operator]


def _objects(name: str, **members: Any) -> Any:
    """Return the type of a list of such objects. It can be null, and each of them, too."""
    item = _object(name, **members) | None
    return list[item] | None  # type: ignore[valid-type]


_TOTAL = _object("Total", total=Any) | None
_NAMED = _object("Named", id=Any, titleText=Any) | None
_LARGE = {
    "moreLikeThisTitles": _object("Edges", edges=_objects("Edge", node=_NAMED)) | None,
    "reviews": _TOTAL,
    "criticReviewsTotal": _TOTAL,
}
"""What is read of the keys with the most below them."""
_TITLE = _object("Title", **dict.fromkeys(KEYS, Any) | _LARGE)
"""What is read of an object about one title."""
_PAGE_PROPS = _object(
    "PageProps",
    aboveTheFoldData=_TITLE | None,
    mainColumnData=_TITLE | None,
    pageData=Any,
    contentData=Any,
)
_NEXT_DATA = _object("NextData", props=_object("Props", pageProps=_PAGE_PROPS))


def page_props(body: bytes) -> JsonObject | None:
    """Return what a page's script holds; None when the page has no such script.

    Raises ShapeError when it has no page properties, or the page ends inside it.
    """
    raw = script(body, "__NEXT_DATA__")
    if raw is None:
        return None
    try:
        data = decode_json(raw, _NEXT_DATA)
    except ShapeError:  # something is not of the expected type
        data = decode_json(raw)
    props = get_path(data, "props", "pageProps")
    if not isinstance(props, dict):
        raise ShapeError("page", "the script has no pageProps")
    return props
