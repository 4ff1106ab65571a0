"""How options are declared: as typed structs, with a range or a rule, and a sentence for a wrong value."""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, get_args, get_origin, get_type_hints
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Meta

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self


class Rule(NamedTuple):
    """What a text must be."""

    form: str
    """What to set it to, for the sentence about a wrong value."""
    fits: Callable[[str], bool]
    kind: str = ""
    """What the value is not, in a sentence that doesn't repeat it; for values that may hold a password."""


class Job(NamedTuple):
    """Marks a setting that a job of a cluster may set."""

    most: float | None = None
    """The most that a job may set; None for the setting's own limit."""
    rule: Rule | None = None
    """What a job's text must be, where a crawl says more of a wrong one itself."""


JOB = Job()


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


def is_host_and_port(text: str) -> bool:
    """Return whether a text is a name or an address, in plain ASCII, and a port: 127.0.0.1:9051, [::1]:9051."""
    parts = split_url(f"//{text}")
    return (
        parts is not None
        and bool(parts.hostname and parts.port)
        and parts.netloc == text
        and text.isascii()
        and "@" not in text
    )


def _is_base_url(text: str) -> bool:
    # A name and password would be sent to nobody, and stand in logs.
    return is_http_url(text) and not any(mark in text for mark in "?#@")


def is_redis_url(text: str) -> bool:
    """Return whether a text is a URL that redis-py takes."""
    parts = split_url(text)
    if parts is None or parts.scheme not in {"redis", "rediss", "unix"}:
        return False
    # An "@" after the host is the end of a password with a sign in it that ends the host: a part of it would be shown in messages.
    after = parts.path + parts.query.partition("=")[0] + parts.fragment
    return not ("@" in after and parts.netloc)  # a socket's path may have one, too


Share = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Count = Annotated[int, Meta(ge=0, le=1_000_000_000)]
NAME = Rule(
    "up to 64 letters, digits, dots, hyphens and underscores",
    lambda text: bool(re.fullmatch(r"[\w.-]{1,64}", text, re.ASCII)),
)
Name = Annotated[str, NAME]
BaseUrl = Annotated[str, Rule("a scheme and host such as http://127.0.0.1:8000, or remove it", _is_base_url)]
OtherUrl = Annotated[
    str,
    Rule("a scheme and host such as http://127.0.0.1:8000, or remove it", lambda text: not text or _is_base_url(text)),
]
"""Or empty."""
RedisUrl = Annotated[str, Rule("one such as redis://127.0.0.1:6379/0", is_redis_url, "no Redis URL")]
SecretUrl = Annotated[str, Rule("one, or remove it", is_http_url, "no http or https URL")]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that one part reads. `rename` of a subclass says which setting a field is."""

    EMPTY_IS_DEFAULT: ClassVar[bool] = True
    """Whether an empty text means the default."""

    def __repr__(self) -> str:
        """Say nothing of values, some of which are credentials."""
        return f"{type(self).__name__}(...)"

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """Return the settings' values, or defaults. Raises ConfigurationError for the first that can't be right."""
        given: dict[str, Any] = {name: settings.get(name) for name in cls.__struct_encode_fields__}
        given = {name: value for name, value in given.items() if value is not None}
        if cls.EMPTY_IS_DEFAULT:
            given = {name: value for name, value in given.items() if value != ""}
        try:
            options = msgspec.convert(given, cls, strict=False)
        except msgspec.ValidationError as error:
            found = re.search(r"\$\.(\w+)", str(error))
            name = found[1] if found else ""
            raise ConfigurationError(cls.sentence(name, given.get(name), str(error).partition(" - ")[0])) from None
        for name, value in given.items():
            rule = declarations(cls)[name].rule
            if rule is not None and not rule.fits(value):
                raise ConfigurationError(cls.sentence(name, value))
        return options

    @classmethod
    def sentence(cls, name: str, value: Any, error: str = "") -> str:
        """Return what is wrong with a value, and what to do."""
        kind, rule, _ = declarations(cls)[name]
        if rule is not None and rule.kind:
            return f"{name} is {rule.kind}; set it to {rule.form}"
        shown = re.sub(r"(?<=//).*@|^(?!.*//)[^@]*:.*@", "***@", value) if isinstance(value, str) else value
        return f"{name} is {shown!r}; set it to {form_of(kind, rule) or error}"

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the settings of this struct, with their defaults."""
        return {
            name: None if default is msgspec.NODEFAULT else default
            for name, default in zip(cls.__struct_encode_fields__, cls.__struct_defaults__, strict=True)
        }


class Declaration(NamedTuple):
    """How a setting is declared."""

    kind: Any
    """Its type, with its range."""
    rule: Rule | None
    job: Job | None
    """None for what only the operator may set."""


@cache
def declarations(options: type[Options]) -> dict[str, Declaration]:
    """Return how each setting of a struct is declared, by its name."""
    hints = get_type_hints(options, include_extras=True)
    found: dict[str, Declaration] = {}
    for field, name in zip(options.__struct_fields__, options.__struct_encode_fields__, strict=True):
        marks = getattr(hints[field], "__metadata__", ())
        rule = next((mark for mark in marks if isinstance(mark, Rule)), None)
        job = next((mark for mark in marks if isinstance(mark, Job)), None)
        found[name] = Declaration(hints[field], rule, job)
    return found


def form_of(kind: Any, rule: Rule | None) -> str:
    """Return what a setting may be set to, in words; empty for what has no words of its own."""
    if rule is not None:
        return rule.form
    plain, limits = kind, None
    for one in (kind, *get_args(kind)):
        limits = limits or next((mark for mark in getattr(one, "__metadata__", ()) if isinstance(mark, Meta)), None)
    while get_origin(plain) not in {None, Literal}:
        plain = get_args(plain)[0]
    if get_origin(plain) is Literal:
        return f"one of {', '.join(get_args(plain))}"
    if plain is bool:
        return "0 or 1"
    if plain is date:
        return "a day such as 2026-11-01"
    if limits is None or plain not in {int, float}:
        return ""
    return f"a {'whole ' if plain is int else ''}number from {limits.ge:,.10g} to {limits.le:,.10g}"
