"""A site that does to a crawler what it can.

Its good titles are stored, its bad ones are misses, and nothing hangs.
"""

from itertools import chain, zip_longest
from pathlib import Path

import pytest

from moviecrawler.replica.collection import Collection
from tests.crawling import crawl
from tests.hostile_site import KINDS, HostileSite
from tests.services.replica import ForkedReplica

MEMORY_MB = 300
"""What a node gives a spider."""
SETTINGS = {
    "MEMUSAGE_ENABLED": "1",
    "MEMUSAGE_LIMIT_MB": str(MEMORY_MB),
    "MEMUSAGE_CHECK_INTERVAL_SECONDS": "1",
    "RETRY_TIMES": "1",
    "DOWNLOAD_TIMEOUT": "2",
}


@pytest.mark.promise(
    "Every requested title ends as stored, as a miss with its reason, or as a dead letter."
)
def test_one_worker_stores_what_is_good_and_accounts_for_the_rest(tmp_path: Path) -> None:
    good = Collection(1, 20).imdb_ids
    bad = {f"tt77{number:05}": kind for number, kind in enumerate(KINDS)}
    (tmp_path / "ids.txt").write_text(
        "\n".join(chain.from_iterable(zip_longest(good, bad, fillvalue="")))
    )
    with (
        ForkedReplica(titles=20, light=True) as replica,
        HostileSite(replica.urls["imdb"], bad) as site,
    ):
        settings = {**SETTINGS, "IMDB_URL": site.url}
        done = crawl(
            "imdb", "file=ids.txt", "via=pages", data=tmp_path, replica=replica, **settings
        )
    assert {movie.site_id for movie in done.movies} == set(good)
    assert done.misses == dict.fromkeys(bad, "failed")
    assert done.code == 1
    assert done.stat("titles/failed") == len(bad)
    assert done.stat("memusage/limit_reached") == 0
    assert 0 < done.stat("memusage/max") < MEMORY_MB * 2**20
