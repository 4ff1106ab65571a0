"""What all tests share: the servers that they need, and the groups that they are in."""

import gc
import os
import tempfile
from contextlib import suppress

import scrapy.core.downloader.handlers.http11  # noqa: F401 - takes long when more has been imported
from hypothesis import settings

# A busy machine is no fault; 40 examples instead of 100 keep the suite short.
settings.register_profile("patient", deadline=None, max_examples=40)
settings.load_profile("patient")
# Else each of the many processes compiles every module for itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Files lie in memory where there is room for 4 GB and programs may be run from there: that saves a
# seventh of the suite's processor time, as each of the many databases has 300. At most 0.4 GB is
# taken at a time.
_IN_MEMORY = "/dev/shm"  # noqa: S108 - `tempfile` makes folders there that nobody else can get at
with suppress(OSError):
    _room = os.statvfs(_IN_MEMORY)
    if not _room.f_flag & os.ST_NOEXEC and _room.f_bavail * _room.f_frsize > 4 * 1024**3:
        os.environ.setdefault("TMPDIR", _IN_MEMORY)
        tempfile.tempdir = None
# What is made while tests are collected lives until the end: it is not looked through for what
# could go.
gc.disable()

# A distribution of its own, whose tests run where it is installed.
collect_ignore = ["filmograph"]
pytest_plugins = [
    "tests.groups",
    "tests.services.postgres",
    "tests.services.mongo",
    "tests.services.s3",
    "tests.services.redis",
    "tests.services.replica",
    "tests.services.tor",
    "tests.services.nodes",
    "tests.workers",
    "tests.stored",
    "tests.catalogued",
    "tests.due_crawls",
    "tests.services.browser",
]


def pytest_collection_finish() -> None:
    gc.freeze()
    # Rarely: most of what tests make goes without the collector.
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
