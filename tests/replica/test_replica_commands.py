import argparse
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from moviecrawler.basics.errors import ConfigurationError
from moviecrawler.commands.replica import Command, read_options
from moviecrawler.replica.process import ReplicaError, ReplicaProcess
from moviecrawler.sites import SITES
from tests.replica.client import ask
from tests.waiting import wait_for

ENVIRONMENT = {**os.environ, "SCRAPY_SETTINGS_MODULE": "moviecrawler.settings"}


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "scrapy", *arguments]
    pipe = subprocess.PIPE
    # A shell without job control has its children ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(
        command,
        env=ENVIRONMENT,
        cwd=cwd,
        stdout=pipe,
        stderr=pipe,
        text=True,
        start_new_session=True,
    )


def answers(url: str) -> bool:
    try:
        return ask(f"{url}/chart/top/").status == 200
    except ConnectionError:
        return False


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.long), signal.SIGTERM]
)
def test_the_replica_prints_its_urls_and_ends_on_a_signal(
    number: signal.Signals, tmp_path: Path
) -> None:
    with start("replica", "--port", "0", "--titles", "5", "--light", cwd=tmp_path) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in SITES]
        assert [site for site, _ in lines] == list(SITES)
        assert answers(lines[0][1])
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def test_ctrl_c_ends_the_demo_without_a_traceback(tmp_path: Path) -> None:
    with start("demo", cwd=tmp_path) as process:
        wait_for((tmp_path / "data" / "demo" / "crawl.log").exists)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        shown = process.communicate(timeout=60)[1]
        assert shown.endswith("scrapy demo: interrupted\n")
        assert "Traceback" not in shown
    assert process.returncode == 130


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--titles", "0"], "titles is '0'; set it to a whole number from 1 to "),
        (["--today", "soon"], "today is 'soon'; set it to a date"),
        (["--robots", "shut"], "robots is 'shut'; set it to live or open"),
        (["--fail", "500"], "--fail is '500'; use KIND:SHARE"),
        (["--fail", "500:0.6", "--fail", "500:0.6"], "the share of 500 is 1.2; use 0 to 1"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: list[str], sentence: str) -> None:
    parser = argparse.ArgumentParser()
    for names, parameters in Command.options:
        parser.add_argument(*names, **parameters)
    with pytest.raises(ConfigurationError) as refused:
        read_options(parser.parse_args(options))
    assert str(refused.value).startswith(sentence)


def test_an_address_or_port_that_cannot_be_had_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for options, sentence in (
            ({"port": port}, f"ports {port} to {port + 2} is not available"),
            ({"host": "192.0.2.1", "port": 18_000}, r"is not available on 192\.0\.2\.1"),
        ):
            with pytest.raises(ReplicaError, match=sentence), ReplicaProcess(**options):
                pass


def test_replica_listens_where_it_is_told_and_its_settings_point_spiders_there() -> None:
    with ReplicaProcess(host="127.0.0.2", titles=5, light=True) as replica:
        assert {url.rpartition(":")[0] for url in replica.urls.values()} == {"http://127.0.0.2"}
        assert ask(replica.settings["IMDB_DATASETS_URL"] + "/title.basics.tsv.gz").status == 200
        assert replica.settings["METACRITIC_API_URL"] == replica.settings["METACRITIC_URL"]
    assert not answers(replica.urls["imdb"])


def test_no_replica_is_left_when_its_starter_is_killed() -> None:
    code = (
        "import time\n"
        "from moviecrawler.replica.process import ReplicaProcess\n"
        "with ReplicaProcess(titles=5) as replica:\n"
        "    print(replica.urls['imdb'], flush=True)\n"
        "    time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        home = starter.stdout.readline().strip()
        assert answers(home)
        starter.kill()
    wait_for(lambda: not answers(home))
