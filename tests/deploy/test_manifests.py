"""What starts a cluster elsewhere: each file is right by its published schema, and they agree with each other and the code."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import redis
import yaml  # type: ignore[import-untyped]
from redis.backoff import NoBackoff
from redis.retry import Retry

from moviecrawler.cluster.options import NodeOptions
from tests.conftest import PROJECT
from tests.services.redis import executable
from tests.waiting import wait_for

KUBERNETES = PROJECT / "scrapyd" / "kubernetes"
MANIFESTS: list[dict[str, Any]] = [
    document
    for path in sorted(KUBERNETES.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for document in yaml.safe_load_all(path.read_text("utf-8"))
]
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
ENTRYPOINT = PROJECT / "scrapyd" / "entrypoint.sh"
COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DEPLOYMENT: dict[str, Any] = yaml.safe_load((KUBERNETES / "deployment.yaml").read_text("utf-8"))
POD: dict[str, Any] = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
SECRET: dict[str, Any] = yaml.safe_load((KUBERNETES / "secret.example.yaml").read_text("utf-8"))

FROM_FILES = set(
    re.findall(r"[A-Z_]{5,}", ENTRYPOINT.read_text("utf-8").partition("for name in")[2].partition("; do")[0])
)
"""Names that the entry point reads from files."""
KNOWN = {
    *(f"SCRAPYD_{name.upper()}" for name in NodeOptions.__struct_fields__),
    *("REDIS_URL", "DATABASE_URL", "MONGO_URL", "S3_BUCKET", "S3_ENDPOINT_URL", "CSV_ENABLED", "CONTACT", "TOR_TUNNEL"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "SCRAPY_SETTINGS_MODULE"),
}
"""Names that the node and the project read."""
SECRETS = {"PASSWORD", "SECRET", "REDIS_URL", "DATABASE_URL", "MONGO_URL", "KEY_ID"}


def check_environment(given: Mapping[str, Any], secrets: set[str]) -> None:
    """Assert that each name is read by somebody, and that secrets come from files that are there."""
    for name, value in given.items():
        if name.endswith("_FILE"):
            assert name.removesuffix("_FILE") in FROM_FILES, f"the entry point reads no {name}"
            assert Path(value).name in secrets, f"{name} is no secret of the service"
        else:
            assert name in KNOWN, f"nothing reads {name}"
            assert not any(part in name for part in SECRETS), f"{name} is a secret; give it as a file"


def test_entry_point_reads_every_secret_from_a_file() -> None:
    assert {"SCRAPYD_PASSWORD", "TOR_CONTROL_PASSWORD", "ALERT_WEBHOOK", "REDIS_PARAMS"} <= FROM_FILES


# --- Schemas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.compose-spec", [PROJECT / "docker-compose.yml"]),
        ("vendor.dependabot", [PROJECT / ".github" / "dependabot.yml"]),
        ("vendor.github-workflows", WORKFLOWS),
    ],
)
def test_files_are_right_by_their_published_schema(schema: str, paths: list[Path]) -> None:
    command = [str(Path(sys.executable).parent / "check-jsonschema"), "--builtin-schema", schema, *map(str, paths)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize("version", ["1.29", "1.37"])
def test_manifests_are_right_by_kubernetes_own_schemas(version: str) -> None:
    for document in MANIFESTS:
        kubernetes_validate.validate(document, version, strict=True)


# --- Compose ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVICES)
def test_service_names_what_is_there(name: str) -> None:
    service = SERVICES[name]
    given = set(service.get("secrets", []))
    assert given <= set(COMPOSE["secrets"])
    assert set(service["networks"]) <= set(COMPOSE["networks"])
    for volume in service.get("volumes", []):
        source = volume.split(":")[0]
        assert source in COMPOSE["volumes"] or (PROJECT / source).exists(), source
    for other, how in service.get("depends_on", {}).items():
        assert how["condition"] == ("service_completed_successfully" if other == "bucket" else "service_healthy")
        assert other in SERVICES
    mounted = [PROJECT / volume.split(":")[0] for volume in service.get("volumes", [])]
    texts = [json.dumps(service), *(path.read_text("utf-8") for path in mounted if path.suffix == ".yml")]
    read = {Path(path).name for text in texts for path in re.findall(r"/run/secrets/[\w.]+", text)}
    assert read == given, "a service gets the secrets that it reads, and no others"


def test_node_has_one_cpu_and_two_gigabytes() -> None:
    node = SERVICES["node"]
    assert node["deploy"]["resources"]["limits"] == {"cpus": "1", "memory": "2g", "pids": 512}
    assert "container_name" not in node  # else it could not be scaled
    assert node["restart"] == "unless-stopped"
    environment = node["environment"]
    spiders = int(environment["SCRAPYD_MAX_PROC"].split(":-")[1].rstrip("}"))
    each = int(environment["SCRAPYD_MEMORY_LIMIT_MB"].split(":-")[1].rstrip("}"))
    assert spiders * each + 120 < 2048


def test_nothing_can_be_reached_from_outside_the_machine() -> None:
    for name, service in SERVICES.items():
        for port in service.get("ports", []):
            assert name in {"node", "grafana"}
            assert port.startswith("127.0.0.1:")


def test_stores_have_no_way_to_the_internet() -> None:
    assert COMPOSE["networks"]["stores"] == {"internal": True}
    for name in ("redis", "postgres", "mongo", "s3", "bucket"):
        assert SERVICES[name]["networks"] == ["stores"], name


def test_environment_of_the_image_is_read_and_holds_no_secret() -> None:
    service = SERVICES["node"]
    check_environment(service["environment"], set(service.get("secrets", [])))
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]


def test_node_gets_the_time_to_end_its_spiders() -> None:
    needed = NodeOptions(redis_url="redis://127.0.0.1").stop_seconds
    assert int(SERVICES["node"]["stop_grace_period"].removesuffix("s")) > needed
    assert POD["terminationGracePeriodSeconds"] > needed


# --- Secrets ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    folder = tmp_path / "secrets"
    subprocess.run([str(PROJECT / "scrapyd" / "secrets.sh"), str(folder)], check=True, timeout=30, capture_output=True)
    return folder


def test_secrets_are_made_once_and_for_everybody(secrets: Path) -> None:
    names = {path.name: path.read_text() for path in secrets.iterdir()}
    assert set(names) == set(COMPOSE["secrets"])
    assert {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()} == set(names)
    assert secrets.stat().st_mode & 0o777 == 0o700
    random = [text for name, text in names.items() if name.endswith(("_password", "_secret_key"))]
    assert len(set(random)) == len(random) == 6
    assert all(len(text) == 48 for text in random)
    subprocess.run([str(PROJECT / "scrapyd" / "secrets.sh"), str(secrets)], check=True, timeout=30, capture_output=True)
    assert {path.name: path.read_text() for path in secrets.iterdir()} == names


def test_redis_starts_as_compose_has_it(secrets: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program, *arguments = (str(part).replace("/run/secrets", str(secrets)) for part in SERVICES["redis"]["command"])
    assert program == "redis-server"
    process = subprocess.Popen(
        [executable(), *arguments, *f"--port {port} --bind 127.0.0.1 --dir {tmp_path} --loglevel warning".split()],
        stdout=subprocess.DEVNULL,
    )
    try:
        url = (secrets / "redis_url").read_text().replace("@redis:6379", f"@127.0.0.1:{port}")
        once = Retry(NoBackoff(), 0)
        with redis.Redis.from_url(url, retry=once) as client, redis.Redis(port=port, retry=once) as stranger:
            wait_for(lambda: _answers(client), 20)
            with pytest.raises(redis.exceptions.AuthenticationError):
                stranger.get("any")
            wanted = {"maxmemory-policy": "noeviction", "appendonly": "yes", "maxmemory": str(1024**3)}
            for name, value in wanted.items():
                found: Any = client.config_get(name)
                assert found == {name: value}
    finally:
        process.terminate()
        process.wait(20)


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.exceptions.ConnectionError:
        return False


# --- Kubernetes -------------------------------------------------------------------------------------------------------


def test_pods_get_secrets_by_reference(secrets: Path) -> None:
    given = {entry["name"]: entry.get("value") for entry in CONTAINER["env"] if entry["name"] != "POD_IP"}
    keys = set(SECRET["stringData"])
    config = yaml.safe_load((KUBERNETES / "settings.yaml").read_text("utf-8"))
    check_environment({**given, **config["data"]}, keys)
    assert CONTAINER["envFrom"] == [{"configMapRef": {"name": config["metadata"]["name"]}}]
    assert keys <= {path.name for path in secrets.iterdir()}, "secrets.sh makes them too"
    assert {Path(value).name for name, value in given.items() if name.endswith("_FILE")} == keys
    (volume,) = [volume for volume in POD["volumes"] if "secret" in volume]
    assert volume["secret"]["secretName"] == SECRET["metadata"]["name"]


def test_parts_of_the_deployment_find_each_other() -> None:
    of_kind = {one["kind"]: one for one in MANIFESTS if one["metadata"]["name"] != "alertmanager"}
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    for selector in (
        DEPLOYMENT["spec"]["selector"]["matchLabels"],
        of_kind["Service"]["spec"]["selector"],
        of_kind["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        of_kind["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    target = of_kind["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == (DEPLOYMENT["kind"], DEPLOYMENT["metadata"]["name"])
    assert {mount["name"] for mount in CONTAINER["volumeMounts"]} == {volume["name"] for volume in POD["volumes"]}
    assert [port["containerPort"] for port in CONTAINER["ports"]] == [NodeOptions(redis_url="redis://x").http_port]


def test_autoscaler_goes_by_the_queue() -> None:
    text = (KUBERNETES / "autoscaler.yaml").read_text("utf-8")
    (metric,) = yaml.safe_load(text)["spec"]["metrics"]
    assert f"as: {metric['external']['metric']['name']} " in text
    named = set(re.findall(r"moviecrawler_jobs_\w+", text))
    metrics = (PROJECT / "moviecrawler" / "cluster" / "metrics.py").read_text("utf-8")
    assert named == {"moviecrawler_jobs_pending", "moviecrawler_jobs_running"}
    assert all(f'"{name}"' in metrics for name in named)


def test_probes_ask_what_is_served() -> None:
    probes = {CONTAINER[f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "readiness", "liveness")}
    served = (PROJECT / "scrapyd" / "scrapyd.conf").read_text("utf-8")
    assert all(re.search(rf"^{path[1:]}\s*=", served, re.MULTILINE) for path in probes)


# --- Workflows --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_is_pinned_and_may_only_read(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        if "uses" in job:
            assert (PROJECT / job["uses"]).is_file()
            continue
        assert job["timeout-minutes"] <= 60, name
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]), step["uses"]
            # What others may write, such as a tag's name, reaches a shell as a variable only.
            assert "${{" not in step.get("run", "")


def test_tests_run_on_every_python_that_is_promised() -> None:
    workflow = yaml.safe_load((PROJECT / ".github" / "workflows" / "test.yml").read_text("utf-8"))
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = [text.rpartition(" ")[2] for text in project["classifiers"] if text[-4:-2] == "3."]
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == promised
    assert set(workflow["jobs"]["test"]["services"]) == {"redis", "postgres", "mongo"}
    # The images that compose runs are those that the tests ran on.
    for name, service in workflow["jobs"]["test"]["services"].items():
        assert service["image"] == SERVICES[name]["image"]
    assert SERVICES["s3"]["image"] in json.dumps(workflow["jobs"]["test"]["steps"])


def test_deploy_follows_the_tests_with_secrets_of_its_environment() -> None:
    workflow = yaml.safe_load((PROJECT / ".github" / "workflows" / "deploy.yml").read_text("utf-8"))
    assert workflow[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as a truth value
    job = workflow["jobs"]["deploy"]
    assert job["needs"] == "test"
    assert job["environment"] == "production"
    step = job["steps"][-1]
    assert step["run"].startswith("scrapyd-deploy production ")
    for name, value in step["env"].items():
        assert value == f"${{{{ secrets.{name} }}}}"
    assert set(step["env"]) == set(re.findall(r"\$\{(\w+)\}", (PROJECT / "scrapy.cfg").read_text("utf-8")))
    assert not any("secrets." in json.dumps(other) for other in job["steps"][:-1])
