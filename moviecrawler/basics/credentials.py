"""Finding passwords and tokens in text, and replacing them. Pure."""

import re
from urllib.parse import unquote

_WORDS = (
    r"passw|passphrase|pwd|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key"
    r"|authorization|x-amz-signature"
)
# Repetitions are bounded, as without that a match in 16 KB of letters takes a minute.
_NAME = re.compile(rf"{_WORDS}|_auth$|webhook|^alert_urls$", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"((?:{_WORDS})[\w-]{{0,64}}[\"']?\s{{0,8}}[=:]\s{{0,8}}[\"']?)[^\s\"'&;,}}]+", re.IGNORECASE
)
"""`?password=x`, `host=h password=x`, `password: x`, `"password": "x"`."""
_USERINFO = re.compile(r"//[^/\s]+@")
"""`//user:password@`, or `//token@`; to the last @, as a password may have one."""
_BEFORE_HOST = re.compile(r"(?<![^\s,;=\"'\[])[^\s:/@,;=\"']{1,256}:[^\s/@]{1,256}@(?=[\w\[])")
"""`user:password@host` without a scheme."""
_ESCAPED = re.compile(r"\\(?:u00([0-7][0-9a-fA-F])|(/))")


def holds_secret(name: str, value: str) -> bool:
    """Return whether a setting or an argument seems to hold a password or a token.

    Escaped forms are recognized, too.

    >>> holds_secret("API_TOKEN", "x"), holds_secret("url", "redis:%2F%2F:hunter2%40db")
    (True, True)
    >>> holds_secret("list", "top")
    False
    """
    if _NAME.search(name):
        return True
    plain = _ESCAPED.sub(lambda match: match[2] or chr(int(match[1], 16)), value)
    return any(redacted(text) != text for text in (value, plain, unquote(plain)))


def has_userinfo(url: str) -> bool:
    """Return whether a URL has a user, a password or a token before its host."""
    return bool(_USERINFO.search(url))


def without_userinfo(text: str) -> str:
    """Return text without what stands before the hosts of its URLs.

    >>> without_userinfo("http://user:password@www.imdb.com/chart/")
    'http://www.imdb.com/chart/'
    """
    return _USERINFO.sub("//", text)


def redacted(text: str) -> str:
    """Return text with `***` in place of passwords and tokens.

    >>> redacted("redis://:hunter2@db:6379, password=hunter2, me:hunter2@db")
    'redis://***@db:6379, password=***, ***@db'
    """
    for pattern, shown in ((_USERINFO, "//***@"), (_ASSIGNED, r"\1***"), (_BEFORE_HOST, "***@")):
        text = pattern.sub(shown, text)
    return text
