"""What README.md and the READMEs of folders show is what happens."""

import doctest
import json
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from scrapy.settings import Settings
from scrapy.spiderloader import SpiderLoader

from moviecrawler.addon import check
from moviecrawler.replica.collection import Collection
from moviecrawler.replica.process import ReplicaProcess
from tests.crawling import Finished, scrapy
from tests.shared import PROJECT

README = (PROJECT / "README.md").read_text("utf-8")
READMES = sorted(
    path
    for folder in ("moviecrawler", "scrapyd", "tests")
    for path in (PROJECT / folder).rglob("*.md")
    if ".pytest_cache" not in path.parts
)
DOCUMENTS = [PROJECT / "README.md", PROJECT / "CHANGELOG.md", *READMES]
ALL = "\n".join(path.read_text("utf-8") for path in DOCUMENTS)
FENCED = "\n".join(re.findall(r"^```\w*\n(.*?)^```", ALL, re.DOTALL | re.MULTILINE))
SHOWN = [
    line.split("  #")[0].strip()
    for text, start in ((ALL, "    "), (FENCED, ""))
    for line in re.findall(rf"^{start}(\S.*)$", text, re.MULTILINE)
]
SHOWN += re.findall(r"`([^`\s]+ [^`\n]+)`", ALL)
_VARIABLES = r"(?:export )?(?:[A-Z_]+=(?:'[^']*'|\S+)\s*)*"
COMMANDS = sorted(
    {found[1] for line in SHOWN if (found := re.match(rf"{_VARIABLES}(scrapy [a-z]+.*)", line))}
)
ELSEWHERE = {
    "python3 -m venv": ".ci/run",
    "pip install": ".ci/run",
    "pytest": ".ci/run",
    ".ci/run": "It runs these tests.",
    (
        "redis-server|mkdir|\\(cd node|scrapyd-deploy|curl .*:6800/|SCRAPYD_HTTP_PORT="
    ): "tests/deploy/test_guide_cluster.py",
    "redis-cli rpush imdb:start_urls": "tests/frontier/test_shared_crawls.py",
    "curl http://127.0.0.1:8000/__replica__": "tests/crawling.py",
    "export (IMDB|METACRITIC|ROTTENTOMATOES)_URL": "tests/test_readme.py",
    "export TOR_": "tests/proxies/test_tor.py",
    "python (crawl|in_turn)\\.py": "tests/test_examples.py",
    "python -m tests.benchmarks": "A benchmark takes minutes, on an idle machine.",
    "python -m tests.settings_table|python -m tests.rooms": "tests/test_architecture.py",
    "python -m tests.tables_document": "tests/database/test_dictionary.py",
    "python -m tests.data_document|export DATA_DIR=": "tests/test_data_document.py",
    "python -m tests.fixtures": "tests/test_architecture.py",
    "python -m tests.mutations": "It runs these tests on a package with a fault.",
    "python -m tests.pictures": "tests/test_pictures.py",
    "python -m tests.dashboard.pictures": "tests/dashboard/test_browser.py",
    "export DATABASE_URL=": "tests/test_first_hour.py",
    "REDIS_URL=redis://127.0.0.1:6379/0 scrapyd/entrypoint.sh": (
        "tests/deploy/test_guide_cluster.py"
    ),
    "export REDIS_URL=redis://:password@redis.example": "Nobody has that Redis.",
    "docker|kubectl|scrapyd/secrets.sh": (
        "Docker and Kubernetes are nowhere in the tests; tests/deploy reads their files."
    ),
}
"""Where the commands that are none of `scrapy` are run, or why they are not."""
TITLES = 12
FORMS = ("{:.1f}", "{:.0f}", "{:.1f}", "{:.0f}%", "{:.0f}%")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Return a demo that has ended."""
    folder = tmp_path_factory.mktemp("demo")
    # It uses nothing of its environment: each of these would end a crawl that reads it.
    urls = {
        "REDIS_URL": "redis://127.0.0.1:9",
        "DATABASE_URL": "postgresql://127.0.0.1:9/none",
        "S3_BUCKET": "none",
    }
    others = {
        "MONGO_URL": "mongodb://127.0.0.1:9/none",
        "PROXY_POOLS": "none.json",
        "FRONTIER_RUN": "production",
    }
    finished = scrapy("demo", "--titles", str(TITLES), data=folder, replica=None, **urls, **others)
    assert [path.name for path in folder.iterdir()] == ["data"]
    return finished


@pytest.mark.promise("The demo prints what the README shows, and needs no service.")
def test_demo_prints_what_the_readme_shows(demo: Finished) -> None:
    assert demo.code == 0, demo.log
    shown = re.search(r"shortened\):\n\n(.*?)\n\n[^ ]", README, re.DOTALL)
    assert shown is not None
    # A terminal shows the summary of the crawl before the table.
    printed = iter(re.sub(r"in [\d.]+ s", "in", demo.log + demo.output).splitlines())
    for line in shown[1].splitlines():  # which are some of those printed, in their order
        expected = re.sub(r"in [\d.]+ s", "in", line.removeprefix("    "))
        assert any(expected in one for one in printed), line


def test_table_of_the_demo_has_the_scores_of_the_replica_s_titles(demo: Finished) -> None:
    rows = {cells[-5]: line for line in demo.output.splitlines() if len(cells := line.split()) > 6}
    for movies in (Collection(1, TITLES).title(number).movies for number in range(TITLES)):
        imdb = movies["imdb"]
        metacritic = movies.get("metacritic", imdb)  # IMDb has Metascores, too
        tomatoes = movies.get("rottentomatoes", imdb)
        scores = [
            imdb.score("imdb"),
            metacritic.score("metascore"),
            metacritic.score("metacritic_user"),
        ]
        scores += [tomatoes.score("tomatometer"), tomatoes.score("popcornmeter")]
        shown = [
            form.format(one.value) if one else "–" for one, form in zip(scores, FORMS, strict=True)
        ]
        votes = f"{scores[0].count:,}" if scores[0] else "–"
        assert rows[votes].split()[-7:] == [str(imdb.year), shown[0], votes, *shown[1:]]
        assert imdb.title.startswith(rows[votes].partition(f"  {imdb.year}  ")[0].rstrip(" …"))


def test_record_is_what_the_scoreboard_prints(demo: Finished) -> None:
    shown = re.search(
        r"scrapy scoreboard --format json` prints it:\n\n(.*?)\n\n", README, re.DOTALL
    )
    assert shown is not None
    record = json.loads(shown[1])
    printed = scrapy("scoreboard", "--format", "json", data=demo.data, DATA_DIR="data/demo")
    (row,) = [row for row in json.loads(printed.output) if row["title"] == record["title"]]
    assert row.items() >= record.items()


def test_the_notebook_draws_three_plots_of_the_demo_wherever_it_is_started(
    demo: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = json.loads((PROJECT / "moviecrawler/examples/scores.ipynb").read_text("utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)
    import matplotlib as mpl  # noqa: PLC0415 - it takes a second, in each process
    from matplotlib import pyplot as plt  # noqa: PLC0415 - as above

    mpl.use("Agg")
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)  # where the project is
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="run there: moviecrawler demo"):
        exec(code[0], {})  # noqa: S102 - it is this project's own
    (demo.data / "data/notebooks").mkdir()
    monkeypatch.chdir(demo.data / "data/notebooks")
    names: dict[str, Any] = {}
    for cell in code:
        exec(cell, names)  # noqa: S102 - as above
    assert set(names["films"]["title"]) >= {"The Falling Mask", "Sable Whale"}
    drawn = [
        axes.get_title()
        for number in plt.get_fignums()
        for axes in plt.figure(number).axes
        if axes.has_data()
    ]
    assert drawn == ["Users and critics", "Scores by site", "Mean score by decade"]
    plt.close("all")


@pytest.mark.promise("Every command that the documents show exists, with its options.")
def test_commands_of_other_programs_are_run_elsewhere() -> None:
    assert len(COMMANDS) > 8
    programs = (
        r"python3?|pip|pytest|curl|redis-\S+|scrapyd\S*|docker|kubectl|mkdir|\(cd|export"
        r"|\S*/\S+\.sh|\.ci/run"
    )
    others = [
        line
        for line in SHOWN
        if re.match(rf"(?:[A-Z_]+=\S+ )*(?:{programs})(?: |$)", line) and "scrapy " not in line
    ]
    assert [line for line in others if not any(re.match(start, line) for start in ELSEWHERE)] == []
    assert [start for start in ELSEWHERE if not any(re.match(start, line) for line in others)] == []
    assert [
        path
        for path in ELSEWHERE.values()
        if not path.endswith(".") and not (PROJECT / path).exists()
    ] == []


@pytest.mark.promise("Every command that the documents show exists, with its options.")
@pytest.mark.parametrize(
    "command", [command for command in COMMANDS if re.match("scrapy crawl (?!.* -s )", command)]
)
def test_crawl_command_is_accepted(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("titles.txt", "watchlist.csv"):
        (tmp_path / name).write_text("tt0111161\n")
    (tmp_path / "films.csv").write_text(
        "imdb_id,metacritic_id,rottentomatoes_id\ntt0111161,movie/a,m/a\n"
    )
    monkeypatch.chdir(tmp_path)
    settings = Settings()
    settings.setmodule("moviecrawler.settings")
    # What lane=due needs; nothing connects.
    settings.set("DATABASE_URL", "postgresql://127.0.0.1/movies")
    _, _, spider, *options = shlex.split(command)
    arguments = dict(option.split("=", 1) for option in options if option != "-a")
    spiders = SpiderLoader.from_settings(settings)
    for name in spiders.list() if spider == "all" else [spider]:
        spidercls: Any = spiders.load(name)
        check(settings, spidercls)
        spidercls.parse_arguments(settings, arguments)


@pytest.mark.promise("Every command that the documents show exists, with its options.")
@pytest.mark.parametrize(
    "command", sorted({command.split()[1] for command in COMMANDS} - {"crawl", "demo"})
)
def test_command_exists(command: str, tmp_path: Path) -> None:
    help_of = cache(lambda *action: scrapy(command, *action, "-h", data=tmp_path))
    assert (help_of().code, f"scrapy {command}" in help_of().output) == (0, True)
    for line in (line for line in COMMANDS if line.split()[1] == command and "--" in line):
        printed = help_of(*(line.split()[2:3] if command == "catalogue" else [])).output
        assert [
            option for option in re.findall(r"--[a-z-]+", line) if option not in printed
        ] == [], line


def test_messages_that_the_readme_explains_are_those_of_the_code() -> None:
    code = "\n".join(path.read_text("utf-8") for path in (PROJECT / "moviecrawler").rglob("*.py"))
    messages = re.findall(
        r"^\| `(.+?)` \|", README.partition("## Questions")[2].partition("##")[0], re.MULTILINE
    )
    assert len(messages) > 4
    assert [message for message in messages if message not in code] == []


@pytest.mark.parametrize(
    "document", [path for path in DOCUMENTS if ">>> " in path.read_text("utf-8")], ids=str
)
def test_python_that_a_document_shows_gives_what_it_shows(document: Path) -> None:
    assert doctest.testfile(str(document), module_relative=False).failed == 0


def test_links_lead_to_files_and_headings() -> None:
    missing = []
    for path in DOCUMENTS:
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", path.read_text("utf-8")):
            file, _, heading = link.partition("#")
            target = path.parent / file if file else path
            if not target.exists() or (heading and heading not in _anchors(target)):
                missing.append(f"{path}: {link}")
    assert missing == []


def _anchors(path: Path) -> set[str]:
    """Return what GitHub names the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_settings_that_the_replica_s_readme_shows_have_crawls_ask_it(
    replica: ReplicaProcess,
) -> None:
    text = (PROJECT / "moviecrawler" / "replica" / "README.md").read_text("utf-8")
    shown = dict(re.findall(r"\b([A-Z_]+_URL)=(\S+)", text))
    given = replica.settings
    for number, url in enumerate(replica.urls.values(), 8000):
        given = {
            name: other.replace(f":{urlsplit(url).port}", f":{number}")
            for name, other in given.items()
        }
    assert shown == given
