"""Files under DATA_DIR that appear whole or not at all: spool files, `rejected.jsonl`, and what replaces a file."""

from __future__ import annotations

import errno
import json
import logging
import os
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

logger = logging.getLogger(__name__)

REJECTED = "rejected.jsonl"
"""Items that were refused, one JSON object a line: `store`, `reason` and `item`."""
_ABANDONED_AFTER = 86_400.0
"""Seconds after which nobody writes a draft of a spool file any more."""


def check_data_dir(path: str | os.PathLike[str]) -> Path:
    """Make the folder if it is missing, and return it. Raises ConfigurationError when no file can be written there."""
    if not os.fspath(path):
        raise ConfigurationError("DATA_DIR is empty; set it to a folder, or remove it to use data")
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigurationError(
            f"DATA_DIR is {os.fspath(path)!r}, where nothing can be written ({reason}); set it to a folder where you may write"
        ) from error
    return folder


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Write a file that takes the place of `path` when the block ends well, so that no reader ever sees half of it.

    The draft's name is always the same, so that the next try overwrites what a killed one left: only one process may
    write one `path` at a time.
    """
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def append_rejected(data_dir: Path, store: str, reason: str, item: Any) -> None:
    """Add an item to `rejected.jsonl`; one write a line, so that several processes can share the file.

    An item that can't be written there is told in the log, and is no reason to stop.
    """
    entry = {"store": store, "reason": reason, "item": item}
    try:
        line = msgspec.json.encode(entry)
    except (TypeError, ValueError, OverflowError):
        # The item may be here because of just that value: json escapes lone surrogates and takes numbers of any size.
        plain = asdict(item) if is_dataclass(item) and not isinstance(item, type) else item
        line = json.dumps({**entry, "item": plain}, default=repr).encode()
    try:
        _append_line(data_dir / REJECTED, line)
    except OSError as error:
        logger.error("%s rejected an item, and %s can't be written (%s): %s", store, REJECTED, error, reason)  # noqa: TRY400 - the disk's message says it all


def write_spool(data_dir: Path, store: str, lines: Iterable[bytes]) -> Path:
    """Keep items that a store did not take, one JSON object a line, and return the file. Raises OSError."""
    folder = data_dir / "spool"
    folder.mkdir(exist_ok=True)
    path = folder / f"{store}-{time.time_ns()}-{os.getpid()}.jsonl"
    with replacing(path) as file:
        file.writelines(line.decode() + "\n" for line in lines)
    return path


def spool_files(data_dir: Path, store: str) -> list[Path]:
    """Return the files that earlier runs of a store left, oldest first; drafts of those that were killed are removed."""
    folder = data_dir / "spool"
    for draft in folder.glob(f".{store}-*.draft"):
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > _ABANDONED_AFTER:
                draft.unlink()
    return sorted(folder.glob(f"{store}-*.jsonl"))


def _append_line(path: Path, line: bytes) -> None:
    with path.open("ab+", buffering=0) as file:
        # A full disk, or a power cut, may have left half a line: that must not spoil this one.
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        line += b"\n"
        if file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Make a file's new name survive a power cut."""
    if os.name == "nt":  # pragma: no cover - folders can't be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
