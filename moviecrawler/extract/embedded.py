"""Data that pages carry inside scripts: found by bytes, decoded without building a tree of the page.

A title page is 0.5 to 2 MB, and a full parse of its markup costs more than everything else together.
"""

from __future__ import annotations

import functools
import html
import json
import math
import re
import traceback
from collections import Counter
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import msgspec

from moviecrawler.errors import ExtractionError
from moviecrawler.extract.findings import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_P = ParamSpec("_P")
_T = TypeVar("_T")

# Patterns that search a whole page stop at the next "<": from one that could run on to the end, a page of nothing but
# beginnings of tags would take hours.
_SCRIPT = re.compile(rb"<script\b", re.IGNORECASE)
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
_BEGIN_OF_PAGE = re.compile(rb"<(?:html|body)\b", re.IGNORECASE)
_BODY = re.compile(rb"<body\b", re.IGNORECASE)
_END_OF_PAGE = re.compile(rb"</(?:html|body)\s*>", re.IGNORECASE)
_NO_MARKUP = re.compile(rb"<!--|<script\b|<style\b", re.IGNORECASE)
_ENDS = {
    b"<!--": re.compile(rb"-->"),
    b"<script": re.compile(rb"</script", re.IGNORECASE),
    b"<style": re.compile(rb"</style", re.IGNORECASE),
}
_CONTAINER = re.compile(rb"<(/?)(table|ul|ol|dl|section|div|search-page-result)\b[^<>]*>", re.IGNORECASE)
_LINK = re.compile(rb"<(?:link|meta)\b[^<>]*>", re.IGNORECASE)
_STATES_ADDRESS = re.compile(rb"""\s(?:rel|property)\s*=\s*["']?(?:canonical|og:url)\b""", re.IGNORECASE)
_ADDRESS = re.compile(rb"""\s(?:href|content)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
LARGEST_PAGE = 16 * 1024 * 1024
"""Bytes of a page that is read; the largest seen has 3.4 MB."""
_ALWAYS_READ = 1024 * 1024
"""Bytes of JSON whose values need not be counted."""
_MOST_VALUES = 500_000
"""Values of decoded JSON, each of which takes up to 80 bytes of memory; the page that has most has 56,000."""
_LONGEST_TAG = 4096
"""Bytes of a tag that is read; those that are, have up to 500."""
_MOST_ADDRESSES = 20
"""Addresses that a page may give as its own; pages have up to 3."""
_ASCII = bytes(range(128))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TAIL = 32_768
"""In how many of its last bytes a page must end: sites, browsers and archives put a little behind the end."""
_DIVS_LEFT_OPEN = 3
_DIVS_FOR_ONE_LEFT_OPEN = 40
"""The most that whole pages were seen to leave open, and of so many one; lists and tables they close."""
_DEEPEST = 100
"""How deep decoded data may nest; the sites' deepest is about 30."""
_ONE = {"@type", "aggregateRating", "image"}
"""What JSON-LD has one of that is of use here; of several, the first."""
_NUMBERS = {"ratingValue", "ratingCount", "reviewCount", "position"}
_PLAIN_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+|\d{1,15}(?:\.\d{1,9})?", re.ASCII)
_PEOPLE = {"actor", "actors", "director", "author", "creator"}
_OFTEN_EMPTY = {"datePublished", "dateCreated", "duration", "contentRating"}


def reader(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Make every failure of a reader of pages an ExtractionError that names the page, also one that nobody foresaw.

    The reader takes the page's `body` and, second, its `url`. What a page can make a reader stumble over has no end (a day
    of 20 digits is an OverflowError), and a title whose reader fails in another way would be accounted for by nobody.
    """

    @functools.wraps(function)
    def read(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except ExtractionError:
            raise
        except ShapeError as error:
            raise ExtractionError(error.field, _url_of(args, kwargs), error.reason) from error
        except (ValueError, RecursionError) as error:
            raise ExtractionError("page", _url_of(args, kwargs), str(error) or type(error).__name__) from error
        except Exception as error:
            raise ExtractionError("page", _url_of(args, kwargs), _unforeseen(error)) from error

    return read


def _unforeseen(error: Exception) -> str:
    """Return an error with the place where it was raised, as its message was not written for people."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({place.filename.rpartition('/')[2]}:{place.lineno})"


def _url_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    url = kwargs.get("url", args[1] if len(args) > 1 else None)
    return url if isinstance(url, str) else None


def decode_text(body: bytes) -> str:
    """Return a page's text.

    Some pages declare ISO 8859-1 and are UTF-8, some are UTF-8 with a few bad bytes, some declare UTF-8 and were saved
    as something else: so it is UTF-8 unless most of what is not ASCII isn't.
    """
    try:
        return body.decode()
    except UnicodeDecodeError:
        text = body.decode(errors="replace")
    foreign = len(body.translate(None, _ASCII))
    bad = text.count("\ufffd") - body.count("\ufffd".encode())
    return body.decode("cp1252", errors="replace") if bad * 2 > foreign else text


def check_whole(body: bytes) -> None:
    """Raise ShapeError when a page breaks off: inside a script, a comment, an element, a list or a table.

    A page whose last end tags are missing is whole, as browsers and archives leave them out; then all that holds lists must have been closed.
    """
    if not _BEGIN_OF_PAGE.search(body):
        return
    ends = [found.start() for found in _END_OF_PAGE.finditer(body, max(len(body) - _TAIL, 0))]
    # A script can write the end of another document.
    if ends and body.rfind(b"<script", 0, ends[-1]) <= body.rfind(b"</script", 0, ends[-1]):
        return
    markup = b"".join(_markup(body))
    if not markup.rstrip().endswith(b">") or not _BODY.search(markup):
        raise ShapeError("page", "the page ends inside an element")
    tags = Counter((bool(closes), name.lower()) for closes, name in _CONTAINER.findall(markup))
    for (closes, name), opened in tags.items():
        left_open = min(_DIVS_LEFT_OPEN, opened // _DIVS_FOR_ONE_LEFT_OPEN) if name == b"div" else 0
        if not closes and opened - tags[True, name] > left_open:
            raise ShapeError("page", f"the page ends inside <{name.decode()}>")


def _markup(body: bytes) -> Iterator[bytes]:
    """Yield a page without its scripts, styles and comments. Raises ShapeError when it ends inside one."""
    start = 0
    while opened := _NO_MARKUP.search(body, start):
        yield body[start : opened.start()]
        sign = opened[0].lower()
        closed = _ENDS[sign].search(body, opened.end())
        if closed is None:
            raise ShapeError("page", f"the page ends inside {sign.decode()}")
        start = closed.end()
    yield body[start:]


def starts_with(body: bytes, character: bytes) -> bool:
    """Return whether a body begins with a character, after white space and a byte order mark: `{` or `[` is JSON."""
    return body[:200].removeprefix(_BYTE_ORDER_MARK).lstrip().startswith(character)


def stated_addresses(body: bytes) -> Iterator[str]:
    """Yield the addresses that a page gives as its own: its canonical link and its `og:url`, in page order."""
    tags = (tag[0] for tag in _LINK.finditer(body) if tag.end() - tag.start() <= _LONGEST_TAG)
    for tag in islice(filter(_STATES_ADDRESS.search, tags), _MOST_ADDRESSES):
        if found := _ADDRESS.search(tag):
            yield html.unescape(decode_text(next(filter(None, found.groups()), b""))).strip()


def script(body: bytes, script_id: str) -> bytes | None:
    """Return what stands in `<script id="script_id">`, or None when the page has no such script.

    Raises ShapeError when the script is never closed: the page was cut.
    """
    name = script_id.encode()
    for stated in (b'id="%b"' % name, b"id='%b'" % name, b"id=%b>" % name, b"id=%b " % name):
        at = body.find(stated)
        while at != -1:
            opened = body.rfind(b"<", max(at - _LONGEST_TAG, 0), at)
            if body[opened : opened + 7].lower() == b"<script":
                start = body.find(b">", at) + 1
                # IMDb's JSON has no "<", and one byte is found many times faster than several.
                end = body.find(b"<", start)
                if not body.startswith(b"</script", end):
                    end = body.find(b"</script", start)
                if not start or end == -1:
                    raise ShapeError(script_id, "the page ends inside this script")
                return body[start:end].strip()
            at = body.find(stated, at + 1)
    return None


def scripts(body: bytes, attribute: bytes) -> Iterator[bytes]:
    """Yield the contents of every script whose tag has `attribute` in it, such as b"application/ld+json"."""
    at = 0
    while tag := _SCRIPT.search(body, at):
        at = body.find(b">", tag.end()) + 1
        if not at:
            return
        if attribute in body[tag.end() : at]:
            end = body.find(b"</script", at)
            if end == -1:
                raise ShapeError("script", f"the page ends inside a script of {attribute.decode()}")
            yield body[at:end].strip()
            at = end


def outside_scripts(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield where a page's markup begins and ends that stands between its scripts."""
    at = 0
    while tag := _SCRIPT.search(body, at):
        yield at, tag.end()
        at = body.find(b"</script", tag.end())
        if at == -1:
            return
    yield at, len(body)


def decode_json(raw: bytes, shape: Any = Any) -> Any:
    """Decode JSON, into `shape` where given (a msgspec type: what it doesn't name is skipped, not built).

    Bad UTF-8, raw control characters and lone surrogates inside strings, which the sites do send, become U+FFFD.
    Raises ShapeError when it is not JSON at all, or has not that shape.
    """
    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    if len(raw) > LARGEST_PAGE:
        raise ShapeError("JSON", f"{len(raw):,} bytes; {LARGEST_PAGE:,} are the most")
    if len(raw) > _ALWAYS_READ and (values := sum(map(raw.count, (b",", b"[", b"{")))) > _MOST_VALUES:
        raise ShapeError("JSON", f"about {values:,} values; {_MOST_VALUES:,} are the most")
    try:
        return msgspec.json.decode(raw, type=shape)
    except RecursionError:
        raise ShapeError("JSON", "nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error)
    try:
        lenient = json.loads(decode_text(raw), strict=False, parse_constant=_refuse_constant)
        return msgspec.convert(_without_surrogates(lenient), type=shape)
    except RecursionError:
        raise ShapeError("JSON", "nested too deep") from None
    except ValueError:
        raise ShapeError("JSON", reason) from None


def _refuse_constant(name: str) -> None:
    raise ShapeError("JSON", f"{name} is not a JSON value")


def _without_surrogates(value: Any, depth: int = 0) -> Any:
    if depth > _DEEPEST:
        raise ShapeError("JSON", "nested too deep")
    if isinstance(value, str):
        return _LONE_SURROGATES.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(k, depth): _without_surrogates(v, depth + 1) for k, v in value.items()}
    return value


def json_ld(body: bytes) -> list[dict[str, Any]]:
    """Return the page's JSON-LD objects in order, those of lists and `@graph`s one by one, each in one plain form.

    A script that is no JSON is passed by: templates have left quotes unescaped, on pages that say the same elsewhere.
    """
    found: list[dict[str, Any]] = []
    for raw in scripts(body, b"application/ld+json"):
        with suppress(ShapeError):
            decoded = decode_json(raw)
            for item in decoded if isinstance(decoded, list) else [decoded]:
                graph = item.get("@graph") if isinstance(item, dict) else None
                found += [
                    _plain(part) for part in (graph if isinstance(graph, list) else [item]) if isinstance(part, dict)
                ]
    return found


def _plain(data: Any, key: str = "") -> Any:
    """Return JSON-LD in one form: it may have a list or an object, a number or its text, where it likes."""
    if isinstance(data, dict):
        if key == "image":
            return _plain(data.get("url") or data.get("contentUrl"), key)
        return {name: _plain(value, name) for name, value in data.items()}
    if isinstance(data, list):
        plain = [_plain(value, key) for value in data]
        return (plain[0] if plain else None) if key in _ONE else plain
    if key in _NUMBERS and isinstance(data, str):
        text = data.replace(",", "")
        return _as_whole(float(text)) if _PLAIN_NUMBER.fullmatch(data) else data
    if key in _NUMBERS and isinstance(data, float):
        return _as_whole(data)
    if key in _PEOPLE and isinstance(data, str):
        return {"@type": "Person", "name": data}
    return None if key in _OFTEN_EMPTY and data in {"", "null", "None", "undefined"} else data


def _as_whole(number: float) -> float | int:
    return int(number) if math.isfinite(number) and number == int(number) else number
