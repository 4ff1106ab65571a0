"""Imports what crawls and commands import, once, for the processes of `tests.processes`.

It is imported in the process from which they are forked.
"""

import functools
import gc
import importlib
import pkgutil
import sys
import threading
from contextlib import closing
from typing import Any

from scrapy.settings import Settings

from moviecrawler.database.dictionary import describe
from moviecrawler.database.sqlite import tables_in_memory
from moviecrawler.options import check_settings, project_settings

_CLIENTS = (
    "scrapy.cmdline",
    "scrapy.crawler",
    "scrapy.core.downloader.handlers.http11",
    "scrapy.core.engine",
    "scrapy.core.scheduler",
    "scrapy.dupefilters",
    "scrapy.pipelines",
    "scrapy.pqueues",
    "scrapy.robotstxt",
    "scrapy.squeues",
    "scrapy.statscollectors",
    "scrapy.utils.engine",
    "twisted.internet.asyncioreactor",
    "twisted.web.client",
    "redis.asyncio",
    "psycopg2.sql",
    "pymongo",
    "boto3.s3.inject",
    "botocore.session",
    "botocore.client",
    "botocore.endpoint",
    "aiohttp",
    "msgspec",
    "lxml.html",
    "parsel",
    "tqdm",
    "scrapyd.__main__",
    "scrapyd.app",
    "scrapyd.website",
    "scrapyd.webservice",
    "twisted.scripts.twistd",
    "prometheus_client",
    "jinja2",
)
_PACKAGES = (
    "moviecrawler",
    *(
        f"scrapy.{part}"
        for part in ("commands", "downloadermiddlewares", "extensions", "spidermiddlewares")
    ),
)
_NOT = (
    "moviecrawler.settings",
    "moviecrawler.cluster",
    "moviecrawler.dashboard",
    "scrapy.extensions.statsmailer",
)
"""Read the environment when they are imported, belong to other processes, or warn."""

gc.disable()  # what is imported stays
for _name in _CLIENTS:
    importlib.import_module(_name)
for _package in _PACKAGES:
    for _module in pkgutil.walk_packages(
        importlib.import_module(_package).__path__, f"{_package}."
    ):
        if not _module.name.startswith(_NOT) and not _module.name.endswith("__main__"):
            importlib.import_module(_module.name)
# Scrapy looks through all that is installed for commands that others bring.
_cmdline: Any = importlib.import_module("scrapy.cmdline")
_cmdline.entry_points = functools.cache(_cmdline.entry_points)
_cmdline._get_commands_dict({"COMMANDS_MODULE": "moviecrawler.commands"}, inproject=True)
# It reads the versions of packages from their files, and asks a process for that of the machine.
_versions: Any = importlib.import_module("scrapy.utils.versions")
_versions.version = functools.cache(_versions.version)
_versions.get_versions()
# The types of settings are looked at when they are first read.
check_settings(Settings(project_settings({})))
# What a crawl exports is described once.
with closing(tables_in_memory().connection) as _connection:
    list(describe(_connection))
assert "moviecrawler.settings" not in sys.modules, "it would read the wrong environment"
assert "twisted.internet.reactor" not in sys.modules, "a reactor does not survive a fork"
assert threading.active_count() == 1, "threads do not survive a fork"
gc.freeze()  # what is never looked at again by the collector stays shared
gc.set_threshold(20_000, 20, 20)  # most of what a short process makes goes without it
gc.enable()
