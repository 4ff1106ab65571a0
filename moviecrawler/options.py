"""Every setting of this project: its type, range, default and unit.

A setting is one line here. `settings.py` gets its default, or its environment variable of the same
name, from here; `SETTINGS.md` its description; a part reads its own struct from Scrapy's settings.
Scrapy's own settings that this project sets otherwise are in `settings.py`.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta, inspect

from moviecrawler import __version__
from moviecrawler.basics.credentials import holds_secret
from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.basics.service_urls import is_redis_url
from moviecrawler.basics.texts import shown
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Self

    from scrapy.settings import BaseSettings

_HOST_AND_PORT = r"(?!\S*@)[\w.:\[\]-]+:\d{1,5}"
_URL = r"https?://[\w.\[\]-][^\s?#@]*"
_DATASET = "(?:basics|ratings|crew|principals|names|akas|episode)"
_BASE_URL = Meta(
    pattern=rf"^{_URL}\Z",
    description="a scheme and host such as http://127.0.0.1:8000",
)
_OTHER_URL = Meta(
    pattern=rf"^({_URL})?\Z",
    description="a scheme and host such as http://127.0.0.1:8000, or remove it",
)
_TUNNEL = Meta(
    pattern=rf"^http://{_HOST_AND_PORT}/?\Z",
    description="where Tor's HTTPTunnelPort listens, such as http://127.0.0.1:9080",
)
_DATASETS = Meta(
    pattern=rf"^\s*{_DATASET}(\s*,\s*{_DATASET})*\s*\Z",
    description="basics, ratings, crew, principals, names, akas and episode, or some of them",
)
_HEADER = Meta(
    pattern=r"^[\x20-\x7e]*\Z",
    description="plain ASCII, such as a URL, as it is sent in a header",
)
_NAME = Meta(
    pattern=r"^[A-Za-z0-9_.-]{1,64}\Z",
    description="up to 64 letters, digits, dots, hyphens and underscores",
)
_KEY = Meta(pattern=r"%\(name\)s", description="one such as '%(name)s:start_urls'")

Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Name = Annotated[str, _NAME]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that one component reads. `rename` of a subclass names the setting of a field."""

    EMPTY_IS_DEFAULT: ClassVar[bool] = True
    """Whether an empty text means the default."""

    def __repr__(self) -> str:
        """Leave out the values, as some are credentials."""
        return f"{type(self).__name__}(...)"

    @classmethod
    def read(cls, settings: Mapping[str, object]) -> Self:
        """Return the settings' values, or defaults.

        Raises ConfigurationError for the first that can't be right, with its value, unless that may
        hold a password, and with what to set it to.
        """
        values = {name: settings.get(name) for name in cls.__struct_encode_fields__}
        empty = (None, "") if cls.EMPTY_IS_DEFAULT else (None,)
        texts = {name for name, default in cls.defaults().items() if isinstance(default, str)}
        plain = {
            name: str(value) if name in texts and isinstance(value, os.PathLike | int) else value
            for name, value in values.items()
            if value not in empty
        }
        try:
            return msgspec.convert(plain, cls, strict=False)
        except msgspec.ValidationError as error:
            # It ends with "at `$.faults`", or for a part "at `$.faults[...]`".
            path = re.findall(r"\$\.(\w+)", str(error))[-1]
            fields = inspect.type_info(cls).fields  # type: ignore[attr-defined]
            kind = next(field.type for field in fields if field.encode_name == path)
            raise ConfigurationError(
                f"{path} is {shown_value(path, values[path])}; set it to {_form_of(kind)}"
            ) from None

    @classmethod
    def defaults(cls) -> dict[str, object]:
        """Return the settings of this struct, with their defaults."""
        return {
            name: None if default is msgspec.NODEFAULT else default
            for name, default in zip(
                cls.__struct_encode_fields__, cls.__struct_defaults__, strict=True
            )
        }


def _form_of(kind: inspect.Type) -> str:
    """Return what a value of a type looks like."""
    match kind:
        case inspect.BoolType():
            return "1 or 0"
        case inspect.LiteralType(values=values):
            return " or ".join(map(str, values))
        case inspect.StrType():
            return "a text"
        case inspect.Metadata(extra_json_schema={"description": form}):
            return str(form)
        case inspect.IntType(ge=lowest, le=highest) | inspect.FloatType(ge=lowest, le=highest):
            number = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
            if highest is None:
                return f"{number} of at least {lowest:g}"
            return f"{number} from {lowest:g} to {highest:,g}"
        case inspect.DictType(key_type=inspect.EnumType(cls=names)):
            return f"numbers of {', '.join(names)}"
        case inspect.DateType():
            return "a date such as 2026-03-01"
        case inspect.UnionType(types=(first, *_)):
            return f"{_form_of(first)}, or remove it"
    return "another value"


def shown_value(name: str, value: object) -> str:
    """Return the value of a setting for an error, unless it may hold a password."""
    text = value if isinstance(value, str) else repr(value)
    is_secret = "@" in text or holds_secret(name, text)
    return "a value that may hold a password" if is_secret else shown(value)


def _host_fields() -> Iterator[tuple[str, object, str]]:
    """Yield name, type and default of each setting that names a host of a site."""
    for profile in SITES.values():
        home, *others = profile.hosts
        yield home.setting, Annotated[str, _BASE_URL], home.live
        for host in others:
            yield host.setting, Annotated[str, _OTHER_URL], ""


HostOptions: type[Options] = msgspec.defstruct(  # type: ignore[assignment]  # of its bases
    "HostOptions",
    _host_fields(),
    bases=(Options,),
    namespace={
        "__doc__": "Hosts.\n\n`replica/README.md` has the values for crawling the replica.",
        "EMPTY_IS_DEFAULT": False,
    },
    frozen=True,
    kw_only=True,
)
"""The settings of the hosts, which the profiles of the sites declare."""


class SiteOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Sites."""

    imdb_datasets: Annotated[str, _DATASETS] = "basics,ratings,crew,principals,names,akas,episode"
    """The datasets that are read, besides basics (214 MB) and ratings (8): crew (80), principals
    (741: the cast), names (295), akas (464: other titles), episode (54)."""
    contact: Annotated[str, _HEADER] = ""
    """The address or URL where a site's people can reach you; it becomes part of the user agent."""


class RequestOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Requests.

    Two requests to a live site are as far apart as the longest of these: what SITE_BUDGETS
    requires, the Crawl-delay of its robots.txt, the time that its last response took, and Scrapy's
    DOWNLOAD_DELAY, if you have set that. A shorter DOWNLOAD_DELAY has no effect.
    CONCURRENT_REQUESTS_PER_DOMAIN holds for all hosts of a site together.
    """

    retry_backoff: Annotated[float, Meta(ge=0, le=3_600)] = 2.0
    """Seconds before the first retry; they double each time, up to a minute."""


class StoreOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Stores.

    Setting one of these enables the store.
    """

    data_dir: str = "data"
    """The folder of everything that a crawl leaves behind."""
    sqlite_enabled: bool = True
    """Whether titles are stored in `movies.sqlite3` in DATA_DIR; 0 needs another store."""
    csv_enabled: bool | None = None
    """Whether CSV files, which are made from that database, are written to DATA_DIR; empty means
    when SQLITE_ENABLED is on."""
    database_url: str = ""
    """The Postgres of movies and catalogue, such as
    postgresql://user:password@localhost:5432/movies."""
    mongo_url: str = ""
    """The MongoDB and its database, such as mongodb://user:password@localhost/movies."""
    s3_bucket: str = ""
    """The bucket of movies and of the archive of pages."""
    s3_endpoint_url: str = ""
    """The S3 server; empty means Amazon's. boto3 finds the credentials."""
    s3_prefix: str = ""
    """The beginning of all keys in the bucket, such as moviecrawler/."""
    # At most a week: a title may be due again after two.
    freshness_margin: Annotated[float, Meta(ge=0, le=604_800)] = 3_600.0
    """Seconds by which a page has to be newer to replace a stored record."""
    store_unreachable: Literal["fail", "wait"] = "fail"
    """What happens when a store can't be reached at the start: `fail` crawls nothing; `wait`
    begins, holds the crawl back when the store's buffer is full, and spools what is left."""
    store_batch_seconds: Annotated[float, Meta(ge=0.001, le=1_000_000)] | None = None
    """Seconds that an item waits for its batch to fill; empty means what suits the store."""

    def __post_init__(self) -> None:
        if self.sqlite_enabled:
            return
        if self.csv_enabled:
            raise ConfigurationError(
                "CSV_ENABLED is 1 and SQLITE_ENABLED is 0, but the CSV files are made from that "
                "database; remove one of them"
            )
        if not (self.database_url or self.mongo_url or self.s3_bucket):
            raise ConfigurationError(
                "SQLITE_ENABLED is 0, and no other store is set; set DATABASE_URL, MONGO_URL or "
                "S3_BUCKET, or remove it"
            )


class FrontierOptions(
    Options, frozen=True, kw_only=True, rename=lambda field: f"FRONTIER_{field.upper()}"
):
    """The queue.

    They apply with Redis and without, unless stated otherwise. scrapy-redis' own REDIS_PARAMS is
    read, too.
    """

    url: str = msgspec.field(default="", name="REDIS_URL")
    """The Redis that keeps the queue, for workers on many machines; empty means that a file in
    DATA_DIR does, for the processes of one machine."""
    site_budgets: object = msgspec.field(default="", name="SITE_BUDGETS")
    """Maximum request rates per site, over all workers, as JSON: {"imdb": {"per_second": 0.1,
    "per_day": 300}}. A key is a site or one of its hosts. A number that is not named stays as in
    the site's profile for the live site, and a replica has no limit that is not named."""
    run: Name = ""
    """The name of a run that is passed over once; empty means a name that is made of the arguments,
    and a new pass by each start after the last one finished."""
    node: str = ""
    """The name of this machine; empty means its host name."""
    asked_at: Annotated[float, Meta(ge=0, le=1e11)] = 0.0
    """Unix time at which a node queued the job; a run that finished before then starts again."""
    dupefilter: Literal["set", "bloom"] = "set"
    """The dedupe set of a run in Redis: `set`, which is exact, or `bloom`, which needs less memory
    above a million pages."""
    lease: Annotated[float, Meta(ge=1, le=86_400)] = 60.0
    """Seconds without a heartbeat after which a worker's requests are queued again; without Redis,
    those of a process that has ended are queued at once."""
    deliveries: Annotated[int, Meta(ge=2, le=99)] = 5
    """Deliveries after which a request is dead-lettered."""
    patience: Seconds = 600.0
    """Seconds that a worker waits for a site that can't be reached, or for what keeps the queue,
    before it ends."""
    idle: Seconds = 0.0
    """Seconds that a worker of a finished run waits for more seeds, or for titles that are due."""
    max_pages: Annotated[int, Meta(ge=0)] = 0
    """Requests after which a worker ends, to be started anew; 0 means no limit."""
    start_urls_key: Annotated[str, _KEY] = msgspec.field(
        default="%(name)s:start_urls", name="REDIS_START_URLS_KEY"
    )
    """The key in Redis of the seeds that others push; %(name)s is the site."""

    def __post_init__(self) -> None:
        if self.url and not is_redis_url(self.url):
            # Not the value, which may hold a password.
            raise ConfigurationError("REDIS_URL is not a Redis URL; use redis://host:6379/0")
        if not self.node:
            msgspec.structs.force_setattr(self, "node", socket.gethostname())


class ProxyOptions(
    Options, frozen=True, kw_only=True, rename=lambda field: f"PROXY_{field.upper()}"
):
    """Proxies."""

    pools: object = ""
    """Pools of proxies: JSON, or the path of a file with it, as it holds passwords."""
    order: object = ""
    """Pools in the order of their use: `direct,datacenter` for all sites, or JSON with an order by
    site; empty means no proxies."""
    attempts: Annotated[int, Meta(ge=1, le=20)] = 3
    """Attempts of a request through each pool, each through another proxy."""
    tor_tunnel: Annotated[str, _TUNNEL] = msgspec.field(default="", name="TOR_TUNNEL")
    """Tor's HTTPTunnelPort, such as http://127.0.0.1:9080; its circuits are the proxies of the pool
    `tor`."""


class WatchOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Monitoring.

    `extensions/README.md` lists what is wrong with a crawl, and shows URLs for `ALERT_URLS`.
    """

    coverage_stop: bool = True
    """Whether a crawl ends after 30 title pages in a row that cannot be read, or of which every
    score is unknown."""
    alert_webhook: Annotated[str, _OTHER_URL] = ""
    """The URL to which a crawl posts what is wrong with it, as {"text": …}."""
    alert_urls: str = ""
    """URLs of Apprise, separated by spaces, by which a crawl sends the same to Slack, Telegram, by
    mail and so on, such as mailtos://user:password@example.org?to=you@example.org; the extra
    `alerts` installs Apprise."""
    metrics_folder: str = ""
    """The folder that Prometheus' node exporter reads; a crawl without a node writes its metrics
    there."""


SETTINGS: tuple[type[Options], ...] = (
    HostOptions,
    SiteOptions,
    RequestOptions,
    StoreOptions,
    FrontierOptions,
    ProxyOptions,
    WatchOptions,
)
"""All structs of settings, in the order of `SETTINGS.md`."""


SCRAPYS: dict[str, object] = {
    # --- The client. A browser's name would be a lie, and IMDb would challenge it, too.
    "USER_AGENT": f"moviecrawler/{__version__}",
    "DEFAULT_REQUEST_HEADERS": {
        "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8",
        # Without it IMDb responds in the language of our address.
        "Accept-Language": "en-US,en;q=0.8",
    },
    # The sites' cookies identify a client from page to page; no page that we read needs them.
    "COOKIES_ENABLED": False,
    # Which page led to which is our own business.
    "REFERRER_POLICY": "no-referrer",
    # --- Politeness and safety.
    "ROBOTSTXT_OBEY": True,
    "TELNETCONSOLE_ENABLED": False,
    # On by default in Scrapy 2.19: runs Python that is sent to it.
    "REMOTE_CONTROL_ENABLED": False,
    "DOWNLOAD_VERIFY_CERTIFICATES": True,
    # Seconds; the slowest page seen took 20.
    "DOWNLOAD_TIMEOUT": 60,
    # Bytes after decompression, of a sitemap, which may have 50 MB; of a page, PAGE_MAX_BYTES in
    # `middlewares/compression.py`. Read by the downloader and GzipMiddleware.
    "DOWNLOAD_MAXSIZE": 64 * 1024 * 1024,
}
"""Scrapy's own settings that differ for all spiders of this project and, in other projects, for
those of the sites; each with the reason."""
PACE_OF_OTHER_SPIDERS = {
    "DOWNLOAD_DELAY": 2.0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 2,
}
"""What `settings.py` sets for spiders that have no gate; it is not an operator's choice."""


def spider_modules() -> list[str]:
    """Return the modules and packages that have the spiders of all sites."""
    return list(dict.fromkeys(profile.spiders for profile in SITES.values()))


def project_settings(environ: Mapping[str, str]) -> dict[str, object]:
    """Return the value of each setting: from its environment variable, or else the default."""
    values = {name: value for options in SETTINGS for name, value in options.defaults().items()}
    return values | {name: environ[name] for name in values if environ.get(name)}


def add_settings(settings: BaseSettings) -> None:
    """Add those of ours that a project does not set, also from the environment."""
    for name, value in project_settings(os.environ).items():
        if name not in settings:
            settings.set(name, value, priority="addon")


JOB_SETTINGS = (
    "IMDB_DATASETS",
    "RETRY_BACKOFF",
    "CSV_ENABLED",
    "FRESHNESS_MARGIN",
    "STORE_UNREACHABLE",
    "STORE_BATCH_SECONDS",
    "FRONTIER_RUN",
    "FRONTIER_DUPEFILTER",
    "FRONTIER_LEASE",
    "FRONTIER_DELIVERIES",
    "FRONTIER_PATIENCE",
    "FRONTIER_IDLE",
    "FRONTIER_MAX_PAGES",
    "PROXY_ORDER",
    "PROXY_ATTEMPTS",
    "COVERAGE_STOP",
)
"""The settings that a job of a cluster may make: none names a class, a path or a URL, or lifts what
protects the sites."""


_REPLACED = {
    "SPIDERMON_DISCORD_": "set ALERT_URLS to discord://ID/TOKEN",
    "SPIDERMON_EMAIL_": "set ALERT_URLS to mailtos://USER:PASSWORD@HOST?to=ADDRESS",
    "SPIDERMON_ENABLED": "set ALERT_WEBHOOK or ALERT_URLS to have alerts",
    "SPIDERMON_SENTRY_": "set ALERT_WEBHOOK or ALERT_URLS to a service other than Sentry",
    "SPIDERMON_SLACK_": "set ALERT_URLS to slack://TOKEN/CHANNEL",
    "SPIDERMON_SMTP_": "set ALERT_URLS to mailtos://USER:PASSWORD@HOST?to=ADDRESS",
    "SPIDERMON_TELEGRAM_": "set ALERT_URLS to tgram://TOKEN/CHAT",
    "SPIDERMON_": "list an extension of your own in EXTENSIONS, which checks the stats",
}
"""What takes the place of settings that nothing reads any more, by the beginning of their names;
the first that fits counts."""


def check_settings(settings: BaseSettings) -> None:
    """Raise ConfigurationError for the first setting of this project whose value can't be right."""
    _check_replaced({**os.environ, **settings})
    for options in SETTINGS:
        options.read(settings)
    folder = settings.get("METRICS_FOLDER")
    if folder and not Path(folder).is_dir():
        raise ConfigurationError(
            f"METRICS_FOLDER is {folder!r}, which is not a folder; make it, or remove the setting"
        )


def _check_replaced(settings: Mapping[str, object]) -> None:
    """Raise ConfigurationError for the first setting that has a value, and is not read any more."""
    for name, value in sorted(settings.items()):
        for beginning, replacement in _REPLACED.items():
            if name.startswith(beginning) and value not in (None, ""):
                raise ConfigurationError(
                    f"Nothing reads {name} any more; {replacement}, and remove it"
                )
