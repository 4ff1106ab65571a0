"""Fetching the files of other sources: in parts, politely, and never for ever."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler.catalogue.fetching import Fetcher, MissingFileError
from moviecrawler.datasets.downloads import DownloadError
from tests.catalogue.files import Asked, FileServer, Reply

FILE = bytes(range(256)) * 1_000


@pytest.fixture
def server() -> Iterator[FileServer]:
    with FileServer() as serving:
        serving.files["/f/file"] = FILE
        yield serving


@pytest.fixture
def fetcher() -> Fetcher:
    return Fetcher("moviecrawler/0 (+https://example.org)", timeout=10, backoff=0.01, part=100_000)


def test_a_file_is_fetched_in_parts_with_an_honest_name(server: FileServer, fetcher: Fetcher, tmp_path: Path) -> None:
    parts: list[int] = []
    fetcher.download(f"{server.url}/f/file", tmp_path / "file", parts.append)
    assert (tmp_path / "file").read_bytes() == FILE
    assert parts == [100_000, 100_000, 56_000]
    assert {asked.headers["user-agent"] for asked in server.asked} == {"moviecrawler/0 (+https://example.org)"}


def test_an_unchanged_file_costs_one_small_answer(server: FileServer, fetcher: Fetcher, tmp_path: Path) -> None:
    fetcher.download(f"{server.url}/f/file", tmp_path / "file")
    server.asked.clear()
    parts: list[int] = []
    fetcher.download(f"{server.url}/f/file", tmp_path / "file", parts.append)
    assert server.paths == ["/f/file"]
    assert parts == [0]


def test_robots_txt_is_asked_for_once_and_obeyed(server: FileServer, fetcher: Fetcher, tmp_path: Path) -> None:
    server.files["/robots.txt"] = b"User-agent: *\nDisallow: /private/\n"
    server.files["/private/file"] = FILE
    for _ in range(2):
        with pytest.raises(DownloadError, match="disallows"):
            fetcher.download(f"{server.url}/private/file", tmp_path / "private")
    fetcher.download(f"{server.url}/f/file", tmp_path / "file")
    assert "/private/file" not in server.paths
    assert [asked.path for asked in server.asked].count("/robots.txt") == 1


@pytest.mark.parametrize(
    "robots",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n",
        # A word of the contact, which is no name of ours.
        b"User-agent: Example\nAllow: /\n\nUser-agent: *\nDisallow: /\n",
    ],
)
def test_robots_txt_is_obeyed_with_a_byte_order_mark_and_whatever_the_contact_is(
    robots: bytes, server: FileServer, fetcher: Fetcher
) -> None:
    server.files["/robots.txt"] = robots
    with pytest.raises(DownloadError, match="disallows"):
        fetcher.get(f"{server.url}/f/file")


def test_waiting_time_that_is_no_number_is_none(server: FileServer, fetcher: Fetcher) -> None:
    server.replies["/f/file"] = lambda _: (503, {"Retry-After": "\xb2"}, b"")
    with pytest.raises(DownloadError, match="tried"):
        fetcher.get(f"{server.url}/f/file")


def test_nothing_is_fetched_while_robots_txt_is_out_of_order(server: FileServer, fetcher: Fetcher) -> None:
    server.replies["/robots.txt"] = lambda _: (500, {}, b"")
    with pytest.raises(DownloadError, match=r"robots\.txt"):
        fetcher.get(f"{server.url}/f/file")
    assert server.paths == []


def test_what_passes_by_itself_is_tried_again(server: FileServer, fetcher: Fetcher, tmp_path: Path) -> None:
    tries: list[Asked] = []

    def trouble(asked: Asked) -> Reply | None:
        tries.append(asked)
        return (503, {}, b"") if len(tries) % 2 else None

    server.replies["/f/file"] = trouble
    fetcher.download(f"{server.url}/f/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == FILE
    assert len(tries) == 6


def test_a_server_that_stays_down_is_told_after_a_few_tries(server: FileServer, fetcher: Fetcher) -> None:
    server.replies["/f/file"] = lambda _: (503, {}, b"")
    with pytest.raises(DownloadError, match=r"HTTP status 503 \(tried 4 times\)"):
        fetcher.get(f"{server.url}/f/file")


def test_a_server_that_asks_for_a_long_wait_is_left_alone(server: FileServer, fetcher: Fetcher) -> None:
    server.replies["/f/file"] = lambda _: (429, {"Retry-After": "3600"}, b"")
    with pytest.raises(DownloadError, match="429"):
        fetcher.get(f"{server.url}/f/file")
    assert server.paths == ["/f/file"]


def test_a_server_that_asks_for_a_short_wait_gets_it(server: FileServer, fetcher: Fetcher) -> None:
    server.replies["/f/file"] = lambda _: (429, {"Retry-After": "1"}, b"") if len(server.paths) == 1 else None
    began = time.monotonic()
    assert fetcher.get(f"{server.url}/f/file").status == 200
    assert time.monotonic() - began >= 1


def test_a_server_that_stalls_is_given_up(server: FileServer, tmp_path: Path) -> None:
    server.stalls.add("/f/file")
    impatient = Fetcher("moviecrawler/0", timeout=0.3, backoff=0.01)
    with pytest.raises(DownloadError, match="TimeoutError"):
        impatient.download(f"{server.url}/f/file", tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_server_that_is_not_there_is_told(fetcher: Fetcher) -> None:
    with FileServer() as gone:
        url = gone.url
    with pytest.raises(DownloadError, match="tried 4 times"):
        fetcher.get(f"{url}/f/file")


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_missing_file_is_no_trouble_of_the_server(
    server: FileServer, fetcher: Fetcher, tmp_path: Path, status: int
) -> None:
    server.replies["/f/gone"] = lambda _: (status, {}, b"")
    with pytest.raises(MissingFileError):
        fetcher.download(f"{server.url}/f/gone", tmp_path / "gone")
    assert server.paths == ["/f/gone"]


def test_an_answer_without_end_is_cut_off(
    server: FileServer, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviecrawler.catalogue.fetching.LARGEST_ANSWER", 100_000)
    with pytest.raises(DownloadError, match="more than 100000 bytes"):
        fetcher.get(f"{server.url}/f/file")
