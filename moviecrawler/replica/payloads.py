"""From items to payloads: a template looks like what a site serves, with `$field` where a field stands (see `value_of`).

"runtime": {"seconds": "$runtime_minutes|seconds"}        a function of the site's module makes of it what the site writes
"voteCount": "$scores.imdb.count or 0"                    what stands there without a value, which is null otherwise
"genres": ["$genres", {"text": "$"}]                      an object for each item of a list
"""

from __future__ import annotations

import functools
import html
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from moviecrawler.fields import PARTS
from moviecrawler.options import read_package_file
from moviecrawler.replica.words import WORDS, Dice, read_toml

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

encode = msgspec.json.Encoder().encode
"""Returns JSON."""
_VALUE: Final = re.compile(r"\$([\w.]*)(?:\|(\w+))?(?: or (.+))?")
MARKUP: Final = read_toml("markup.toml")


def value_of(item: Any, field: str) -> Any:
    """Return a field of an item, such as `year`, `credits.cast`, `scores.imdb` or `scores.imdb.count`; None without a value."""
    name, _, part = field.partition(".")
    found = getattr(item, name) if name else item
    if not part:
        return found
    kind, _, fact = part.partition(".")
    parts = [one for one in found if getattr(one, PARTS[name][0]) == kind]
    if name in {"credits", "related"}:
        return parts
    return getattr(parts[0], fact or "value") if parts else None


class Templates:
    """The templates of a site's payloads, which are in a file beside this one."""

    def __init__(self, site: str, conversions: Mapping[str, Callable[[Any], Any]]) -> None:
        self._conversions = conversions
        self._templates: dict[str, Any] = msgspec.json.decode(read_package_file("moviecrawler.replica", f"{site}.json"))

    def __call__(self, name: str, item: Any) -> Any:
        """Return what a template says of an item."""
        return self._render(self._templates[name], item)

    def _render(self, template: Any, item: Any) -> Any:
        """Return what a part of a template says of an item. An object is null when all is null that is not the same in all objects."""
        if isinstance(template, dict):
            found = {key: self._render(inner, item) for key, inner in template.items()}
            return found if any(found[key] not in (None, inner) for key, inner in template.items()) else None
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
        return self._conversions[conversion](value) if conversion else value


class Filler(NamedTuple):
    """A part of a page that says nothing of titles, and makes it as large as the sites' own."""

    form: str
    size: int
    """In bytes, about."""


@functools.cache
def _filler(form: str, size: int) -> bytes:
    dice, pieces, written = Dice(form, size), list[str](), 0
    while written < size:
        words = dice.choices(WORDS["filler"], k=12)
        fields = {"hash": f"{dice.getrandbits(32):08x}", "number": dice.below(24), "text": " ".join(words[4:])}
        pieces.append(MARKUP[f"filler_{form}"].format(*words, **fields))
        written += len(pieces[-1])
    return "".join(pieces).encode()


class Page:
    """A page of HTML: a frame with a title and an address, and what stands in it."""

    def __init__(self, title: str, url: str | None, head: bytes, *body: bytes | Filler) -> None:
        self._parts = (markup("frame", title=title, url=url), head, b"</head><body>", *body, b"</body></html>")

    def content(self, *, light: bool) -> bytes:
        """Return the page; `light`: with little more than its data, but above the 2 kB below which a page passes for a throttle."""
        return b"".join(
            _filler(part.form, 1_000 if light else part.size) if isinstance(part, Filler) else part
            for part in self._parts
        )


def markup(piece: str, inner: bytes = b"", /, **texts: object) -> bytes:
    """Return a piece of `markup.toml` with texts, and markup inside it."""
    return (
        str(MARKUP[piece])
        .format(inner=inner.decode(), **{key: html.escape(str(text)) for key, text in texts.items()})
        .encode()
    )


def json_script(attributes: str, data: Any) -> bytes:
    """Return a `<script>` that holds JSON."""
    return f"<script {attributes}>".encode() + encode(data) + b"</script>"


def json_ld(data: dict[str, Any]) -> bytes:
    """Return a script of schema.org's JSON-LD, which leaves out what has no value."""
    known = {key: value for key, value in data.items() if value is not None}
    return json_script('type="application/ld+json"', {"@context": "https://schema.org", **known})
