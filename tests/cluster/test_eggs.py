"""Versions of projects.

They are checked before they are one, the same on all nodes, and intact when they are used.
"""

import errno
import io
import re
import shutil
import zipfile
from pathlib import Path
from socket import gethostname
from unittest.mock import Mock

import pytest
import redis
from scrapyd.config import Config

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster import eggs, keys
from moviecrawler.cluster.eggs import RedisEggStorage, find_egg
from moviecrawler.cluster.node import Node
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.state import Argument, Egg
from tests.services.nodes import egg, project_egg, toy_egg

OTHER = {"toy/spiders.py": "import scrapy\n\n\nclass Other(scrapy.Spider):\n    name = 'other'\n"}


def zipped(content: bytes, damage: bytes = b"", method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an egg of one file, of which some bytes are others."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", method) as archive:
        archive.writestr("toy", content)
    data = bytearray(written.getvalue())
    data[35 : 35 + len(damage)] = damage
    return bytes(data)


def storage(folder: Path, redis_url: str) -> RedisEggStorage:
    """Return the storage of a node with a folder of its own."""
    config = Config({})
    config.node = Node(NodeOptions(redis_url=redis_url, eggs_dir=str(folder)))
    return RedisEggStorage(config)


@pytest.fixture
def egg_store(tmp_path: Path, redis_url: str) -> RedisEggStorage:
    """Return a node's storage of eggs."""
    return storage(tmp_path / "eggs", redis_url)


@pytest.fixture
def _listed_by_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moviecrawler.cluster.eggs.list_spiders", named_in)


def named_in(path: Path) -> dict[str, list[Argument]]:
    names = re.findall(r"name = .(\w+).", (path / "toy" / "spiders.py").read_text())
    return {name: [] for name in names}


def known(store: RedisEggStorage) -> list[Egg]:
    return list(store._state.eggs())


@pytest.mark.promise("A deployed version is on all nodes at once.")
@pytest.mark.usefixtures("_listed_by_text")
def test_latest_deploy_is_the_latest_version_on_all_nodes(
    egg_store: RedisEggStorage, tmp_path: Path, redis_url: str
) -> None:
    first = toy_egg("1")
    other = storage(tmp_path / "other", redis_url)
    egg_store.put(first, "toy", "1763730000")
    egg_store.put(toy_egg("2", more=OTHER), "toy", "v1.2.0")
    assert [one.version for one in known(other)] == ["1763730000", "v1.2.0"]
    assert named_in(other.fetch("a", "toy", None)) == {"other": []}
    assert "quick" in named_in(other.fetch("b", "toy", "1763730000"))
    egg_store.put(first, "toy", "1763730000")
    assert find_egg(known(other), "toy").version == "1763730000"
    for project, version, expected in (
        ("toy", "2", "version '2' not found"),
        ("boy", "1", "project 'boy' not found"),
    ):
        with pytest.raises(ConfigurationError, match=expected):
            other.delete(project, version)
    other.delete("toy", "1763730000")
    assert named_in(egg_store.fetch("a", "toy", None)) == {"other": []}
    other.delete("toy")
    assert known(egg_store) == egg_store._client.keys("*egg*") == []


def test_spiders_of_an_egg_are_listed_in_a_process_that_knows_no_secret_of_the_node(
    egg_store: RedisEggStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    curious = "import os\nimport scrapy\nprint('not a spider')\n" + "".join(
        f"class {name}(scrapy.Spider):\n    name = os.environ.get({name!r}, 'none') + {name!r}\n"
        for name in ("SCRAPYD_PASSWORD", "SCRAPYD_REDIS_URL", "DATABASE_URL")
    )
    for name in ("SCRAPYD_USERNAME", "SCRAPYD_PASSWORD", "DATABASE_URL"):
        monkeypatch.setenv(name, "known")
    egg_store.put(toy_egg(more={"toy/spiders.py": curious}), "toy", "1")
    assert known(egg_store)[0].spiders == [
        "knownDATABASE_URL",
        "noneSCRAPYD_PASSWORD",
        "noneSCRAPYD_REDIS_URL",
    ]


def test_an_egg_s_spiders_name_their_arguments(egg_store: RedisEggStorage) -> None:
    arguments = egg_store.put(project_egg(), "moviecrawler", "1").arguments["imdb"]
    choices = {argument.name: argument.choices for argument in arguments}
    assert choices["ids"] == []
    assert {"top", "all"} <= set(choices["list"])
    assert choices["via"] == ["auto", "pages", "datasets"]


@pytest.mark.promise(
    "A broken version never becomes one, and `scrapyd-deploy` says why and exits with 1."
)
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"no egg", "egg is not a ZIP file (if using curl, use egg=@path not egg=path)"),
        (zipped(b"x = 1\n" * 1000, b"\xff" * 9), "can't be unpacked: Error -3 while decompressing"),
        (
            zipped(b"x = 1\n" * 1000, b"\xff" * 9, zipfile.ZIP_BZIP2),
            "can't be unpacked: Invalid data stream",
        ),
        (
            zipped(b"x = 1\n" * 1000, b"\5\0" + b"\xff" * 9, zipfile.ZIP_LZMA),
            "be unpacked: Invalid or unsupported",
        ),
        (
            toy_egg(more={"é": ""}).replace("é".encode(), b"\xff\xfe"),
            "can't be unpacked: 'utf-8' codec can't decode",
        ),
        (
            zipped(bytes(11 * 1024 * 1024)),
            "the egg has 1 files of 11,534,336 bytes when it is unpacked",
        ),
        (toy_egg(more={f"toy/{number}": "" for number in range(200)}), "it may have 150"),
        (toy_egg(more={"x" * 300: ""}), "can't be unpacked: File name too long"),
        (toy_egg(more={"toy/link": "", "toy/link/file": ""}), "can't be unpacked"),
        (toy_egg(more={"toy/spiders.py": "raise SystemExit(0)"}), "can't be listed: exit code 0"),
        (toy_egg(more={"toy/spiders.py": "import os; os.write(2, b'\\xff'); broken"}), "NameError"),
        (egg({"toy/__init__.py": ""}, None), "no entry point `settings`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_broken_egg_never_becomes_a_version(
    data: bytes,
    expected: str,
    egg_store: RedisEggStorage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, most in (("_MAX_UNPACKED_BYTES", 10 * 2**20), ("_MAX_FILES", 150)):
        monkeypatch.setattr(eggs, name, most)
    with pytest.raises(ConfigurationError) as error:
        egg_store.put(data, "toy", "broken")
    assert expected in str(error.value)
    assert str(tmp_path) not in str(error.value).partition("\n")[0]
    assert known(egg_store) == []
    assert not any((tmp_path / "eggs").glob("new-*/*"))


@pytest.mark.usefixtures("_listed_by_text")
def test_copy_that_is_gone_is_fetched_again_and_an_egg_writes_nowhere_but_into_its_folder(
    egg_store: RedisEggStorage, redis_client: redis.Redis, tmp_path: Path
) -> None:
    egg_store.put(toy_egg(more={"../../outside": "x", "/absolute-of-an-egg": "x"}), "toy", "1")
    assert [path.name for path in tmp_path.iterdir()] == ["eggs"]
    assert not Path("/absolute-of-an-egg").exists()
    for _ in range(2):
        path = egg_store.fetch("a", "toy", "1")
        assert (path / "toy" / "spiders.py").stat().st_size > 0
        assert path.parent.stat().st_mode & 0o077 == 0
        shutil.rmtree(path)
    redis_client.hset(keys.EGG_FILES, "toy/1", toy_egg())  # which others have written there
    with pytest.raises(ConfigurationError, match="damaged; deploy it again"):
        egg_store.fetch("a", "toy", "1")
    redis_client.delete(keys.EGG_FILES)
    with pytest.raises(ConfigurationError, match="gone"):
        egg_store.fetch("a", "toy", "1")


@pytest.mark.usefixtures("_listed_by_text")
def test_an_egg_may_be_as_large_as_the_bounds(
    egg_store: RedisEggStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(io.BytesIO(toy_egg())) as archive:
        sizes = [member.file_size for member in archive.infolist()]
    monkeypatch.setattr(eggs, "_MAX_UNPACKED_BYTES", sum(sizes))
    monkeypatch.setattr(eggs, "_MAX_FILES", len(sizes))
    egg_store.put(toy_egg(), "toy", "1")
    assert [one.version for one in known(egg_store)] == ["1"]


@pytest.mark.usefixtures("_listed_by_text")
def test_versions_have_a_bound_and_so_has_what_a_node_keeps_on_its_disk(
    egg_store: RedisEggStorage, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eggs, "VERSIONS_KEPT", 2)
    left = tmp_path / "other" / f"new-{gethostname()}" / "tmpx.egg"
    left.mkdir(parents=True)
    other = storage(tmp_path / "other", redis_url)
    hashes: list[str] = []
    for version in ("1", "2", "3", "4"):
        egg_store.put(toy_egg(version), "toy", version)
        hashes.append(other.fetch(version, "toy", version).stem)
        if version != "2":
            other.release(version)
    assert [one.version for one in known(egg_store)] == ["3", "4"]
    # The second one is gone, and a spider still runs from it.
    assert {path.stem for path in (tmp_path / "other").glob("*.egg")} == {*hashes[1:]}
    assert not left.exists()


@pytest.mark.usefixtures("_listed_by_text")
def test_copy_that_a_node_can_not_make_is_a_fault_of_the_node(
    egg_store: RedisEggStorage, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    egg_store.put(toy_egg("1"), "toy", "1")
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr("moviecrawler.cluster.eggs.ZipFile.extractall", full)
    with pytest.raises(OSError, match="No space left"):
        storage(tmp_path / "other", redis_url).fetch("a", "toy", "1")
