"""Finding passwords and tokens in text, and replacing them. Pure."""

from __future__ import annotations

import re
from urllib.parse import unquote

_WORDS = (
    r"passw|passphrase|pwd|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|authorization|x-amz-signature"
)
# Repetitions are bounded, as without that a match in 16 KB of letters takes a minute.
_NAME = re.compile(rf"{_WORDS}|_auth$", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"(?:{_WORDS})[\w-]{{0,64}}[\"']?\s{{0,8}}[=:]\s{{0,8}}[^\s]", re.IGNORECASE
)
"""`?password=x`, `host=h password=x`, `password: x`, `"password": "x"`."""
_IN_URL = re.compile(r"://[^/\s:@]*:[^/\s]+@")  # to the last @, as a password may have one
_BEFORE_HOST = re.compile(r"(?<![^\s,;=\"'\[])[^\s:/@,;=\"']{1,256}:[^\s/@]{1,256}@[\w\[]")
"""`user:password@host` without a scheme."""
_ESCAPED = re.compile(r"\\(?:u00([0-7][0-9a-fA-F])|(/))")
_SHOWN = re.compile(
    rf"((?:{_WORDS})[\w-]{{0,64}}(?:=|[\"']\s{{0,8}}[:=]\s{{0,8}}))([\"']?)[^\s\"'&;,}}]+",
    re.IGNORECASE,
)


def holds_secret(name: str, value: str) -> bool:
    """Return whether a setting or an argument seems to hold a password or a token.

    Escaped forms are recognized, too.
    """
    if _NAME.search(name):
        return True
    plain = _ESCAPED.sub(lambda match: match[2] or chr(int(match[1], 16)), value)
    return any(
        pattern.search(text)
        for text in {value, plain, unquote(plain)}
        for pattern in (_ASSIGNED, _IN_URL, _BEFORE_HOST)
    )


def redacted(text: str) -> str:
    """Return text with `***` in place of passwords in URLs and in `password=x`."""
    return _SHOWN.sub(r"\1\2***", _IN_URL.sub("://***@", text))
