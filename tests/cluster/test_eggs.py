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

from moviecrawler.cluster.eggs import Egg, EggStore
from moviecrawler.cluster.jobs import BadEggError, UnknownVersionError
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import ClusterState
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
    store.put(io.BytesIO(toy_egg() if data is None else data), project, version)


def test_egg_comes_back_as_it_was_and_the_latest_deploy_is_the_latest_version(store: EggStore) -> None:
    first, second = toy_egg("1"), toy_egg("2", more=OTHER)
    for version, data in (("1763730000", first), ("v1.2.0", second)):
        put(store, version, data)
    assert store.list_projects() == ["toy"]
    assert store.list("toy") == ["1763730000", "v1.2.0"]
    assert store.find("toy").spiders == ["other"]
    found = store.find("toy", "1763730000")
    assert (found.version, store._read(found)) == ("1763730000", first)
    put(store, "1763730000", first)
    assert store.list("toy")[-1] == "1763730000"


def test_version_whose_data_is_damaged_can_be_deployed_again(store: EggStore) -> None:
    put(store)
    store._state.client.hset(store._key, "toy/1", "{")
    assert store.list("toy") == []
    put(store)
    assert store.list("toy") == ["1"]


@pytest.mark.parametrize("change", ["delete", "replace"])
def test_egg_that_is_deployed_while_its_last_version_goes_keeps_its_bytes(
    make: Make, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    store, other = make(), make()
    put(store, "1")
    deletes = redis.Redis.delete

    def delete_when_overtaken(client: redis.Redis, *keys: str) -> object:
        """Another node deploys the same egg just before its bytes are deleted."""
        monkeypatch.setattr(redis.Redis, "delete", deletes)
        put(other, "2")
        return deletes(client, *keys)

    monkeypatch.setattr(redis.Redis, "delete", delete_when_overtaken)
    if change == "delete":
        store.delete("toy", "1")
    else:
        put(store, "1", toy_egg(more=OTHER))
    assert store._read(store.find("toy", "2")) == toy_egg()


def test_version_that_can_never_be_changed_is_given_up(store: EggStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where an egg takes longer than a time-out of Redis: redis-py tells that as a conflict, too."""
    conflicts = iter([redis.exceptions.WatchError] * 50)

    def fail(pipe: redis.client.Pipeline) -> None:
        pipe.reset()
        raise next(conflicts)

    monkeypatch.setattr(redis.client.Pipeline, "execute", fail)
    with pytest.raises(redis.exceptions.TimeoutError, match="could not be changed in 20 tries"):
        put(store)


def test_job_that_starts_while_its_version_is_deployed_anew_gets_the_new_egg(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, starting = make(), make(eggs_dir=str(tmp_path / "other"))
    put(store)
    read = EggStore._read

    def read_when_overtaken(self: EggStore, found: Egg) -> bytes:
        put(store, data=toy_egg(more=OTHER))
        return read(self, found)

    monkeypatch.setattr(EggStore, "_read", read_when_overtaken)
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
    assert other.list_projects() == []


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
        (bomb(), "unpacks to 11,534,336 bytes"),
    ],
)
def test_broken_egg_never_becomes_a_version(
    data: bytes, expected: str, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(egg_max_mb=1)
    with monkeypatch.context() as patch:
        patch.setattr("moviecrawler.cluster.eggs.list_spiders", _named_in)
        put(store, "good")
    with pytest.raises(BadEggError) as error:
        put(store, "broken", data)
    assert expected in str(error.value)
    assert store.list("toy") == ["good"]
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
    key = f"{{cluster}}:egg:{known.sha256}"
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


def test_bytes_of_an_egg_stay_while_any_version_has_them(store: EggStore) -> None:
    put(store, "1")
    put(store, "2")
    store.delete("toy", "1")
    assert store.fetch("toy", None)[1].exists()
    digest = store.find("toy").sha256
    store.delete("toy")
    assert store._client.get(store._state.keys.egg(digest)) is None


def test_oldest_versions_are_deleted_beyond_the_limit(make: Make) -> None:
    store = make(versions_to_keep=2)
    for version in ("1", "2", "3"):
        put(store, version, toy_egg(version))
    assert store.list("toy") == ["2", "3"]


def test_copies_in_use_stay_on_the_disk(store: EggStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moviecrawler.cluster.eggs._UNUSED_COPIES", 1)
    for version in ("1", "2", "3"):
        put(store, version, toy_egg(version))
    monkeypatch.setattr("moviecrawler.cluster.eggs._LIST_SECONDS", 0.0)
    old, used, new = (store.find("toy", version) for version in ("1", "2", "3"))
    hashes = {each.sha256 for each in (old, used, new)}
    paths = [store.fetch("toy", version, hashes)[1] for version in ("1", "2", "3")]
    os.utime(paths[0], (1, 1))
    os.utime(paths[1], (2, 2))
    store.fetch("toy", "3", {used.sha256})
    assert [path.exists() for path in paths] == [False, True, True]
