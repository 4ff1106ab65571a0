"""`scrapy deploy` and `scrapyd-deploy`: what is in the egg, and what is on the cluster afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moviecrawler.cluster.deployment import DeployError, Target, deploy, read_target, version_for
from moviecrawler.errors import ConfigurationError
from tests.cluster.nodes import Node, cluster, toy_egg
from tests.crawling import scrapy
from tests.deploy.checkout import run
from tests.waiting import wait_for

USER = ("moviecrawler", "a-pass$word")
DEPLOYER = ("deployer", "another-pass$word")
SPIDERS = ["imdb", "metacritic", "rottentomatoes"]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, redis_server: str) -> Iterator[Node]:
    """Return a node of a cluster that takes deploys with credentials of their own."""
    options = {"SCRAPYD_DEPLOY_USERNAME": DEPLOYER[0], "SCRAPYD_DEPLOY_PASSWORD": DEPLOYER[1]}
    folder = tmp_path_factory.mktemp("deploy-node")
    with cluster(folder, redis_server, 1, prefix="deploy", auth=USER, **options) as running:
        yield running.nodes[0]


def production(url: str, credentials: tuple[str, str] = DEPLOYER) -> dict[str, str]:
    """Return the environment of a workflow."""
    return {"SCRAPYD_URL": url, "SCRAPYD_DEPLOY_USERNAME": credentials[0], "SCRAPYD_DEPLOY_PASSWORD": credentials[1]}


def versions(node: Node, project: str) -> list[str]:
    answer = node.get("listversions.json", project=project).json
    return list(answer.get("versions", []))


def _file(folder: Path, data: bytes, name: str = "toy.egg") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# --- To a cluster -----------------------------------------------------------------------------------------------------


def files_of(folder: Path) -> set[str]:
    """Return the paths of the files in a folder that programs read."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".md", ".pyc"}
    }


def test_deploys_every_file_from_a_checkout_and_leaves_nothing_in_it(checkout: Path, node: Node) -> None:
    before = {path.name for path in checkout.iterdir()} | {"build", "moviecrawler.egg-info", "home"}
    ran = run(checkout, "scrapy", "deploy", "production", "--version", "v0.1.0", **production(node.url))
    assert ran.code == 0, ran.output
    assert ran.output == f"moviecrawler v0.1.0 is at {node.url}/ with the spiders imdb, metacritic, rottentomatoes\n"
    assert versions(node, "moviecrawler") == ["v0.1.0"]
    assert node.get("listspiders.json", project="moviecrawler").json["spiders"] == SPIDERS
    assert {path.name for path in checkout.iterdir()} <= before
    [egg_there] = (node.folder.parent / "eggs").glob("*.egg")
    assert "settings = moviecrawler.settings" in (egg_there / "EGG-INFO" / "entry_points.txt").read_text()
    assert files_of(egg_there / "moviecrawler") == files_of(checkout / "moviecrawler")
    assert {Path(name).suffix for name in files_of(egg_there)} >= {".py", ".sql", ".lua", ".typed", ".html", ".css"}


def test_unmodified_scrapyd_deploy_works(checkout: Path, tmp_path: Path, node: Node) -> None:
    given = ("-p", "as-it-comes", "--egg", str(_file(tmp_path, toy_egg())))
    ran = run(checkout, "scrapyd-deploy", "production", "-v", "7", *given, **production(f"{node.url}/"))
    assert ran.code == 0, ran.output
    assert versions(node, "as-it-comes") == ["7"]


def target(url: str, project: str, credentials: tuple[str, str] = DEPLOYER) -> Target:
    return Target(f"{url.rstrip('/')}/", project, {"username": credentials[0], "password": credentials[1]})


def test_version_is_the_time_if_none_is_given() -> None:
    before = time.time()
    version = version_for(target("http://127.0.0.1", "toy"), None)
    assert int(before) <= int(version) <= time.time()


def test_broken_version_is_not_left_on_the_cluster(tmp_path: Path, node: Node) -> None:
    assert node.deploy(toy_egg(), "broken", "1", auth=DEPLOYER).json["status"] == "ok"
    bad = _file(tmp_path, toy_egg(more={"toy/spiders.py": "raise ValueError('broken there')"}))
    with pytest.raises(DeployError, match=r"^broken 1 was not deployed: .*ValueError: broken there"):
        deploy(target(node.url, "broken"), "1", bad)  # in the place of the one that works
    empty = _file(tmp_path, toy_egg(more={"toy/spiders.py": ""}))
    with pytest.raises(DeployError, match="the egg holds no spider"):
        deploy(target(node.url, "broken"), "2", empty)
    assert versions(node, "broken") == ["1"]
    assert "quick" in node.get("listspiders.json", project="broken").json["spiders"]


@pytest.mark.parametrize("credentials", [("deployer", "guessed-pass"), USER])
def test_wrong_credentials_are_an_error_that_does_not_show_them(
    tmp_path: Path, node: Node, credentials: tuple[str, str]
) -> None:
    with pytest.raises(DeployError) as error:
        deploy(target(node.url, "refused", credentials), "1", _file(tmp_path, toy_egg()))
    assert "\n" not in str(error.value)
    assert credentials[1] not in str(error.value)
    assert versions(node, "refused") == []


def test_old_version_is_deployed_again_with_credentials_from_netrc(
    tmp_path: Path, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("1", "2"):
        assert node.deploy(toy_egg(), "again", version, auth=DEPLOYER).json["status"] == "ok"
    netrc = tmp_path / ".netrc"
    netrc.write_text(f"machine 127.0.0.1 login {DEPLOYER[0]} password {DEPLOYER[1]}\n")
    netrc.chmod(0o600)
    (tmp_path / "scrapy.cfg").write_text(f"[deploy]\nurl = {node.url}\nproject = again\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    deploy(read_target("default", None), "1", _file(tmp_path, toy_egg()))
    assert versions(node, "again") == ["2", "1"]


# --- What else can go wrong -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "environment", "expected"),
    [
        ("production", {}, "url of the target 'production' is ${SCRAPYD_URL}; set SCRAPYD_URL"),
        ("production", {"SCRAPYD_URL": "http://127.0.0.1/"}, "set SCRAPYD_DEPLOY_USERNAME"),
        ("production", {"SCRAPYD_URL": "x", "SCRAPYD_DEPLOY_USERNAME": "x"}, "set SCRAPYD_DEPLOY_PASSWORD"),
        ("production", production("127.0.0.1:6800"), "url of the target 'production' is '127.0.0.1:6800'"),
        ("production", production("http://u:p@127.0.0.1"), "holds credentials"),
        ("staging", {}, "no target 'staging'; it has default, production"),
    ],
)
def test_wrong_target_is_one_sentence(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, name: str, environment: dict[str, str], expected: str
) -> None:
    monkeypatch.chdir(checkout)
    for variable in production(""):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError) as error:
        read_target(name, None)
    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_wrong_target_ends_with_code_2_and_a_cluster_that_is_away_with_code_1(checkout: Path) -> None:
    wrong = scrapy("deploy", "staging", data=checkout)
    assert wrong.code == 2
    assert "no target 'staging'" in wrong.log
    assert "Traceback" not in wrong.log
    away = scrapy(
        "deploy", "production", "--egg", "scrapy.cfg", data=checkout, replica=None, **production("http://127.0.0.1:1/")
    )
    assert away.code == 1
    assert away.log.startswith("scrapy deploy: http://127.0.0.1:1/listprojects.json could not be asked: ")
    assert away.log.count("\n") == 1


def test_deploy_that_is_interrupted_while_a_node_checks_the_egg_leaves_nothing(
    checkout: Path, tmp_path: Path, node: Node
) -> None:
    listing, go_on = tmp_path / "listing", tmp_path / "go-on"
    waits = f"import pathlib, time\npathlib.Path({str(listing)!r}).touch()\n"
    waits += f"while not pathlib.Path({str(go_on)!r}).exists():\n    time.sleep(0.05)\n"
    path = _file(tmp_path, toy_egg(more={"toy/__init__.py": waits}))
    process = subprocess.Popen(
        [sys.executable, "-m", "scrapy", "deploy", "production", "-p", "interrupted", "--egg", str(path)],
        cwd=checkout,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), **production(f"{node.url}/")},
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(listing.exists, 60)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "was not deployed: interrupted" in errors
    go_on.touch()
    wait_for(lambda: "refused: whoever has sent the egg is gone" in node.log, 60, lambda: node.log)
    assert versions(node, "interrupted") == []
