"""What the three sites' pages have around their data: a head, scripts of JSON, and the bulk of a page.

The bulk is invented, the same for every title, and compresses about four to one, much as the sites' pages do.
"""

from __future__ import annotations

import html
from random import Random
from typing import Any

import msgspec

from moviecrawler.replica.words import FILLER

encode = msgspec.json.Encoder().encode
"""Returns JSON."""


def head(name: str, title: str, address: str, json_ld: dict[str, Any]) -> bytes:
    """Return what Metacritic and Rotten Tomatoes have in the head of a page: `name` is the title's, `title` the page's."""
    name, title = html.escape(name), html.escape(title)
    return (
        f'<title>{title}</title><link rel="canonical" href="{address}"><meta property="og:url" content="{address}">'
        f'<meta property="og:title" content="{name}">'
    ).encode() + json_ld_script(json_ld)


def json_ld_script(data: dict[str, Any]) -> bytes:
    """Return a page's JSON-LD."""
    return json_script('type="application/ld+json"', data)


def json_script(attributes: str, data: Any) -> bytes:
    """Return a `<script>` that holds JSON."""
    return f"<script {attributes}>".encode() + encode(data) + b"</script>"


def rating_json_ld(worst: float | str, best: float | str, value: float | str, **others: Any) -> dict[str, Any]:
    """Return what JSON-LD says of a score, in the way of schema.org."""
    return {"@type": "AggregateRating", "bestRating": best, "worstRating": worst, "ratingValue": value, **others}


# --- The bulk of a page -----------------------------------------------------------------------------------------------


class _Fillers(dict[str, object]):
    """What the fields of the forms below stand for: something else each time."""

    def __init__(self, seed: str) -> None:
        super().__init__()
        self.random = Random(f"bulk of {seed}").random  # noqa: S311 - filler, and repeatable on purpose

    def __missing__(self, field: str) -> object:
        kind, size = field[0], int(field[1:] or 0)
        if kind == "w":
            return FILLER[int(len(FILLER) * self.random() ** 2.5)]  # a few words are most of any text
        if kind == "h":
            return f"{int(16**size * self.random()):0{size}x}"
        if kind == "n":
            return int(size * self.random())
        return " ".join(str(self["w"]) for _ in range(3 + int(9 * self.random()))).capitalize() + "."


_RULE = ".{w}-{w}-{h6}{{{w}-{w}:{n64}px;{w}:var(--{w}-{w})}}"
_ELEMENT = (
    '<div class="sc-{h8} {h5} ipc-{w}__{w}" data-testid="{w}-{w}"><a class="ipc-{w} ipc-link" href="/{w}/{w}/?ref_={w}_{n40}" '
    'tabindex="0"><span>{s}</span></a><svg width="24" height="24" viewBox="0 0 24 24">'
    '<path d="M{n24}.{n10} {n24}.{n10} {n24}.{n10} {n24}.{n10}z"></path></svg></div>\n'
)
_STATEMENT = 'window.{w}=window.{w}||function({h2}){{return"{w}{h9}"}};'
"""Forms of filler: `w` is a word, `s` a sentence, `h` a hash of so many digits, `n` a number below that."""


def _filler(form: str, size: int, seed: str) -> list[str]:
    """Return pieces of a form that are together as long as `size`."""
    fillers, pieces, length = _Fillers(seed), list[str](), 0
    while length < size:
        pieces.append(form.format_map(fillers))
        length += len(pieces[-1])
    return pieces


def styles(size: int, seed: str) -> bytes:
    """Return about `size` bytes of `<style>`s."""
    return f"<style>{''.join(_filler(_RULE, size, seed))}</style>".encode()


def elements(size: int, seed: str) -> bytes:
    """Return about `size` bytes of elements that hold no facts."""
    return "".join(_filler(_ELEMENT, size, seed)).encode()


def statements(size: int, seed: str) -> bytes:
    """Return about `size` bytes of `<script>`."""
    return f"<script>{''.join(_filler(_STATEMENT, size, seed))}</script>".encode()


def texts(size: int, seed: str) -> list[str]:
    """Return texts that are together about as long as `size`."""
    return _filler("{s}", size, seed)


def json_members(size: int, seed: str) -> bytes:
    """Return about `size` bytes of a JSON object's members, `"a": 1, …`, as of a page's translations and settings."""
    pieces = _filler('"common_{w}_{w}_{h8}":"{s}"', size, seed)
    return ",".join(pieces).encode()
