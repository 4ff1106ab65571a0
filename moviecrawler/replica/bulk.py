"""The bulk of a page: what a site sends around the data of a movie, invented, and the same for every movie.

It compresses about four to one, much as the sites' pages do.
"""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

from moviecrawler.replica.words import FILLER

if TYPE_CHECKING:
    from collections.abc import Callable


def styles(size: int, seed: str) -> bytes:
    """Return about `size` bytes of `<style>`s."""
    rng = _random(seed)

    def rule() -> str:
        name = f".{_word(rng)}-{_word(rng)}-{_hash(rng, 6)}"
        return f"{name}{{{_word(rng)}-{_word(rng)}:{_number(rng, 64)}px;{_word(rng)}:var(--{_word(rng)}-{_word(rng)})}}"

    return b"<style>" + _repeat(size - 15, rule) + b"</style>"


def markup(size: int, seed: str) -> bytes:
    """Return about `size` bytes of elements that hold no facts."""
    rng = _random(seed)

    def element() -> str:
        return (
            f'<div class="sc-{_hash(rng, 8)} {_hash(rng, 5)} ipc-{_word(rng)}__{_word(rng)}" data-testid="{_word(rng)}-'
            f'{_word(rng)}"><a class="ipc-{_word(rng)} ipc-link" href="/{_word(rng)}/{_word(rng)}/?ref_={_word(rng)}_'
            f'{_number(rng, 40)}" tabindex="0"><span>{_sentence(rng)}</span></a><svg width="24" height="24" '
            f'viewBox="0 0 24 24"><path d="M{_path(rng)}z"></path></svg></div>\n'
        )

    return _repeat(size, element)


def json_members(size: int, seed: str) -> bytes:
    """Return about `size` bytes of a JSON object's members, `"a": 1, …`, as of a page's translations and settings."""
    rng = _random(seed)
    members: dict[str, object] = {}
    length = 0
    while length < size:
        key, text = f"common_{_word(rng)}_{_word(rng)}_{len(members)}", _sentence(rng)
        members[key] = text
        length += len(key) + len(text) + 7
    return json.dumps(members, separators=(",", ":"))[1:-1].encode()


def json_values(size: int, seed: str) -> list[str]:
    """Return texts that make about `size` bytes of a JSON array's items."""
    rng = _random(seed)
    values: list[str] = []
    length = 0
    while length < size:
        values.append(f"{_word(rng)}-{_hash(rng, 6)}" if _number(rng, 3) else _sentence(rng))
        length += len(values[-1]) + 3
    return values


def script(size: int, seed: str) -> bytes:
    """Return about `size` bytes of `<script>`."""
    rng = _random(seed)

    def statement() -> str:
        return f'window.{_word(rng)}=window.{_word(rng)}||function({_hash(rng, 2)}){{return"{_word(rng)}{_hash(rng, 9)}"}};'

    return b"<script>" + _repeat(size - 17, statement) + b"</script>"


def _repeat(size: int, make: Callable[[], str]) -> bytes:
    pieces: list[str] = []
    length = 0
    while length < size:
        pieces.append(make())
        length += len(pieces[-1])
    return "".join(pieces).encode()


def _random(seed: str) -> Random:
    return Random(f"bulk of {seed}")  # noqa: S311 - filler, and repeatable on purpose


def _word(rng: Random) -> str:
    return FILLER[int(len(FILLER) * rng.random() ** 2.5)]  # a few words are most of any text


def _number(rng: Random, below: int) -> int:
    return int(below * rng.random())


def _hash(rng: Random, digits: int) -> str:
    return f"{_number(rng, 16**digits):0{digits}x}"


def _path(rng: Random) -> str:
    return " ".join(f"{_number(rng, 240) / 10}" for _ in range(5))


def _sentence(rng: Random) -> str:
    return " ".join(_word(rng) for _ in range(3 + _number(rng, 9))).capitalize() + "."
