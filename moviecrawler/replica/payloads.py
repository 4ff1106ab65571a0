"""From items to payloads: a template looks like what a site serves.

`$field` is where a field stands (see `value_of`):

- `"runtime": {"seconds": "$runtime_minutes|seconds"}`: a function of the site's module makes of it
  what the site writes
- `"scorePercent": "$scores.tomatometer|{:.0f}%"`: a format does
- `"voteCount": "$scores.imdb.count or 0"`: what stands there without a value, which is null
  otherwise
- `"genres": ["$genres", {"text": "$"}]`: an object for each item of a list
"""

from __future__ import annotations

import functools
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from moviecrawler.options import read_package_file
from moviecrawler.replica.words import WORDS, Dice, read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_VALUE: Final = re.compile(r"\$([\w.]*)(?:\|(.+?))?(?: or (.+))?")
_LISTS: Final = {"credits": "role", "related": "relation", "offers": "kind"}
"""Fields that have several items of a kind, and the attribute that says which."""
MARKUP: Final = read_toml("markup.toml")


def value_of(item: Any, field: str) -> Any:
    """Return a field of an item; None without a value.

    Fields are such as `year`, `credits.cast`, `scores.imdb` or `scores.imdb.count`.
    """
    name, _, part = field.partition(".")
    found = getattr(item, name) if name else item
    if not part:
        return found
    if isinstance(found, dict):
        return found.get(part)
    kind, _, fact = part.partition(".")
    parts = [one for one in found if getattr(one, _LISTS.get(name, "kind")) == kind]
    if name in _LISTS:
        return parts
    return getattr(parts[0], fact or "value") if parts else None


class Templates:
    """The templates of a site's payloads, which are in a file beside this one."""

    def __init__(self, site: str, conversions: Mapping[str, Callable[[Any], Any]]) -> None:
        self._conversions: dict[str, Callable[[Any], Any]] = {
            "count": len,
            "int": int,
            **conversions,
        }
        self._templates: dict[str, Any] = msgspec.json.decode(
            read_package_file("moviecrawler.replica", f"{site}.json")
        )

    def __call__(self, name: str, item: Any) -> Any:
        """Return what a template says of an item."""
        return self._render(self._templates[name], item)

    def _render(self, template: Any, item: Any) -> Any:
        """Return what a part of a template says of an item.

        An object is null when all is null that is not the same in all objects.
        """
        if isinstance(template, dict):
            found = {key: self._render(inner, item) for key, inner in template.items()}
            return (
                found
                if any(found[key] not in (None, inner) for key, inner in template.items())
                else None
            )
        if isinstance(template, list):
            field, each = template
            return [self._render(each, one) for one in self._render(field, item)]
        if isinstance(template, str) and template.startswith("@"):
            return self(template[1:], item)
        if not isinstance(template, str) or not (written := _VALUE.fullmatch(template)):
            return template
        field, conversion, otherwise = written.groups()
        value = value_of(item, field)
        if value is None:
            return None if otherwise is None else msgspec.json.decode(otherwise)
        if not conversion:
            return value
        return (
            conversion.format(value) if "{" in conversion else self._conversions[conversion](value)
        )


@functools.cache
def _filler(form: str, size: int, *, light: bool) -> Markup:
    """Return a part of about `size` bytes that says nothing of titles.

    It makes a page as large as the sites' own.
    """
    dice = Dice(form, size)
    pieces = list[str]()
    written = 0
    while written < (1_000 if light else size):
        words = dice.choices(WORDS["filler"], k=12)
        fields = {
            "hash": f"{dice.getrandbits(32):08x}",
            "number": dice.below(24),
            "text": " ".join(words[4:]),
        }
        pieces.append(MARKUP[f"filler_{form}"].format(*words, **fields))
        written += len(pieces[-1])
    return Markup("".join(pieces))  # noqa: S704 - made of our own words


_TEMPLATES: Final = Environment(
    loader=PackageLoader("moviecrawler.replica", "."),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
# As the sites do it.
_TEMPLATES.filters["json"] = lambda data: Markup(msgspec.json.encode(data).decode())  # noqa: S704
# What has no value is left out of schema.org's data.
_TEMPLATES.filters["known"] = lambda data: {
    key: value for key, value in data.items() if value is not None
}


def page(template: str, *, light: bool, **variables: Any) -> bytes:
    """Return the page that a template of this folder makes.

    `light`: with little more than its data, but above the 2 kB below which a page passes for a
    throttle.
    """
    return (
        _TEMPLATES.get_template(template)
        .render(variables, filler=partial(_filler, light=light))
        .encode()
    )
