"""Crawls of a replica through a fleet of proxies."""

import json
from pathlib import Path

from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, crawl, crawl_command, scrapy
from tests.services.forward_proxy import ForwardProxy, ProxyFleet
from tests.services.https import HttpsFront
from tests.services.replica import IDS


def write_pools(folder: Path, **pools: list[ForwardProxy]) -> str:
    """Write a PROXY_POOLS file; return its path."""
    entries = {
        name: {"kind": "datacenter", "urls": [one.url for one in pool]}
        for name, pool in pools.items()
    }
    path = folder / "pools.json"
    path.write_text(json.dumps(entries))
    return str(path)


def write_ids(folder: Path, titles: int, *more: str) -> str:
    """Write the ids of the replica's first titles, and more, to a file.

    Returns the argument that names it.
    """
    path = folder / "ids"
    path.write_text("\n".join([*IDS[:titles], *more]))
    return f"file={path}"


def crawl_imdb(
    folder: Path,
    replica: ReplicaProcess,
    fleet: ProxyFleet,
    titles: int = 20,
    argument: str = "",
    **settings: str,
) -> Finished:
    """Crawl title pages of IMDb through all proxies of a fleet."""
    given = {
        "PROXY_ORDER": "datacenter",
        "PROXY_POOLS": write_pools(folder, datacenter=fleet.proxies),
        **settings,
    }
    return crawl(
        "imdb",
        argument or write_ids(folder, titles),
        "via=pages",
        data=folder,
        replica=replica,
        **given,
    )


def crawl_over_tor(front: HttpsFront, data: Path, *arguments: str, **settings: str) -> Finished:
    """Crawl what stands at IMDb's place through three circuits of Tor.

    Settings are environment variables.
    """
    site = {
        "IMDB_URL": front.url,
        "SSL_CERT_FILE": str(front.certificate),
        "PROXY_ORDER": '{"imdb": "tor"}',
    }
    pools = {"PROXY_POOLS": '{"tor": {"kind": "tor", "sessions": 3}}'}
    fast = {"DOWNLOAD_TIMEOUT": "30", "DOWNLOAD_DELAY": "0", "AUTOTHROTTLE_ENABLED": "0"}
    command = crawl_command("imdb", "via=pages", *arguments, **fast)
    return scrapy(*command, data=data, replica=None, **{**site, **pools, **settings})
