"""The process of a `ReplicaProcess`, whose options it takes as JSON. It ends with its standard input, too."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.app import serve
from moviecrawler.replica.options import Options


async def _end_of_input() -> None:
    """Return when standard input ends, which it does when the process at its other end is gone."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


if __name__ == "__main__":
    try:
        asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=Options), until=_end_of_input))
    except ConfigurationError as error:
        sys.exit(str(error))
