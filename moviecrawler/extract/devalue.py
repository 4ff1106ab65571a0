"""Nuxt 3's payload, `<script id="__NUXT_DATA__">`: a value flattened by the devalue library.

It is one array whose first element is the root. Inside objects and arrays, integers refer to other
elements of it, so that a value used twice is written once and a cycle can be written at all. Arrays
that begin with a text are values that JSON has not, such as `["Set", …]`, or Nuxt's own wrappers
such as `["ShallowReactive", 1]`.

Objects and arrays are resolved member by member, when somebody looks at one: most of a payload is
never looked at.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from moviecrawler.extract.embedded import decode_json
from moviecrawler.extract.findings import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SPECIAL: Final[dict[int, Any]] = {
    -1: None,
    -2: None,
    -3: math.nan,
    -4: math.inf,
    -5: -math.inf,
    -6: -0.0,
}
"""References that are no elements: undefined, a hole in an array, NaN, Infinity, -Infinity and
-0."""
_WRAPPERS: Final = frozenset(
    {"Reactive", "ShallowReactive", "Ref", "ShallowRef", "NuxtError", "Island"}
)
"""Nuxt's marks around the value that their reference leads to."""
_EMPTY_REFS: Final = frozenset({"EmptyRef", "EmptyShallowRef"})
"""Their reference leads to a text: JSON, or `_` for undefined and `0n` for a BigInt."""
_MOST_WRAPPERS: Final = 20
"""Inside of each other; more are a wrapper that leads to itself."""
_VISITS_OF_EACH: Final = 50
"""The mean number of visits of an element. Values that are used many times inside of each other
would take for ever."""


class _Object(dict[str, Any]):
    """An object of which each member is resolved when it is looked at."""

    def __init__(self, references: dict[str, Any], resolve: Callable[[Any], Any]) -> None:
        super().__init__(references)
        self._resolve = resolve

    def __getitem__(self, name: str) -> Any:
        return self._resolve(super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        reference = super().get(name, self)
        return default if reference is self else self._resolve(reference)


class _Array(list[Any]):
    """An array of which each member is resolved when it is looked at."""

    def __init__(self, references: list[Any], resolve: Callable[[Any], Any]) -> None:
        super().__init__(references)
        self._resolve = resolve

    def __iter__(self) -> Iterator[Any]:
        return map(self._resolve, super().__iter__())


def unflatten(raw: bytes) -> Any:
    """Return the value in a script's text: its objects are dicts, its arrays and sets lists.

    Raises ShapeError when it is no flattened value.

    Looking at a member may raise ShapeError, too: types that no title uses, such as a Map or a
    BigInt, are refused.
    """
    elements = decode_json(raw)
    if not isinstance(elements, list) or not elements:
        raise ShapeError("__NUXT_DATA__", "expected an array with a root")
    visits = 0

    def element_at(reference: Any) -> Any:
        nonlocal visits
        visits += 1
        if visits > _VISITS_OF_EACH * (len(elements) + 1):
            raise ShapeError(
                "__NUXT_DATA__", f"its {len(elements):,} elements are used again too often"
            )
        if type(reference) is not int or not min(_SPECIAL) <= reference < len(elements):
            raise ShapeError(
                "__NUXT_DATA__",
                f"{reference!r:.40} is no reference to one of {len(elements)} elements",
            )
        return _SPECIAL[reference] if reference < 0 else elements[reference]

    def resolve(reference: Any) -> Any:
        for _ in range(_MOST_WRAPPERS):
            element = element_at(reference)
            if isinstance(element, dict):
                return _Object(element, resolve)
            if not isinstance(element, list):
                return element
            if not (element and isinstance(element[0], str)):
                return _Array(element, resolve)
            kind, *operands = element
            if kind == "Set":
                return _Array(operands, resolve)
            if kind == "null":  # an object without a prototype: its names are among the references
                return _Object(
                    dict(zip(map(str, operands[::2]), operands[1::2], strict=False)), resolve
                )
            if not operands:
                raise ShapeError("__NUXT_DATA__", f"{kind!r} of nothing")
            if kind in {"Date", "Object", "URL"} and not isinstance(operands[0], list | dict):
                return operands[0]
            if kind in _EMPTY_REFS:
                return _empty_ref(resolve(operands[0]))
            if kind not in _WRAPPERS:
                raise ShapeError("__NUXT_DATA__", f"{kind!r} is no known type")
            reference = operands[0]
        raise ShapeError("__NUXT_DATA__", "a wrapper that leads to itself")

    return resolve(0)


def _empty_ref(text: Any) -> Any:
    if text in {"_", "0n"}:
        return None if text == "_" else 0
    if not isinstance(text, str):
        raise ShapeError("__NUXT_DATA__", "an empty ref that is no text")
    return decode_json(text.encode())
