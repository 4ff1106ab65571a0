"""Files under DATA_DIR: what replaces a file as a whole, and the lines of `rejected.jsonl`."""

from __future__ import annotations

import errno
import json
import logging
import os
import tempfile
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
from filelock import FileLock, Timeout
from itemadapter import ItemAdapter

from moviecrawler.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

REJECTED = "rejected.jsonl"
"""Items that were refused, one JSON object a line: `store`, `reason` and `item`."""
_MAX_REJECTED_BYTES = 64 * 1024 * 1024
"""Bytes after which another file is begun. The one before is kept, so that there are two at most."""
_MAX_LINE_BYTES = 1024 * 1024
"""Bytes of an item there; of a larger one, so many characters of each text and members of each list are kept."""
_MAX_TEXT_CHARS = 1_000
_MAX_LIST_ITEMS = 100
_LOCK_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for another process that begins a new file."""


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


def append_rejected(data_dir: Path, store: str, reason: str, item: Any) -> bool:
    """Add an item to `rejected.jsonl`, and return whether that worked; if not, the log has it.

    One write a line, so that several processes can share the file. When it is full, it becomes `rejected.1.jsonl`, in place
    of the one before. Of an item that takes more than a line may, only the beginning of each long text is kept.
    """
    entry = {"store": store, "reason": reason, "item": item}
    try:
        line = msgspec.json.encode(entry)
    except (TypeError, ValueError, OverflowError):
        # The item may be here because of just that value: json escapes lone surrogates and takes numbers of any size.
        line = json.dumps({**entry, "item": _plain(item)}, default=repr).encode()
    if len(line) > _MAX_LINE_BYTES:
        line = json.dumps(_cut({**entry, "item": _plain(item)}), default=lambda value: _cut(repr(value))).encode()
    try:
        _turn_over(data_dir / REJECTED)
        _append_line(data_dir / REJECTED, line)
    except OSError as error:
        logger.error("%s rejected an item, and %s can't be written (%s): %s", store, REJECTED, error, reason)  # noqa: TRY400 - the disk's message says it all
        return False
    return True


def _plain(item: Any) -> Any:
    return ItemAdapter(item).asdict() if ItemAdapter.is_item(item) else item


def _cut(value: Any) -> Any:
    """Return a value of JSON whose texts and lists are short enough for a line."""
    if isinstance(value, str) and len(value) > _MAX_TEXT_CHARS:
        return f"{value[:_MAX_TEXT_CHARS]}… ({len(value):,} characters)"
    if isinstance(value, dict):
        return {_cut(name): _cut(part) for name, part in islice(value.items(), _MAX_LIST_ITEMS)}
    if isinstance(value, list):
        more = [f"… ({len(value):,} in all)"] if len(value) > _MAX_LIST_ITEMS else []
        return [*map(_cut, value[:_MAX_LIST_ITEMS]), *more]
    return value


def _turn_over(path: Path) -> None:
    """Begin a new file when this one is full."""
    if not path.exists() or path.stat().st_size < _MAX_REJECTED_BYTES:
        return
    with suppress(Timeout), FileLock(path.with_suffix(".lock"), timeout=_LOCK_TIMEOUT_SECONDS):
        # Another process may have done it meanwhile: then this file is new, and must not take the place of the full one.
        if path.stat().st_size >= _MAX_REJECTED_BYTES:
            path.replace(path.with_suffix(".1.jsonl"))


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
