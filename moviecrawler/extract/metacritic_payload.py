"""The components of Metacritic's pages since 2026: in a page's `__NUXT_DATA__`, and the same in the answers of the JSON host.

Only those that are read are built of a payload.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract import dig
from moviecrawler.extract.devalue import Devalue
from moviecrawler.extract.findings import ShapeError, attempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moviecrawler.items import ScoreKind

PRODUCT: Final = "product"
SUMMARIES: Final[dict[ScoreKind, str]] = {"metascore": "critic-score-summary", "metacritic_user": "user-score-summary"}
OFFERS: Final = "where-to-watch"
RELATED: Final = "related-carousel"
SEASONS: Final = "seasons"
NOT_FOUND: Final = 404
"""The code of an error that says that there is no such thing."""
Components = dict[str | None, Any]
"""The components of a page by their names, each with its `data` and `errors`."""


def component_name(component: Any) -> str | None:
    """Return what a component says it is."""
    return dig.text(component, "meta", "componentName")


def refuse_errors(part: Any, field: str) -> None:
    """Raise ShapeError when the site says that it could not get a part of the page."""
    errors = dig.items(part, "errors")
    if errors:
        codes = ", ".join(str(dig.at(error, "code")) for error in errors)
        raise ShapeError(field, f"the site answers error {codes}")


def is_not_found(part: Any) -> bool:
    """Return whether the site says that there is no such title, or no such part of one."""
    return any(dig.integer(error, "code") == NOT_FOUND for error in dig.items(part, "errors"))


def components_of(answer: Any) -> Components:
    """Return the components of an answer of the JSON host, which can be one itself."""
    return {attempt(partial(component_name, part)): part for part in dig.items(answer, "components") or [answer]}


def title_in_payload(raw: bytes) -> Components:
    """Return the components of a title's page. Raises ShapeError when the payload has no product."""
    payload = Devalue.decode(raw)
    for path in _composed_pages(payload):
        named = _named(payload, *path)
        wanted = {name: named[name] for name in (PRODUCT, OFFERS, SEASONS, *SUMMARIES.values()) if name in named}
        if PRODUCT in wanted:
            components: Components = {name: _component(payload, *path, n) for name, n in wanted.items()}
            if RELATED in named:
                components[RELATED] = attempt(partial(_related, payload, *path, named[RELATED], "data"))
            return components
    raise ShapeError("page", "no page of a title in the payload")


def list_in_payload(raw: bytes) -> dict[str, Any] | None:
    """Return the list of a browse page's payload: the component that has items and says how many there are; None without one.

    A title's page has lists, too: of its reviews, and of titles alike.
    """
    payload = Devalue.decode(raw)
    for path in _composed_pages(payload):
        if {PRODUCT, *SUMMARIES.values()} & _named(payload, *path).keys():
            continue
        for n in range(payload.count(*path)):
            if payload.at(*path, n, "data", "totalResults") is not None and payload.count(*path, n, "data", "items"):
                return {part: payload.at(*path, n, part) for part in ("data", "links", "errors")}
    return None


def _composed_pages(payload: Devalue) -> Iterator[tuple[str, str, str]]:
    """Yield the paths to the components that a payload has to show, such as those of `loadPage:movies:<slug>:`; `skeleton` is the frame."""
    for key in payload.keys("data"):
        if key.startswith("loadPage:") and not key.startswith("loadPage:skeleton:"):
            yield "data", key, "components"


def _named(payload: Devalue, *path: str) -> dict[str | None, int]:
    """Return where each of the components at `path` stands, by its name."""
    return {attempt(partial(payload.at, *path, n, "meta", "componentName")): n for n in range(payload.count(*path))}


def _component(payload: Devalue, *path: str | int) -> dict[str, Any]:
    """Return what is there of a component's parts."""
    found: dict[str, Any] = {}
    for part in ("data", "errors"):
        with suppress(ShapeError):
            if part in payload.keys(*path):
                found[part] = payload.at(*path, part)
    return found


def _related(payload: Devalue, *path: str | int) -> dict[str, Any]:
    """Return the component of titles alike, as far as it is read: whole products stand there."""
    if "items" not in payload.keys(*path):
        return {"data": {}}
    places = [(*path, "items", n) for n in range(payload.count(*path, "items"))]
    return {
        "data": {"items": [{key: payload.at(*place, key) for key in ("type", "slug", "title")} for place in places]}
    }
