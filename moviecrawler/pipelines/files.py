"""Files in DATA_DIR: replacing a file atomically, and appending to `rejected.jsonl`."""

from __future__ import annotations

import errno
import json
import logging
import os
import tempfile
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec
from filelock import FileLock, Timeout
from itemadapter import ItemAdapter

from moviecrawler.basics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

REJECTED = "rejected.jsonl"
"""Items that were refused, one JSON object per line: `store`, `reason` and `item`."""
_MAX_REJECTED_BYTES = 64 * 1024 * 1024
"""Size at which a new file is begun. One older file is kept."""
_MAX_LINE_BYTES = 1024 * 1024
"""Size of a line; in a longer one, texts and lists are cut to the lengths below."""
_MAX_TEXT_CHARS = 1_000
_MAX_LIST_ITEMS = 100
_LOCK_TIMEOUT_SECONDS = 10.0
"""Seconds to wait for another process that begins a new file."""


def check_data_dir(path: str | os.PathLike[str]) -> Path:
    """Create the folder if it is missing, and return it.

    Raises ConfigurationError when it is not writable.
    """
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
            f"DATA_DIR is {os.fspath(path)!r}, where nothing can be written ({reason}); "
            "set it to a folder where you may write"
        ) from error
    return folder


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """Give a file that replaces `path` when the block ends without an error.

    No reader ever sees half of it. Only one process at a time may write a `path`: the draft's name
    is fixed, so that the next try overwrites the draft of a killed process.
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


def append_rejected(data_dir: Path, store: str, reason: str, item: object) -> bool:
    """Append an item to `rejected.jsonl`, and return whether that worked.

    If not, the reason is logged. A line is a single write, so that several processes can share the
    file. A full file is renamed to `rejected.1.jsonl`. Long texts and lists of an item that is too
    large for a line are cut.
    """
    entry = {"store": store, "reason": reason, "item": item}
    try:
        line = msgspec.json.encode(entry)
    except (TypeError, ValueError, OverflowError):
        # The item may be rejected because msgspec can't encode it; json escapes lone surrogates and
        # takes numbers of any size.
        plain = ItemAdapter(item).asdict() if ItemAdapter.is_item(item) else item
        line = json.dumps({**entry, "item": plain}, default=repr).encode()
    if len(line) > _MAX_LINE_BYTES:
        line = json.dumps(_truncated(json.loads(line))).encode()
    try:
        _rotate(data_dir / REJECTED)
        _append_line(data_dir / REJECTED, line)
    except OSError as error:
        logger.error(  # noqa: TRY400
            "%s rejected an item, and %s can't be written (%s): %s", store, REJECTED, error, reason
        )
        return False
    return True


def _truncated(value: object) -> object:
    """Return a JSON value with its long texts and lists cut."""
    if isinstance(value, str) and len(value) > _MAX_TEXT_CHARS:
        return f"{value[:_MAX_TEXT_CHARS]}… ({len(value):,} characters)"
    if isinstance(value, dict):
        return {name: _truncated(part) for name, part in islice(value.items(), _MAX_LIST_ITEMS)}
    if isinstance(value, list):
        more = [f"… ({len(value):,} in all)"] if len(value) > _MAX_LIST_ITEMS else []
        return [*map(_truncated, value[:_MAX_LIST_ITEMS]), *more]
    return value


def _rotate(path: Path) -> None:
    """Rename the file when it is full, so that a new one is begun."""
    if not path.exists() or path.stat().st_size < _MAX_REJECTED_BYTES:
        return
    with suppress(Timeout), FileLock(path.with_suffix(".lock"), timeout=_LOCK_TIMEOUT_SECONDS):
        # Another process may have renamed it meanwhile: this file is then new, and must not replace
        # the full one.
        if path.stat().st_size >= _MAX_REJECTED_BYTES:
            path.replace(path.with_suffix(".1.jsonl"))


def _append_line(path: Path, line: bytes) -> None:
    with path.open("ab+", buffering=0) as file:
        # A full disk or a power cut may have left half a line: this one must begin on a line of its
        # own.
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            line = line if file.read(1) == b"\n" else b"\n" + line
        line += b"\n"
        if file.write(line) < len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a file's new name survives a power cut."""
    if os.name == "nt":  # pragma: no cover - folders can't be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
