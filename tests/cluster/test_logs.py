"""One job, one log, on whatever nodes it ran."""

from __future__ import annotations

from pathlib import Path

from moviecrawler.cluster import logs
from moviecrawler.cluster.environment import START_WORD, append_log_line
from moviecrawler.cluster.logs import byte_ranges


def parts(path: Path, first: int, last: int) -> str:
    content = path.read_bytes()
    return b"".join(content[begin:end] for begin, end in byte_ranges(path, first, last)).decode()


def test_lines_of_a_start_are_found_however_long_the_log_is(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    written = {}
    for start in (1, 2, 5):
        before = path.stat().st_size if path.exists() else 0
        if start > 1:
            append_log_line(path, f"{START_WORD} {start} of this job, on node1")
        with path.open("a") as file:
            for number in range(3000):
                file.write(f"start {start} line {number} {'x' * (number % 97)}\n")
        written[start] = path.read_text()[before:]
    assert path.stat().st_size > 3 * logs._CHUNK_BYTES
    for start, text in written.items():
        assert parts(path, start, start) == text
    assert parts(path, 3, 4) == ""
    assert parts(path, 2, 9) == written[2] + written[5]
    assert parts(path, 1, 9) == path.read_text()


def test_line_that_only_mentions_a_start_is_no_start(tmp_path: Path) -> None:
    path = tmp_path / "job.log"
    path.write_text("a 2026-01-01 00:00:00 [moviecrawler.cluster] INFO: Start 2 of this job\n" + "y" * 200_000)
    assert byte_ranges(path, 1, 1) == [(0, path.stat().st_size)]
    assert byte_ranges(path, 2, 2) == []
