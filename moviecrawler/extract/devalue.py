"""Nuxt 3's payload, `<script id="__NUXT_DATA__">`: a value flattened by the devalue library.

It is one array whose first element is the root. Inside objects and arrays, integers refer to other elements of it, so
that a value used twice is written once and a cycle can be written at all. Arrays that begin with a text are values that
JSON has not, such as `["Set", …]`, or Nuxt's own wrappers such as `["ShallowReactive", 1]`.
"""

from __future__ import annotations

import math
from typing import Any, Final

from moviecrawler.extract.embedded import decode_json
from moviecrawler.extract.findings import ShapeError

_SPECIAL: Final[dict[int, Any]] = {-1: None, -2: None, -3: math.nan, -4: math.inf, -5: -math.inf, -6: -0.0}
"""References that are no elements: undefined, a hole in an array, NaN, Infinity, -Infinity and -0."""
_LEAST: Final = min(_SPECIAL)

_WRAPPERS: Final = frozenset({"Reactive", "ShallowReactive", "Ref", "ShallowRef", "NuxtError", "Island"})
"""Nuxt's marks around the value that their reference leads to."""

_EMPTY_REFS: Final = frozenset({"EmptyRef", "EmptyShallowRef"})
"""Their reference leads to a text: JSON, or `_` for undefined and `0n` for a BigInt."""

_DEEPEST: Final = 200
"""How deep values may nest; Metacritic's deepest is about 20."""

_VISITS_OF_EACH: Final = 50
"""How often each element may be read, on average; Metacritic's are, once or twice."""

_UNRESOLVED: Final = object()


class Devalue:
    """A flattened value, of which only what is asked for is built.

    What is built costs at most one visit of each element: shared values are shared objects, cycles are cycles. But who
    reads them visits a shared one each time: how large the whole would be if nothing were shared has a bound. Sets are lists,
    Dates and URLs are texts, undefined and holes are None. What is nowhere near a title, such as a Map or a BigInt, is refused.
    """

    def __init__(self, elements: list[Any]) -> None:
        self._elements = elements
        self._built: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}  # of what is built: its values, those of shared ones each time
        self._visits = 0
        self._most_visits = _VISITS_OF_EACH * len(elements) + _VISITS_OF_EACH

    @classmethod
    def decode(cls, raw: bytes) -> Devalue:
        """Return the value in a script's text. Raises ShapeError when it is no flattened value."""
        elements = decode_json(raw)
        if not isinstance(elements, list) or not elements:
            raise ShapeError("__NUXT_DATA__", "expected an array with a root")
        return cls(elements)

    def at(self, *path: str | int) -> Any:
        """Return what stands at `path` from the root, or None when a step is missing or null. Raises ShapeError."""
        reference = self._follow(path)
        return None if reference is None else self._build(reference, 0)

    def keys(self, *path: str | int) -> list[str]:
        """Return the names of the object at `path`, or [] when there is none. Raises ShapeError."""
        element = self._element_at(path)
        if element is None:
            return []
        if not isinstance(element, dict):
            raise ShapeError(_name(path), "expected an object")
        return list(element)

    def count(self, *path: str | int) -> int:
        """Return the length of the array at `path`, or 0 when there is none. Raises ShapeError."""
        element = self._element_at(path)
        if element is None:
            return 0
        if not isinstance(element, list) or _is_typed(element):
            raise ShapeError(_name(path), "expected an array")
        return len(element)

    def _element_at(self, path: tuple[str | int, ...]) -> Any:
        reference = self._follow(path)
        return None if reference is None else self._unwrapped(reference)

    def _follow(self, path: tuple[str | int, ...]) -> int | None:
        """Return the reference to what stands at `path`, building nothing on the way."""
        reference: Any = 0
        for depth, step in enumerate(path):
            element = self._unwrapped(reference)
            if element is None:
                return None
            if isinstance(step, str) and isinstance(element, dict):
                reference = element.get(step)
            elif isinstance(step, int) and isinstance(element, list) and not _is_typed(element):
                reference = element[step] if 0 <= step < len(element) else None
            else:
                raise ShapeError(_name(path[: depth + 1]), f"no {type(step).__name__} leads into this value")
            if reference is None:
                return None
        return _checked(reference)

    def _unwrapped(self, reference: Any) -> Any:
        """Return the element behind a reference and any of Nuxt's wrappers."""
        for _ in range(_DEEPEST):
            element = self._element(reference)
            if not (isinstance(element, list) and _is_typed(element) and element[0] in _WRAPPERS):
                return element
            reference = _operand(element)
        raise ShapeError("__NUXT_DATA__", "a wrapper that leads to itself")

    def _element(self, reference: Any) -> Any:
        self._visited(1)
        index = _checked(reference)
        if index < 0:
            return _SPECIAL[index]
        if index >= len(self._elements):
            raise ShapeError("__NUXT_DATA__", f"reference {index} of {len(self._elements)} elements")
        return self._elements[index]

    def _visited(self, values: int) -> None:
        """Count what is read. Shared values are read each time, and each may be one of many shared ones."""
        self._visits += values
        if self._visits > self._most_visits:
            raise ShapeError("__NUXT_DATA__", f"its {len(self._elements):,} elements are used again too often")

    def _build(self, reference: Any, depth: int) -> Any:
        before = self._visits
        index = _checked(reference)
        if index < 0:
            return _SPECIAL[index]
        if index in self._built:
            if self._built[index] is _UNRESOLVED:
                raise ShapeError("__NUXT_DATA__", "a wrapper that leads to itself")
            self._visited(self._sizes.get(index, 0))
            return self._built[index]
        if depth > _DEEPEST:
            raise ShapeError("__NUXT_DATA__", "nested too deep")
        element = self._element(index)
        value: Any = element
        if isinstance(element, dict):
            # It is known before its members are, as one of them may be the object itself.
            built: dict[str, Any] = {}
            self._built[index] = value = built
            for name, member in element.items():
                built[name] = self._build(member, depth + 1)
        elif not isinstance(element, list):
            self._built[index] = element
        elif _is_typed(element):
            value = self._build_typed(index, element, depth)
        else:
            value = self._build_list(index, element, depth)
        self._sizes[index] = self._visits - before
        return value

    def _build_list(self, index: int, members: list[Any], depth: int) -> list[Any]:
        built: list[Any] = []
        self._built[index] = built
        built.extend(self._build(member, depth + 1) for member in members)
        return built

    def _build_typed(self, index: int, element: list[Any], depth: int) -> Any:
        kind = element[0]
        if kind == "Set":
            return self._build_list(index, element[1:], depth)
        self._built[index] = _UNRESOLVED
        if kind in _WRAPPERS:
            built = self._build(_operand(element), depth + 1)
        elif kind in _EMPTY_REFS:
            built = _empty_ref(self._build(_operand(element), depth + 1))
        elif kind == "null":  # an object without a prototype: its names stand among the references
            members = zip(element[1::2], element[2::2], strict=False)
            built = {_checked_name(name): self._build(member, depth + 1) for name, member in members}
        elif kind in {"Date", "Object", "URL"}:
            built = _scalar(_operand(element))
        else:
            raise ShapeError("__NUXT_DATA__", f"{kind!r} is no known type")
        self._built[index] = built
        return built


def _is_typed(element: list[Any]) -> bool:
    return bool(element) and isinstance(element[0], str)


def _operand(element: list[Any]) -> Any:
    if len(element) < 2:  # noqa: PLR2004 - the type and what it is of
        raise ShapeError("__NUXT_DATA__", f"{element[0]!r} of nothing")
    return element[1]


def _checked(reference: Any) -> int:
    if type(reference) is not int or reference < _LEAST:
        raise ShapeError("__NUXT_DATA__", f"{reference!r:.40} is no reference")
    return reference


def _checked_name(name: Any) -> str:
    if not isinstance(name, str):
        raise ShapeError("__NUXT_DATA__", f"{name!r:.40} is no name")
    return name


def _scalar(value: Any) -> Any:
    if isinstance(value, list | dict):
        raise ShapeError("__NUXT_DATA__", "a list or an object where a single value belongs")
    return value


def _empty_ref(text: Any) -> Any:
    if text == "_":
        return None
    if text == "0n":
        return 0
    if not isinstance(text, str):
        raise ShapeError("__NUXT_DATA__", "an empty ref that is no text")
    return decode_json(text.encode())


def _name(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path)) or "__NUXT_DATA__"
