"""Deploy this version to a cluster, have it crawl a replica of the sites, and print the scores: `docker compose --profile demo up`.

Takes the address of a node and that of the replica's first site, as http://host:port. Reads SCRAPYD_USERNAME, SCRAPYD_PASSWORD,
SCRAPYD_DEPLOY_USERNAME, SCRAPYD_DEPLOY_PASSWORD and DATABASE_URL. Exit code 1 when something went wrong.
"""

# ruff: noqa: INP001, T201, S603 - a script of its own, which prints and runs this project's commands
from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

from scrapyd_client import ScrapydClient  # type: ignore[import-untyped]

EGG = Path(os.environ.get("MOVIECRAWLER_EGG", "/usr/share/moviecrawler/moviecrawler.egg"))
FOLDER = Path(__file__).resolve().parent  # of scrapy.cfg, in the image
PROJECT = "demo"
SPIDERS = ("imdb", "metacritic", "rottentomatoes")
WITHIN = 600  # seconds


def egg_for(replica: str, folder: Path) -> Path:
    """Write an egg of this version whose settings name the replica, which it asks as fast as it can; return its path.

    No job may say where the sites are, so that is deployed.
    """
    parts = urlsplit(replica)
    imdb, metacritic, rottentomatoes = (
        f"{parts.scheme}://{parts.hostname}:{(parts.port or 8000) + n}" for n in range(3)
    )
    settings = {
        "IMDB_URL": imdb,
        "IMDB_DATASETS_URL": f"{imdb}/datasets",
        "METACRITIC_URL": metacritic,
        "METACRITIC_API_URL": metacritic,
        "ROTTENTOMATOES_URL": rottentomatoes,
        "DOWNLOAD_SLOTS": {parts.hostname: {"delay": 0, "concurrency": 16}},
    }
    lines = [f"{name} = {value!r}" for name, value in settings.items()]
    path = folder / "demo.egg"
    with zipfile.ZipFile(EGG) as ours, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as demo:
        for name in ours.namelist():
            content = ours.read(name)
            if name == "EGG-INFO/entry_points.txt":
                content = content.replace(b"moviecrawler.settings", b"moviecrawler.demo_settings")
            demo.writestr(name, content)
        demo.writestr("moviecrawler/demo_settings.py", "\n".join(["from moviecrawler.settings import *", *lines, ""]))
    return path


def crawl(client: ScrapydClient) -> bool:
    """Run the three spiders; return whether each has ended as it should."""
    # A queue of its own: titles that a demo has crawled are crawled again by the next.
    settings = [("setting", f"FRONTIER_RUN=demo-{time.time():.0f}")]
    jobs = {client.schedule(PROJECT, spider, settings): spider for spider in SPIDERS}
    print(f"queued {', '.join(jobs.values())}", flush=True)
    deadline = time.monotonic() + WITHIN
    while time.monotonic() < deadline:
        ended = {job["id"]: job for job in client.jobs(PROJECT)["finished"] if job["id"] in jobs}
        if len(ended) == len(jobs):
            for job in ended.values():
                told = ", ".join(f"{job[name]} {name}" for name in ("items", "errors") if job.get(name) is not None)
                print(
                    f"{job['spider']}: {job.get('reason', 'ended')} on {job.get('node', 'a node')}: {told}", flush=True
                )
            return all(job.get("reason", "finished") == "finished" for job in ended.values())
        time.sleep(0.5)
    print(f"after {WITHIN} s there is still one at it; see listjobs.json", file=sys.stderr)
    return False


def main() -> int:
    """Return the exit code."""
    url, replica = sys.argv[1:]
    environment = {**os.environ, "SCRAPYD_URL": url}
    with tempfile.TemporaryDirectory() as folder:
        for project, egg in (("moviecrawler", EGG), (PROJECT, egg_for(replica, Path(folder)))):
            command = [sys.executable, "-m", "scrapy", "deploy", "production", "--project", project, "--egg", str(egg)]
            if subprocess.run(command, env=environment, cwd=FOLDER, check=False).returncode:
                return 1
    client = ScrapydClient(url.rstrip("/"), os.environ["SCRAPYD_USERNAME"], os.environ["SCRAPYD_PASSWORD"])
    crawled = crawl(client)
    shown = subprocess.run([sys.executable, "-m", "scrapy", "scoreboard"], env=environment, cwd=FOLDER, check=False)
    return 0 if crawled and shown.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
