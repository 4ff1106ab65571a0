"""A crawl imports no client of a service that is not configured."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from scrapy import Spider
from scrapy.settings import BaseSettings, Settings

from moviecrawler.addon import ConfiguredParts
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import environment

CLIENTS = {
    "aiohttp",
    "boto3",
    "bson",
    "prometheus_client",
    "psycopg2",
    "pymongo",
    "redis",
    "scrapy_redis",
    "spidermon",
    "stem",
}
_RUN = """
import json, sys
sys.argv = ["scrapy", *json.loads(sys.argv[1])]
from scrapy.cmdline import execute
try:
    execute()
except SystemExit:
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.promise("A crawl imports no client of a store that is not configured.")
def test_a_crawl_into_csv_files_imports_no_client_of_another_store(
    replica: ReplicaProcess, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", _RUN, json.dumps(["crawl", "imdb", "-a", "limit=1"])]
    printed = subprocess.check_output(
        command, env=environment(tmp_path, replica), cwd=tmp_path, text=True, timeout=60
    )
    assert (tmp_path / "movies.csv").exists()
    assert not CLIENTS.intersection(json.loads(printed.splitlines()[-1]))


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({}, set()),
        ({"DATABASE_URL": "postgresql://db/movies"}, {"PostgresPipeline", "CatalogueRecorder"}),
        ({"MONGO_URL": "mongodb://db/movies"}, {"MongoPipeline"}),
        ({"S3_BUCKET": "lamps"}, {"S3Pipeline", "ArchivePipeline", "ArchiveMiddleware"}),
        ({"PROXY_ORDER": "datacenter"}, {"ProxyMiddleware"}),
        ({"COOKIES_ENABLED": True}, {"CookiesMiddleware"}),
        ({"SPIDERMON_PERIODIC_MONITORS": '{"suites.Lamps": 60}'}, {"Spidermon"}),
    ],
)
def test_components_are_listed_where_their_settings_have_a_value(
    given: dict[str, str], added: set[str]
) -> None:
    settings = Settings({"COOKIES_ENABLED": False, **given})
    before = _listed(settings)
    ConfiguredParts(Spider).update_settings(settings)
    assert _listed(settings) - before == added


def test_what_a_user_has_listed_stays_as_it_is() -> None:
    path = "moviecrawler.pipelines.mongo.MongoPipeline"
    settings = Settings({"MONGO_URL": "mongodb://db/movies", "S3_BUCKET": "lamps"})
    settings.set("ITEM_PIPELINES", {path: None}, priority="cmdline")
    ConfiguredParts(Spider).update_settings(settings)
    assert _listed(settings) >= {"S3Pipeline", "ArchivePipeline"}
    assert settings.getdict("ITEM_PIPELINES")[path] is None
    assert settings.getpriority("ITEM_PIPELINES") == 40


def _listed(settings: BaseSettings) -> set[str]:
    kinds = ("ITEM_PIPELINES", "SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "EXTENSIONS")
    return {path.rpartition(".")[2] for kind in kinds for path in settings.getdict(kind)}
