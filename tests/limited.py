"""Pipelines that write smaller batches, or give up sooner, than those of the project.

A crawl has them in place of the project's own when its ITEM_PIPELINES is one of these settings.
"""

import json
from dataclasses import replace

from moviecrawler.pipelines.archive import ArchivePipeline
from moviecrawler.pipelines.postgres import PostgresPipeline
from moviecrawler.pipelines.sqlite import SqlitePipeline

CLOSE_SECONDS = 0.5
BATCH_ITEMS = 5


class ImpatientSqlite(SqlitePipeline):
    default_limits = replace(SqlitePipeline.default_limits, close_seconds=CLOSE_SECONDS)


class ImpatientPostgres(PostgresPipeline):
    default_limits = replace(PostgresPipeline.default_limits, close_seconds=CLOSE_SECONDS)


class SmallArchive(ArchivePipeline):
    default_limits = replace(ArchivePipeline.default_limits, batch_items=BATCH_ITEMS)


class SingleSqlite(SqlitePipeline):
    default_limits = replace(SqlitePipeline.default_limits, batch_items=1)


def _in_place_of_ours(*pipelines: type) -> dict[str, int | None]:
    names: dict[str, int | None] = {}
    for pipeline in pipelines:
        own = pipeline.__base__
        assert own is not None
        names[f"{own.__module__}.{own.__qualname__}"] = None
        names[f"{pipeline.__module__}.{pipeline.__qualname__}"] = 300
    return names


IMPATIENT = json.dumps(_in_place_of_ours(ImpatientSqlite, ImpatientPostgres))
"""Stores that spool after half a second what they have not taken when the spider closes."""
SMALL_FILES = json.dumps(_in_place_of_ours(SmallArchive))
"""An archive with five pages in a file."""
ONE_BY_ONE = _in_place_of_ours(SingleSqlite)
"""A database that stores each item before the next one comes."""
