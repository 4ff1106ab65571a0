"""Nuxt 3's payload, `<script id="__NUXT_DATA__">`: a value flattened by the devalue library.

It is one array whose first element is the root. Inside objects and arrays, integers refer to other
elements of it, so that a value used twice is written once and a cycle can be written at all. Arrays
that begin with a text are Nuxt's own wrappers, such as `["ShallowReactive", 1]`, or values that
JSON has not, such as `["Set", …]`, which no title has.

Objects and arrays are resolved member by member, when somebody looks at one: most of a payload is
never looked at.
"""

from collections.abc import Callable, Iterator

from moviecrawler.extract.embedded import decode_json
from moviecrawler.extract.findings import ShapeError

_UNDEFINED = (-1, -2)
"""References that are not elements: undefined, and a hole in an array."""
_WRAPPERS = frozenset({"Reactive", "ShallowReactive", "Ref", "ShallowRef"})
"""Nuxt's marks around the value that their reference leads to."""
_MOST_WRAPPERS = 20
"""Inside of each other; more are a wrapper that leads to itself."""
_VISITS_OF_EACH = 50
"""The mean number of visits of an element. Values that are used many times inside of each other
would take for ever."""


class _Object(dict[str, object]):
    """An object of which each member is resolved when it is looked at."""

    def __init__(self, references: dict[str, object], resolve: Callable[[object], object]) -> None:
        super().__init__(references)
        self._resolve = resolve

    def __getitem__(self, name: str) -> object:
        return self._resolve(super().__getitem__(name))

    def get(self, name: str, default: object = None) -> object:
        reference = super().get(name, self)
        return default if reference is self else self._resolve(reference)


class _Array(list[object]):
    """An array of which each member is resolved when it is looked at."""

    def __init__(self, references: list[object], resolve: Callable[[object], object]) -> None:
        super().__init__(references)
        self._resolve = resolve

    def __iter__(self) -> Iterator[object]:
        return map(self._resolve, super().__iter__())


def unflatten(raw: bytes) -> object:
    """Return the value in a script's text: its objects are dicts, its arrays lists.

    Raises ShapeError when it is not a flattened value.

    Looking at a member may raise ShapeError, too: types that no title uses, such as a Set or a
    Date, are refused.
    """
    elements = decode_json(raw)
    if not isinstance(elements, list) or not elements:
        raise ShapeError("__NUXT_DATA__", "expected an array with a root")
    visits = 0

    def resolve(reference: object) -> object:
        nonlocal visits
        for _ in range(_MOST_WRAPPERS):
            visits += 1
            if visits > _VISITS_OF_EACH * (len(elements) + 1):
                raise ShapeError(
                    "__NUXT_DATA__", f"its {len(elements):,} elements are used again too often"
                )
            if reference in _UNDEFINED:
                return None
            if type(reference) is not int or not 0 <= reference < len(elements):
                raise ShapeError(
                    "__NUXT_DATA__",
                    f"{reference!r:.40} is not a reference to one of {len(elements)} elements",
                )
            element = elements[reference]
            if isinstance(element, dict):
                return _Object(element, resolve)
            if not isinstance(element, list):
                return element
            if not (element and isinstance(element[0], str)):
                return _Array(element, resolve)
            kind, *references = element
            if kind not in _WRAPPERS or len(references) != 1:
                raise ShapeError("__NUXT_DATA__", f"{kind!r} is not a known type")
            (reference,) = references
        raise ShapeError("__NUXT_DATA__", "a wrapper that leads to itself")

    return resolve(0)
