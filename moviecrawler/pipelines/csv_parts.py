"""Writes a CSV file anew, with all that has not changed copied from the file before."""

from __future__ import annotations

import csv
import os
from array import array
from io import BytesIO
from itertools import accumulate, islice
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from moviecrawler.basics.texts import neutralise
from moviecrawler.database.csv_files import WHOLE, Parts, WrittenFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

ROWS_AT_ONCE: Final = 500
_BYTES_AT_ONCE = 1024 * 1024


class Encoder:
    """Turns rows into what a file has of them, for programs or for Excel."""

    def __init__(self, *, excel: bool = False) -> None:
        self._excel = excel
        self._lines: list[str] = []
        self._writer = csv.writer(SimpleNamespace(write=self._lines.append))

    def header(self, names: Iterable[str]) -> bytes:
        """Return what a file begins with."""
        self._writer.writerow(names)
        return (b"\xef\xbb\xbf" if self._excel else b"") + self._encoded()

    def rows(self, rows: Iterator[Iterable[Any]], most: int = ROWS_AT_ONCE) -> bytes:
        """Return the next rows, `most` of them if there are as many."""
        batch = islice(rows, most)
        self._writer.writerows(map(_neutralised, batch) if self._excel else batch)
        return self._encoded()

    def _encoded(self) -> bytes:
        text = "".join(self._lines)
        self._lines.clear()
        return text.encode()


class PartsFile:
    """A file, of which the parts that have changed are written anew."""

    def __init__(
        self,
        path: Path,
        parts: Iterable[tuple[int, int]],
        known: Parts | None,
        changed: set[int],
    ) -> None:
        """Find out what is to be written.

        Args:
            path: Where the file is.
            parts: The id of each part, and how many rows it has, in their order.
            known: The parts of the file as it is; None if they are not known.
            changed: The ids of those that have changed.
        """
        self.path = path
        self.ids = array("q")
        """The parts, in their order."""
        self._known = known
        self._rows = array("q")
        for part, rows in parts:
            self.ids.append(part)
            self._rows.append(rows)
        self._places = {part: place for place, part in enumerate(known.ids if known else ())}
        self.new = {
            part
            for part in self.ids
            if part == WHOLE or part in changed or part not in self._places
        }
        """The parts that are to be written."""

    @property
    def is_as_before(self) -> bool:
        """Whether nothing is to be written."""
        return self._known is not None and not self.new and self.ids == self._known.ids

    def write(
        self,
        target: BinaryIO,
        header: bytes,
        rows: Iterator[Iterable[Any]],
        encoder: Encoder,
        on_rows: Callable[[int], object],
    ) -> WrittenFile:
        """Write the file, and return what it is then.

        Args:
            target: Where it is written.
            header: What it begins with, as the file before does.
            rows: The rows of the new parts.
            encoder: Encodes these.
            on_rows: Called with how many rows were written.
        """
        known = self._known or Parts(array("q"), array("q"))
        starts = array("q", accumulate(known.lengths, initial=len(header)))
        new_lengths = array("q")
        begin = end = 0  # what is copied next
        target.write(header)
        with self.path.open("rb") if self._known else BytesIO() as source:
            for part, count in zip(self.ids, self._rows, strict=True):
                if part in self.new:
                    _copy(source, target, begin, end)
                    begin = end = 0
                    length = 0
                    for first in range(0, count, ROWS_AT_ONCE):
                        most = min(count - first, ROWS_AT_ONCE)
                        length += target.write(encoder.rows(rows, most))
                else:
                    place = self._places[part]
                    length = known.lengths[place]
                    if starts[place] != end:
                        _copy(source, target, begin, end)
                        begin = starts[place]
                    end = starts[place] + length
                new_lengths.append(length)
                on_rows(count)
            _copy(source, target, begin, end)
        target.flush()
        status = os.fstat(target.fileno())
        parts = Parts(self.ids, new_lengths)
        return WrittenFile(self.path.name, status.st_size, status.st_mtime_ns, parts)


def _copy(source: BinaryIO, target: BinaryIO, begin: int, end: int) -> None:
    """Copy what a file has from one place to another.

    Raises OSError when the file ends before, as somebody has cut it since it was looked at.
    """
    source.seek(begin)
    left = end - begin
    while left:
        copied = source.read(min(left, _BYTES_AT_ONCE))
        if not copied:
            raise OSError("a CSV file was cut while it was copied; the next export writes it whole")
        left -= target.write(copied)


def _neutralised(row: Iterable[Any]) -> list[Any]:
    """Return a row whose texts no spreadsheet takes for formulas."""
    return [neutralise(cell) if isinstance(cell, str) else cell for cell in row]
