"""Damaged copies of pages, made with regard to what a page is made of: numbers, JSON values, tags, texts, encodings.

A mutant is made again from its page and its seed alone.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST = 3_000_000
"""Bytes that a mutant is grown to, at most, or its page has."""

_NUMBER = re.compile(rb"\d[\d.,]*")
_JSON_VALUE = re.compile(
    rb'(?<=[:\[,])\s*(?:"(?:[^"\\]|\\.){0,2000}"|-?\d[\d.eE+-]*|true|false|null|\[\]|\{\})(?=\s*[,\]}])'
)
_JSON_KEY = re.compile(rb'"[A-Za-z_@$][\w@$-]{0,60}"(?=\s*:)')
_TAG = re.compile(rb"<[a-zA-Z][^<>]{0,2000}>")
_TEXT = re.compile(rb">([^<>]{1,2000})<")
_ATTRIBUTE = re.compile(rb"""\s[a-zA-Z-]+=(?:"[^"<>]{0,1000}"|'[^'<>]{0,1000}')""")

NUMBERS = (
    *b"0 -1 1 99 101 2147483648 9223372036854775808 1e308 1e999 -1e999 0.1e-400 1.5.7 NaN".split(),
    *(b"9" * digits for digits in (20, 400, 5000)),
    *(b"1" + b",000" * 100, "٣".encode(), "²".encode(), "１９".encode()),
)
VALUES = (
    *b'null true false 0 "" [] {} [null] [{}] {"text":null} {"a":{"b":[1]}} "x" -0.0 [[[[[[]]]]]] NaN Infinity'.split(),
    *(b'"\\ud800"', b'"\\u0000"', b'"\x01\x02"', b'"https://[::1/"', b'"&#99999999999;&amp"'),
    *(b'"' + b"y" * 100_000 + b'"', b'"' + b" " * 20_000 + b'"', b"[" + b"1," * 50_000 + b"1]"),
    b'"/title/' + b"9" * 300 + b'/"',
)
TEXTS = (
    *(unit * (30_000 // len(unit)) for unit in (b" ", b"1", b"co-", b"(", b"a.", b"1 ")),
    *(b"$1" + b",1" * 15_000, b"&#" + b"9" * 5000 + b";", b"9" * 4400, "\u2028\u202e".encode()),
    *(b"&#0;", b"&#xD800;", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[2J", b"", b"99999999 h 99999999999 min"),
    *(b"31.02.2019", b"February 31, 2019", b"0000-00-00", b"9999-99-99", b"Jan 99999999999999999999, 2019"),
    *(
        b"1999-2150",
        b"12/10",
        b"100%",
        b"-5%",
        b"1e5%",
        b"2.5M",
        b"- IMDb",
        b"<![CDATA[",
        b"<!--",
        b"</script>",
        b"<script>",
    ),
)


def mutant(page: bytes, seed: int) -> bytes:
    """Return a copy of a page with one to four changes."""
    drawn = random.Random(seed)  # noqa: S311 - nothing is to be kept secret
    for _ in range(drawn.choice((1, 1, 1, 2, 2, 3, 4))):
        page = drawn.choice(CHANGES)(page, drawn)
    return page


def _replaced(pattern: re.Pattern[bytes], page: bytes, drawn: random.Random, value: Callable[[bytes], bytes]) -> bytes:
    """Return the page with one match of a pattern replaced, of those behind a place drawn at random."""
    for start in (drawn.randrange(len(page) + 1), 0):
        found = pattern.search(page, start)
        if found:
            return page[: found.start()] + value(found[0]) + page[found.end() :]
    return page


def _other_number(page: bytes, drawn: random.Random) -> bytes:
    return _replaced(_NUMBER, page, drawn, lambda _: drawn.choice(NUMBERS))


def _other_value(page: bytes, drawn: random.Random) -> bytes:
    return _replaced(_JSON_VALUE, page, drawn, lambda _: drawn.choice(VALUES))


def _other_type(page: bytes, drawn: random.Random) -> bytes:
    """Wrap a value into another type."""
    forms = (b"[%b]", b'{"value":%b}', b"[[%b],%b]", b'{"edges":[{"node":%b}]}', b'"%b"')
    return _replaced(_JSON_VALUE, page, drawn, lambda value: drawn.choice(forms).replace(b"%b", value.strip()))


def _other_key(page: bytes, drawn: random.Random) -> bytes:
    keys = _JSON_KEY.findall(page, drawn.randrange(len(page) + 1))[:200] or [b'"x"']
    return _replaced(_JSON_KEY, page, drawn, lambda _: drawn.choice(keys))


def _other_text(page: bytes, drawn: random.Random) -> bytes:
    return _replaced(_TEXT, page, drawn, lambda _: b">" + drawn.choice(TEXTS) + b"<")


def _other_attribute(page: bytes, drawn: random.Random) -> bytes:
    def changed(attribute: bytes) -> bytes:
        name, _, value = attribute.partition(b"=")
        kind = drawn.randrange(5)
        if kind == 0:
            return name + b"=" + value[:1] + drawn.choice(TEXTS).replace(b'"', b"") + value[:1]
        if kind == 1:
            return name + b"=" + value.strip(b"\"'")
        if kind == 2:
            return attribute[:-1]
        return attribute * drawn.choice((2, 50, 5000)) if kind == 3 else b""

    return _replaced(_ATTRIBUTE, page, drawn, changed)


def _unclosed(page: bytes, drawn: random.Random) -> bytes:
    """Leave out the end of a tag, and repeat the rest of it."""
    room = max(LARGEST - len(page), 0)

    def opened(tag: bytes) -> bytes:
        return tag[:-1] * max(min(drawn.choice((1, 10, 1000, 100_000)), room // len(tag)), 1)

    return _replaced(_TAG, page, drawn, opened)


def _nested(page: bytes, drawn: random.Random) -> bytes:
    depth = drawn.choice((50, 99, 150, 300, 1000, 20_000))
    if drawn.randrange(2):
        begin, end = drawn.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'{"edges":[{"node":', b"}]}")))
        return _replaced(_JSON_VALUE, page, drawn, lambda value: begin * depth + value + end * depth)
    name = drawn.choice((b"div", b"p", b"b", b"a", b"ul", b"table", b"span", b"td"))
    return _replaced(_TAG, page, drawn, lambda tag: tag + b"<%b>" % name * depth)


def _repeated(page: bytes, drawn: random.Random) -> bytes:
    """Repeat a stretch of a page that begins where a tag, or a value, begins, and ends where one ends."""
    room = max(LARGEST - len(page), 0)
    edge = drawn.choice((b"<", b"<", b"{", b","))
    start = page.find(edge, drawn.randrange(len(page) + 1))
    if start == -1 or not room:
        return page
    end = page.find({b"<": b">", b"{": b"}", b",": b","}[edge], start + drawn.choice((1, 1, 100, 1000, 5000)))
    if end == -1:
        return page
    end += edge != b","
    stretch = page[start:end]
    times = min(drawn.choice((2, 20, 1000, 30_000, 300_000)), room // max(len(stretch), 1))
    return page[:start] + stretch * max(times, 1) + page[end:]


def _without(page: bytes, drawn: random.Random) -> bytes:
    start = drawn.randrange(len(page) + 1)
    return page[:start] + page[start + drawn.choice((1, 10, 1000, 100_000)) :]


def _cut(page: bytes, drawn: random.Random) -> bytes:
    return page[: drawn.randrange(len(page) + 1)]


def _moved(page: bytes, drawn: random.Random) -> bytes:
    start, to = drawn.randrange(len(page) + 1), drawn.randrange(len(page) + 1)
    stretch = page[start : start + drawn.choice((10, 300, 5000))]
    return page[:to] + stretch + page[to:]


def _flipped(page: bytes, drawn: random.Random) -> bytes:
    changed = bytearray(page)
    for _ in range(drawn.choice((1, 8, 64))):
        if changed:
            changed[drawn.randrange(len(changed))] = drawn.randrange(256)
    return bytes(changed)


def _inserted(page: bytes, drawn: random.Random) -> bytes:
    start = drawn.randrange(len(page) + 1)
    return page[:start] + drawn.choice((*TEXTS, *VALUES)) + page[start:]


CHANGES = (
    *(_other_number, _other_value, _other_value, _other_type, _other_type, _other_key, _other_text, _other_text),
    *(_other_attribute, _unclosed, _nested, _repeated, _repeated, _without, _cut, _moved, _flipped, _inserted),
)
