"""What a node sees of itself before it takes a job."""

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from moviecrawler.cluster.fitness import Fitness
from moviecrawler.cluster.options import NodeOptions


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Return the free bytes of folders, by their names; of others, there is plenty."""
    sizes: dict[str, int] = {}

    def disk_usage(folder: Path) -> SimpleNamespace:
        return SimpleNamespace(free=sizes.get(folder.name, 2**40))

    monkeypatch.setattr("moviecrawler.cluster.fitness.shutil.disk_usage", disk_usage)
    return sizes


def node(folder: Path) -> Fitness:
    options = NodeOptions(
        redis_url="", logs_dir=str(folder / "logs"), eggs_dir=str(folder / "eggs")
    )
    return Fitness(options, {"DATA_DIR": str(folder / "data" / "movies")})


def seen(own: Fitness, redis: str = "") -> dict[str, str]:
    own.check(Mock(eviction_fault=lambda: redis))
    return own.faults


@pytest.mark.promise(
    "A job that dies each time is given up, and a node on which jobs would fail takes none."
)
@pytest.mark.parametrize(
    ("name", "shown"), [("logs", "logs_dir"), ("eggs", "eggs_dir"), ("data", "DATA_DIR")]
)
def test_node_whose_disk_is_full_is_not_fit(
    tmp_path: Path, free: dict[str, int], name: str, shown: str
) -> None:
    own = node(tmp_path)
    (tmp_path / "data").mkdir()
    assert seen(own) == {}
    free[name] = 64 * 1024 * 1024 - 1
    expected = f"the disk of {shown} is full: 63 MB are free, and jobs need 64 MB ("
    assert seen(own)["folders"].startswith(expected)
    free[name] += 1
    assert seen(own) == {}


@pytest.mark.parametrize("name", ["logs", "eggs"])
def test_node_that_can_not_write_its_folders_is_not_fit(tmp_path: Path, name: str) -> None:
    own = node(tmp_path)
    (tmp_path / name).touch()
    expected = f"{name}_dir can't be written to: File exists ({tmp_path / name})"
    assert seen(own)["folders"] == expected
    (tmp_path / name).unlink()
    assert seen(own) == {}
    assert list((tmp_path / name).iterdir()) == []


def test_node_whose_redis_throws_keys_away_is_not_fit(tmp_path: Path) -> None:
    own = node(tmp_path)
    for fault in ("it throws keys away", "it still does", ""):
        assert seen(own, fault) == ({"redis": fault} if fault else {})


@pytest.mark.parametrize(("minutes", "direction"), [(3, "ahead of"), (-1440, "behind")])
def test_node_whose_clock_is_wrong_is_not_fit(tmp_path: Path, minutes: int, direction: str) -> None:
    own = node(tmp_path)
    own.note_clock(minutes * 60)
    expected = f"the clock of this machine is {abs(minutes):,} minutes {direction} that of Redis"
    assert own.faults["clock"].startswith(expected)
    own.note_clock(1)
    assert own.faults == {}


def test_node_that_could_not_run_a_job_lets_others_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = node(tmp_path)
    now = 1000.0
    monkeypatch.setattr("moviecrawler.cluster.fitness.time.monotonic", lambda: now)
    own.note_failure("toy/a could not be run")
    assert own.faults == {"job": "toy/a could not be run"}
    now += 10
    assert own.faults == {}
