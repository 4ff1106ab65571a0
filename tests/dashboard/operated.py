"""A cluster as its operator has it: two nodes with a password, a crawl that is over, one that runs, and things gone wrong."""

from __future__ import annotations

import html
import json
import re
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moviecrawler.database.connection import open_database
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.cluster.nodes import Answer, Cluster, Node, cluster, project_egg
from tests.dashboard.filling import run_script
from tests.frontier.workers import keys_of
from tests.services.postgres import execute, new_database
from tests.services.redis import RedisServer
from tests.waiting import wait_for

LOGIN = ("operator", "of-operators")
TITLES = 700
MANY = 600
DONE = 12
PER_SECOND = 3
"""By which the crawl goes on for 200 s: longer than all tests take on a machine that does other things, too."""
PER_DAY = 6000
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"
"""A title that a site could give itself."""
HOSTILE_ID = "tt99990001"
PASSWORD = "s3cret-of-the-proxy"  # noqa: S105 - the test's own
USER = "customer-alice"
LETTER = "0" * 32


@dataclass
class Operated:
    """What runs, and how to ask it."""

    cluster: Cluster
    redis: RedisServer
    database_url: str
    done: str
    """The job that is over."""
    running: str
    """The job that runs."""

    @property
    def node(self) -> Node:
        return self.cluster.nodes[0]

    def page(self, path: str, node: Node | None = None) -> str:
        """Return a page, which must be there."""
        answer = (node or self.node).request(path.lstrip("/"))
        assert answer.code == 200, (path, answer.code, answer.text[-2000:])
        return answer.text

    def send(self, path: str, node: Node | None = None, /, **fields: str) -> Answer:
        """Send a form as a browser does, and return the answer without following it."""
        return (node or self.node).post(path.lstrip("/"), **fields)

    def sent(self, path: str, node: Node | None = None, /, **fields: str) -> str:
        """Send a form, and return where that leads to."""
        answer = self.send(path, node, **fields)
        assert answer.code == 303, answer.text
        return answer.headers["Location"]

    def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask the database."""
        return execute(self.database_url, statement, *values)


def text_of(page: str) -> str:
    """Return a page as it is read: without tags, in single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def luminance(colour: Iterable[int]) -> float:
    """Return the relative luminance of a colour (red, green, blue: 0 to 255), as WCAG defines it."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (one / 255 for one in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Iterable[int], other: Iterable[int]) -> float:
    """Return the contrast of two colours, as WCAG defines it."""
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def query(path: str, **parameters: str) -> str:
    """Return a path with a query."""
    return f"{path}?{urllib.parse.urlencode(parameters)}"


def figures(page: str, site: str) -> dict[str, str]:
    """Return the figures of a site's card."""
    card = page.split(f'aria-labelledby="site-{site}"')[1].split("</section>", maxsplit=1)[0]
    return {name: text_of(value) for name, value in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", card)}


def number(text: str) -> int:
    """Return the number that a text begins with."""
    return int(text.split(maxsplit=1)[0].replace(",", ""))


@contextmanager
def operated(folder: Path, postgres_server: str) -> Iterator[Operated]:
    """Run all of it."""
    collection = Collection(1, TITLES)
    database_url = new_database(postgres_server)
    open_database(database_url).close()
    run_script(database_url, "gone_wrong.sql", hostile=HOSTILE, imdb_id=HOSTILE_ID)
    proxies = [f"http://{USER}:{PASSWORD}@127.0.0.1:9", f"http://bob:{PASSWORD}@proxy.example:3128"]
    with (
        RedisServer() as redis,
        ReplicaProcess(titles=TITLES, light=True) as replica,
    ):
        options = {
            **replica.settings,
            "REDIS_URL": redis.url,
            "DATABASE_URL": database_url,
            "DATA_DIR": str(folder / "data"),
            "CSV_ENABLED": "0",
            "DOWNLOAD_DELAY": "0",
            "STORE_BATCH_SECONDS": "0.3",
            "SCRAPYD_MAX_PROC": "1",
            "SCRAPYD_LOGS_DIR": str(folder / "logs"),
            "SITE_BUDGETS": json.dumps({"127.0.0.1": {"per_second": PER_SECOND, "per_day": PER_DAY}}),
            "PROXY_ORDER": json.dumps({"rottentomatoes": "direct,datacenter"}),
            "PROXY_POOLS": json.dumps({"datacenter": {"kind": "datacenter", "urls": proxies}}),
        }
        with cluster(folder, redis.url, 2, auth=LOGIN, **options) as running:
            one, two = running.nodes
            answer = one.deploy(project_egg(), "moviecrawler", "v1").json
            assert answer["status"] == "ok", answer
            quick = {"AUTOTHROTTLE_ENABLED": "0", "FRONTIER_RUN": "over"}
            slugs = list(collection.site_ids("metacritic").values())[:DONE]
            done = two.schedule("metacritic", "moviecrawler", quick, ids=",".join(slugs))
            slowly = {**quick, "FRONTIER_RUN": "running"}
            ids = ",".join(collection.imdb_ids[:MANY])
            job = two.schedule("imdb", "moviecrawler", slowly, ids=ids)
            wait_for(lambda: one.finished(done), 90, lambda: one.log + two.log)
            made = Operated(running, redis, database_url, done, job)
            _go_wrong(made)
            wait_for(lambda: _at_work(made), 60, lambda: one.log + two.log)
            yield made
            one.post("cancel.json", project="moviecrawler", job=job, signal="KILL")


def _at_work(made: Operated) -> bool:
    """Return whether the running crawl has stored something."""
    runs = {run["run"]: run for run in made.node.get("progress.json").json["runs"]}
    return bool(runs.get("running", {}).get("done", 0) > 3)


def _go_wrong(made: Operated) -> None:
    """Let there be what an operator has to look at."""
    client, now = made.redis.client, time.time()
    # Its own keys, which the two nodes and their crawls write, too.
    envelope = ["parse_title", "https://www.metacritic.com/movie/killer/", {}, "page", 0]
    reason = json.dumps({"reason": f"it kills {HOSTILE}", "at": round(now * 1000)})
    client.hset(keys_of(client, "metacritic").dead, LETTER, f"{reason}\n2 1 \n{json.dumps(envelope)}")
