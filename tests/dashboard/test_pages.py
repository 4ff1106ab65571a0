"""The dashboard of a real cluster, read and used as a browser would."""

import asyncio
import html
import json
import re
import shutil
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import redis
from scrapy.settings import Settings

from moviecrawler.dashboard import site
from moviecrawler.database.connection import Database
from moviecrawler.frontier.contract import RunName, Worker
from moviecrawler.frontier.redis_backend import RedisBackend
from moviecrawler.frontier.runs import describe_arguments, name_of_arguments, replica_hosts
from moviecrawler.replica.collection import Collection
from tests.page_texts import HOSTILE, figures, number, query, text_of
from tests.passes import make_pass
from tests.run_keys import RunKeys, SiteKeys
from tests.services.nodes import (
    AUTH,
    DEPLOY_PASSWORD,
    PASSWORD,
    PER_DAY,
    TITLES,
    USER,
    Answer,
    Node,
    project_egg,
    toy_egg,
)
from tests.services.postgres import execute
from tests.waiting import wait_for

DONE = 12
PAGES = [
    *site.MENU,
    "/crawls/moviecrawler/{done}",
    "/crawls/moviecrawler/{running}?ask=cancel",
    "/runs/imdb/running",
    "/runs/metacritic/over?ask=letters",
    "/schedule",
    "/schedule?again=moviecrawler/{done}",
    "/titles?q=Am%C3%A9lie",
    "/titles/900001",
]
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


@dataclass
class Operated:
    """What runs, and how to ask it."""

    nodes: list[Node]
    client: redis.Redis
    done: str
    """The job that is over."""
    running: str
    """The job that runs."""

    @property
    def node(self) -> Node:
        return self.nodes[0]

    @property
    def redis_url(self) -> str:
        return self.node.environment["REDIS_URL"]

    def page(self, path: str, node: Node | None = None) -> str:
        """Return a page, which must be there with all that it shows."""
        pages: list[Answer] = []

        def is_whole() -> bool:
            # On a machine that is so busy that a store takes seconds, whoever asks asks again.
            pages.append((node or self.node).request(path.lstrip("/")))
            return "has not answered" not in pages[-1].text

        wait_for(is_whole)
        assert pages[-1].code == 200, (path, pages[-1].code, pages[-1].text[-2000:])
        return pages[-1].text

    def send(self, path: str, node: Node | None = None, /, **fields: str) -> Answer:
        """Send a form as a browser does, and return the answer without following it."""
        return (node or self.node).post(path.lstrip("/"), **fields)

    def sent(self, path: str, node: Node | None = None, /, **fields: str) -> str:
        """Send a form, and return where that leads to."""
        answer = self.send(path, node, **fields)
        assert answer.code == 303, answer.text
        return answer.headers["Location"]

    def ask(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Ask the database."""
        return execute(self.node.environment["DATABASE_URL"], statement, *values)


@pytest.fixture(scope="module")
def live(shared_nodes: list[Node], notes: Path) -> Iterator[Operated]:
    """Return a cluster with a crawl that is over, and one that runs for as long as the tests do."""
    one, two = shared_nodes
    logs = [node.folder / "logs" / "moviecrawler" for node in shared_nodes]
    for path in logs:
        shutil.rmtree(path, ignore_errors=True)
        path.parent.mkdir(exist_ok=True)
    logs[0].mkdir()
    logs[1].symlink_to(logs[0])
    collection = Collection(1, TITLES)
    database_url = one.environment["DATABASE_URL"]
    with closing(Database(database_url)) as database:
        database.open()
    script = Path(__file__).with_name("gone_wrong.sql").read_text("utf-8")
    with (
        closing(psycopg2.connect(database_url)) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(script, {"hostile": HOSTILE, "imdb_id": "tt99990001"})
    with redis.Redis.from_url(one.environment["REDIS_URL"]) as client:
        client.flushall()  # what tests of nodes have left
        wait_for(lambda: len(two.get("nodes.json").json["nodes"]) == len(shared_nodes))
        assert one.deploy(project_egg(), "moviecrawler", "v1").json["status"] == "ok"
        quick = {"AUTOTHROTTLE_ENABLED": "0", "FRONTIER_RUN": "over"}
        slugs = list(collection.ids["metacritic"].values())[:DONE]
        done = two.schedule("metacritic", "moviecrawler", quick, ids=",".join(slugs))
        slowly = {**quick, "FRONTIER_RUN": "running"}
        job = two.schedule("imdb", "moviecrawler", slowly, ids=",".join(collection.imdb_ids[:600]))
        wait_for(lambda: one.finished(done), 90, lambda: one.log + two.log)
        envelope = ["parse_title", "https://www.metacritic.com/movie/killer/", {}, "page"]
        reason = json.dumps({"reason": f"it kills {HOSTILE}", "at": round(time.time() * 1000)})
        letter = f"{reason}\n2 1 t\n{json.dumps(envelope)}"
        client.hset(RunKeys(SiteKeys("metacritic"), "over").dead, "0" * 32, letter)
        wait_for(lambda: _at_work(one), 60, lambda: one.log + two.log)
        yield Operated(shared_nodes, client, done, job)
        one.post("cancel.json", project="moviecrawler", job=job, signal="KILL")
        wait_for(lambda: not one.jobs("running"))
        assert one.post("delproject.json", project="moviecrawler").json["status"] == "ok"
        assert one.deploy(toy_egg("1", notes)).json["status"] == "ok"


def _at_work(node: Node) -> bool:
    """Return whether the running crawl has stored something."""
    runs = {run["run"]: run for run in node.get("progress.json").json["runs"]}
    return bool(runs.get("running", {}).get("done", 0) > 3)


# --- What every page promises ---------------------------------------------------------------------


@pytest.mark.promise("Every node's dashboard shows the same, and escapes what others wrote.")
@pytest.mark.parametrize("path", PAGES)
def test_page_is_whole_brings_nothing_from_elsewhere_and_escapes_what_others_wrote(
    live: Operated, path: str
) -> None:
    answer = live.node.request(path.lstrip("/").format(done=live.done, running=live.running))
    assert answer.code == 200, answer.text
    assert HEADERS.items() <= answer.headers.items()
    assert "Some data can’t be shown" not in answer.text
    assert 'href="/jobs"' in answer.text  # Scrapyd's own page
    for tag in re.findall(r"<[a-z][^>]*>", answer.text):
        assert not re.search(r"\s(style|on\w+)\s*=", tag), tag
        assert not tag.startswith(("<style", "<img", "<iframe", "<object", "<script")), tag
        assert not tag.startswith("<link") or re.search(r'href="/static/[\w.?]+"', tag), tag
    for file in re.findall(r'href="(/static/[^"]+)"', answer.text):
        assert live.node.request(file.lstrip("/")).code == 200
    if path in {"/titles", "/titles/900001"}:
        assert HOSTILE in html.unescape(answer.text)
    assert "javascript:" not in answer.text
    for secret in (PASSWORD, USER, *AUTH[1:], DEPLOY_PASSWORD, "bob"):
        assert secret not in answer.text
        assert urllib.parse.quote(secret) not in answer.text


def test_page_refreshes_unless_it_has_a_form_or_is_paused(live: Operated) -> None:
    running = f"/crawls/moviecrawler/{live.running}"
    for path in ("/", "/crawls", "/crawls?result=ok&page=2", running, "/runs/imdb/running"):
        mark = "&" if "?" in path else "?"
        for asked in (path, f"{path}{mark}notice=scheduled"):
            answer = live.node.request(asked.lstrip("/"))
            assert answer.headers["Refresh"] == f"10; url={path}"
            assert "<form" not in answer.text
            pause = html.escape(f"{path}{mark}paused=1")
            assert f'<a href="{pause}">Pause</a>' in answer.text
        paused = live.node.request(f"{path}{mark}paused=1".lstrip("/"))
        assert "Refresh" not in paused.headers
    for path in (
        "/crawls?find=1",
        f"{running}?ask=cancel",
        f"/crawls/moviecrawler/{live.done}",
        "/runs/metacritic/over?ask=letters",
        "/schedule",
        "/titles",
        "/titles/900001",
    ):
        assert "Refresh" not in live.node.request(path.lstrip("/")).headers


def test_addresses_go_by_the_prefix_of_a_proxy_in_front(live: Operated) -> None:
    prefixed = live.node.request("", headers={"X-Forwarded-Prefix": "/movies"}).text
    assert {
        link.partition("/")[0]
        for link in re.findall(r'(?:href|src|action)="/movies(/[^"]*)"', prefixed)
    } == {""}
    assert not re.findall(r'(?:href|src|action)="/(?!movies/)[^"]*"', prefixed)
    first = live.node.request("", headers={"X-Forwarded-Prefix": "/movies"})
    assert first.headers["Refresh"].endswith("url=/movies/")
    assert '"/crawls"' in live.node.request("", headers={"X-Forwarded-Prefix": '"><b>'}).text


def test_what_does_not_exist_is_said_with_its_status(live: Operated) -> None:
    for path in (
        "titles/123456789",
        "titles/x",
        "crawls/moviecrawler/nothing",
        "crawls/a/b/c",
        "runs/imdb/nothing",
        "runs/nobody/x",
        "schedule/moviecrawler/nobody",
        "schedule?again=moviecrawler/gone",
    ):
        answer = live.node.request(path)
        assert answer.code == 404, path
        assert 'role="alert"' in answer.text
    assert live.send("/titles", action="drop").code == 400
    assert "Q has a NUL character in it" in live.node.request("titles?q=a%00b").text
    assert "call this number" not in live.page("/crawls?notice=call+this+number")


# --- Overview -------------------------------------------------------------------------------------


def test_overview_says_what_needs_attention_and_has_the_api_s_and_the_database_s_figures(
    live: Operated,
) -> None:
    told = text_of(live.page("/")).partition("1 thing needs attention ")[2]
    reason = re.escape(f"it kills {HOSTILE}")
    concern = rf"Metacritic: 1 dead letter of run over since \S+ \S+ UTC {reason}"
    assert re.match(concern, told), told
    statement = (
        "SELECT count(*) FILTER (WHERE next_due <= now()), count(*),"
        " count(*) FILTER (WHERE last_success >= date_trunc('day', now(), 'UTC'))"
        " FROM title_sites WHERE site = 'metacritic' AND site_id IS NOT NULL"
    )
    [[due, known, read]] = live.ask(statement)
    # They are counted now and then.
    wait_for(lambda: figures(live.page("/"), "metacritic")["Due"] == f"{due} of {known} known")
    metacritic = figures(live.page("/"), "metacritic")
    expected = {
        "Failed today": "1",
        "Matches to review": "2",
        "Titles fetched today": f"{read}",
        "Requests today": f"{_progress(live, 'over')['used_today']} of {PER_DAY:,}",
    }
    assert metacritic | expected == metacritic
    # Those of IMDb grow while we look.
    before = _progress(live)["used_today"]
    imdb = figures(live.page("/"), "imdb")
    assert before <= number(imdb["Requests today"]) <= _progress(live)["used_today"]
    assert re.fullmatch(r"[\d.]+ %", imdb["Up to date"])


def test_card_has_a_chart_of_the_titles_that_were_fetched_in_each_hour_of_the_last_day(
    live: Operated,
) -> None:
    def hours() -> list[int]:
        card = live.page("/").split('aria-labelledby="site-metacritic"')[1]
        line = re.search(
            r'aria-label="Titles fetched in each hour of the last day: ([\d, ]+)"><rect', card
        )
        return [int(count) for count in line[1].split(",")] if line else []

    wait_for(lambda: sum(hours()) == DONE)
    assert len(hours()) == 24


def test_site_that_has_refused_us_says_until_when_and_why(live: Operated) -> None:
    end = round(time.time() + 7200)
    circuit = SiteKeys("rottentomatoes").circuit
    live.client.hset(
        circuit,
        mapping={"reason": f"403 {HOSTILE}", "until": 1000 * end, "trips": 1},
    )
    try:
        page = live.page("/")
        until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(end))
        assert f"paused until {until} : 403 {HOSTILE}" in text_of(page)
        assert f"Rotten Tomatoes is blocking us; paused until {until}" in text_of(page)
        assert "2 things need attention " in text_of(page)
        live.client.hset(circuit, "until", round(time.time() * 1000) - 1)
        assert "probing : a test request checks" in text_of(live.page("/"))
    finally:
        live.client.delete(circuit)


@pytest.mark.promise("Every node's dashboard shows the same, and escapes what others wrote.")
def test_every_node_shows_the_same_nodes_and_sites(live: Operated) -> None:
    nodes = live.node.get("nodes.json").json["nodes"]
    for one in live.nodes:
        text = text_of(live.page("/", one))
        for node in nodes:
            pattern = (
                rf"{node['name']} (up|late) "
                rf"{len(node['processes'])} of {node['slots']} [\d.]+ MiB "
            )
            assert re.search(pattern, text), text
        assert "Deployed: moviecrawler v1." in text
        assert f"Requests today {_progress(live, 'over')['used_today']} of {PER_DAY:,}" in text


def _progress(world: Operated, name: str = "running") -> dict[str, int]:
    return next(run for run in world.node.get("progress.json").json["runs"] if run["run"] == name)


# --- Crawls ---------------------------------------------------------------------------------------


def test_jobs_and_runs_are_those_of_the_api(live: Operated) -> None:
    text = text_of(live.page("/crawls"))
    requested = rf"{DONE + 1} requested: {DONE} stored, 1 read 0 – – 1 "
    assert re.search(rf"Metacritic over finished {requested}", text), text
    assert re.search(r"IMDb running running 601 requested: \d+ stored, .* to go 1 ", text)
    jobs = live.node.get("daemonstatus.json").json
    assert f"running {jobs['running']} finished {jobs['finished']} " in text
    done = live.node.finished(live.done)
    assert done is not None
    counts = f"{done['items']} items, {done['pages']} pages, {done['errors']} errors Run again"
    job = rf"metacritic {live.done} .*FRONTIER_RUN=over "
    assert re.search(rf"{job}ok .* {counts}", text), text
    words = query("/crawls", q=f"over {live.done[:9].upper()}", spider="metacritic", result="ok")
    assert f"metacritic {live.done} " in text_of(live.page(words))
    for other in ({"q": "xyzzy"}, {"spider": "imdb"}, {"result": "failed"}):
        assert live.done not in live.page(query("/crawls", **other))


def test_a_replay_is_among_the_runs(live: Operated) -> None:
    async def begin() -> None:
        backend = RedisBackend.from_settings(Settings({"REDIS_URL": live.redis_url}))
        worker = Worker(run=RunName("replay", "of-the-archive"), name="one")
        await backend.open(worker, None, 0)
        await backend.close()

    asyncio.run(begin())
    listed = text_of(live.page("/crawls?runs=all"))
    assert "replay of-the-archive no worker 1 requested: 1 to go 0 " in listed


def test_job_has_what_it_was_given_its_result_and_the_end_of_its_log_on_every_node(
    live: Operated,
) -> None:
    done = live.node.finished(live.done)
    assert done is not None
    assert len(done["summary"]) == 5
    for node in live.nodes:
        page = html.unescape(live.page(f"/crawls/moviecrawler/{live.done}", node))
        for line in done["summary"]:
            assert f'<span class="line">{line}</span>' in page
        assert "FRONTIER_RUN=over" in page
        node_name = done["node"].partition(":")[0]
        assert f"Began Ended How 1 {node_name} " in text_of(page)
        assert "'finish_reason': 'finished'" in page


@pytest.mark.promise("Jobs are scheduled, cancelled and run again on the dashboard.")
def test_job_is_scheduled_cancelled_and_run_again_by_forms_on_different_nodes(
    live: Operated,
) -> None:
    one, two = live.nodes
    form = {
        "action": "schedule",
        "argument.ids": "tt0000001",
        "arguments": "limit=1\n",
        "setting.FRONTIER_RUN": "by-hand",
        "version": "v1",
        "priority": "-5",
    }
    path = "/schedule/moviecrawler/imdb"
    for name, value, field in (
        ("argument.ids", "nonsense", "argument.ids"),
        ("argument.limit", "0", "argument.limit"),
        ("arguments", "limit", "arguments"),
        ("arguments", "file=/dev/zero", "arguments"),
        ("settings", "API_TOKEN=abc", "settings"),
        ("priority", "x", "priority"),
    ):
        refused = live.send(path, **{**form, name: value})
        assert refused.code == 400
        assert f'id="wrong-{field}"' in refused.text
        assert html.escape(value) in refused.text, "what was typed is kept"
    assert live.send("/schedule/moviecrawler/nobody", **form).code == 404
    filler = one.schedule("imdb", "moviecrawler", {"FRONTIER_RUN": "running"}, ids="tt0000001")
    job = live.sent(path, **form).partition("?")[0].rpartition("/")[2]
    [pending] = [pending for pending in two.jobs("pending") if pending["id"] == job]
    assert (pending["args"], pending["priority"]) == ({"ids": "tt0000001", "limit": "1"}, -5)
    assert pending["settings"] == {"FRONTIER_RUN": "by-hand"}
    assert f"Cancel job {job}" in live.page("/crawls", two)
    its_page = f"/crawls/moviecrawler/{job}"
    assert "<form" not in live.page(its_page), "it asks first"
    assert "Cancel this job?" in live.page(f"{its_page}?ask=cancel")
    cancelled = live.sent(its_page, two, action="cancel")
    assert cancelled == "/crawls?notice=cancelled"
    assert "removed from the queue" in live.page(cancelled)
    assert job not in {pending["id"] for pending in one.jobs("pending")}
    again = live.page(query("/schedule", again=f"moviecrawler/{job}"))
    for name, value in form.items():
        if name.startswith(("argument.", "setting.")):
            assert re.search(rf'name="{name}"[^>]* value="{value}"', again)
    assert 'name="argument.limit" value="1"' in again
    assert "<option selected>v1</option>" in again
    assert 'value="-5"' in again
    assert "<option>boxoffice</option>" in again
    gone = live.sent("/crawls/moviecrawler/nothing", action="cancel")
    assert gone == "/crawls?notice=no-job"
    one.post("cancel.json", project="moviecrawler", job=filler, signal="KILL")


def test_arguments_of_several_lines_and_of_unknown_spiders_are_kept(live: Operated) -> None:
    values = {"note": "one\ntwo=2 ", "list": "not-one-of-the-site"}
    settings = {"FRONTIER_RUN": "odd"}
    job = live.node.schedule("imdb", "moviecrawler", settings, priority="-9", **values)
    form = live.page(query("/schedule", again=f"moviecrawler/{job}"))
    assert re.search(r'name="argument.note"[^>]*>\n?one\ntwo=2 </textarea>', form)
    assert "<option selected>not-one-of-the-site</option>" in form
    given = {f"argument.{name}": value.replace("\n", "\r\n") for name, value in values.items()}
    given["setting.LOG_LEVEL"] = "INFO"
    path = "/schedule/moviecrawler/imdb"
    wrong = live.send(path, **given, action="schedule", priority="x").text
    assert re.search(r'name="argument.note"[^>]*>\n?one\ntwo=2 </textarea>', wrong)
    assert 'name="setting.LOG_LEVEL" value="INFO"' in wrong
    sent = live.sent(path, **given, action="schedule", priority="-9")
    same = sent.partition("?")[0].rpartition("/")[2]
    [pending] = [one for one in live.node.jobs("pending") if one["id"] == same]
    assert pending["args"] == values
    for one in (job, same):
        live.sent(f"/crawls/moviecrawler/{one}", action="cancel")


def test_run_is_resumed_dropped_and_its_dead_letters_requeued(live: Operated) -> None:
    hosts = replica_hosts("imdb", Settings(live.node.environment))
    arguments = describe_arguments(["tt0000001"], {"limit": "9"}, hosts)
    run = RunName("imdb", name_of_arguments(arguments))
    worker = Worker(run=run, name="w", arguments=arguments)
    make_pass(
        Path("nowhere"),
        live.redis_url,
        {"a": "dead", "b": "dead", "c": ""},
        worker,
    )
    path = f"/runs/imdb/{run.name}"
    text = text_of(live.page(path))
    assert "no worker" in text
    assert "4 requested: 2 dead, 1 read, 1 to go" in text
    form = live.page(f"/schedule?run={path.removeprefix('/runs/')}")
    assert re.search(r'name="argument.ids"[^>]* value="tt0000001"', form)
    assert re.search(r'name="argument.limit"[^>]* value="9"', form)
    ticked = re.findall(r'name="(letter\.[^"]+)" checked', live.page(f"{path}?ask=letters"))
    assert len(ticked) == 2
    assert live.sent(path, action="requeue").endswith("no-letters")
    assert live.sent(path, action="requeue", **{ticked[0]: "on"}) == f"{path}?notice=requeued"
    assert "1 dead, 1 read, 2 to go" in text_of(live.page(path))
    assert live.sent(path, action="drop_letters", **{ticked[1]: "on"}).endswith("letters-dropped")
    assert "Dead letters 0 None." in text_of(live.page(path))
    assert "Drop this run, with 2 requests" in live.page(f"{path}?ask=drop")
    assert live.sent(path, action="drop") == "/crawls?notice=run-dropped"
    assert live.node.request(path.lstrip("/")).code == 404
