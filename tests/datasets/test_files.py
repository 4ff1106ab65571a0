"""Files of other sources, fetched politely and used only when they are whole.

A fetch is resumed, and a file is fetched again only when it has changed.
"""

import gzip
import multiprocessing
import os
import threading
from base64 import encodebytes
from collections import namedtuple
from collections.abc import Callable, Iterator
from hashlib import md5
from pathlib import Path

import pytest

from moviecrawler.datasets import files
from moviecrawler.datasets.files import DownloadError, FileClient, MissingFileError
from tests.file_server import FileServer
from tests.scripted_site import Told
from tests.waiting import wait_for

BODY = gzip.compress(encodebytes(os.urandom(2_300_000)), 0)
CHANGED = gzip.compress(b"others\n" * 40_000)
AGENT = "moviecrawler/0 (+https://example.org)"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PAUSES_SECONDS", (0, 0, 0))
    monkeypatch.setattr(files, "_TIMEOUTS", (10.0, 2.0))


@pytest.fixture
def server() -> Iterator[FileServer]:
    """Return a server of one file."""
    with FileServer() as serving:
        serving.files["/a.gz"] = BODY
        yield serving


def fetch(
    server: FileServer,
    path: Path,
    *,
    report: Callable[[str], object] = print,
    obey_robots: bool = True,
) -> Path:
    FileClient(AGENT, report, obey_robots=obey_robots).download(f"{server.url}/a.gz", path)
    return path


def asked(server: FileServer, header: str) -> list[str | None]:
    return [one.headers.get(header) for one in server.asked if one.path == "/a.gz"]


@pytest.mark.promise(
    "A dataset is fetched once until it changes, and a broken fetch goes on where it was."
)
def test_a_file_is_fetched_once_with_an_honest_name_until_it_changes(
    server: FileServer, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "a.gz"
    assert fetch(server, path).read_bytes() == BODY
    assert fetch(server, path).read_bytes() == BODY
    assert asked(server, "if-none-match") == [None, server.log[-1][1].headers["ETag"]]
    assert {one.headers["user-agent"] for one in server.asked} == {AGENT}
    server.files["/a.gz"] = CHANGED
    assert fetch(server, path).read_bytes() == CHANGED
    path.unlink()  # as it turned out to be damaged
    assert fetch(server, path).read_bytes() == CHANGED


@pytest.mark.promise(
    "A dataset is fetched once until it changes, and a broken fetch goes on where it was."
)
@pytest.mark.parametrize("body", [BODY, CHANGED], ids=["same", "changed"])
def test_a_broken_fetch_goes_on_and_never_mixes_versions(
    server: FileServer, tmp_path: Path, body: bytes
) -> None:
    etag = f'"{md5(BODY).hexdigest()}"'  # noqa: S324 - as the server has it
    whole = {"ETag": etag, "Content-Length": f"{len(BODY)}"}
    breaks = iter([Told(200, BODY[:2_500_000], whole)])
    server.answers["/a.gz"] = lambda _: next(breaks, Told(500))
    path = tmp_path / "a.gz"
    with pytest.raises(DownloadError):
        fetch(server, path)
    assert not path.exists()
    assert 0 < (tmp_path / "a.gz.part").stat().st_size <= 2_500_000
    server.answers.clear()
    server.files["/a.gz"] = body
    assert fetch(server, path).read_bytes() == body
    assert (asked(server, "range")[-1] or "").startswith("bytes=")


@pytest.mark.promise(
    "A dataset is fetched once until it changes, and a broken fetch goes on where it was."
)
def test_a_crawl_killed_after_the_last_byte_leaves_no_older_file(
    server: FileServer, tmp_path: Path
) -> None:
    path = fetch(server, tmp_path / "a.gz")
    server.files["/a.gz"] = CHANGED
    (tmp_path / "a.gz.part").write_bytes(CHANGED)
    # As the server has it.
    (tmp_path / "a.gz.etag").write_text(f'"{md5(CHANGED).hexdigest()}"')  # noqa: S324
    assert fetch(server, path).read_bytes() == CHANGED


def test_a_part_of_an_unknown_version_is_not_resumed(server: FileServer, tmp_path: Path) -> None:
    (tmp_path / "a.gz.part").write_bytes(b"something else")
    assert fetch(server, tmp_path / "a.gz").read_bytes() == BODY
    assert asked(server, "range") == [None]


def test_a_server_without_ranges_and_etags_gives_the_file(
    server: FileServer, tmp_path: Path
) -> None:
    server.answers["/a.gz"] = Told(200, BODY)
    for _ in range(2):
        assert fetch(server, tmp_path / "a.gz").read_bytes() == BODY


def test_a_server_that_is_busy_for_a_moment_is_asked_again(
    server: FileServer, tmp_path: Path
) -> None:
    server.answers["/a.gz"] = lambda _: Told(503) if len(server.pages) < 1 else None
    assert fetch(server, tmp_path / "a.gz").read_bytes() == BODY


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (Told(404), MissingFileError, "HTTP status 404"),
        (Told(403), MissingFileError, "HTTP status 403"),
        (Told(500), DownloadError, "500 Server Error"),
        (
            Told(200, BODY[:-20]),
            DownloadError,
            "is not a complete gzip file, and is fetched anew next time",
        ),
        (
            Told(200, BODY[:-6] + bytes([BODY[-6] ^ 1]) + BODY[-5:]),
            DownloadError,
            "is not a complete gzip file.*CRC",
        ),
        (
            Told(200, b"<html>Sorry</html>", {"Content-Type": "text/html"}),
            DownloadError,
            "is not a complete gzip file",
        ),
        (
            Told(302, headers={"Location": "http://localhost:9/"}),
            DownloadError,
            "HTTP status 302, http://localhost:9/",
        ),
        (
            Told(206, b"abc", {"Content-Range": "bytes 5-7/9"}),
            DownloadError,
            "from 0 on, got HTTP status 206, bytes 5-7/9",
        ),
    ],
    ids=["missing", "forbidden", "error", "cut", "checksum", "html", "other-host", "other-part"],
)
def test_what_is_no_whole_file_is_an_error_and_leaves_the_file_before_it(
    server: FileServer, tmp_path: Path, reply: Told, error: type[Exception], message: str
) -> None:
    path = fetch(server, tmp_path / "a.gz")
    server.answers["/a.gz"] = reply
    with pytest.raises(error, match=message):
        fetch(server, path)
    assert path.read_bytes() == BODY
    server.answers.clear()
    server.files["/a.gz"] = CHANGED
    assert fetch(server, path).read_bytes() == CHANGED


RULES = b"User-agent: moviecrawler\nDisallow: /\n"


@pytest.mark.parametrize(
    ("robots", "message"),
    [
        (Told(200, RULES), "disallowed by robots.txt"),
        (Told(200, b"\xef\xbb\xbf" + RULES), "disallowed by robots.txt"),
        (Told(200, RULES.decode().encode("utf-16")), "disallowed by robots.txt"),
        (
            Told(
                200,
                iter([b"# ours\n", RULES]),
            ),
            "disallowed by robots.txt",
        ),
        (Told(200, RULES + b"# much\n" * 200_000), "disallowed by robots.txt"),
        (Told(503), "503 Server Error.*robots.txt"),
    ],
    ids=["disallowed", "byte-order-mark", "utf-16", "chunks", "long", "unknown"],
)
def test_robots_txt_is_obeyed(
    server: FileServer, tmp_path: Path, robots: Told, message: str
) -> None:
    server.answers["/robots.txt"] = robots
    with pytest.raises(DownloadError, match=message):
        fetch(server, tmp_path / "a.gz")
    assert server.pages == []
    assert fetch(server, tmp_path / "a.gz", obey_robots=False).exists()


def test_a_file_that_the_disk_has_no_space_for_is_not_begun(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")  # noqa: PYI024 - as shutil has it
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(0, 0, 67_000_000))
    with pytest.raises(DownloadError, match=r" lacks 3 MB of free space for a.gz; free some"):
        fetch(server, tmp_path / "a.gz")
    assert not (tmp_path / "a.gz.part").exists()


def test_progress_has_the_time_left(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_PROGRESS_SECONDS", 0)
    lines: list[str] = []
    fetch(server, tmp_path / "a.gz", report=lines.append)
    assert lines[0].startswith("a.gz: 1 of 3 MB, ")
    assert lines[0].endswith(" min left")


def test_a_second_process_waits_for_the_first_and_goes_on_after_its_death(
    server: FileServer, tmp_path: Path
) -> None:
    server.stalls.add("/a.gz")
    part = tmp_path / "a.gz.part"
    process = multiprocessing.get_context("fork").Process(
        target=fetch, args=(server, tmp_path / "a.gz")
    )
    process.start()
    wait_for(lambda: part.exists() and part.stat().st_size)
    server.stalls.clear()
    asked_before = len(server.pages)
    threading.Timer(1, process.kill).start()
    assert fetch(server, tmp_path / "a.gz").read_bytes() == BODY
    assert len(server.pages) == asked_before + 1
    process.join(10)


def table(rows: int) -> bytes:
    return gzip.compress(b"id\tvotes\n" + b"tt0000001\t5\n" * rows, mtime=0)


@pytest.mark.promise(
    "IMDb's datasets are read with all that they tell, and a damaged row or file erases nothing."
)
@pytest.mark.parametrize(("rows", "is_accepted"), [(4, False), (5, True), (0, False)])
def test_a_file_with_less_than_half_of_the_rows_is_refused_and_the_one_before_it_used(
    server: FileServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    rows: int,
    is_accepted: bool,
) -> None:
    client = FileClient(AGENT, print)
    path = tmp_path / "a.gz"
    for count in (10, rows, rows):
        server.files["/a.gz"] = table(count)
        client.download(f"{server.url}/a.gz", path, header_lines=1)
    assert path.read_bytes() == table(rows if is_accepted else 10)
    told = f"/a.gz is refused, as it has {rows} rows, and the file before it 10, which is used"
    assert caplog.text.count(told) == (0 if is_accepted else 2)
    assert not (tmp_path / "a.gz.part").exists()
    if rows:
        path.unlink()  # as the sentence says
        client.download(f"{server.url}/a.gz", path, header_lines=1)
        assert path.read_bytes() == table(rows)


def test_a_file_from_another_address_is_no_measure_for_one(
    server: FileServer, tmp_path: Path
) -> None:
    client = FileClient(AGENT, print)
    for count in (10, 1):
        server.files[f"/{count}/a.gz"] = table(count)
        client.download(f"{server.url}/{count}/a.gz", tmp_path / "a.gz", header_lines=1)
    assert (tmp_path / "a.gz").read_bytes() == table(1)


@pytest.mark.parametrize("body", [table(0), gzip.compress(b"")], ids=["header", "empty"])
def test_a_first_file_without_rows_is_an_error(
    server: FileServer, tmp_path: Path, body: bytes
) -> None:
    server.files["/a.gz"] = body
    client = FileClient(AGENT, print)
    with pytest.raises(DownloadError, match=r"a.gz has no rows, and is fetched anew next time"):
        client.download(f"{server.url}/a.gz", tmp_path / "a.gz", header_lines=1)
    assert not (tmp_path / "a.gz").exists()


def test_a_carriage_return_becomes_a_byte_that_costs_its_row_only(
    server: FileServer, tmp_path: Path
) -> None:
    plain = b"id\n" + b"tt0000001\n" * 200_000
    server.files["/a.gz"] = gzip.compress(plain + b"tt00\r00002\ntt0000003\r\n" + plain)
    path = fetch(server, tmp_path / "a.gz")
    assert gzip.decompress(path.read_bytes()) == plain + b"tt00\xff00002\ntt0000003\n" + plain
    assert sorted(one.name for one in tmp_path.iterdir() if "lock" not in one.name) == [
        "a.gz",
        "a.gz.etag",
        "a.gz.rows",
    ]
