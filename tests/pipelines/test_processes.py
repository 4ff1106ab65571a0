"""Several processes that write to one place, processes that are killed, servers that go away.

Nothing is lost, doubled or half there.
"""

import random
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.pipelines.writers import Writer
from tests.runs import make_movie, running
from tests.services.postgres import execute
from tests.services.proxy import Proxy
from tests.stored import Stored, in_order
from tests.tables import check_readable
from tests.waiting import until


def check_whole(stored: Stored) -> set[str | None]:
    """Return the ids of what is stored.

    It is checked that each title is there once, with all that `make_movie` gives it.
    """
    movies = stored.movies()
    found = {movie.site_id: in_order(movie) for movie in movies}
    assert len(found) == len(movies)
    assert found == {site_id: in_order(make_movie(int((site_id or "")[2:]))) for site_id in found}
    if stored.kind == "csv":
        assert check_readable(stored.folder).keys() == found.keys()
    if stored.kind == "postgres":
        assert execute(stored.url, "SELECT count(*) FROM titles") == [(len(found),)]
        assert execute(stored.url, "SELECT count(DISTINCT record_id) FROM score_history") == [
            (len(found),)
        ]
    return set(found)


def test_processes_that_write_the_same_titles_leave_the_newest(
    stored: Stored, tmp_path: Path
) -> None:
    writers = [Writer(tmp_path, stored.url, first=0, count=200, age=age) for age in (20, 0, 10)]
    for writer in writers:
        writer.finish()
    assert len(check_whole(stored)) == 200
    if stored.kind == "postgres":
        # Person 7 is the director as well.
        assert execute(stored.url, "SELECT count(*) FROM people") == [(201,)]
    if stored.kind == "csv":
        assert len((tmp_path / "people.csv").read_text().splitlines()) == 1 + 201


@pytest.mark.promise(
    "A crawl that is killed loses nothing that was stored, and leaves nothing half written."
)
def test_a_kill_at_any_moment_leaves_every_durable_title_and_no_half_one(
    stored: Stored, tmp_path: Path
) -> None:
    chance = random.Random(5)  # noqa: S311 - repeatable
    durable: set[str] = set()
    stored.write(make_movie(99_998))  # the files are those of this crawl until the next that ends
    for turn in range(4):
        writer = Writer(tmp_path, stored.url, first=10_000 * turn, count=100, repeat=True)
        durable.update(islice(writer.durable(), chance.randrange(50, 250)))
        durable |= writer.kill()
        if stored.kind == "csv":
            assert check_readable(tmp_path).keys() == {"tt0099998"}
    assert len(durable) > 200
    stored.write(make_movie(99_999))
    found = check_whole(stored)
    assert durable <= found
    if stored.kind == "postgres":
        assert execute(stored.url, "SELECT count(site_id) FROM title_sites") == [(len(found),)]


@pytest.mark.parametrize("every_store", ["mongo", "s3"], indirect=True)
async def test_a_server_that_stops_and_cuts_connections_loses_nothing(
    every_store: Stored, tmp_path: Path
) -> None:
    parts = urlsplit(every_store.url)
    with Proxy(parts.hostname or "", parts.port or 80) as proxy:
        async with running(every_store.store(address=proxy.address), tmp_path) as run:
            for number in range(40):
                await run.process(make_movie(number))
                if number == 15:
                    await until(lambda: run.count("durable") >= 10)
                    proxy.stop()
                if number == 25:
                    await until(lambda: run.count("retries") >= 1)
                    proxy.start()
                if number == 28:
                    await until(lambda: run.count("durable") >= 20)
                    proxy.cut_after = 1_000  # in the middle of a batch
        assert proxy.cut_after is None
    assert set(run.outcomes().values()) == {"durable"}
    assert len(check_whole(every_store)) == 40
