"""Memory that a spider's process shares with its node: which page the process is at, and which pages have made one hang.

Neither of them waits for the other, and what it holds outlives the process, however that ends.
One side is the node's, the other one the egg's, which may be of another version: its name and its places stay.

    bytes 0 to 4095     length (4 bytes) and JSON of `Work`; length 0 when no page is being read
    bytes 4096 to 65535 length and JSON of a list of URLs, which the node writes before the process starts
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

DESCRIPTOR = "SPIDER_MEMORY_FD"
"""The environment variable with the number of the memory's descriptor, in a spider's process that a node has started."""
SIZE = 64 * 1024
_WORK, _HUNG = 0, 4096
_LENGTH = 4
_LONGEST_URL = 2000


class Work(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a process is at."""

    url: str
    lease: str = ""
    """The id of the request in the shared frontier; empty for one that is not from there."""


def create_memory() -> int:
    """Return the descriptor of fresh memory, which ends with its last user."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("spider")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, SIZE)
    return descriptor


class NodeMemory:
    """The memory, as both sides use it."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, SIZE)

    def close(self) -> None:
        """Let go of it."""
        self._memory.close()

    @property
    def work(self) -> Work | None:
        """What the process is at; None when that is no page, or can't be read, as the process died while it wrote."""
        return self._read(_WORK, _HUNG, Work)  # type: ignore[no-any-return]

    def begin(self, work: Work) -> None:
        """Tell that a page is being read."""
        self._write(_WORK, _HUNG, Work(work.url[:_LONGEST_URL], work.lease))

    def end(self) -> None:
        """Tell that none is."""
        self._memory[_WORK : _WORK + _LENGTH] = bytes(_LENGTH)

    @property
    def hung(self) -> frozenset[str]:
        """URLs of pages that have made processes hang, and are not to be fetched by this one."""
        return frozenset(self._read(_HUNG, SIZE, list[str]) or ())

    def forbid(self, urls: Sequence[str]) -> None:
        """Name those, as many as there is room for."""
        kept: list[str] = []
        room = SIZE - _HUNG - _LENGTH
        for url in urls:
            if len(msgspec.json.encode([*kept, url])) > room:
                break
            kept.append(url)
        self._write(_HUNG, SIZE, kept)

    def _write(self, start: int, end: int, value: Any) -> None:
        encoded = msgspec.json.encode(value)
        if len(encoded) > end - start - _LENGTH:
            encoded = b""
        self._memory[start + _LENGTH : start + _LENGTH + len(encoded)] = encoded
        self._memory[start : start + _LENGTH] = len(encoded).to_bytes(_LENGTH, "little")

    def _read(self, start: int, end: int, kind: Any) -> Any:
        length = int.from_bytes(self._memory[start : start + _LENGTH], "little")
        if not 0 < length <= end - start - _LENGTH:
            return None
        try:
            return msgspec.json.decode(self._memory[start + _LENGTH : start + _LENGTH + length], type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
