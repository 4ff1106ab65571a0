"""What is deployed.

The files are right by their schemas, name only what is there, and hold no secret.
"""

import itertools
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import requires, version
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from moviecrawler.cluster.jobs import Job, check_job
from moviecrawler.cluster.options import NodeOptions
from moviecrawler.cluster.process import STOP_SECONDS
from tests.shared import PROJECT

KUBERNETES = PROJECT / "scrapyd" / "kubernetes"
MANIFESTS: list[dict[str, Any]] = [
    document
    for path in sorted(KUBERNETES.glob("*.yaml"))
    if path.name != "kustomization.yaml"
    for document in yaml.safe_load_all(path.read_text("utf-8"))
]
WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
ENTRYPOINT = (PROJECT / "scrapyd" / "entrypoint.sh").read_text("utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((PROJECT / "docker-compose.yml").read_text("utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
POD: dict[str, Any] = yaml.safe_load((KUBERNETES / "deployment.yaml").read_text("utf-8"))["spec"][
    "template"
]["spec"]
FROM_FILES = set(
    re.findall(r"[A-Z_]{5,}", ENTRYPOINT.partition("for name in")[2].partition("; do")[0])
)
"""Names that the entry point reads from files."""
SECRETS = {"PASSWORD", "SECRET", "REDIS_URL", "DATABASE_URL", "MONGO_URL", "KEY_ID"}


@pytest.mark.parametrize(
    ("schema", "paths"),
    [
        ("vendor.compose-spec", [PROJECT / "docker-compose.yml"]),
        ("vendor.dependabot", [PROJECT / ".github" / "dependabot.yml"]),
        ("vendor.github-workflows", WORKFLOWS),
    ],
)
def test_files_are_right_by_their_published_schema(schema: str, paths: list[Path]) -> None:
    check("check-jsonschema", "--builtin-schema", schema, *map(str, paths))


def check(program: str, *arguments: str) -> None:
    """Have a program of this virtual environment find nothing wrong."""
    command = [str(Path(sys.executable).parent / program), *arguments]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout


def test_images_of_others_are_named_by_digest() -> None:
    dockerfiles = [PROJECT / "scrapyd" / folder / "Dockerfile" for folder in ("", "tor")]
    manifests = [PROJECT / "docker-compose.yml", *KUBERNETES.glob("*.yaml"), *WORKFLOWS]
    texts = [path.read_text("utf-8") for path in (*dockerfiles, *manifests)]
    images = re.findall(
        r"^ *(?:image: |FROM |(?=minio/))([\w./${}:@-]+)",
        "\n".join(texts),
        re.MULTILINE,
    )
    ours = {"moviecrawler", "${MOVIECRAWLER_IMAGE:-moviecrawler:latest}"}
    assert len(images) > 15
    for image in {*images} - ours:
        assert re.search(r":[\w.-]+@sha256:[0-9a-f]{64}$", image), image


def test_kubernetes_gets_every_manifest_but_the_example() -> None:
    listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text("utf-8"))["resources"]
    assert {path.name for path in KUBERNETES.glob("*.yaml")} == {
        *listed,
        "kustomization.yaml",
        "secret.example.yaml",
    }


def test_lock_of_the_image_holds_what_a_node_needs() -> None:
    locks = "".join(
        path.read_text("utf-8") for path in (PROJECT / "scrapyd").glob("*requirements.txt")
    )
    pinned = {
        canonicalize_name(name): it
        for name, it in re.findall(r"^([\w.-]+)==(\S+)", locks, re.MULTILINE)
    }
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["cluster"]]
    for requirement in map(Requirement, wanted):  # it grows
        name = canonicalize_name(requirement.name)
        extras = ("", *requirement.extras)
        if name == "typing":  # a dependency asks for what is part of Python
            continue
        is_there = requirement.specifier.contains(pinned.get(name, ""))
        assert is_there, f"make scrapyd/requirements.txt anew: {requirement}"
        # What is installed here may be newer than what is locked, and then need something else.
        needed = requires(name) if version(name) == pinned[name] else None
        for text in {*(needed or ())}.difference(wanted):
            marker = Requirement(text).marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                wanted.append(text)


def test_nodes_are_given_secrets_as_files_which_the_entry_point_reads() -> None:
    (container,) = POD["containers"]
    config = yaml.safe_load((KUBERNETES / "settings.yaml").read_text("utf-8"))["data"]
    given = {
        *SERVICES["node"]["environment"],
        *(entry["name"] for entry in container["env"]),
        *config,
    }
    files = {name for name in given if name.endswith("_FILE")}
    assert {name.removesuffix("_FILE") for name in files} <= FROM_FILES
    assert not [name for name in given - files if any(part in name for part in SECRETS)]


def test_node_has_the_memory_and_the_time_that_its_spiders_need() -> None:
    node = SERVICES["node"]
    options = NodeOptions(redis_url="redis://127.0.0.1")
    memory = int(node["deploy"]["resources"]["limits"]["memory"].removesuffix("g")) * 1024
    assert options.max_proc * options.memory_limit_mb + 120 < memory
    assert int(node["stop_grace_period"].removesuffix("s")) > STOP_SECONDS
    assert POD["terminationGracePeriodSeconds"] > STOP_SECONDS
    unit = (PROJECT / "scrapyd" / "moviecrawler-node.service").read_text("utf-8")
    [seconds] = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(seconds) > STOP_SECONDS


def test_pods_can_read_the_secrets_that_are_mounted_there() -> None:
    pods = [POD]
    pods += [
        document["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        for document in MANIFESTS
        if document["kind"] == "CronJob"
    ]
    for pod in pods:
        assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]


def test_rules_know_the_scrape_jobs() -> None:
    monitoring = PROJECT / "scrapyd" / "monitoring"
    scraped = yaml.safe_load((monitoring / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    names = [job["job_name"] for job in scraped]
    [pattern] = re.findall(r'up\{job=~"(.*)"\}', (monitoring / "rules.yml").read_text("utf-8"))
    services = [one for one in MANIFESTS if one["kind"] == "Service"]
    [service] = [one for one in services if one["spec"]["ports"][0]["port"] == 6800]
    for name in (*names, service["metadata"]["name"]):
        assert re.fullmatch(pattern, name)


def test_nothing_can_be_reached_from_outside_the_machine_and_stores_reach_nothing_outside() -> None:
    assert COMPOSE["networks"]["stores"] == {"internal": True}
    for name, service in SERVICES.items():
        assert all(
            name in {"node", "grafana"} and port.startswith("127.0.0.1:")
            for port in service.get("ports", [])
        )
    for name in ("redis", "postgres", "mongo", "s3", "bucket"):
        assert SERVICES[name]["networks"] == ["stores"], name


def test_secrets_are_made_once_and_for_everybody(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    made = []
    for _ in range(2):
        subprocess.run(
            [PROJECT / "scrapyd" / "secrets.sh", folder],
            check=True,
            timeout=30,
            capture_output=True,
        )
        made.append({path.name: path.read_text() for path in folder.iterdir()})
    assert made[0] == made[1]
    assert set(made[0]) == set(COMPOSE["secrets"])
    assert folder.stat().st_mode & 0o777 == 0o700
    random = [text for name, text in made[0].items() if name.endswith(("_password", "_secret_key"))]
    assert [len(text) for text in {*random}] == [48] * len(random)
    [example] = [document for document in MANIFESTS if document["kind"] == "Secret"]
    assert set(example["stringData"]) <= set(made[0])


# --- Recurring jobs -------------------------------------------------------------------------------


def calls(text: str) -> list[Job]:
    """Return the jobs that calls of `schedule.json` queue."""
    found = []
    for line in re.findall(r"^[^#\n]*curl (.*)$", text, re.MULTILINE):
        words = shlex.split(line.replace("$(date +\\%F)", "2026-11-23"))
        form = [
            word.split("=", 1)
            for flag, word in itertools.pairwise(words)
            if flag == "-d" and "=" in word
        ]
        settings = dict(value.split("=", 1) for name, value in form if name == "setting")
        given = {name: value for name, value in form if name not in {"setting", "project"}}
        job = given.pop("jobid")
        spider = given.pop("spider")
        found.append(
            Job(project="moviecrawler", spider=spider, id=job, settings=settings, arguments=given)
        )
    return found


@pytest.mark.parametrize("name", ["crontab", "moviecrawler-top.service"])
def test_recurring_jobs_are_allowed_and_have_ids_of_their_own(name: str) -> None:
    jobs = calls((PROJECT / "scrapyd" / name).read_text("utf-8"))
    assert jobs
    assert len({job.id for job in jobs}) == len(jobs)
    for job in jobs:
        check_job(job)
        assert job.spider in {"imdb", "metacritic", "rottentomatoes"}
        assert set(job.arguments) <= {"list", "lane", "limit"}


# --- Workflows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_is_pinned_and_may_only_read(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for step in [job, *job.get("steps", [])]:
            used = step.get("uses", "./")
            assert re.fullmatch(r"\./.*|[\w./-]+@[0-9a-f]{40}", used), used
            # What others may write, such as a tag's name, reaches a shell as a variable only.
            assert "${{" not in step.get("run", "")


def test_workflows_have_no_known_weakness() -> None:
    check("zizmor", "--offline", "--min-severity=medium", str(PROJECT / ".github"))
