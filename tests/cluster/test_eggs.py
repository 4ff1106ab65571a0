"""Versions of projects: checked before they are one, the same on all nodes, intact when they are used."""

from __future__ import annotations

import io
import os
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from moviecrawler.cluster import eggs
from moviecrawler.cluster.eggs import EggStore
from moviecrawler.cluster.jobs import BadEggError, UnknownVersionError
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import ClusterState, Egg
from moviecrawler.errors import ConfigurationError
from tests.cluster.nodes import egg, toy_egg

OTHER = {"toy/spiders.py": "import scrapy\n\n\nclass Other(scrapy.Spider):\n    name = 'other'\n"}


@pytest.fixture(autouse=True)
def _quick_listing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """List spiders by their text, but where a test is about how they are listed."""
    if "broken" not in request.node.name and "listed" not in request.node.name:
        monkeypatch.setattr("moviecrawler.cluster.eggs.list_spiders", _named_in)


def _named_in(path: Path) -> list[str]:
    return re.findall(r"name = .(\w+).", (path / "toy" / "spiders.py").read_text())


def spoilt(at: int, by: int, again: int) -> bytes:
    """Return an egg of which a byte of its first file's header, and of that in the table at its end, is another one."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy/__init__.py", "x = 1\n" * 1000)
    data = bytearray(written.getvalue())
    data[at] = data[data.find(b"PK\x01\x02") + again] = by
    return bytes(data)


def damaged() -> bytes:
    """Return an egg whose first file can't be decompressed."""
    data = bytearray(spoilt(6, 0, 8))
    data[45:60] = b"\xff" * 15
    return bytes(data)


def bomb() -> bytes:
    """Return a small egg that would fill the disk."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(11 * 1024 * 1024))
    return written.getvalue()


Make = Callable[..., EggStore]


@pytest.fixture
def make(tmp_path: Path, redis_url: str) -> Make:
    """Return what makes the store of a node with these options."""
    return lambda **options: EggStore(
        ClusterState(NodeOptions(**{"redis_url": redis_url, "eggs_dir": str(tmp_path / "eggs"), **options}))
    )


@pytest.fixture
def store(make: Make) -> EggStore:
    return make()


def put(store: EggStore, version: str = "1", data: bytes | None = None, project: str = "toy") -> None:
    store.put(toy_egg() if data is None else data, project, version)


def versions(store: EggStore, project: str = "toy") -> list[str]:
    return [egg.version for egg in store._state.snapshot().eggs if egg.project == project]


def test_egg_comes_back_as_it_was_and_the_latest_deploy_is_the_latest_version(store: EggStore) -> None:
    first, second = toy_egg("1"), toy_egg("2", more=OTHER)
    for version, data in (("1763730000", first), ("v1.2.0", second)):
        put(store, version, data)
    assert store._state.snapshot().projects == ["toy"]
    assert versions(store) == ["1763730000", "v1.2.0"]
    assert store.find("toy").spiders == ["other"]
    found = store.find("toy", "1763730000")
    assert (found.version, store.read(found)) == ("1763730000", first)
    put(store, "1763730000", first)
    assert versions(store)[-1] == "1763730000"


def test_job_that_starts_while_its_version_is_deployed_anew_gets_the_new_egg(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, starting = make(), make(eggs_dir=str(tmp_path / "other"))
    put(store)
    read = EggStore.read

    def read_when_overtaken(self: EggStore, found: Egg) -> bytes:
        put(store, data=toy_egg(more=OTHER))
        return read(self, found)

    monkeypatch.setattr(EggStore, "read", read_when_overtaken)
    found, path = starting.fetch("toy", "1")
    assert (found.spiders, _named_in(path)) == (["other"], ["other"])


def test_what_an_egg_prints_is_not_listed_as_a_spider(store: EggStore) -> None:
    spiders = "import scrapy\nprint('not a spider')\nclass A(scrapy.Spider):\n    name = 'a'\n"
    put(store, data=toy_egg(more={"toy/spiders.py": spiders}))
    assert store.find("toy").spiders == ["a"]


def test_spiders_of_an_egg_are_listed_in_a_process_that_knows_no_secret_of_the_node(
    store: EggStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    curious = "import os\nimport scrapy\n" + "".join(
        f"class {name}(scrapy.Spider):\n    name = os.environ.get({name!r}, 'none') + {name!r}\n"
        for name in ("SCRAPYD_PASSWORD", "SCRAPYD_REDIS_URL", "DATABASE_URL")
    )
    for name in ("SCRAPYD_USERNAME", "SCRAPYD_PASSWORD", "DATABASE_URL"):
        monkeypatch.setenv(name, "known")
    put(store, data=toy_egg(more={"toy/spiders.py": curious}))
    assert store.find("toy").spiders == ["knownDATABASE_URL", "noneSCRAPYD_PASSWORD", "noneSCRAPYD_REDIS_URL"]


def test_other_node_with_a_folder_of_its_own_sees_a_version_at_once(
    store: EggStore, make: Make, tmp_path: Path
) -> None:
    put(store)
    other = make(eggs_dir=str(tmp_path / "other"))
    assert (other.fetch("toy", None)[1] / "toy" / "spiders.py").exists()
    store.delete("toy", "1")
    assert other._state.snapshot().projects == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"no egg", "not a ZIP file"),
        (toy_egg(more={"toy/spiders.py": "def broken(:"}), "SyntaxError"),
        (toy_egg(more={"toy/spiders.py": "raise SystemExit(0)"}), "can't be listed: exit code 0"),
        (toy_egg(more={"toy/spiders.py": "import os; os.write(2, b'\\xff'); broken"}), "NameError"),
        (egg({"toy/__init__.py": ""}, None), "no entry point `settings`"),
        (spoilt(6, 1, 8), "the egg is damaged: File"),  # said to be encrypted
        (spoilt(8, 99, 10), "the egg is damaged: That compression method is not supported"),
        (damaged(), "the egg is damaged: Error -3 while decompressing"),
        (toy_egg() + bytes(1024 * 1024), "more than 1,048,576 bytes"),
        (bomb(), "the egg has 11,534,336 bytes when it is unpacked"),
        (toy_egg(more={"x" * 300: ""}), "the egg has 300 bytes in a name"),
        (toy_egg(more={"toy/link": "", "toy/link/file": ""}), "two of its names are in each other's way"),
        (toy_egg(more={f"toy/{number}": "" for number in range(200)}), "files, and may have 150"),
        (toy_egg(more={"toy/spiders.py": ""}), "the egg holds no spider"),
    ],
)
def test_broken_egg_never_becomes_a_version(
    data: bytes, expected: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make()
    for name, most in (("MAX_EGG_BYTES", 2**20), ("_MAX_UNPACKED_BYTES", 10 * 2**20), ("_MAX_FILES", 150)):
        monkeypatch.setattr(eggs, name, most)
    with monkeypatch.context() as patch:
        patch.setattr("moviecrawler.cluster.eggs.list_spiders", _named_in)
        put(store, "good")
    with pytest.raises(BadEggError) as error:
        put(store, "broken", data)
    assert expected in str(error.value)
    assert versions(store) == ["good"]
    assert len(list((tmp_path / "eggs").iterdir())) == 1


@pytest.mark.parametrize(("project", "version"), [("../up", "1"), ("toy", "1\n2")])
def test_hostile_names_are_refused(project: str, version: str, store: EggStore) -> None:
    with pytest.raises(ConfigurationError):
        put(store, version, project=project)


def test_copy_that_is_gone_is_fetched_again_and_a_damaged_egg_is_not_used(
    store: EggStore, redis_client: redis.Redis, tmp_path: Path
) -> None:
    put(store)
    known = store.find("toy")
    for _ in range(2):
        path = store.fetch("toy", "1")[1]
        assert (path / "toy" / "spiders.py").stat().st_size > 0
        assert path.parent.stat().st_mode & 0o077 == 0
        shutil.rmtree(path)
    key = store._keys.egg(known.key)
    redis_client.set(key, b"others' code")
    with pytest.raises(BadEggError, match="damaged; deploy it again"):
        store.fetch("toy", "1")
    redis_client.delete(key)
    with pytest.raises(BadEggError, match="gone"):
        store.fetch("toy", "1")
    assert list((tmp_path / "eggs").iterdir()) == []


def test_egg_writes_nowhere_but_into_its_folder(store: EggStore, tmp_path: Path) -> None:
    put(store, data=toy_egg(more={"../../outside": "x", "/absolute-of-an-egg": "x"}))
    assert [path.name for path in tmp_path.iterdir()] == ["eggs"]
    assert not Path("/absolute-of-an-egg").exists()


def test_unknown_project_and_unknown_version_are_different_errors(store: EggStore) -> None:
    put(store)
    with pytest.raises(UnknownVersionError, match="version '2' not found"):
        store.find("toy", "2")
    with pytest.raises(UnknownVersionError, match="project 'boy' not found"):
        store.delete("boy")


def test_copies_in_use_stay_on_the_disk(store: EggStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eggs, "_UNUSED_COPIES", 1)
    for version in ("1", "2", "3"):
        put(store, version, toy_egg(version))
    monkeypatch.setattr(eggs, "_LIST_SECONDS", 0.0)
    old, used, new = (store.find("toy", version) for version in ("1", "2", "3"))
    hashes = {each.sha256 for each in (old, used, new)}
    paths = [store.fetch("toy", version, hashes)[1] for version in ("1", "2", "3")]
    os.utime(paths[0], (1, 1))
    os.utime(paths[1], (2, 2))
    store.fetch("toy", "3", {used.sha256})
    assert [path.exists() for path in paths] == [False, True, True]


def test_bytes_of_an_egg_go_with_its_version_and_another_version_keeps_its_own(store: EggStore) -> None:
    put(store, "1")
    put(store, "2")
    store.delete("toy", "1")
    assert store.fetch("toy", None)[1].exists()
    store.delete("toy")
    assert store._client.keys("*egg:*") == []


def test_oldest_versions_are_deleted_beyond_the_limit(store: EggStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eggs, "VERSIONS_KEPT", 2)
    for version in ("1", "2", "3"):
        put(store, version, toy_egg(version))
    assert versions(store) == ["2", "3"]


def test_what_a_killed_node_was_checking_is_removed_later(
    store: EggStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store)
    left = tmp_path / "eggs" / "tmpx.new.egg"
    left.mkdir()
    store.fetch("toy", "1")
    assert left.exists()
    monkeypatch.setattr(eggs, "_LIST_SECONDS", 0.0)
    store.fetch("toy", "1")
    assert not left.exists()
