"""How many real-size pages a second the replica serves, so that no benchmark against it measures the replica.

    python -m tests.benchmarks.replica_speed

Prints for each site the pages a second over several connections, the replica's own CPU time for a page, and the page's
size, plain and as sent. Clients ask for gzip and don't decompress.
"""

from __future__ import annotations

import http.client
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from moviecrawler.replica.movies import Catalogue
from moviecrawler.replica.process import ReplicaProcess
from moviecrawler.sites import SITES
from moviecrawler.urls import title_url
from tests.benchmarks.harness import table
from tests.replica.truth import truth

if TYPE_CHECKING:
    from moviecrawler.items import Site

TITLES = 2_000
CONNECTIONS = 4
PAGES = 1_500
TARGET = 300


def fetch(urls: list[str], encoding: str) -> int:
    """Fetch URLs of one host over one connection; return how many bytes the bodies have."""
    connection = http.client.HTTPConnection(urlsplit(urls[0]).netloc)
    size = 0
    for url in urls:
        connection.request("GET", urlsplit(url).path, headers={"Accept-Encoding": encoding})
        response = connection.getresponse()
        size += len(response.read())
        assert response.status == 200, url
    connection.close()
    return size


def serve(site: Site, pages: int) -> tuple[float, float, int]:
    """Return the seconds that pages took, the CPU seconds of the replica from start to end, and the bytes sent."""
    catalogue = Catalogue(1, TITLES)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with ReplicaProcess(titles=TITLES) as replica, ThreadPoolExecutor(CONNECTIONS) as pool:
        found = filter(None, (truth(catalogue, site, index) for index in range(TITLES)))
        urls = [title_url(site, movie.site_id or "", replica.urls[site]) for movie in found][:pages]
        fetch(urls[:1], "gzip")
        started = time.perf_counter()
        sent = sum(pool.map(fetch, [urls[n::CONNECTIONS] for n in range(CONNECTIONS)], ["gzip"] * CONNECTIONS))
        elapsed = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, sent


def plain_size(site: Site) -> int:
    """Return the bytes of one page that is not compressed."""
    movie = truth(Catalogue(1, TITLES), site, 0) or truth(Catalogue(1, TITLES), site, 1)
    assert movie is not None
    assert movie.site_id is not None
    with ReplicaProcess(titles=TITLES) as replica:
        return fetch([title_url(site, movie.site_id, replica.urls[site])], "identity")


def main() -> None:
    """Print the table."""
    rows = []
    for site in SITES:
        # What starting costs is in both runs, and so in neither difference.
        _, cpu_of_few, _ = serve(site, CONNECTIONS)
        elapsed, cpu, sent = serve(site, PAGES)
        rate, cpu_each = PAGES / elapsed, (cpu - cpu_of_few) / (PAGES - CONNECTIONS) * 1000
        size = plain_size(site) / 1000
        verdict = "" if rate >= TARGET else f"below {TARGET}"
        rows.append((site, f"{rate:.0f}", f"{cpu_each:.2f}", f"{size:.0f}", f"{sent / PAGES / 1000:.0f}", verdict))
    table(("site", "pages/s", "CPU ms/page", "kB", "kB sent", ""), rows)


if __name__ == "__main__":
    main()
