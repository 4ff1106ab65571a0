"""The process of a `ReplicaProcess`, whose options it takes as JSON."""

from __future__ import annotations

import asyncio
import sys

import msgspec

from moviecrawler.errors import ConfigurationError
from moviecrawler.replica.app import serve
from moviecrawler.replica.options import Options

if __name__ == "__main__":
    try:
        asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=Options), until_input_ends=True))
    except ConfigurationError as error:
        sys.exit(str(error))
