"""What a node refuses to start with."""

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from scrapyd.config import Config

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.cluster import node
from moviecrawler.cluster.options import NodeOptions, chosen
from tests.shared import PROJECT

REDIS = {"REDIS_URL": "redis://:hunter2@127.0.0.1:1/0"}
OTHERS = ("0.0.0.0", "::", "10.0.0.1", "node1")  # noqa: S104 - it is refused without a password
PASSWORD = {"SCRAPYD_USERNAME": "u", "SCRAPYD_PASSWORD": "hunter2"}


def options(**environment: str) -> NodeOptions:
    return NodeOptions.from_config(Config({}), {**REDIS, **environment})


def test_project_s_own_configuration_is_right_and_may_be_overridden() -> None:
    config = Config(extra_sources=[str(PROJECT / "scrapyd" / "scrapyd.conf")])
    assert NodeOptions.from_config(config, REDIS).max_proc == 6
    assert NodeOptions.from_config(config, {**REDIS, "SCRAPYD_MAX_PROC": "2"}).max_proc == 2
    assert NodeOptions.from_config(Config(), {**REDIS, "SCRAPYD_JOBS_TO_KEEP": "7"}).max_proc == 6
    assert "jobs_to_keep" not in chosen(Config()), "Scrapyd's five are not a node's hundred"
    assert options(SCRAPYD_LEASE_SECONDS="3").lease_seconds == 3


@pytest.mark.parametrize(
    ("environment", "written", "kept"),
    [({}, {}, "100"), ({}, {"jobs_to_keep": "8"}, "8"), ({"SCRAPYD_JOBS_TO_KEEP": "7"}, {}, "7")],
)
def test_a_node_keeps_a_hundred_logs_where_no_other_number_is_set(
    environment: dict[str, str],
    written: dict[str, str],
    kept: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**environment, **PASSWORD, **REDIS}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(node, "_check_port", Mock())
    config = Config({**written, "eggs_dir": str(tmp_path)})
    node.application(config)
    assert config.get("jobs_to_keep") == kept
    assert config.get("password") == "", "Scrapyd's own check is not used"
    assert not {"SCRAPYD_USERNAME", "SCRAPYD_PASSWORD"} & os.environ.keys()


def test_others_reach_it_with_a_password_and_this_machine_without_one() -> None:
    for address in OTHERS:
        assert "hunter2" not in repr(options(SCRAPYD_BIND_ADDRESS=address, **PASSWORD))
    for address in ("127.0.0.1", "::1", "localhost", ""):
        assert not options(SCRAPYD_BIND_ADDRESS=address).password


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"REDIS_URL": ""}, "REDIS_URL is not set"),
        ({"REDIS_URL": "http://u:hunter2@x/"}, "REDIS_URL is not a Redis URL"),
        *(
            ({"SCRAPYD_BIND_ADDRESS": address}, "set SCRAPYD_USERNAME and SCRAPYD_PASSWORD")
            for address in OTHERS
        ),
        ({"SCRAPYD_USERNAME": "u"}, "set username and password"),
        ({"SCRAPYD_PASSWORD": "hunter2"}, "set username and password"),
        ({"SCRAPYD_DEPLOY_PASSWORD": "p"}, "without password"),
        (
            {"SCRAPYD_MAX_PROC": "1001"},
            "max_proc is '1001'; set it to a whole number from 1 to 1,000",
        ),
        (
            {"SCRAPYD_MAX_DEATHS": "3"},
            "SCRAPYD_MAX_DEATHS is not an option of a node; correct or remove it",
        ),
        ({"SCRAPYD_JOB_SETTINGS": "all"}, "job_settings is 'all'; set it to allowed or any"),
        ({"SCRAPYD_LEASE_SECONDS": "2.999"}, "lease_seconds is '2.999'; set it to a number from 3"),
        ({"SCRAPYD_NODE_NAME": "a b"}, "node_name is 'a b'; set it to up to 64 letters"),
    ],
)
def test_what_can_not_be_right_is_said_in_a_sentence(
    environment: dict[str, str], expected: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"^[^\n]+$") as error:
        options(**environment)
    assert expected in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("option", "lowest", "highest"),
    [
        ("http_port", 1, 65_535),
        ("max_proc", 1, 1000),
        ("memory_limit_mb", 0, 1_000_000),
        ("lease_seconds", 3, 3600),
    ],
)
def test_numbers_have_bounds(option: str, lowest: int, highest: int) -> None:
    variable = f"SCRAPYD_{option.upper()}"
    for value in (lowest, highest):
        assert getattr(options(**{variable: str(value)}), option) == value
    for value in (lowest - 1, highest + 1):
        with pytest.raises(ConfigurationError, match=f"^{option} is '{value}'; set it to a "):
            options(**{variable: str(value)})


def test_option_that_does_nothing_is_refused() -> None:
    for option in ("max_procs", "items_dir", "finished_to_keep"):
        expected = (
            f"^scrapyd.conf sets {option}, which a node of a cluster does not use; "
            "correct or remove it$"
        )
        with pytest.raises(ConfigurationError, match=expected):
            NodeOptions.from_config(Config({option: "3"}), REDIS)
