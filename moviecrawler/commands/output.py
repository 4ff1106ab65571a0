"""What commands print to the standard output."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def printing(*, encoding: str | None = None, errors: str | None = None, newline: str | None = None) -> Iterator[None]:
    """Print in the block, in that form; it ends quietly when whoever reads has seen enough, such as `head`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding=encoding, errors=errors, newline=newline)
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # Else the interpreter complains when it flushes what is left at its end.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
