"""IMDb's `__NEXT_DATA__`, as far as anything of it is read.

Most of the script are translations, tracking and further reading. Only what is named here, and the keys in the tables of `imdb_title`, is built.
"""

from __future__ import annotations

from typing import Any, TypedDict

from moviecrawler.extract import dig
from moviecrawler.extract.embedded import decode_json, script, starts_with
from moviecrawler.extract.findings import ShapeError
from moviecrawler.extract.imdb_title import KEYS


def _object(name: str, **members: Any) -> Any:
    """Return the type of an object of which only these members are built."""
    return TypedDict(name, members, total=False)  # type: ignore[operator] # mypy wants them written out


def _objects(name: str, **members: Any) -> Any:
    """Return the type of a list of such objects. It can be null, and each of them, too."""
    item = _object(name, **members) | None
    return list[item] | None  # type: ignore[valid-type]


_TOTAL = _object("Total", total=Any) | None
_NAMED = _object("Named", id=Any, titleText=Any) | None
_LARGE = {
    "categories": _objects("Category", id=Any, section=Any),
    "moreLikeThisTitles": _object("Edges", edges=_objects("Edge", node=_NAMED)) | None,
    "reviews": _TOTAL,
    "criticReviewsTotal": _TOTAL,
}
"""What is read of the keys with the most below them."""
_TITLE = _object("Title", **dict.fromkeys(KEYS, Any) | _LARGE)
"""What is read of an object about one title."""
_OBJECTS = {
    "aboveTheFoldData": _TITLE | None,
    "mainColumnData": _TITLE | None,
    "contentData": _object("Content", entityMetadata=_TITLE | None, section=Any, categories=Any) | None,
}
_PAGE_PROPS = _object("PageProps", **_OBJECTS, pageData=Any, searchResults=Any, titleResults=Any, groups=Any)
_NEXT_DATA = _object("NextData", props=_object("Props", pageProps=_PAGE_PROPS), pageProps=_PAGE_PROPS)


def page_props(body: bytes) -> dict[str, Any] | None:
    """Return what a page's script holds, or the bare JSON of one; None when the page has no such script.

    Raises ShapeError when that isn't what it was, or the page ends inside it.
    """
    raw = body if is_json(body) else script(body, "__NEXT_DATA__")
    if raw is None:
        return None
    try:
        data: dict[str, Any] = decode_json(raw, _NEXT_DATA)
        # The site's own scripts fetch the next page as `pageProps` alone.
        props: dict[str, Any] | None = data.get("props", data).get("pageProps")
    except ShapeError:
        props = _odd_page_props(decode_json(raw))
    if props is None:
        raise ShapeError("page", "the script has no pageProps")
    return props


def _odd_page_props(data: Any) -> dict[str, Any] | None:
    """Return what is of the expected type in a script of which something is not."""
    found = dig.at(data, "props", "pageProps") or dig.at(data, "pageProps")
    if not isinstance(found, dict):
        return None
    return {name: value for name, value in found.items() if name not in _OBJECTS or isinstance(value, dict | None)}


def is_json(body: bytes) -> bool:
    """Return whether a body is a JSON object, not a page of markup."""
    return starts_with(body, b"{")
