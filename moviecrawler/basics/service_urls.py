"""What the URLs of services say: of Redis, of a proxy, of a bucket's server. Pure."""

from urllib.parse import SplitResult, urlsplit

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
"""Hosts that are this machine itself."""


def split_url(text: str) -> SplitResult | None:
    """Return the parts of a URL; None for a text that can't be one."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises ValueError when it is not one
    except ValueError:
        return None
    return parts


def is_http_url(text: str) -> bool:
    """Return whether a text is a URL by http or https, with a host."""
    parts = split_url(text)
    return parts is not None and parts.scheme in {"http", "https"} and bool(parts.hostname)


def is_open_to_others(url: str) -> bool:
    """Return whether what is sent to a URL can be changed on the way.

    That is so when it goes to another machine without TLS.
    """
    parts = split_url(url)
    return parts is not None and parts.scheme == "http" and parts.hostname not in LOOPBACK


def is_redis_url(text: str) -> bool:
    """Return whether a text is a URL that redis-py accepts."""
    parts = split_url(text)
    if parts is None or parts.scheme not in {"redis", "rediss", "unix"}:
        return False
    # An "@" after the host is the end of a password with a sign in it that ends the host: a part of
    # it would be shown in messages.
    after = parts.path + parts.query.partition("=")[0] + parts.fragment
    return not ("@" in after and parts.netloc)  # a socket's path may have one, too
