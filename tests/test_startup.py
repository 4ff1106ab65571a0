"""A crawl imports no client of a service that is not configured."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.processes import environment

CLIENTS = {
    "aiohttp",
    "apprise",
    "boto3",
    "bson",
    "psycopg2",
    "pymongo",
    "redis",
    "scrapy_redis",
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
