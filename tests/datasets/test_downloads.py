from __future__ import annotations

import asyncio
import os
import time
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, signals
from scrapy.exceptions import StopDownload
from scrapy.http import Headers, Response
from scrapy.signalmanager import SignalManager
from twisted.python.failure import Failure
from twisted.web.iweb import UNKNOWN_LENGTH

from moviecrawler.datasets.downloads import DownloadError, Downloads, RangedDownload, expect_parts, forget

FILE = bytes(range(256)) * 40
PART = 1000


class Server:
    """Answers as a server of files does, with an ETag and ranges."""

    def __init__(self, body: bytes = FILE, etag: str | None = '"1"') -> None:
        self.body, self.etag = body, etag
        self.asked: list[dict[str, str]] = []

    def answer(self, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        self.asked.append(headers)
        given = {"etag": self.etag} if self.etag else {}
        if self.etag and headers.get("If-None-Match") == self.etag:
            return 304, given, b""
        if "If-Range" in headers and headers["If-Range"] != self.etag:
            return 200, given, self.body
        first, last = map(int, headers["Range"].removeprefix("bytes=").split("-"))
        if first >= len(self.body):
            return 416, given, b""
        part = self.body[first : last + 1]
        return 206, {**given, "content-range": f"bytes {first}-{first + len(part) - 1}/{len(self.body)}"}, part


def fetch(path: Path, server: Server, most: int = 100) -> RangedDownload:
    download = RangedDownload(path, PART)
    for _ in range(most):
        if download.accept(*server.answer(download.headers())):
            break
    download.close()
    return download


def test_file_is_fetched_in_parts(tmp_path: Path) -> None:
    server = Server()
    fetch(tmp_path / "a" / "file", server)
    assert (tmp_path / "a" / "file").read_bytes() == FILE
    assert len(server.asked) == 11
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["file", "file.etag", "file.lock"]


def test_unchanged_file_is_not_fetched_again(tmp_path: Path) -> None:
    fetch(tmp_path / "file", Server())
    server = Server()
    fetch(tmp_path / "file", server)
    assert len(server.asked) == 1
    assert (tmp_path / "file").read_bytes() == FILE


def test_changed_file_replaces_the_old_one_only_when_it_is_whole(tmp_path: Path) -> None:
    fetch(tmp_path / "file", Server())
    newer = Server(FILE[::-1], '"2"')
    fetch(tmp_path / "file", newer, most=5)
    assert (tmp_path / "file").read_bytes() == FILE
    fetch(tmp_path / "file", newer)
    assert (tmp_path / "file").read_bytes() == FILE[::-1]


def test_interrupted_download_goes_on_where_it_was(tmp_path: Path) -> None:
    fetch(tmp_path / "file", Server(), most=4)
    assert not (tmp_path / "file").exists()
    server = Server()
    fetch(tmp_path / "file", server)
    assert (tmp_path / "file").read_bytes() == FILE
    assert server.asked[0]["Range"] == "bytes=4000-4999"


def test_part_cut_by_a_kill_is_completed(tmp_path: Path) -> None:
    fetch(tmp_path / "file", Server(), most=4)
    partial = tmp_path / "file.part"
    partial.write_bytes(partial.read_bytes()[:3456])
    fetch(tmp_path / "file", Server())
    assert (tmp_path / "file").read_bytes() == FILE


def test_part_without_its_etag_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "file.part").write_bytes(b"something else")
    fetch(tmp_path / "file", Server())
    assert (tmp_path / "file").read_bytes() == FILE


@pytest.mark.parametrize("answers_whole", [True, False])
def test_file_that_changes_on_the_way_is_never_mixed(tmp_path: Path, answers_whole: bool) -> None:
    fetch(tmp_path / "file", Server(), most=4)
    newer = Server(FILE[::-1], '"2"')
    if not answers_whole:  # a server that does not know If-Range
        know_nothing, answer = newer, newer.answer
        know_nothing.answer = lambda headers: answer({k: v for k, v in headers.items() if k != "If-Range"})  # type: ignore[method-assign]
    fetch(tmp_path / "file", newer)
    assert (tmp_path / "file").read_bytes() == FILE[::-1]


def test_file_that_became_shorter_is_fetched_anew(tmp_path: Path) -> None:
    fetch(tmp_path / "file", Server(), most=9)
    fetch(tmp_path / "file", Server(FILE[:1500], '"1"'))
    assert (tmp_path / "file").read_bytes() == FILE[:1500]


def test_an_answer_of_more_than_a_part_is_stopped_and_the_file_asked_for_anew_or_as_a_whole(tmp_path: Path) -> None:
    fetch(tmp_path / "file", Server(), most=4)
    download = RangedDownload(tmp_path / "file", PART)
    assert not download.accept(200, {"content-length": f"{len(FILE)}"}, b"")  # it has changed since the last part
    assert download.headers()["Range"] == "bytes=0-999"
    assert not download.accept(200, {"content-length": f"{len(FILE)}"}, b"")  # the server gives no parts
    assert (download.whole, "Range" in download.headers()) == (len(FILE), False)
    assert download.accept(200, {}, FILE)
    download.close()
    large = RangedDownload(tmp_path / "large", PART)
    with pytest.raises(DownloadError, match="large has 9,000 MB, of which the server gives no parts"):
        large.accept(200, {"content-length": "9000000000"}, b"")
    large.close()


@pytest.mark.parametrize(
    ("asked", "length", "headers", "is_stopped"),
    [
        ("bytes=0-999", 1_001, {}, True),
        ("bytes=0-999", 1_000, {}, False),
        ("bytes=0-999", UNKNOWN_LENGTH, {}, False),
        ("", 1_001, {}, False),
        ("bytes=0-999", 1_001, {"Content-Range": "bytes 0-1000/9000"}, False),  # a part, if a larger one
        ("bytes=0-999", 1_001, {"Content-Type": "text/html; charset=utf-8"}, False),  # by which a block is known
    ],
)
def test_only_files_that_come_whole_are_stopped(
    asked: str, length: object, headers: dict[str, str], is_stopped: bool
) -> None:
    crawler: Any = SimpleNamespace(signals=SignalManager())
    expect_parts(crawler)
    request = Request("https://example.org/file", headers={"Range": asked} if asked else {})
    given = {"headers": Headers(headers), "body_length": length, "request": request, "spider": None}
    ((_, answer),) = crawler.signals.send_catch_log(signals.headers_received, dont_log=StopDownload, **given)
    assert isinstance(answer, Failure) is is_stopped


def test_file_that_changes_all_the_time_is_given_up(tmp_path: Path) -> None:
    download = RangedDownload(tmp_path / "file", PART)

    def change_for_ever() -> None:
        for number in range(50):
            start = number % 2 * PART
            headers = {"etag": f'"{number}"', "content-range": f"bytes {start}-{start + PART - 1}/9000"}
            download.accept(206, headers, bytes(PART))

    with pytest.raises(DownloadError, match="changes faster"):
        change_for_ever()
    download.close()


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (500, {}, b""),
        (206, {}, b"abc"),
        (206, {"content-range": "bytes 0-5/9"}, b"abc"),
        (206, {"content-range": "bytes 5-7/9", "etag": '"1"'}, b"abc"),
        (206, {"content-range": "bytes 0-2/9"}, b"abc"),
    ],
)
def test_answer_that_does_not_fit_is_refused(tmp_path: Path, status: int, headers: dict[str, str], body: bytes) -> None:
    download = RangedDownload(tmp_path / "file", PART)
    with pytest.raises(DownloadError):
        download.accept(status, headers, body)
    download.close()
    assert not (tmp_path / "file").exists()


def test_a_part_of_nothing_is_not_asked_for_again_for_ever(tmp_path: Path) -> None:
    download = RangedDownload(tmp_path / "file", PART)
    assert not download.accept(206, {"content-range": "bytes 0-2/9", "etag": '"1"'}, b"abc")
    with pytest.raises(DownloadError, match="0 bytes as 'bytes 3-2/9'"):
        download.accept(206, {"content-range": "bytes 3-2/9", "etag": '"1"'}, b"")
    download.close()


def test_damaged_file_is_forgotten(tmp_path: Path) -> None:
    fetch(tmp_path / "file", Server())
    forget(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file.lock"]


def test_two_processes_that_fetch_at_once_do_not_mix_their_parts(tmp_path: Path) -> None:
    server = Server()
    one, other = RangedDownload(tmp_path / "file", PART), RangedDownload(tmp_path / "file", PART + 7)
    done = {one: False, other: False}
    while not all(done.values()):
        for download, is_done in done.items():
            done[download] = is_done or download.accept(*server.answer(download.headers()))
    assert (tmp_path / "file").read_bytes() == FILE
    one.close()
    other.close()


def test_a_part_that_nobody_goes_on_with_is_removed(tmp_path: Path) -> None:
    server = Server()
    day_ago, now = time.time() - 24 * 3600 - 10, time.time() - 3600
    for name, changed in (("file.1.part", day_ago), ("file.1.part.etag", day_ago), ("file.2.part", now)):
        (tmp_path / name).write_bytes(b"abc")
        os.utime(tmp_path / name, (changed, changed))
    one, other = RangedDownload(tmp_path / "file", PART), RangedDownload(tmp_path / "file", PART)
    for download in (one, other):
        download.accept(*server.answer(download.headers()))
        download.close()
    left = {path.name for path in tmp_path.iterdir()} - {"file.lock"}
    assert left == {"file.2.part", "file.part", "file.part.etag"}


def test_a_file_that_the_disk_has_no_room_for_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")  # noqa: PYI024 - as shutil has it
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(0, 0, 100_000_000))
    download = RangedDownload(tmp_path / "large.gz", 10)
    headers = {"content-range": "bytes 0-9/900000000", "etag": '"1"'}
    with pytest.raises(DownloadError, match=r"large.gz has 900 MB, and 100 MB are free in .*; make room"):
        download.accept(206, headers, b"0123456789")
    download.close()
    assert not list(tmp_path.glob("*.part"))


def test_files_are_fetched_in_turn_and_progress_is_told_now_and_then_with_the_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"https://example.org/{name}": tmp_path / name for name in "ab"}
    downloads = Downloads(files, 1_000_000)
    asked = []

    async def answer(request: Request) -> Response:
        server = Server(bytes(11_000_000) if request.url.endswith("a") else b"small")
        status, headers, body = server.answer(
            {str(key): str(value) for key, value in request.headers.to_unicode_dict().items()}
        )
        asked.append((request.url[-1], len(body)))
        return Response(request.url, status, headers, body)

    async def run() -> list[str | None]:
        for _ in range(2):
            await downloads.accept(await answer(downloads.next_request()))
        lines = [downloads.progress(now) for now in (0.0, 9.0)]
        await downloads.accept(await answer(downloads.next_request()))
        return [*lines, downloads.progress(10.0), downloads.progress(11.0)]

    assert asyncio.run(run()) == [None, None, "2 of 11 MB, 0.1 MB a second, 2 min left", None]
    monkeypatch.setattr("moviecrawler.datasets.downloads._PROGRESS_SECONDS", 0)
    lines: list[str] = []
    asyncio.run(downloads.finish(answer, lines.append))
    assert (len(lines), lines[-1].split(" MB")[0]) == (9, "10 of 11")
    assert downloads.progress(1e12) is None  # all is there
    downloads.close()
    assert asked == [("a", 1_000_000), ("b", 5), *[("a", 1_000_000)] * 10]
    assert [path.stat().st_size for path in files.values()] == [11_000_000, 5]
