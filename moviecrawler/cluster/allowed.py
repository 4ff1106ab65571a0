"""Which settings a job may make, and which values. Pure.

This is an allow-list: dozens of Scrapy's settings name classes to load, paths to open or URLs to ask, and projects add more.
This project's settings are marked where they are declared; Scrapy's are here. All others are for those who deploy a project or run
its nodes. No allowed setting names a class, a path or a URL, or lifts what protects the sites (robots.txt, budgets, user agent) or
the machine (sizes, certificates).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import Meta

from moviecrawler.errors import ConfigurationError
from moviecrawler.option_types import JOB, Count, Options, Rule, declarations, form_of
from moviecrawler.options import SETTINGS as DECLARED

if TYPE_CHECKING:
    from moviecrawler.option_types import Declaration


class _Slot(msgspec.Struct, forbid_unknown_fields=True):
    """A host's entry in DOWNLOAD_SLOTS."""

    delay: float | None = None
    concurrency: int | None = None
    randomize_delay: bool | None = None


def _are_slots(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=dict[str, _Slot])
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


class ScrapyOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Scrapy's own settings that a job may make."""

    autothrottle_debug: Annotated[bool, JOB]
    autothrottle_enabled: Annotated[bool, JOB]
    autothrottle_max_delay: Annotated[float, Meta(ge=0, le=86_400), JOB]
    autothrottle_start_delay: Annotated[float, Meta(ge=0, le=86_400), JOB]
    autothrottle_target_concurrency: Annotated[float, Meta(ge=0.01, le=1000), JOB]
    closespider_errorcount: Annotated[Count, JOB]
    closespider_itemcount: Annotated[Count, JOB]
    closespider_pagecount: Annotated[Count, JOB]
    closespider_pagecount_no_item: Annotated[Count, JOB]
    closespider_timeout: Annotated[float, Meta(ge=0, le=1e9), JOB]
    closespider_timeout_no_item: Annotated[float, Meta(ge=0, le=1e9), JOB]
    concurrent_requests: Annotated[int, Meta(ge=1, le=1000), JOB]
    concurrent_requests_per_domain: Annotated[int, Meta(ge=1, le=1000), JOB]
    depth_limit: Annotated[Count, JOB]
    dns_timeout: Annotated[float, Meta(ge=0.1, le=3600), JOB]
    download_delay: Annotated[float, Meta(ge=0, le=86_400), JOB]
    download_slots: Annotated[
        str, Rule('hosts as JSON, such as {"www.example.com": {"delay": 2, "concurrency": 1}}', _are_slots), JOB
    ]
    download_timeout: Annotated[float, Meta(ge=0.1, le=3600), JOB]
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], JOB]
    logstats_interval: Annotated[float, Meta(ge=0, le=86_400), JOB]
    memusage_limit_mb: Annotated[int, Meta(ge=1, le=1_000_000), JOB]
    memusage_warning_mb: Annotated[int, Meta(ge=0, le=1_000_000), JOB]
    randomize_download_delay: Annotated[bool, JOB]
    redirect_max_times: Annotated[int, Meta(ge=0, le=20), JOB]
    retry_enabled: Annotated[bool, JOB]
    retry_times: Annotated[int, Meta(ge=0, le=20), JOB]


_ALLOWED: dict[str, Declaration] = {
    name: declared
    for options in (*DECLARED, ScrapyOptions)
    for name, declared in declarations(options).items()
    if declared.job is not None
}
_BOOLEANS = frozenset({"0", "1", "False", "false", "True", "true"})
SETTINGS = frozenset(_ALLOWED)
"""The names of all settings that a job may make."""


def check_setting(name: str, value: str) -> None:
    """Raise ConfigurationError for a setting that a job may not make, or not to that value."""
    if name not in SETTINGS:
        raise ConfigurationError(
            f"setting {name[:80]} can't be made by a job; make it in the project's settings.py and deploy that, or in the nodes' "
            "environment. scrapyd/README.md says which a job can make"
        )
    kind, rule, job = _ALLOWED[name]
    rule, most = (job.rule or rule, job.most) if job is not None else (rule, None)
    form = form_of(kind, rule)
    try:
        given = msgspec.convert(value, kind, strict=False)
        # As Scrapy reads it; msgspec takes 1e2, 300.0 and TRUE, too.
        if type(given) is int:
            int(value)
        elif isinstance(given, bool) and value not in _BOOLEANS:
            given = None
    except (msgspec.ValidationError, ValueError):
        given = None
    if given is None or (most is not None and given > most) or (rule is not None and not rule.fits(value)):
        limited = "" if most is None else f", and at most {most:,.10g} for a job"
        raise ConfigurationError(f"setting {name} is {value[:80]!r}; give {form}{limited}")
