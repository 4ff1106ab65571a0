"""The image of a node: what its Dockerfile says, and its steps carried out in a folder, as far as that goes without an engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from importlib.metadata import distribution, requires, version
from pathlib import Path
from typing import Any

import pytest
from dockerfile_parse import DockerfileParser  # type: ignore[import-untyped]
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from moviecrawler.replica.process import ReplicaProcess
from tests.conftest import PROJECT
from tests.deploy.checkout import copy_project
from tests.deploy.test_deploy import free_port
from tests.waiting import wait_for

DOCKERFILES = [PROJECT / "scrapyd" / "Dockerfile", PROJECT / "scrapyd" / "tor" / "Dockerfile"]
LOCKS = [PROJECT / "scrapyd" / name for name in ("build-requirements.txt", "requirements.txt")]
PLACES = re.compile(r"(?<![\w./])/(?=(?:opt|etc|usr/share|var/lib)/moviecrawler\b)")
"""Where the image has what is the project's."""
PART_OF_PYTHON = {"typing"}
"""What a dependency asks for and the lock leaves out."""


def instructions(dockerfile: Path) -> list[tuple[str, str]]:
    """Return each instruction and what stands behind it."""
    parser = DockerfileParser(path=str(dockerfile), cache_content=False)
    return [(part["instruction"], part["value"]) for part in parser.structure if part["instruction"] != "COMMENT"]


def locked() -> dict[str, str]:
    """Return version by name."""
    found = re.findall(r"^([\w.-]+)==(\S+)", "".join(path.read_text("utf-8") for path in LOCKS), re.MULTILINE)
    return {canonicalize_name(name): pinned for name, pinned in found}


# --- What it says -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.parent.name)
def test_linter_finds_nothing(dockerfile: Path) -> None:
    command = [str(Path(sys.executable).parent / "hadolint"), "--failure-threshold", "info", str(dockerfile)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=lambda path: path.parent.name)
def test_image_does_not_run_as_root(dockerfile: Path) -> None:
    (user,) = [value for name, value in instructions(dockerfile) if name == "USER"]
    assert re.fullmatch(r"[1-9]\d{4}:[1-9]\d{4}", user)


def test_image_is_made_in_two_stages_of_one_pinned_python() -> None:
    steps = instructions(DOCKERFILES[0])
    (python,) = [value for name, value in steps if name == "ARG"]
    assert re.fullmatch(r"PYTHON=3\.\d+\.\d+-slim-\w+", python)
    assert [value for name, value in steps if name == "FROM"] == ["python:${PYTHON} AS build", "python:${PYTHON}"]
    assert not any(re.search(r"PASSWORD|SECRET|_URL", value) for name, value in steps if name in {"ARG", "ENV"})


def test_builder_gets_what_is_copied_and_nothing_else() -> None:
    ignored = (PROJECT / ".dockerignore").read_text("utf-8").split()
    assert "*" in ignored
    given = {line[1:] for line in ignored if line.startswith("!")}
    for name, value in instructions(DOCKERFILES[0]):
        if name == "COPY" and not value.startswith("--from"):
            for source in value.split()[:-1]:
                assert (PROJECT / source).exists(), source
                assert source.split("/")[0] in given, source
    assert given == {"LICENSE", "README.md", "moviecrawler", "pyproject.toml", "scrapy.cfg", "scrapyd"}


def test_lock_has_a_hash_for_everything() -> None:
    for path in LOCKS:
        entries = re.split(r"^(?=[\w.-]+==)", path.read_text("utf-8"), flags=re.MULTILINE)[1:]
        assert entries
        assert all("--hash=sha256:" in entry for entry in entries)


def test_lock_holds_what_a_node_needs() -> None:
    pinned = locked()
    wanted = ["moviecrawler[cluster]"]
    seen: set[tuple[str, str]] = set()
    while wanted:
        requirement = Requirement(wanted.pop())
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for text in requires(name) or ():
                needed = Requirement(text)
                if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                    wanted.append(text)
        if name not in {"moviecrawler", *PART_OF_PYTHON}:
            assert name in pinned, f"make scrapyd/requirements.txt anew: {name} is missing"
            assert requirement.specifier.contains(pinned[name]), f"{requirement}, but {pinned[name]} is locked"
    assert len(seen) > 30


# --- Its steps --------------------------------------------------------------------------------------------------------


@dataclass
class Image:
    """A folder in which the steps were carried out."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    entrypoint: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    done: list[str] = field(default_factory=list)

    def place(self, text: str) -> str:
        """Return text with the project's places in this folder."""
        return PLACES.sub(f"{self.root}/", text)

    def step(self, name: str, value: str, context: Path) -> None:
        """Carry out an instruction. Those that make users are left out, and packages come from where the tests have them."""
        work = Path(self.folder)
        match name:
            case "ENV":
                for key, text in re.findall(r"(\w+)=(\S+)", value):
                    self.environment[key] = self.place(text).replace("$PATH", self.environment["PATH"])
            case "WORKDIR":
                self.folder = self.place(value) if PLACES.search(value) else f"{self.root}{value}"
                Path(self.folder).mkdir(parents=True, exist_ok=True)
            case "COPY" if not value.startswith("--from"):
                *sources, target = value.split()
                to = Path(self.place(target)) if target.startswith("/") else work / target
                for source in sources:
                    self._copy(context / source, to, whole=len(sources) == 1 and not target.endswith("/"))
            case "RUN" if "useradd" in value:
                for place in re.findall(r"/var/lib/moviecrawler\S*", value):
                    Path(self.place(place)).mkdir(parents=True, exist_ok=True)
            case "RUN" if "--require-hashes" in value:
                self._install_packages()
            case "RUN":
                self.done.append(value)
                environment = {**self.environment, "HOME": str(self.root), "PIP_NO_INDEX": "1"}
                subprocess.run(["sh", "-euc", self.place(value)], cwd=work, env=environment, check=True, timeout=120)
            case "ENTRYPOINT":
                self.entrypoint = [self.place(part) for part in json.loads(value)]
            case "HEALTHCHECK":
                self.health = json.loads(value.partition("CMD ")[2])

    def _install_packages(self) -> None:
        """Put those of the tests after the image's own, but setuptools in the place of what a new environment may bring."""
        (packages,) = (self.root / "opt/moviecrawler/lib").glob("python*/site-packages")
        there = Path(str(distribution("setuptools").locate_file("")))
        for old in packages.glob("setuptools-*.dist-info"):
            shutil.rmtree(old)
        for name in ("setuptools", "pkg_resources", "_distutils_hack", f"setuptools-{version('setuptools')}.dist-info"):
            shutil.rmtree(packages / name, ignore_errors=True)
            shutil.copytree(there / name, packages / name, ignore=shutil.ignore_patterns("__pycache__"))
        (packages / "tests.pth").write_text(str(there))

    def _copy(self, source: Path, target: Path, *, whole: bool) -> None:
        if source.is_dir():
            shutil.copytree(source, target if whole else target / source.name, dirs_exist_ok=True)
        else:
            to = target if whole and target.suffix else target / source.name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, to)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Return the image's folder, as its Dockerfile makes it of a checkout."""
    context = copy_project(tmp_path_factory.mktemp("image") / "context")
    shutil.copytree(PROJECT / "scrapyd", context / "scrapyd")
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    image = Image(tmp_path_factory.mktemp("image") / "root", {"PATH": tools})
    for name, value in instructions(DOCKERFILES[0]):
        image.step(name, value, context)
    return image


@pytest.mark.long
def test_steps_make_a_project_of_its_own(image: Image) -> None:
    assert len(image.done) == 2, "the virtual environment; the project and its egg"
    where = subprocess.run(
        [
            "python",
            "-P",
            "-c",
            "import moviecrawler, importlib.metadata as m; print(moviecrawler.__file__, m.version('moviecrawler'))",
        ],
        env={**image.environment},
        cwd=image.folder,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split()
    assert where[0].startswith(str(image.root / "opt/moviecrawler"))
    assert where[1] == version("moviecrawler")
    assert (image.root / "usr/share/moviecrawler/moviecrawler.egg").is_file()


@pytest.mark.long
def test_image_runs_a_node_and_the_demo(image: Image, redis_server: str, database_url: str, tmp_path: Path) -> None:
    """From the entry point, with secrets from files, as compose has it; nothing is written beside the node's own folders."""
    secrets = {
        "SCRAPYD_PASSWORD": "node",
        "SCRAPYD_DEPLOY_PASSWORD": "deployer",
        "REDIS_URL": redis_server,
        "DATABASE_URL": database_url,
    }
    files = {}
    for name, text in secrets.items():
        path = tmp_path / name.lower()
        path.write_text(f"{text}\n")
        files[f"{name}_FILE"] = str(path)
    port = free_port()
    environment = {
        **image.environment,
        **files,
        "HOME": image.place("/var/lib/moviecrawler"),
        "TMPDIR": str(tmp_path),
        "SCRAPYD_USERNAME": "moviecrawler",
        "SCRAPYD_DEPLOY_USERNAME": "deploy",
        "SCRAPYD_REDIS_PREFIX": "image",
        "SCRAPYD_HTTP_PORT": str(port),
        "CSV_ENABLED": "0",
        "MOVIECRAWLER_EGG": image.place("/usr/share/moviecrawler/moviecrawler.egg"),
    }
    before = sorted(Path(image.folder).rglob("*"))
    with (tmp_path / "log").open("wb") as log:
        node = subprocess.Popen(image.entrypoint, cwd=image.folder, env=environment, stdout=log, stderr=log)
    try:
        wait_for(lambda: healthy(image, environment, port), 60, (tmp_path / "log").read_text)
        with ReplicaProcess(titles=12, light=True) as replica:
            demo = [
                image.entrypoint[0],
                "python",
                f"{image.folder}/demo.py",
                f"http://127.0.0.1:{port}/",
                replica.urls["imdb"],
            ]
            ran = subprocess.run(
                demo, cwd=image.folder, env=environment, capture_output=True, text=True, timeout=180, check=False
            )
        assert ran.returncode == 0, ran.stdout + ran.stderr + (tmp_path / "log").read_text()
        for spider, items in (("imdb", 12), ("metacritic", 11), ("rottentomatoes", 11)):
            assert re.search(rf"^{spider}: finished on .*: {items} items, 0 errors$", ran.stdout, re.MULTILINE), (
                ran.stdout
            )
        assert "Muted Mirror 13" in ran.stdout
        assert sorted(Path(image.folder).rglob("*")) == before
        for arguments in command_lines():
            assert not any(secret in arguments for secret in (database_url, redis_server)), arguments
        node.send_signal(signal.SIGTERM)
        assert node.wait(60) in {0, -signal.SIGTERM}  # by which Twisted ends itself, once it has cleared up
    finally:
        node.kill()
        node.wait()
    told = (tmp_path / "log").read_text()
    assert "deployer" not in told
    assert database_url not in told


def healthy(image: Image, environment: dict[str, str], port: int) -> bool:
    """Return what the image's own check says, and that the node takes jobs."""
    for path in ("healthz", "readyz"):
        check = [part.replace("6800/healthz", f"{port}/{path}") for part in image.health]
        assert any(f":{port}/" in part for part in check)
        if subprocess.run(check, env=environment, capture_output=True, timeout=30, check=False).returncode:
            return False
    return True


def command_lines() -> list[str]:
    """Return the command line of every process that there is."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return found


@pytest.mark.long
def test_secret_that_is_not_there_ends_the_start(image: Image, tmp_path: Path) -> None:
    ran: Any = subprocess.run(
        image.entrypoint,
        cwd=image.folder,
        env={**image.environment, "REDIS_URL_FILE": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stderr == f"REDIS_URL_FILE is {tmp_path / 'none'}, which can't be read\n"
