"""Reads and writes the WARC 1.1 records that responses of the sites are archived as.

Records are not compressed, as sites send pages compressed: one range request gets a page, and
archiving costs hardly more than a copy. A body that is gzip has a checksum of its own, which
decompressing it compares; any other has a digest in its record. Not warcio: it takes 2.3 to 2.9
times the processor time to write a record, and reads a file that was cut off without an error.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from moviecrawler.basics.errors import ArchiveError
from moviecrawler.basics.texts import shown
from moviecrawler.items import ListRow, RawPage, Site
from moviecrawler.sites.identity import Redirect  # noqa: TC001 - msgspec reads annotations
from moviecrawler.sites.ids import check_site

if TYPE_CHECKING:
    from collections.abc import Iterator

_END = b"\r\n\r\n"
"""The end of a record's header, of its HTTP header, and of the record itself."""
_VERSION = b"WARC/1.1"
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_LINE_BYTES = 1024 * 1024
"""A longer header line means that the file is damaged."""
_MAX_BLOCK_BYTES = 1024**3
"""A record whose header has a larger length is damaged."""


class Request(msgspec.Struct, kw_only=True):
    """What is known of a request, and has no header in WARC.

    They are written as JSON in WARC-JSON-Metadata, as other tools do.
    """

    site: Site
    site_id: str | None
    """The title that was requested; None for a list page."""
    attempts: int
    """1 when the first request succeeded."""
    found: ListRow | None
    """What the list that led to the title has of it."""
    pool: str = "direct"
    """The proxy pool that sent the request."""
    redirects: list[Redirect] = []
    """How the requested address led to that of the page."""


class Answer(Request, kw_only=True):
    """A site's response as it was sent, with what is known of its request."""

    url: str
    status: int
    headers: list[tuple[str, str]]
    """These include Content-Encoding when the body is compressed."""
    body: bytes
    """As it was sent, compressed or not, but without chunks."""
    fetched_at: datetime
    """UTC."""
    archive_id: str
    """WARC-Record-ID, `urn:uuid:…`."""


def write_record(answer: Answer) -> RawPage:
    """Return the response as a WARC record."""
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = ""
    http_lines = [
        f"HTTP/1.1 {answer.status} {phrase}",
        *(f"{name}: {value}" for name, value in answer.headers),
    ]
    http_head = "\r\n".join(http_lines).encode("latin-1") + _END
    metadata = {name: getattr(answer, name) for name in Request.__struct_fields__}
    fields = {
        "WARC-Type": "response",
        "WARC-Record-ID": f"<{answer.archive_id}>",
        "WARC-Date": answer.fetched_at.astimezone(UTC)
        .isoformat(timespec="microseconds")
        .replace("+00:00", "Z"),
        "WARC-Target-URI": answer.url,
        **_digest(answer.body),
        "WARC-JSON-Metadata": msgspec.json.encode(metadata).decode(),
        "Content-Type": "application/http; msgtype=response",
        "Content-Length": str(len(http_head) + len(answer.body)),
    }
    head = "".join(f"\r\n{name}: {value}" for name, value in fields.items()).encode()
    record = b"".join((_VERSION, head, _END, http_head, answer.body, _END))
    return RawPage(
        site=answer.site,
        site_id=answer.site_id,
        fetched_at=answer.fetched_at,
        archive_id=answer.archive_id,
        record=record,
    )


def read_record(record: bytes) -> Answer:
    """Return the response that a record holds, whose body may be damaged if it is gzip.

    Raises ArchiveError for any other damage.
    """
    try:
        head, http_head, body = record[: -len(_END)].split(_END, 2)
        fields = _fields(head)
        status_line, *lines = http_head.decode("latin-1").split("\r\n")
        if any(fields[name.lower()] != digest for name, digest in _digest(body).items()):
            raise ArchiveError(
                f"{fields['warc-record-id']}: the body is not the one that was archived"
            )
        metadata = msgspec.json.decode(fields["warc-json-metadata"], type=Request)
        check_site(metadata.site)
        return Answer(
            **msgspec.structs.asdict(metadata),
            url=fields["warc-target-uri"],
            status=int(status_line.split(" ")[1]),
            headers=[_pair(line) for line in lines],
            body=body,
            fetched_at=datetime.fromisoformat(fields["warc-date"]),
            archive_id=fields["warc-record-id"].strip("<>"),
        )
    except (KeyError, ValueError, IndexError, msgspec.DecodeError, RecursionError) as error:
        raise ArchiveError(
            f"a record is not one that this project wrote: {type(error).__name__}: {error}"
        ) from error


def read_records(file: BinaryIO) -> Iterator[bytes]:
    """Yield the response records of a WARC file.

    Raises ArchiveError when it is damaged, or ends early.
    """
    while first := file.readline(_MAX_LINE_BYTES):
        lines = [first]
        while lines[-1] not in {b"\r\n", b""}:
            lines.append(file.readline(_MAX_LINE_BYTES))
        head = b"".join(lines)
        try:
            fields = _fields(head.removesuffix(_END))
            size = int(fields["content-length"])
        except (KeyError, ValueError) as error:
            raise ArchiveError(f"no WARC record where one should begin: {first[:40]!r}") from error
        if not 0 <= size <= _MAX_BLOCK_BYTES:
            raise ArchiveError(f"a record has a length of {fields['content-length'][:40]} bytes")
        block = file.read(size + len(_END))
        if len(block) != size + len(_END) or not block.endswith(_END):
            raise ArchiveError("the WARC file ends early")
        if fields.get("warc-type") == "response":
            yield head + block


def _fields(head: bytes) -> dict[str, str]:
    """Return a record's named fields, by lower-case name. Raises ValueError."""
    version_line, *lines = head.decode().split("\r\n")
    if version_line != _VERSION.decode():
        raise ValueError(f"{shown(version_line)} is not {_VERSION.decode()}")
    return {name.lower(): value for name, value in map(_pair, lines)}


def _pair(line: str) -> tuple[str, str]:
    name, separator, value = line.partition(": ")
    if not separator:
        raise ValueError(f"{line[:40]!r} is not a header")
    return name, value


def _digest(body: bytes) -> dict[str, str]:
    """Return the field of a body's digest; none for gzip.

    A digest takes longer than all else of a record.
    """
    if body.startswith(_GZIP_MAGIC):
        return {}
    # Other tools compare SHA-1 in base 32.
    digest = base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()
    return {"WARC-Payload-Digest": f"sha1:{digest}"}
