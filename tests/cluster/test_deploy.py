"""`scrapyd-deploy`: what is in the egg, and what is on the cluster afterwards."""

from pathlib import Path

import pytest

from tests.checkout import Ran, copy_project, run
from tests.services.nodes import AUTH, DEPLOY_PASSWORD, Node, toy_egg

SPIDERS = ["imdb", "metacritic", "rottentomatoes"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout to deploy from."""
    return copy_project(tmp_path_factory.mktemp("deploy") / "checkout")


def scrapyd_deploy(checkout: Path, node: Node, *more: str, password: str = DEPLOY_PASSWORD) -> Ran:
    """Run the command of `.github/workflows/deploy.yml`."""
    secrets = {
        "SCRAPYD_URL": f"{node.url}/",
        "SCRAPYD_USERNAME": AUTH[0],
        "SCRAPYD_DEPLOY_PASSWORD": password,
    }
    return run(checkout, "scrapyd-deploy", "production", "--version", "v0.1.0", *more, **secrets)


def files_of(folder: Path) -> set[str]:
    """Return the paths of the files in a folder that programs read."""
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and path.suffix not in {".md", ".png", ".pyc", ".ipynb"}
    }


@pytest.mark.promise("A deployed version is on all nodes at once.")
def test_deploys_every_file_from_a_checkout_to_all_nodes(checkout: Path, nodes: list[Node]) -> None:
    ran = scrapyd_deploy(checkout, nodes[0])
    assert ran.code == 0, ran.output
    for node in nodes:
        assert node.get("listversions.json", project="moviecrawler").json["versions"] == ["v0.1.0"]
        assert node.get("listspiders.json", project="moviecrawler").json["spiders"] == SPIDERS
    [package] = (nodes[0].folder.parent / "eggs").glob("*.egg/moviecrawler")
    assert (
        "settings = moviecrawler.settings"
        in (package.parent / "EGG-INFO" / "entry_points.txt").read_text()
    )
    assert files_of(package) == files_of(checkout / "moviecrawler")
    assert {Path(name).suffix for name in files_of(package)} >= {
        ".py",
        ".sql",
        ".lua",
        ".typed",
        ".html",
        ".css",
    }
    assert nodes[1].post("delproject.json", project="moviecrawler").json["status"] == "ok"


@pytest.mark.promise(
    "A broken version never becomes one, and `scrapyd-deploy` says why and exits with 1."
)
@pytest.mark.parametrize(
    ("spiders", "password", "expected"),
    [
        ("raise ValueError('broken there')", DEPLOY_PASSWORD, "ValueError: broken there"),
        ("", DEPLOY_PASSWORD, "the egg has no spider"),
        ("", "guessed-pass", "wrong user name or password"),
        ("", AUTH[1], "deploy password required"),
    ],
)
def test_deploy_that_is_refused_exits_with_1_and_the_version_before_stays(
    checkout: Path, tmp_path: Path, nodes: list[Node], spiders: str, password: str, expected: str
) -> None:
    before = [
        nodes[1].get(path, project="toy").text for path in ("listversions.json", "listspiders.json")
    ]
    path = tmp_path / "toy.egg"
    path.write_bytes(toy_egg(more={"toy/spiders.py": spiders}))
    ran = scrapyd_deploy(checkout, nodes[0], "-p", "toy", "--egg", str(path), password=password)
    assert ran.code == 1
    assert expected in ran.output
    assert password not in ran.output
    assert [
        nodes[1].get(path, project="toy").text for path in ("listversions.json", "listspiders.json")
    ] == before
