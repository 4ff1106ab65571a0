"""Two nodes that the tests of this folder share.

They have a password, one for deploying, and a slot each.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.nodes import AUTH, DEPLOY_PASSWORD, Node, cluster, toy_egg
from tests.services.redis import RedisServer
from tests.waiting import wait_for


@pytest.fixture(scope="session")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder where the toy's spiders tell that they ran."""
    return tmp_path_factory.mktemp("notes")


@pytest.fixture(scope="session")
def shared_nodes(tmp_path_factory: pytest.TempPathFactory, notes: Path) -> Iterator[list[Node]]:
    """Return two nodes with the toy's first version."""
    options = {
        "DATABASE_URL": "postgresql://store:of-the-stores@127.0.0.1:1/x",
        "SCRAPYD_DEPLOY_PASSWORD": DEPLOY_PASSWORD,
        "SCRAPYD_MAX_PROC": "1",
        "SCRAPYD_NODE_URL": "http://nodes.example:6800/",
        # Where a loaded machine is not taken for a dead node.
        "SCRAPYD_LEASE_SECONDS": "12",
    }
    with (
        RedisServer() as redis,
        cluster(tmp_path_factory.mktemp("nodes"), redis.url, 2, auth=AUTH, **options) as made,
    ):
        assert made.nodes[0].deploy(toy_egg("1", notes)).json["status"] == "ok"
        yield made.nodes


@pytest.fixture
def nodes(shared_nodes: list[Node]) -> Iterator[list[Node]]:
    """Return both nodes; leave them without a job."""
    yield shared_nodes
    node = shared_nodes[0]
    for job in [*node.jobs("pending"), *node.jobs("running")]:
        node.post("cancel.json", project=job["project"], job=job["id"], signal="KILL")
    wait_for(lambda: not node.jobs("running"))


@pytest.fixture
def node(nodes: list[Node]) -> Node:
    """Return one of both nodes."""
    return nodes[0]
