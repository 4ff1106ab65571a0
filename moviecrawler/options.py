"""Every setting of this project: its type, range, default, unit, and what to set it to instead of a wrong value.

A setting is one line here. `settings.py` takes its default, or its environment variable of the same name, from here;
`SETTINGS.md` its description; a part reads its own struct from Scrapy's settings; and a job of a cluster may set what is
marked with `JOB`. Scrapy's own settings that this project sets otherwise stand in `settings.py`.
"""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta

from moviecrawler.errors import ConfigurationError
from moviecrawler.option_types import (
    JOB,
    BaseUrl,
    Count,
    Job,
    Name,
    Options,
    OtherUrl,
    RedisUrl,
    Rule,
    Seconds,
    SecretUrl,
    is_host_and_port,
)
from moviecrawler.sites import SITES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self


def _is_key_form(text: str) -> bool:
    try:
        return bool(text % {"name": ""})
    except (KeyError, TypeError, ValueError):
        return False


_HEADER = Rule(
    "plain ASCII, such as a URL, as it is sent in a header", lambda text: bool(re.fullmatch(r"[\x20-\x7e]*", text))
)
_ORDER = Rule(
    "names of pools, such as direct,datacenter",
    lambda text: bool(re.fullmatch(r"[\w.-]+(\s*,\s*[\w.-]+)*|\{[\w\s.,:\"-]*\}", text, re.ASCII)),
)

_TUNNEL = Rule(
    "where Tor's HTTPTunnelPort listens, such as http://127.0.0.1:9080; Scrapy can't use its SOCKS port",
    lambda text: text.startswith("http://") and is_host_and_port(text.removeprefix("http://").removesuffix("/")),
)
_CONTROL = Rule(
    "Tor's ControlPort, such as 127.0.0.1:9051; its password is TOR_CONTROL_PASSWORD",
    is_host_and_port,
)

_DATASET_WORDS = frozenset({"basics", "ratings", "crew", "principals", "names", "akas", "episode"})
_DATASETS = Rule(
    f"some of {', '.join(sorted(_DATASET_WORDS))}, with commas between them",
    lambda text: {word.strip() for word in text.split(",")} <= _DATASET_WORDS,
)


class SiteOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Sites.

    `replica/README.md` has the values that have crawls ask the replica.
    """

    EMPTY_IS_DEFAULT = False

    imdb_url: BaseUrl = SITES["imdb"].home
    """Scheme and host of the site's pages. Any but a live one is a stand-in, such as a replica or a mirror. Read by its spider, as are the
    URLs of the other two."""
    imdb_datasets_url: OtherUrl = ""
    """The host of IMDb's datasets. Empty: https://datasets.imdbws.com; but none where IMDB_URL is a stand-in, whose crawl asks a live
    host only where a setting names it. Read by DatasetSpider and `scrapy catalogue import`."""
    imdb_datasets: Annotated[str, _DATASETS, JOB] = "basics,ratings,crew,principals,names,akas,episode"
    """Which of IMDb's datasets are read, with their sizes at the end of 2025, compressed: basics (214 MB) and ratings (8) in any
    case; crew (80: directors and writers), principals (741: the cast), names (295: of all people), akas (464: other titles),
    episode (54). Read by DatasetSpider."""
    metacritic_url: BaseUrl = SITES["metacritic"].home
    """Scheme and host of the site's pages and sitemaps."""
    metacritic_api_url: OtherUrl = ""
    """The host of Metacritic's JSON: lists, and what pages are made of. Empty: https://backend.metacritic.com; but none where METACRITIC_URL
    is a stand-in, which is then asked for lists, too. A stand-in here takes one as METACRITIC_URL. Read by MetacriticSpider."""
    rottentomatoes_url: BaseUrl = SITES["rottentomatoes"].home
    """Scheme and host of the site."""
    contact: Annotated[str, _HEADER] = ""
    """An address or a URL where a site's people can reach the operator; the spiders add it to USER_AGENT."""


class RequestOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Requests."""

    retry_backoff: Annotated[float, Meta(ge=0, le=3_600), JOB] = 2.0
    """Seconds before the first retry; doubled each time up to a minute, and drawn at random below that."""


class StoreOptions(Options, frozen=True, kw_only=True, rename=str.upper):
    """Stores.

    A store is used when its setting is there. Set a URL that has a password in the environment only.
    """

    data_dir: str = "data"
    """Folder of everything that a crawl leaves behind; read by the stores, the datasets and `scrapy scoreboard`."""
    csv_enabled: Annotated[bool, JOB] = True
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
    freshness_margin: Annotated[float, Meta(ge=0, le=604_800), JOB] = 3_600.0
    """Seconds by which a scrape has to be newer to replace a stored one, which until then is as good."""
    store_unreachable: Annotated[Literal["fail", "wait"], JOB] = "fail"
    """When a store can't be reached at the start: `fail` says so and crawls nothing; `wait` begins, holds the crawl back when the
    store's buffer is full, and keeps what is left at the end in files for the next run."""


class StoreLimits(Options, frozen=True, kw_only=True, rename=lambda field: f"STORE_{field.upper()}"):
    """How much each store buffers, and when it writes.

    Empty for what suits the store. A default here is that of most stores.
    """

    batch_items: Annotated[int, Meta(ge=1, le=999_999_999), JOB] = 500
    """Items in one write."""
    batch_bytes: Annotated[int, Meta(ge=1, le=999_999_999), JOB] = 4 * 1024 * 1024
    """Bytes of the items' JSON, as are all bytes here."""
    batch_seconds: Annotated[float, Meta(ge=0.001, le=1_000_000), JOB] = 2.0
    """The longest that an item waits for its batch to fill."""
    buffer_items: Annotated[int, Meta(ge=1, le=999_999_999), JOB] = 2000
    """Including the batch that is being written. At least STORE_BATCH_ITEMS, else a batch could never fill."""
    buffer_bytes: Annotated[int, Meta(ge=1, le=999_999_999), JOB] = 16 * 1024 * 1024
    """An item larger than that is taken when the buffer is empty."""
    close_seconds: Annotated[float, Meta(ge=0.001, le=86_400), JOB] = 30.0
    """How long a store may take for what is left when the spider closes; the rest is spooled."""

    def __post_init__(self) -> None:
        if self.buffer_items < self.batch_items:
            raise ConfigurationError(
                f"STORE_BUFFER_ITEMS is {self.buffer_items}; set it to STORE_BATCH_ITEMS ({self.batch_items}) or above"
            )


class CatalogueOptions(Options, frozen=True, kw_only=True, rename=lambda field: f"CATALOGUE_{field.upper()}"):
    """Catalogue: how `lane=due` takes titles from it."""

    batch: Annotated[int, Meta(ge=1, le=100_000), JOB] = 25
    """Titles that a worker claims at once. As many more may wait in it."""
    datasets_batch: Annotated[int, Meta(ge=1, le=1_000_000), JOB] = 100_000
    """Titles that are claimed for one pass over IMDb's datasets: it reads all files, which takes as long as storing so many titles."""
    lease: Annotated[float, Meta(ge=1, le=1e9), JOB] = 7_200.0
    """Seconds after which the titles of a worker that died are due again."""
    idle: Annotated[Seconds, JOB] = 0.0
    """Seconds that a worker without titles waits for some to become due, before it ends."""


class FrontierOptions(Options, frozen=True, kw_only=True, rename=lambda field: f"FRONTIER_{field.upper()}"):
    """The shared crawl."""

    url: RedisUrl = msgspec.field(default="", name="REDIS_URL")
    """The Redis that workers of one crawl share; empty: each process crawls for itself. With a password in it, set it in the
    environment only."""
    redis_params: Any = msgspec.field(default="", name="REDIS_PARAMS")
    """Further arguments of redis-py's clients, a JSON object; {"sentinels": [["host", 26379]], "service_name": "mymaster"} when
    Sentinel says where the server is. Read by `redis_parameters`."""
    site_budgets: Any = msgspec.field(default="", name="SITE_BUDGETS")
    """What all workers together may ask of a host, as JSON: {"host": {"per_second": 0.5, "burst": 1, "per_day": 600}}. Those of the
    live sites stand in `sites.py`, and are replaced host by host."""
    run: Annotated[Name, JOB] = ""
    """The name of the run that workers share, which is made once; empty: made of the arguments, and one run for each start."""
    node: str = ""
    """The name of this machine; empty: its host name."""
    asked_at: Annotated[float, Meta(ge=0, le=1e11)] = 0.0
    """When somebody asked for this crawl, in seconds since 1970 by Redis' clock; 0: when its process began. A run that was over
    before then is made once more. A node sets it for its jobs."""
    dupefilter: Annotated[Literal["set", "bloom"], JOB] = "set"
    """What remembers which pages a run has asked for: `set`, exactly, or `bloom`, in less memory above a million pages."""
    lease: Annotated[float, Meta(ge=1, le=86_400), JOB] = 60.0
    """Seconds without a heartbeat after which a worker's requests go back to the queue."""
    deliveries: Annotated[int, Meta(ge=2, le=99), JOB] = 5
    """How many workers may die of a request before it becomes a dead letter."""
    patience: Annotated[Seconds, JOB] = 600.0
    """Seconds that a worker waits for a site that has refused us, for a new day's budget or for Redis, before it ends."""
    idle: Annotated[Seconds, JOB] = 0.0
    """Seconds that a worker waits for more seeds when the crawl is done. scrapy-redis' SCHEDULER_IDLE_BEFORE_CLOSE does the same."""
    max_pages: Annotated[Count, JOB] = 0
    """Requests after which a worker ends, to be started anew; 0 for no limit."""
    max_seconds: Annotated[Seconds, JOB] = 0.0
    """Seconds after which a worker ends, to be started anew; 0 for no limit."""
    start_urls_key: Annotated[str, Rule("one such as '%(name)s:start_urls'", _is_key_form)] = msgspec.field(
        default="%(name)s:start_urls", name="REDIS_START_URLS_KEY"
    )
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
        if not self.node:
            msgspec.structs.force_setattr(self, "node", socket.gethostname())


class ProxyOptions(Options, frozen=True, kw_only=True, rename=lambda field: f"PROXY_{field.upper()}"):
    """Proxies.

    PROXY_POOLS holds passwords: name a file, or set it in the environment.
    """

    pools: Any = ""
    """Pools of proxies: JSON, or the path of a file with it."""
    order: Annotated[Any, Job(rule=_ORDER)] = ""
    """Pools in the order in which they are used: `direct,datacenter` for all sites, or JSON with an order by site. Empty: no proxies,
    and a block stops the site."""
    attempts: Annotated[int, Meta(ge=1, le=20), JOB] = 3
    """Attempts of a request, each through another proxy."""
    run_residential: Annotated[int, Meta(ge=1, le=1_000_000), JOB] = 25
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

    coverage_stop: Annotated[bool, JOB] = True
    """Whether a crawl ends after 30 title pages in a row that cannot be read, or of which every score is unknown."""
    alert_webhook: SecretUrl = ""
    """A URL to which what is wrong with a crawl is posted when it is over, as {"text": ...}. It may hold a token: set it in the
    environment only."""
    metrics_folder: str = ""
    """The folder whose files Prometheus' node exporter reads; crawls without a node add their figures to a file of each site there."""


SETTINGS: tuple[type[Options], ...] = (
    *(SiteOptions, RequestOptions, StoreOptions, StoreLimits, CatalogueOptions, FrontierOptions),
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
    values: dict[str, Any] = {}
    for options in SETTINGS:
        values |= dict.fromkeys(options.defaults()) if options is StoreLimits else options.defaults()
    return values | {name: environ[name] for name in values if environ.get(name)}


def node_of(settings: Mapping[str, Any]) -> str:
    """Return the name under which this machine is known to others: FRONTIER_NODE, or else its own."""
    return settings.get("FRONTIER_NODE") or socket.gethostname()


def read_all(settings: Mapping[str, Any]) -> None:
    """Raise ConfigurationError for the first setting of this project whose value can't be right."""
    for options in SETTINGS:
        options.read(settings)
