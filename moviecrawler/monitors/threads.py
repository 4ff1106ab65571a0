"""Reading and writing a book off the event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from moviecrawler.monitors.books import BookError

if TYPE_CHECKING:
    from collections.abc import Callable

    from moviecrawler.monitors.books import Book

T = TypeVar("T")

_LONGEST = 30.0
"""Seconds that a call is waited for; the book's own time-outs end it before."""


class BookThread:
    """A book, and the one thread that uses it."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="alarms")

    async def call(self, use: Callable[[Book], T]) -> T:
        """Return what `use` returns. Raises BookError."""
        running = asyncio.get_running_loop().run_in_executor(self._thread, use, self._book)
        try:
            return await asyncio.wait_for(running, _LONGEST)
        except TimeoutError:
            raise BookError(f"alarms can't be read or written: no answer within {_LONGEST:g} s") from None

    async def close(self) -> None:
        """Disconnect."""
        try:
            await self.call(lambda book: book.close())
        except BookError:
            pass
        finally:
            self._thread.shutdown(wait=False)
