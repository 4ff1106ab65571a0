"""What all tests share: the servers that they need, and the groups that they are in."""

import gc
import os

import scrapy.core.downloader.handlers.http11  # noqa: F401 - takes long when more has been imported
from hypothesis import settings

# A busy machine is no fault; 40 examples instead of 100 keep the suite short.
settings.register_profile("patient", deadline=None, max_examples=40)
settings.load_profile("patient")
# Else each of the many processes compiles every module for itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# What is made while tests are collected lives until the end: it is not looked through for what could go.
gc.disable()

pytest_plugins = [
    "pytester",
    "tests.groups",
    "tests.coroutines",
    "tests.services.postgres",
    "tests.services.mongo",
    "tests.services.s3",
    "tests.services.redis",
    "tests.services.replica",
    "tests.services.https",
    "tests.services.tor",
    "tests.frontier.workers",
    "tests.services.browser",
]


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
