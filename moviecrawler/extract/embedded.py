"""Finds the data in a page's scripts by its bytes, and decodes it without a tree of the page."""

import functools
import html
import json
import re
import traceback
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from moviecrawler.basics.errors import ExtractionError
from moviecrawler.extract.findings import ShapeError

_T = TypeVar("_T")

# Patterns that search a whole page stop at the next "<": from one that could run on to the end, a
# page of nothing but beginnings of tags would take hours. Letters in both cases are many times
# faster than re.IGNORECASE.
_SCRIPT = re.compile(rb"<[sS][cC][rR][iI][pP][tT]\b[^<>]{0,4096}>")
_END_OF_SCRIPT = re.compile(rb"</[sS][cC][rR][iI][pP][tT]\b")
_LINK = re.compile(rb"<(?:link|meta)\b[^<>]*>", re.IGNORECASE)
_STATES_ADDRESS = re.compile(
    rb"""\s(?:rel|property)\s*=\s*["']?(?:canonical|og:url)\b""", re.IGNORECASE
)
_ADDRESS = re.compile(
    rb"""\s(?:href|content)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE
)
_LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)
LARGEST_PAGE = 16 * 1024 * 1024
"""Bytes of a page that is read; the largest seen has 3.4 MB."""
_ALWAYS_READ = 1024 * 1024
"""Bytes of JSON whose values need not be counted."""
_MOST_VALUES = 500_000
"""Values of decoded JSON, each of which takes up to 80 bytes of memory; the page that has most has
56,000."""
_LONGEST_TAG = 4096
"""Bytes of a tag that is read; those that are, have up to 500."""
_MOST_ADDRESSES = 20
"""Addresses that a page may give as its own; pages have up to 3."""
_ASCII = bytes(range(128))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_TAIL = 32_768
"""The last bytes in which the end tag is looked for: sites and browsers add a little after it."""


def reader(function: Callable[[bytes], _T]) -> Callable[..., _T]:
    """Make every failure of a reader of pages an ExtractionError that names the page.

    The result takes the page's `body` and its `url`. Failures that nobody foresaw are
    included: a page can cause errors of any type (a day of 20 digits is an OverflowError), and a
    title whose reader raised another one would not be accounted for.
    """

    @functools.wraps(function)
    def read(body: bytes, url: str | None = None) -> _T:
        try:
            return function(body)
        except ExtractionError:
            raise
        except ShapeError as error:
            raise ExtractionError(error.field, url, error.reason) from error
        except (ValueError, RecursionError) as error:
            raise ExtractionError("page", url, str(error) or type(error).__name__) from error
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
            reason = f"{type(error).__name__}: {error} ({place})"
            raise ExtractionError("page", url, reason) from error

    return read


def decode_text(body: bytes) -> str:
    """Return a page's text.

    Some pages declare ISO 8859-1 and are UTF-8, some are UTF-8 with a few bad bytes, some declare
    UTF-8 and were saved as something else: so it is UTF-8 unless most of what is not ASCII isn't.
    """
    try:
        return body.decode()
    except UnicodeDecodeError:
        text = body.decode(errors="replace")
    foreign = len(body.translate(None, _ASCII))
    bad = text.count("\ufffd") - body.count("\ufffd".encode())
    return body.decode("cp1252", errors="replace") if bad * 2 > foreign else text


def check_whole(body: bytes) -> None:
    """Raise ShapeError when a page breaks off.

    What it leaves out would look as if the site didn't have it.
    """
    tail = body[-_TAIL:].lower()
    end = max(tail.rfind(b"</html"), tail.rfind(b"</body"))
    # A script can write the end of another document.
    if end == -1 or tail.rfind(b"<script", 0, end) > tail.rfind(b"</script", 0, end):
        raise ShapeError("page", "the page ends before its end tag")


def stated_addresses(body: bytes) -> Iterator[str]:
    """Yield the addresses that a page gives as its own, in page order.

    They are in its canonical link and in its `og:url`.
    """
    tags = (tag[0] for tag in _LINK.finditer(body) if tag.end() - tag.start() <= _LONGEST_TAG)
    for tag in islice(filter(_STATES_ADDRESS.search, tags), _MOST_ADDRESSES):
        if match := _ADDRESS.search(tag):
            yield html.unescape(decode_text(next(filter(None, match.groups()), b""))).strip()


def scripts(body: bytes, sign: bytes) -> Iterator[bytes]:
    """Yield the contents of every script whose tag has `sign` in it.

    Raises ShapeError when the page ends inside one.
    """
    at = body.find(sign)
    while at != -1:
        end = at
        if place := _script_at(body, at):
            yield body[place].strip()
            end = place.stop
        at = body.find(sign, end + 1)


def script(body: bytes, script_id: str) -> bytes | None:
    """Return the contents of `<script id="script_id">`, or None without it.

    Raises ShapeError as `scripts` does.
    """
    sign = script_id.encode()
    at = body.rfind(sign)  # Python finds a text of several bytes three times faster from the end
    while at != -1:
        if place := _script_at(body, at):
            return body[place].strip()
        at = body.rfind(sign, 0, at)
    return None


def _script_at(body: bytes, at: int) -> slice | None:
    """Return where the contents of a script are that has `at` within its tag; None without one."""
    start = body.rfind(b"<", max(at - _LONGEST_TAG, 0), at)
    opened = _SCRIPT.match(body, start) if start != -1 else None
    if opened is None or opened.end() <= at:
        return None
    # IMDb's JSON has no "<", and one byte is found many times faster than several.
    end = body.find(b"<", opened.end())
    closed = _END_OF_SCRIPT.search(body, end) if end != -1 else None
    if closed is None:
        raise ShapeError("page", "the page ends inside a script")
    return slice(opened.end(), closed.start())


def decode_json(raw: bytes) -> object:
    """Decode JSON, as `decode_json_as` does."""
    return decode_json_as(raw, object)


def decode_json_as(raw: bytes, shape: type[_T]) -> _T:
    """Decode JSON into a msgspec type: what that doesn't name is skipped, not built.

    Bad UTF-8, raw control characters and lone surrogates inside strings, which the sites do send,
    become U+FFFD. Raises ShapeError when it is not JSON at all, or has not that shape.
    """
    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    if len(raw) > LARGEST_PAGE:
        raise ShapeError("JSON", f"{len(raw):,} bytes; {LARGEST_PAGE:,} are the most")
    if (
        len(raw) > _ALWAYS_READ
        and (values := sum(map(raw.count, (b",", b"[", b"{")))) > _MOST_VALUES
    ):
        raise ShapeError("JSON", f"about {values:,} values; {_MOST_VALUES:,} are the most")
    try:
        try:
            return msgspec.json.decode(raw, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            reason = str(error)
        text = decode_text(_LONE_SURROGATE.sub(rb"\\ufffd", raw))
        return msgspec.convert(
            json.loads(text, strict=False, parse_constant=_refuse_constant), type=shape
        )
    except RecursionError:
        raise ShapeError("JSON", "nested too deep") from None
    except ValueError:
        raise ShapeError("JSON", reason) from None


def _refuse_constant(name: str) -> None:
    raise ShapeError("JSON", f"{name} is not a JSON value")
