"""`scrapyd-deploy`: what is in the egg, and what is on the cluster afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.nodes import Node, cluster, toy_egg
from tests.deploy.checkout import Ran, run

USER = ("moviecrawler", "a-pass$word")
DEPLOYER = ("deployer", "another-pass$word")
SPIDERS = ["imdb", "metacritic", "rottentomatoes"]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, redis_server: str) -> Iterator[list[Node]]:
    """Return two nodes of a cluster that takes deploys with credentials of their own."""
    options = {"SCRAPYD_DEPLOY_USERNAME": DEPLOYER[0], "SCRAPYD_DEPLOY_PASSWORD": DEPLOYER[1]}
    folder = tmp_path_factory.mktemp("deploy-node")
    with cluster(folder, redis_server, 2, prefix="deploy", auth=USER, **options) as running:
        yield running.nodes


def scrapyd_deploy(checkout: Path, node: Node, *more: str, auth: tuple[str, str] = DEPLOYER) -> Ran:
    """Run the command of `.github/workflows/deploy.yml`."""
    secrets = {"SCRAPYD_URL": f"{node.url}/", "SCRAPYD_DEPLOY_USERNAME": auth[0], "SCRAPYD_DEPLOY_PASSWORD": auth[1]}
    return run(checkout, "scrapyd-deploy", "production", "--version", "v0.1.0", *more, **secrets)


def files_of(folder: Path) -> set[str]:
    """Return the paths of the files in a folder that programs read."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".md", ".png", ".pyc"}
    }


def test_deploys_every_file_from_a_checkout_to_all_nodes(checkout: Path, nodes: list[Node]) -> None:
    ran = scrapyd_deploy(checkout, nodes[0])
    assert ran.code == 0, ran.output
    for node in nodes:
        assert node.get("listversions.json", project="moviecrawler").json["versions"] == ["v0.1.0"]
        assert node.get("listspiders.json", project="moviecrawler").json["spiders"] == SPIDERS
    [egg_there] = (nodes[0].folder.parent / "eggs").glob("*.egg")
    assert "settings = moviecrawler.settings" in (egg_there / "EGG-INFO" / "entry_points.txt").read_text()
    assert files_of(egg_there / "moviecrawler") == files_of(checkout / "moviecrawler")
    assert {Path(name).suffix for name in files_of(egg_there)} >= {".py", ".sql", ".lua", ".typed", ".html", ".css"}


@pytest.mark.parametrize(
    ("spiders", "expected"),
    [("raise ValueError('broken there')", "ValueError: broken there"), ("", "the egg holds no spider")],
)
def test_broken_version_fails_the_deploy_and_the_one_before_stays(
    checkout: Path, tmp_path: Path, nodes: list[Node], spiders: str, expected: str
) -> None:
    assert nodes[0].deploy(toy_egg(), "broken", "1", auth=DEPLOYER).json["status"] == "ok"
    path = tmp_path / "toy.egg"
    path.write_bytes(toy_egg(more={"toy/spiders.py": spiders}))
    ran = scrapyd_deploy(checkout, nodes[0], "-p", "broken", "--egg", str(path))
    assert ran.code == 1
    assert expected in ran.output
    assert nodes[1].get("listversions.json", project="broken").json["versions"] == ["1"]
    assert "quick" in nodes[1].get("listspiders.json", project="broken").json["spiders"]


@pytest.mark.parametrize("credentials", [("deployer", "guessed-pass"), USER])
def test_wrong_credentials_fail_the_deploy(
    checkout: Path, tmp_path: Path, nodes: list[Node], credentials: tuple[str, str]
) -> None:
    path = tmp_path / "toy.egg"
    path.write_bytes(toy_egg())
    ran = scrapyd_deploy(checkout, nodes[0], "-p", "refused", "--egg", str(path), auth=credentials)
    assert ran.code == 1
    assert credentials[1] not in ran.output
    assert nodes[0].get("listversions.json", project="refused").json.get("versions", []) == []
