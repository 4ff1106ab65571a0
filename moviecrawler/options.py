"""Every setting of this project: its type, range, default and unit.

A setting is one line here. `settings.py` takes its default, or its environment variable of the same name, from here;
`SETTINGS.md` its description; a part reads its own struct from Scrapy's settings. Scrapy's own settings that this project sets
otherwise stand in `settings.py`.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from urllib.parse import SplitResult, urlsplit

import msgspec
from msgspec import Meta

from moviecrawler.errors import ConfigurationError
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

_ALIKE = 0.87
"""As `difflib` reckons it: DATABASE_URI is so near to DATABASE_URL, and no name of Spidermon's or scrapy-redis' is to one of ours."""
_HOST_AND_PORT = r"(?!\S*@)[\w.:\[\]-]+:\d{1,5}"
_URL = r"https?://[\w.\[\]-][^\s?#@]*"
_DATASET = "(?:basics|ratings|crew|principals|names|akas|episode)"
_FORMS = {
    rf"^{_URL}\Z": "a scheme and host such as http://127.0.0.1:8000",
    rf"^({_URL})?\Z": "a scheme and host such as http://127.0.0.1:8000, or remove it",
    rf"^http://{_HOST_AND_PORT}/?\Z": "where Tor's HTTPTunnelPort listens, such as http://127.0.0.1:9080",
    rf"^{_HOST_AND_PORT}\Z": "Tor's ControlPort, such as 127.0.0.1:9051",
    rf"^\s*{_DATASET}(\s*,\s*{_DATASET})*\s*\Z": "basics, ratings, crew, principals, names, akas and episode, or some of them",
    r"^[\x20-\x7e]*\Z": "plain ASCII, such as a URL, as it is sent in a header",
    r"^[A-Za-z0-9_.-]{1,64}\Z": "up to 64 letters, digits, dots, hyphens and underscores",
    r"%\(name\)s": "one such as '%(name)s:start_urls'",
}
"""What to set a text to that has to match a pattern."""
_BASE_URL, _OTHER_URL, _TUNNEL, _CONTROL, _DATASETS, _HEADER, _NAME, _KEY = (
    Meta(pattern=pattern) for pattern in _FORMS
)

Seconds = Annotated[float, Meta(ge=0, le=1e9)]
Name = Annotated[str, _NAME]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that one part reads. `rename` of a subclass says which setting a field is."""

    EMPTY_IS_DEFAULT: ClassVar[bool] = True
    """Whether an empty text means the default."""

    def __repr__(self) -> str:
        """Say nothing of values, some of which are credentials."""
        return f"{type(self).__name__}(...)"

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """Return the settings' values, or defaults. Raises ConfigurationError for the first that can't be right.

        The message has no value, which may hold a password.
        """
        given = {name: settings.get(name) for name in cls.__struct_encode_fields__}
        empty = (None, "") if cls.EMPTY_IS_DEFAULT else (None,)
        try:
            return msgspec.convert({n: value for n, value in given.items() if value not in empty}, cls, strict=False)
        except msgspec.ValidationError as error:
            message, _, path = str(error).rstrip("`").partition(" - at `$.")
            for pattern, form in _FORMS.items():
                message = message.replace(f"Expected `str` matching regex {pattern!r}", f"set it to {form}")
            raise ConfigurationError(f"{path} is wrong: {message}" if path else message) from None

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the settings of this struct, with their defaults."""
        return {
            name: None if default is msgspec.NODEFAULT else default
            for name, default in zip(cls.__struct_encode_fields__, cls.__struct_defaults__, strict=True)
        }


class SiteOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Sites.

    `replica/README.md` has the values that have crawls ask the replica.
    """

    EMPTY_IS_DEFAULT = False

    imdb_url: Annotated[str, _BASE_URL] = SITES["imdb"].home
    """Scheme and host of the site's pages. Any but a live one is a stand-in, such as a replica or a mirror. Read by its spider, as are the
    URLs of the other two."""
    imdb_datasets_url: Annotated[str, _OTHER_URL] = ""
    """The host of IMDb's datasets. Empty: https://datasets.imdbws.com; but none where IMDB_URL is a stand-in, whose crawl asks a live
    host only where a setting names it. Read by DatasetSpider and `scrapy catalogue import`."""
    imdb_datasets: Annotated[str, _DATASETS] = "basics,ratings,crew,principals,names,akas,episode"
    """Which of IMDb's datasets are read, with their sizes at the end of 2025, compressed: basics (214 MB) and ratings (8) in any
    case; crew (80: directors and writers), principals (741: the cast), names (295: of all people), akas (464: other titles),
    episode (54). Read by DatasetSpider."""
    metacritic_url: Annotated[str, _BASE_URL] = SITES["metacritic"].home
    """Scheme and host of the site's pages and sitemaps."""
    metacritic_api_url: Annotated[str, _OTHER_URL] = ""
    """The host of Metacritic's JSON: lists, and what pages are made of. Empty: https://backend.metacritic.com; but none where METACRITIC_URL
    is a stand-in, which is then asked for lists, too. A stand-in here takes one as METACRITIC_URL. Read by MetacriticSpider."""
    rottentomatoes_url: Annotated[str, _BASE_URL] = SITES["rottentomatoes"].home
    """Scheme and host of the site."""
    contact: Annotated[str, _HEADER] = ""
    """An address or a URL where a site's people can reach the operator; the spiders add it to USER_AGENT."""


class RequestOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Requests."""

    retry_backoff: Annotated[float, Meta(ge=0, le=3_600)] = 2.0
    """Seconds before the first retry; doubled each time up to a minute, and drawn at random below that."""


class StoreOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Stores.

    A store is used when its setting is there. Set a URL that has a password in the environment only.
    """

    data_dir: str = "data"
    """Folder of everything that a crawl leaves behind; read by the stores, the datasets and `scrapy scoreboard`."""
    csv_enabled: bool = True
    """Whether movies go to CSV files in DATA_DIR."""
    database_url: str = ""
    """The Postgres of movies and catalogue, such as postgresql://user:password@localhost:5432/movies."""
    mongo_url: str = ""
    """The MongoDB and its database, such as mongodb://user:password@localhost/movies."""
    s3_bucket: str = ""
    """The bucket of movies and of the archive of raw pages."""
    s3_endpoint_url: str = ""
    """The S3 server; empty: Amazon's. Credentials are where boto3 finds them."""
    s3_prefix: str = ""
    """What the keys of all objects begin with, such as moviecrawler/."""
    # At most a week: a title may be due again after two.
    freshness_margin: Annotated[float, Meta(ge=0, le=604_800)] = 3_600.0
    """Seconds by which a scrape has to be newer to replace a stored one, which until then is as good."""
    store_unreachable: Literal["fail", "wait"] = "fail"
    """When a store can't be reached at the start: `fail` says so and crawls nothing; `wait` begins, holds the crawl back when the
    store's buffer is full, and keeps what is left at the end in files for the next run."""
    store_batch_items: Annotated[int, Meta(ge=1, le=999_999_999)] | None = None
    """Items in one write; empty: what suits the store, as for the next one."""
    store_batch_seconds: Annotated[float, Meta(ge=0.001, le=1_000_000)] | None = None
    """The longest that an item waits for its batch to fill."""
    store_close_seconds: Annotated[float, Meta(ge=0.001, le=86_400)] | None = None
    """How long a store may take for what is left when the spider closes; the rest is spooled."""


class CatalogueOptions(Options, frozen=True, kw_only=True, rename=lambda field: f"CATALOGUE_{field.upper()}"):
    """Catalogue: how `lane=due` takes titles from it."""

    batch: Annotated[int, Meta(ge=1, le=100_000)] = 25
    """Titles that a worker claims at once. As many more may wait in it."""
    datasets_batch: Annotated[int, Meta(ge=1, le=1_000_000)] = 100_000
    """Titles that are claimed for one pass over IMDb's datasets: it reads all files, which takes as long as storing so many titles."""
    lease: Annotated[float, Meta(ge=1, le=1e9)] = 7_200.0
    """Seconds after which the titles of a worker that died are due again."""
    idle: Seconds = 0.0
    """Seconds that a worker without titles waits for some to become due, before it ends."""


class FrontierOptions(Options, frozen=True, kw_only=True, rename=lambda field: f"FRONTIER_{field.upper()}"):
    """The shared crawl."""

    url: str = msgspec.field(default="", name="REDIS_URL")
    """The Redis that workers of one crawl share; empty: each process crawls for itself. With a password in it, set it in the
    environment only."""
    site_budgets: Any = msgspec.field(default="", name="SITE_BUDGETS")
    """What all workers together may ask of a host, as JSON: {"host": {"per_second": 0.5, "burst": 1, "per_day": 600}}. Those of the
    live sites stand in `sites.py`, and are replaced host by host."""
    run: Name = ""
    """The name of the run that workers share, which is made once; empty: made of the arguments, and one run for each start."""
    node: str = ""
    """The name of this machine; empty: its host name."""
    asked_at: Annotated[float, Meta(ge=0, le=1e11)] = 0.0
    """When somebody asked for this crawl, in seconds since 1970 by Redis' clock; 0: when its process began. A run that was over
    before then is made once more. A node sets it for its jobs."""
    dupefilter: Literal["set", "bloom"] = "set"
    """What remembers which pages a run has asked for: `set`, exactly, or `bloom`, in less memory above a million pages."""
    lease: Annotated[float, Meta(ge=1, le=86_400)] = 60.0
    """Seconds without a heartbeat after which a worker's requests go back to the queue."""
    deliveries: Annotated[int, Meta(ge=2, le=99)] = 5
    """How many workers may die of a request before it becomes a dead letter."""
    patience: Seconds = 600.0
    """Seconds that a worker waits for a site that has refused us, for a new day's budget or for Redis, before it ends."""
    idle: Seconds = 0.0
    """Seconds that a worker waits for more seeds when the crawl is done. scrapy-redis' SCHEDULER_IDLE_BEFORE_CLOSE does the same."""
    max_pages: Annotated[int, Meta(ge=0)] = 0
    """Requests after which a worker ends, to be started anew; 0 for no limit."""
    max_seconds: Seconds = 0.0
    """Seconds after which a worker ends, to be started anew; 0 for no limit."""
    start_urls_key: Annotated[str, _KEY] = msgspec.field(default="%(name)s:start_urls", name="REDIS_START_URLS_KEY")
    """The key of the seeds that others push; %(name)s is the site."""

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """Return the settings' values. Raises ConfigurationError, also for settings of scrapy-redis that would do harm."""
        for name, why in REFUSED.items() if settings.get("REDIS_URL") else ():
            if settings.get(name) and str(settings[name]) not in {"0", "False", "false"}:
                raise ConfigurationError(f"{name} is {settings[name]!r}: {why}")
        options = super().read(settings)
        if not options.idle and settings.get("SCHEDULER_IDLE_BEFORE_CLOSE"):
            idle = super().read({"FRONTIER_IDLE": settings["SCHEDULER_IDLE_BEFORE_CLOSE"]}).idle
            options = msgspec.structs.replace(options, idle=idle)
        return options

    def __post_init__(self) -> None:
        if self.url and not is_redis_url(self.url):
            # Not the value, which may hold a password.
            raise ConfigurationError("REDIS_URL is no Redis URL; set it to one such as redis://127.0.0.1:6379/0")
        if not self.node:
            msgspec.structs.force_setattr(self, "node", socket.gethostname())


class ProxyOptions(Options, frozen=True, kw_only=True, rename=lambda field: f"PROXY_{field.upper()}"):
    """Proxies.

    PROXY_POOLS holds passwords: name a file, or set it in the environment.
    """

    pools: Any = ""
    """Pools of proxies: JSON, or the path of a file with it."""
    order: Any = ""
    """Pools in the order in which they are used: `direct,datacenter` for all sites, or JSON with an order by site. Empty: no proxies,
    and a block stops the site."""
    attempts: Annotated[int, Meta(ge=1, le=20)] = 3
    """Attempts of a request, each through another proxy."""
    run_residential: Annotated[int, Meta(ge=1, le=1_000_000)] = 25
    """Requests after which the next proxy of a residential pool has its turn; in other pools each request takes the next one."""
    ban_policy: Any = msgspec.field(
        default="moviecrawler.proxies.policy.SiteBanPolicy", name="ROTATING_PROXY_BAN_POLICY"
    )
    """What counts as a ban; a class that has scrapy-rotating-proxies' two hooks."""


class TorOptions(Options, frozen=True, kw_only=True, rename=lambda field: f"TOR_{field.upper()}"):
    """Tor."""

    tunnel: Annotated[str, _TUNNEL] = ""
    """Where Tor's tunnel is, whose circuits are the proxies of the pool `tor`."""
    control: Annotated[str, _CONTROL] = ""
    """Where Tor is asked for new identities."""


class WatchOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """What is watched.

    Spidermon's own settings, `SPIDERMON_…`, are read from the environment, too: see `monitors/README.md`.
    """

    coverage_stop: bool = True
    """Whether a crawl ends after 30 title pages in a row that cannot be read, or of which every score is unknown."""
    alert_webhook: Annotated[str, _OTHER_URL] = ""
    """A URL to which what is wrong with a crawl is posted when it is over, as {"text": ...}. It may hold a token: set it in the
    environment only."""
    metrics_folder: str = ""
    """The folder whose files Prometheus' node exporter reads; crawls without a node add their figures to a file of each site there."""


SETTINGS: tuple[type[Options], ...] = (
    *(SiteOptions, RequestOptions, StoreOptions, CatalogueOptions, FrontierOptions),
    *(ProxyOptions, TorOptions, WatchOptions),
)
"""All structs of settings, in the order of `SETTINGS.md`."""

REFUSED = {
    "SCHEDULER_SERIALIZER": "what is queued is JSON of one form, as pickle would run what others put there; remove it",
    "SCHEDULER_FLUSH_ON_START": "it would empty the queue of all workers; set FRONTIER_RUN to a new name instead",
    "SCHEDULER_QUEUE_CLASS": "the shared queue has levels of priority, first in, first out; remove it",
    "SCHEDULER_QUEUE_KEY": "keys are named by site and FRONTIER_RUN; remove it",
    "SCHEDULER_DUPEFILTER_KEY": "keys are named by site and FRONTIER_RUN; remove it",
}
"""scrapy-redis' settings that mean something else here, or that would do harm, and what to do."""


def project_settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of each setting: from its environment variable, or else the default."""
    values = {name: value for options in SETTINGS for name, value in options.defaults().items()}
    return values | {name: environ[name] for name in values if environ.get(name)}


JOB_SETTINGS = (
    "IMDB_DATASETS",
    "RETRY_BACKOFF",
    "CSV_ENABLED",
    "FRESHNESS_MARGIN",
    "STORE_UNREACHABLE",
    "STORE_BATCH_ITEMS",
    "STORE_BATCH_SECONDS",
    "STORE_CLOSE_SECONDS",
    "CATALOGUE_LEASE",
    "CATALOGUE_IDLE",
    "FRONTIER_RUN",
    "FRONTIER_DUPEFILTER",
    "FRONTIER_LEASE",
    "FRONTIER_DELIVERIES",
    "FRONTIER_PATIENCE",
    "FRONTIER_IDLE",
    "FRONTIER_MAX_PAGES",
    "FRONTIER_MAX_SECONDS",
    "PROXY_ORDER",
    "PROXY_ATTEMPTS",
    "PROXY_RUN_RESIDENTIAL",
    "COVERAGE_STOP",
)
"""The settings that a job of a cluster may make: none names a class, a path or a URL, or lifts what protects the sites."""


def node_of(settings: Mapping[str, Any]) -> str:
    """Return the name under which this machine is known to others: FRONTIER_NODE, or else its own."""
    return settings.get("FRONTIER_NODE") or socket.gethostname()


def check_settings(settings: BaseSettings) -> None:
    """Raise ConfigurationError for the first of this project's settings whose value can't be right."""
    for options in SETTINGS:
        options.read(settings)
    _check_scrapys_own(settings)
    folder = settings.get("METRICS_FOLDER")
    if folder and not Path(folder).is_dir():
        raise ConfigurationError(f"METRICS_FOLDER is {folder!r}, which is no folder; make it, or remove the setting")


def _check_scrapys_own(settings: BaseSettings) -> None:
    """Raise ConfigurationError for the first of Scrapy's settings that is no number or truth value where it has to be one."""
    from scrapy.settings import default_settings  # noqa: PLC0415 - only a crawl asks

    for name, default in vars(default_settings).items():
        if not settings.getpriority(name) or not isinstance(settings[name], str):  # else it was not given as text
            continue
        try:
            if isinstance(default, bool):
                settings.getbool(name)
            elif isinstance(default, int | float):
                settings.getfloat(name)
        except (TypeError, ValueError):
            wanted = "0 or 1" if isinstance(default, bool) else f"a number such as {default}"
            raise ConfigurationError(f"{name} is {settings[name]!r}; set it to {wanted}") from None


def warn_of_names(settings: BaseSettings) -> None:
    """Log a warning of each setting whose name is misspelt."""
    from scrapy.settings import default_settings  # noqa: PLC0415 - only a crawl asks

    known = project_settings({})
    for name in sorted({*settings, *os.environ} - known.keys() - vars(default_settings).keys()):
        for meant in get_close_matches(name, known, 1, _ALIKE):
            logger.warning("Nothing reads the setting %s; is %s meant?", name, meant)


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


def is_redis_url(text: str) -> bool:
    """Return whether a text is a URL that redis-py takes."""
    parts = split_url(text)
    if parts is None or parts.scheme not in {"redis", "rediss", "unix"}:
        return False
    # An "@" after the host is the end of a password with a sign in it that ends the host: a part of it would be shown in messages.
    after = parts.path + parts.query.partition("=")[0] + parts.fragment
    return not ("@" in after and parts.netloc)  # a socket's path may have one, too


def read_package_file(package: str, name: str) -> str:
    """Return the text of a file, such as SQL or Lua, in a package's folder."""
    return files(package).joinpath(name).read_text("utf-8")


def read_file(path: str, most: int) -> bytes:
    """Return what stands in a file of at most `most` bytes.

    Raises OSError, also for what is no regular file: a device may never end, and a pipe may never begin. Raises ValueError for a
    larger one, or for a path that can't be one.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is no regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return content
