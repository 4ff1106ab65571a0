"""A site that another distribution brings: installed for a while, gone again, or in an egg."""

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from moviecrawler.replica.process import ReplicaProcess
from tests.checkout import run
from tests.crawling import Finished, crawl, scrapy
from tests.page_texts import text_of
from tests.services.nodes import cluster
from tests.services.postgres import execute, new_database
from tests.shared import PROJECT
from tests.stored import browse
from tests.tables import sqlite_movies

SOURCE = PROJECT / "tests" / "filmograph"
LONGEST = 600
"""Seconds that the tests with the site may take before they count as hung."""
BEST = (
    "SELECT title_id, site_id, title FROM records JOIN scores USING (record_id)"
    " WHERE scores.kind = 'filmograph_stars' ORDER BY value DESC LIMIT 1"
)
ROWS = "SELECT count(*) FROM records WHERE site = 'filmograph'"


@dataclass(frozen=True)
class Left:
    """What is there after the site was installed for a while."""

    source: Path
    """The distribution's own folder."""
    environment: dict[str, str]
    """In which Python finds the site."""
    data: Path
    database_url: str

    def run(self, *command: str) -> Finished:
        """Run a command that knows nothing of the site, on what both databases hold."""
        return scrapy(*command, data=self.data, DATABASE_URL=self.database_url)


@pytest.fixture(scope="module")
def left(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Left:
    """Return what is left after the site was installed, and the tests ran that need it.

    These are its own, and `test_installed.py`. Beside it is one as `newsite` writes it. Building
    leaves nothing in this checkout.
    """
    folder = tmp_path_factory.mktemp("outside")
    source = folder / "source"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
    written = scrapy("newsite", "plainsite", data=folder)
    assert written.code == 0, written.log
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    installed = str(folder / "installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *offline]
    distributions = [str(source), str(folder / "plainsite")]
    subprocess.run([*pip, "--target", installed, *distributions], check=True, timeout=LONGEST)
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith("PYTEST")},
        "PYTHONPATH": installed,
        "OUTSIDE_DATA": str(folder / "data"),
        "OUTSIDE_DATABASE_URL": new_database(postgres_server),
    }
    ran = run_tests(environment, Path(__file__).parent, source)
    assert ran.returncode == 0, ran.stdout
    return Left(source, environment, folder / "data", environment["OUTSIDE_DATABASE_URL"])


def run_tests(environment: dict[str, str], *tests: Path) -> subprocess.CompletedProcess[str]:
    """Run tests in a process of their own."""
    config = ["-c", str(PROJECT / "pyproject.toml"), "--rootdir", str(PROJECT)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "--quiet", *config, *map(str, tests)],
        env=environment,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


@contextmanager
def replica_with_the_site(environment: dict[str, str]) -> Iterator[dict[str, str]]:
    """Run a replica in a process that knows the site, and yield each site's address."""
    options = json.dumps({"titles": 30, "series": 6, "light": True})
    command = [sys.executable, "-m", "moviecrawler.replica.app", options]
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        yield dict(process.stdout.readline().split() for _ in range(5))
        process.terminate()


@pytest.mark.promise(
    "What a site's distribution has stored stays readable where that is not installed."
)
def test_its_rows_stay_readable_without_it(left: Left, replica: ReplicaProcess) -> None:
    movies = sqlite_movies(left.data)
    stored = [str(movie.site_id) for movie in movies if movie.site == "filmograph"]
    assert len(stored) > 30
    [(rows,)] = execute(left.database_url, ROWS)
    assert rows == len(stored)
    for database_url in ("", left.database_url):
        shown = scrapy("scoreboard", "--format", "csv", data=left.data, DATABASE_URL=database_url)
        assert shown.code == 0, shown.log
        assert len(shown.output.splitlines()) > 30
    exported = scrapy("scoreboard", "--export", data=left.data)
    assert exported.code == 0, exported.log
    with (left.data / "movies.csv").open(encoding="utf-8-sig", newline="") as file:
        films = [row for row in csv.DictReader(file) if row["site"] == "filmograph"]
    assert sorted(row["site_id"] for row in films) == sorted(stored)
    assert any(row["filmograph_stars"] for row in films)
    assert '"filmograph_id": "film/' in browse(left.data, "/movies/scoreboard.json?_shape=array")
    # What others store leaves it alone.
    database = {"DATABASE_URL": left.database_url}
    more = crawl("imdb", "list=popular", data=left.data, replica=replica, **database)
    assert more.code == 0, more.log
    for command in (["catalogue", "status"], ["progress"], ["deadletters"]):
        assert left.run(*command).code == 0, command
    replayed = left.run("replay", "archive")
    assert replayed.code == 2
    assert "archive has pages of filmograph, which are left out; install" in replayed.log


def test_the_tests_that_newsite_writes_fail_and_say_what_comes_next(left: Left) -> None:
    site = left.source.parent / "plainsite"
    template = PROJECT / "moviecrawler" / "sites" / "template" / "test_pages.py.tmpl"
    as_written = template.read_text("utf-8").replace("$name", "filmograph")
    assert as_written == (SOURCE / "test_pages.py").read_text("utf-8")
    ran = run_tests(left.environment, site)
    assert "1 failed, 2 passed" in ran.stdout
    assert "Next: describe the site in plainsite/__init__.py. Save the page" in ran.stdout
    page = site / "pages" / "title" / "page.html"
    url = "https://www.plainsite.example/film/some-name"
    data = {"@type": "Movie", "name": "Some Name", "url": url, "datePublished": "2024-03-08"}
    script = f'<script type="application/ld+json">{json.dumps(data)}</script>'
    page.write_text(f"<html><body>{script}</body></html>")
    page.with_name("meta.json").write_text(json.dumps({"url": url}))
    ran = run_tests(left.environment, site)
    assert f"Next: compare {page.with_name('draft.json')}, which is what was read" in ran.stdout
    draft = page.with_name("draft.json").rename(page.with_name("expected.json"))
    assert json.loads(draft.read_text())["item"]["release_date"] == "2024-03-08"
    assert run_tests(left.environment, site).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["Film-Site"], "the name is 'Film-Site'; give 2 to 30 small letters and digits"),
        (["imdb"], "there is a module or a site 'imdb'; give another name"),
        (["json"], "there is a module or a site 'json'; give another name"),
        (["here"], "there is a folder 'here' here; give another name"),
        (["other", "--url", "www.other.example"], "give a scheme and host such as https://"),
    ],
)
def test_newsite_refuses_what_can_not_be_a_site(
    arguments: list[str], why: str, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    refused = scrapy("newsite", *arguments, data=tmp_path)
    assert (refused.code, why in refused.log) == (2, True), refused.log
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


@pytest.mark.promise("A site of another distribution is crawled, stored and shown like the others.")
@pytest.mark.promise(
    "What a site's distribution has stored stays readable where that is not installed."
)
def test_an_egg_brings_it_to_a_cluster_that_lacks_it(
    left: Left, redis_url: str, tmp_path: Path
) -> None:
    """Its own folder is what `scrapyd-deploy` sends."""
    built = run(left.source, "scrapyd-deploy", "--build-egg", "site.egg")
    assert built.code == 0, built.output
    with replica_with_the_site(left.environment) as urls:
        options = {
            "FILMOGRAPH_URL": urls["filmograph"],
            "REDIS_URL": redis_url,
            "DATABASE_URL": left.database_url,
            "DATA_DIR": str(tmp_path / "data"),
        }
        [[title_id, site_id, name]] = execute(left.database_url, BEST)
        with cluster(tmp_path, redis_url, 1, **options) as running:
            node = running.nodes[0]
            deployed = node.deploy((left.source / "site.egg").read_bytes(), "filmograph").json
            assert deployed["spiders"] == 4, deployed
            job = node.schedule("filmograph", "filmograph", list="shows", ids=str(site_id))
            (done,) = node.wait_for_end(job)
            assert (done["reason"], done["result"]) == ("finished", "ok"), node.log
            # The node itself lacks it, and shows what is stored all the same.
            assert "filmograph" in node.get("progress.json").text
            assert 'site="filmograph"' in node.get("metrics").text
            for path in ("", "crawls", f"titles?q={quote(str(name))}"):
                assert node.get(path).code == 200, path
                assert "Some data can't be shown" not in node.get(path).text
            title = node.get(f"titles/{title_id}")
            assert title.code == 200, title.text
            assert f"filmograph {site_id}" in text_of(title.text)
